/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_place.c - the URL of a queue of RabbitMQ, taken apart.
 *
 * What is the source's own is cut out; the rest is what every URL of RabbitMQ has.
 */
#include "source/rabbit/queue_place.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/percent.h"
#include "wire/resp.h"

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"%s; a queue is amqp://user:password@host/QUEUE, or .../VHOST/QUEUE", what);
}

static bool parse_number(struct hapax_bytes text, int64_t max, int64_t *ret_number)
{
	return hx_resp_parse_integer(text, ret_number) && *ret_number >= 1 && *ret_number <= max;
}

static bool is_name(const char *text, size_t size, const char *name)
{
	return size == strlen(name) && memcmp(text, name, size) == 0;
}

/*
 * One "name=value" of ours, or OK with *ret_is_ours false. exchange and queue are of the
 * sink's URL, and would mean something else here.
 */
static enum hapax_status take_option(
	struct hx_queue_place *place, const char *text, size_t size, bool *ret_is_ours,
	struct hapax_error *err)
{
	const char *equals = memchr(text, '=', size);
	size_t name_size = equals == NULL ? size : (size_t)(equals - text);
	const char *value = equals == NULL ? text + size : equals + 1;
	size_t value_size = size - (size_t)(value - text);
	bool is_size = is_name(text, name_size, "size_max");
	int64_t number;

	*ret_is_ours = true;
	if (is_name(text, name_size, "prefetch")) {
		if (!parse_number(hx_bytes(value, value_size), HX_QUEUE_PREFETCH_MAX, &number))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0, "prefetch is a number from 1 to %d",
				HX_QUEUE_PREFETCH_MAX);
		place->prefetch = (uint16_t)number;
	} else if (is_size || is_name(text, name_size, "held_max")) {
		if (!parse_number(hx_bytes(value, value_size), HX_QUEUE_SIZE_MAX_MAX, &number))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"size_max and held_max are numbers of bytes up to %d",
				HX_QUEUE_SIZE_MAX_MAX);
		if (is_size)
			place->size_max = (size_t)number;
		else
			place->held_max = (size_t)number;
	} else if (is_name(text, name_size, "dead_exchange")) {
		if (value_size == 0 ||
		    !hx_percent_decode_text(
			    value, value_size, place->rabbit.exchange, HX_RABBIT_NAME_SIZE))
			return bad(err, "dead_exchange was not a name");
	} else if (is_name(text, name_size, "exchange") || is_name(text, name_size, "queue")) {
		return bad(err, "a source has its queue in the path, and no exchange");
	} else {
		*ret_is_ours = false;
	}
	return HAPAX_OK;
}

/* Ours into place, the others behind out. */
static enum hapax_status take_options(
	struct hx_queue_place *place, const char *query, char *out, size_t out_size,
	struct hapax_error *err)
{
	char joint = '?';

	while (*query != '\0') {
		size_t size = strcspn(query, "&");
		enum hapax_status status;
		bool is_ours;

		status = take_option(place, query, size, &is_ours, err);
		if (status != HAPAX_OK)
			return status;
		if (!is_ours) {
			size_t used = strlen(out);

			(void)snprintf(
				out + used, out_size - used, "%c%.*s", joint, (int)size, query);
			joint = '&';
		}
		query += size;
		query += *query == '&';
	}
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
		status = take_options(&place, query + 1, plain, sizeof(plain), err);
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
