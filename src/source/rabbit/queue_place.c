/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_place.c - parses the URL of a RabbitMQ queue.
 */
#include "source/rabbit/queue_place.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"

static const struct hx_url_option rows[] = {
	{"prefetch", HX_URL_NUMBER, NULL, HX_URL_MEMBER(struct hx_queue_place, prefetch), .min = 1,
	 .max = HX_QUEUE_PREFETCH_MAX},
	{"size_max", HX_URL_NUMBER, "bytes", HX_URL_MEMBER(struct hx_queue_place, size_max),
	 .min = 1, .max = HX_QUEUE_SIZE_MAX_MAX},
	{"held_max", HX_URL_NUMBER, "bytes", HX_URL_MEMBER(struct hx_queue_place, held_max),
	 .min = 1, .max = HX_QUEUE_SIZE_MAX_MAX},
	{"dead_exchange", HX_URL_TEXT, "NAME",
	 HX_URL_MEMBER(struct hx_queue_place, rabbit.exchange)},
	{.kind = HX_URL_MORE,
	 .offset = offsetof(struct hx_queue_place, rabbit),
	 .more = hx_rabbit_options},
};

static enum hapax_status bad(struct hapax_error *err, const char *what)
{
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"%s; use amqp://user:password@host/QUEUE or "
		"amqp://user:password@host/VHOST/QUEUE",
		what);
}

static hx_url_other_fn refuse_other;

static const struct hx_url_options options = {
	.of = "a RabbitMQ source", .rows = rows, .other = refuse_other};

static enum hapax_status refuse_other(
	void *place, struct hapax_bytes name, struct hapax_bytes value, struct hapax_error *err)
{
	(void)place;
	/* Options of sinks, with another meaning here. */
	if (hx_bytes_equal(name, HX_BYTES_LIT("exchange")) ||
	    hx_bytes_equal(name, HX_BYTES_LIT("queue")))
		return bad(err, "a source has its queue in the path, and cannot have an exchange");
	return hx_url_option_refuse(&options, name, value, err);
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

/* "/QUEUE" or "/VHOST/QUEUE" */
static enum hapax_status set_queue(
	struct hx_queue_place *place, struct hapax_bytes path, struct hapax_error *err)
{
	const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
	size_t vhost_size = slash == NULL ? 0 : (size_t)(slash - (const char *)path.data);

	if (slash == NULL || vhost_size + 1 == path.size)
		return bad(err, "missing queue in the URL");
	if (!hx_url_text(
		    hx_bytes(slash + 1, path.size - vhost_size - 1), place->rabbit.queue,
		    HX_RABBIT_NAME_SIZE))
		return bad(err, "invalid queue in the URL");
	return hx_rabbit_place_set_vhost(&place->rabbit, hx_bytes(path.data, vhost_size), err);
}

enum hapax_status hx_queue_place_parse(
	const char *text, struct hx_queue_place *ret_place, struct hapax_error *err)
{
	enum hapax_status status;
	struct hx_url url;

	*ret_place = (struct hx_queue_place){
		.prefetch = HX_QUEUE_PREFETCH_DEFAULT,
		.size_max = HX_QUEUE_SIZE_MAX_DEFAULT,
		.held_max = HX_QUEUE_HELD_MAX_DEFAULT};
	status = hx_rabbit_place_begin(text, &url, &ret_place->rabbit, err);
	if (status == HAPAX_OK)
		status = set_queue(ret_place, url.path, err);
	if (status == HAPAX_OK)
		status = hx_url_options_read(
			&options, url.query, ret_place->rabbit.has_tls, ret_place, err);
	if (status == HAPAX_OK)
		write_shown(ret_place);
	else
		explicit_bzero(ret_place, sizeof(*ret_place));
	return status;
}
