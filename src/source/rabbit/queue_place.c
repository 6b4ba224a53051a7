/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_place.c - the URL of a queue of RabbitMQ, taken apart.
 *
 * What is the source's own is cut out; the rest is what every URL of RabbitMQ has.
 */
#include "source/rabbit/queue_place.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "source/source_option.h"
#include "wire/percent.h"

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"%s; a queue is amqp://user:password@host/QUEUE, or .../VHOST/QUEUE", what);
}

static enum hapax_status take_bytes(
	const struct hx_option *option, size_t *ret_size, struct hapax_error *err)
{
	int64_t number;

	if (!hx_option_number(option, HX_QUEUE_SIZE_MAX_MAX, &number))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"size_max and held_max are numbers of bytes up to %d",
			HX_QUEUE_SIZE_MAX_MAX);
	*ret_size = (size_t)number;
	return HAPAX_OK;
}

/* exchange and queue are of the sink's URL, and would mean something else here. */
static enum hapax_status take_option(
	void *context, const struct hx_option *option, bool *ret_is_ours, struct hapax_error *err)
{
	struct hx_queue_place *place = context;
	int64_t number;

	if (hx_option_is(option, "size_max"))
		return take_bytes(option, &place->size_max, err);
	if (hx_option_is(option, "held_max"))
		return take_bytes(option, &place->held_max, err);
	if (hx_option_is(option, "prefetch")) {
		if (!hx_option_number(option, HX_QUEUE_PREFETCH_MAX, &number))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "prefetch is a number from 1 to %d",
				HX_QUEUE_PREFETCH_MAX);
		place->prefetch = (uint16_t)number;
		return HAPAX_OK;
	}
	if (hx_option_is(option, "dead_exchange"))
		return hx_option_text(option, place->rabbit.exchange, HX_RABBIT_NAME_SIZE)
			? HAPAX_OK
			: bad(err, "dead_exchange was not a name");
	if (hx_option_is(option, "exchange") || hx_option_is(option, "queue"))
		return bad(err, "a source has its queue in the path, and no exchange");
	*ret_is_ours = false;
	return HAPAX_OK;
}

static void write_shown(struct hx_queue_place *place)
{
	const struct hx_rabbit_place *rabbit = &place->rabbit;
	bool is_v6 = strchr(rabbit->host, ':') != NULL;

	(void)snprintf(
		place->origin, sizeof(place->origin), "amqp%s://%s%s%s:%u%s%s",
		rabbit->has_tls ? "s" : "", is_v6 ? "[" : "", rabbit->host, is_v6 ? "]" : "",
		(unsigned)rabbit->port, strcmp(rabbit->vhost, "/") == 0 ? "" : "/",
		strcmp(rabbit->vhost, "/") == 0 ? "" : rabbit->vhost);
	(void)snprintf(
		place->shown, sizeof(place->shown), "%.3000s/%s", place->origin, rabbit->queue);
}

enum hapax_status hx_queue_place_parse(
	const char *url, struct hx_queue_place *ret_place, struct hapax_error *err)
{
	struct hx_queue_place place = {
		.prefetch = HX_QUEUE_PREFETCH_DEFAULT,
		.size_max = HX_QUEUE_SIZE_MAX_DEFAULT,
		.held_max = HX_QUEUE_HELD_MAX_DEFAULT};
	char plain[HX_QUEUE_URL_SIZE];
	char exchange[HX_RABBIT_NAME_SIZE];
	const char *authority, *path, *slash, *query;
	enum hapax_status status;

	authority = strstr(url, "//");
	if (strlen(url) >= sizeof(plain) || !hx_rabbit_url_is_ours(url) || authority == NULL)
		return bad(err, "the URL was not one of RabbitMQ, or too long");
	query = url + strcspn(url, "?");
	path = authority + 2 + strcspn(authority + 2, "/?");
	slash = path == query ? NULL : memrchr(path, '/', (size_t)(query - path));
	if (slash == NULL || slash + 1 == query)
		return bad(err, "the URL named no queue");
	/* As it would be without the queue; of "//" the vhost is the empty name, as usual. */
	(void)snprintf(plain, sizeof(plain), "%.*s", (int)(slash - url), url);
	if (*query == '?') {
		status = hx_options_take(query + 1, take_option, &place, plain, sizeof(plain), err);
		if (status != HAPAX_OK)
			return status;
	}
	memcpy(exchange, place.rabbit.exchange, sizeof(exchange));
	status = hx_rabbit_place_parse(plain, &place.rabbit, err);
	if (status != HAPAX_OK)
		return status;
	memcpy(place.rabbit.exchange, exchange, sizeof(exchange));
	if (!hx_percent_decode_text(
		    slash + 1, (size_t)(query - slash - 1), place.rabbit.queue,
		    HX_RABBIT_NAME_SIZE) ||
	    place.rabbit.queue[0] == '\0')
		return bad(err, "the queue was not a name");
	write_shown(&place);
	*ret_place = place;
	return HAPAX_OK;
}
