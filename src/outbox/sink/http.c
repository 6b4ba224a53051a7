/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.c - the sink http://: CloudEvents in binary mode, one POST each, several at a time.
 *
 *	2xx                                    sent
 *	429, no connection                     the service is down; counts against no row
 *	502 503 504                            the same, unless it accepts other events meanwhile
 *	401 403 404 405 407 408 409 421 425,
 *	3xx, other 5xx, lost answer            retried
 *	other 4xx                              permanent failure: parked
 *
 * A gateway answers 502 to 504, too, for a service that crashes on one event. That event would
 * block all others. No row is awaited at the deadline: an undecided row was not sent, or got a 429.
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "net/http/http_client.h"
#include "net/resolver.h"
#include "net/tls/tls.h"
#include "outbox/sink.h"
#include "wire/cloudevents/cloudevents.h"
#include "wire/url.h"

enum {
	CALLS_MAX = 32,
	PATH_SIZE = 1024,
	HEAD_SIZE_MAX = 128 * 1024,
};

#define CALL_NS (30 * HX_NS_PER_S)

struct http_sink;

struct slot {
	struct hx_http_call call;
	struct http_sink *sink;
	struct hx_outbox_row *row; /* NULL: free */
	struct hapax_buf head;
	unsigned status;
};

struct http_sink {
	struct hx_sink base;
	struct hx_reactor reactor;
	struct hx_resolver resolver;
	struct hx_tls_context *tls;
	struct hx_http_client client;
	bool has_reactor;
	struct hx_endpoint endpoint;
	char host[HX_HOST_SIZE_MAX + 16];
	char path[PATH_SIZE];
	bool has_topic; /* the path ends with '/': the topic follows */
	struct slot slots[CALLS_MAX];
	size_t slot_count; /* created so far */
	size_t busy;
	size_t first;   /* row to start with, after rows that found no service */
	bool has_taken; /* the service accepted an event in this call */
	/* Rows answered with 502 to 504 since the last accepted event; when full, sending stops. */
	struct hx_outbox_row *doubtful[CALLS_MAX];
	size_t doubtful_count;
	unsigned doubtful_status; /* of the last one */
	bool is_away;
	struct hapax_error away;
};

static struct http_sink *http_of(struct hx_sink *sink)
{
	assert(sink->ops == &hx_sink_http_ops);
	return (struct http_sink *)sink;
}

/* What holds between two events. */
static void http_assert(const struct http_sink *sink)
{
	assert(sink->slot_count <= CALLS_MAX);
	assert(sink->busy <= sink->slot_count);
	assert(sink->doubtful_count <= CALLS_MAX);
	/* A service that turns away a full list is away. */
	assert(sink->doubtful_count < CALLS_MAX || sink->is_away);
	assert(sink->doubtful_count == 0 ||
	       (sink->doubtful_status >= 502 && sink->doubtful_status <= 504));
	assert(!sink->is_away || sink->away.status == HAPAX_ERR_UNAVAILABLE);
}

/* ------------------------------------------------------------------ requests */

static bool is_token(struct hapax_bytes name)
{
	const unsigned char *data = name.data;

	for (size_t i = 0; i < name.size; i++)
		if (!isalnum(data[i]) &&
		    (data[i] == '\0' || strchr("!#$%&'*+-.^_`|~", data[i]) == NULL))
			return false;
	return name.size > 0;
}

/* Fields of the HTTP message, not of the event. */
static bool is_ours(struct hapax_bytes name)
{
	static const char *const names[] = {"host",       "content-length",    "content-type",
					    "connection", "transfer-encoding", "expect",
					    "te",         "upgrade",           "keep-alive"};

	for (size_t i = 0; i < HX_COUNT(names); i++)
		if (name.size == strlen(names[i]) &&
		    strncasecmp(name.data, names[i], name.size) == 0)
			return true;
	return false;
}

static enum hapax_status append_topic(struct hapax_buf *head, struct hapax_bytes topic)
{
	const unsigned char *data = topic.data;
	enum hapax_status status = HAPAX_OK;
	size_t size = head->size;

	for (size_t i = 0; i < topic.size && status == HAPAX_OK; i++)
		status = isalnum(data[i]) || memchr("-._~", data[i], 4) != NULL
			? hx_buf_append_byte(head, data[i])
			: hx_buf_printf(head, "%%%02X", data[i]);
	/* Each byte takes one, or three. */
	assert(status != HAPAX_OK || head->size >= size + topic.size);
	assert(head->size <= size + 3 * topic.size);
	return status;
}

/* CloudEvents attributes are always encoded; other values only if they must be. */
static bool is_encoded(const struct hapax_field *field)
{
	const unsigned char *data = field->value.data;

	if (field->name.size > 3 && strncasecmp(field->name.data, "ce-", 3) == 0)
		return true;
	for (size_t i = 0; i < field->value.size; i++)
		if ((data[i] < 0x20 && data[i] != '\t') || data[i] > 0x7e)
			return true;
	return false;
}

static enum hapax_status append_field(struct hapax_buf *head, const struct hapax_field *field)
{
	size_t size = head->size;
	enum hapax_status status = hx_buf_append(head, field->name.data, field->name.size);

	if (status == HAPAX_OK)
		status = hx_buf_append(head, ": ", 2);
	if (status == HAPAX_OK)
		status = is_encoded(field)
			? hx_cloudevent_encode(head, field->value)
			: hx_buf_append(head, field->value.data, field->value.size);
	if (status == HAPAX_OK)
		status = hx_buf_append(head, "\r\n", 2);
	assert(status != HAPAX_OK || head->size >= size + field->name.size + field->value.size + 4);
	return status;
}

/* False: the row does not fit a request, and is refused. */
static bool write_head(struct http_sink *sink, struct slot *slot, struct hx_outbox_row *row)
{
	struct hx_outbox_message *message = &sink->base.message;
	struct hapax_buf *head = &slot->head;
	enum hapax_status status;

	assert(slot->sink == sink);
	assert(slot->row == NULL);
	hx_buf_clear(head);
	if (!hx_sink_read(&sink->base, row))
		return false;
	status = hx_buf_printf(head, "POST %s", sink->path);
	if (status == HAPAX_OK && sink->has_topic)
		status = append_topic(head, row->topic);
	if (status == HAPAX_OK)
		status = hx_buf_printf(
			head, " HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n", sink->host,
			row->payload.size);
	if (status == HAPAX_OK && row->content_type.size > 0)
		status = append_field(
			head,
			&(struct hapax_field){
				hapax_bytes_from_text("Content-Type"), row->content_type});
	for (size_t i = 0; i < message->count && status == HAPAX_OK; i++) {
		if (!is_token(message->fields[i].name) || is_ours(message->fields[i].name)) {
			hx_sink_decide(
				row, HX_OUTBOX_REFUSED,
				"its header '%.*s' is not a valid HTTP header",
				(int)(message->fields[i].name.size < 60
					      ? message->fields[i].name.size
					      : 60),
				(const char *)message->fields[i].name.data);
			return false;
		}
		status = append_field(head, &message->fields[i]);
	}
	if (status == HAPAX_OK)
		status = hx_buf_append(head, "\r\n", 2);
	assert(head->size <= HEAD_SIZE_MAX);
	if (status == HAPAX_OK)
		return true;
	hx_sink_decide(
		row, HX_OUTBOX_REFUSED, "its headers are too long: limit %d bytes", HEAD_SIZE_MAX);
	return false;
}

/* ------------------------------------------------------------------ answers */

static void be_away(struct http_sink *sink, const char *why)
{
	if (!sink->is_away)
		(void)hx_error_set(
			&sink->away, HAPAX_ERR_UNAVAILABLE, 0,
			"could not send events to '%.100s': %s", sink->host, why);
	sink->is_away = true;
}

static void be_away_with(struct http_sink *sink, unsigned status)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "the sink answered with status %u", status);
	be_away(sink, text);
}

/* The service accepts other events: these rows have failed, and are retried. */
static void count_doubtful(struct http_sink *sink)
{
	assert(sink->has_taken);
	for (size_t i = 0; i < sink->doubtful_count; i++) {
		assert(sink->doubtful[i]->outcome == HX_OUTBOX_UNDECIDED);
		sink->doubtful[i]->outcome = HX_OUTBOX_FAILED;
	}
	sink->doubtful_count = 0;
}

static void doubt(struct http_sink *sink, const struct slot *slot)
{
	assert(slot->status >= 502);
	assert(slot->status <= 504);
	if (sink->doubtful_count == CALLS_MAX)
		return;
	hx_sink_decide(
		slot->row, HX_OUTBOX_UNDECIDED,
		"'%.100s' answered with status %u, but accepted other events", sink->host,
		slot->status);
	sink->doubtful[sink->doubtful_count++] = slot->row;
	sink->doubtful_status = slot->status;
	if (sink->doubtful_count == CALLS_MAX)
		be_away_with(sink, slot->status);
}

static void judge(struct http_sink *sink, struct slot *slot)
{
	static const unsigned again[] = {401, 403, 404, 405, 407, 408, 409, 421, 425};
	unsigned status = slot->status;
	enum hx_outbox_outcome outcome = HX_OUTBOX_REFUSED;

	assert(slot->row->outcome == HX_OUTBOX_UNDECIDED);
	if (status >= 200 && status < 300) {
		slot->row->outcome = HX_OUTBOX_SENT;
		sink->has_taken = true;
		count_doubtful(sink);
		return;
	}
	if (status == 429) {
		be_away_with(sink, status);
		return;
	}
	if (status >= 502 && status <= 504) {
		doubt(sink, slot);
		return;
	}
	for (size_t i = 0; i < HX_COUNT(again); i++)
		if (status == again[i])
			outcome = HX_OUTBOX_FAILED;
	if (status < 400 || status >= 500)
		outcome = HX_OUTBOX_FAILED;
	hx_sink_decide(slot->row, outcome, "'%.100s' answered with status %u", sink->host, status);
}

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct slot *slot = call->context;

	assert(call == &slot->call);
	assert(slot->row != NULL);
	slot->status = head->status;
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	(void)call;
	(void)data;
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct slot *slot = call->context;
	struct http_sink *sink = slot->sink;

	assert(call == &slot->call);
	assert(slot->row != NULL);
	assert(sink->busy > 0);
	switch (end) {
	case HX_HTTP_CALL_COMPLETE: judge(sink, slot); break;
	case HX_HTTP_CALL_UNSENT: be_away(sink, err->message); break;
	case HX_HTTP_CALL_LOST:
		hx_sink_decide(
			slot->row, HX_OUTBOX_FAILED, "the answer was lost: %.180s", err->message);
		break;
	}
	slot->row = NULL;
	sink->busy--;
	http_assert(sink);
}

static const struct hx_http_call_ops call_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end};

/* ------------------------------------------------------------------ publish */

static struct slot *free_slot(struct http_sink *sink)
{
	for (size_t i = 0; i < sink->slot_count; i++)
		if (sink->slots[i].row == NULL)
			return &sink->slots[i];
	return NULL;
}

static void begin_call(struct http_sink *sink, struct hx_outbox_row *row, int64_t deadline_ns)
{
	struct slot *slot = free_slot(sink);
	struct hapax_error err;

	/* The caller has counted them. */
	assert(slot != NULL);
	assert(row->outcome == HX_OUTBOX_UNDECIDED);
	assert(!sink->is_away);
	/* No time left: the answer would be lost. */
	if (hx_reactor_now_ns(&sink->reactor) >= deadline_ns) {
		be_away(sink, "there was no time left to send it");
		return;
	}
	if (!write_head(sink, slot, row))
		return;
	slot->row = row;
	slot->status = 0;
	slot->call.head = (struct hapax_bytes){slot->head.data, slot->head.size};
	slot->call.body = row->payload;
	if (hx_http_call_begin(&slot->call, &sink->client, deadline_ns, &err) != HAPAX_OK) {
		slot->row = NULL;
		be_away(sink, err.message);
		return;
	}
	sink->busy++;
}

static enum hapax_status sink_publish(
	struct hx_sink *base, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	struct http_sink *sink = http_of(base);
	int64_t late_ns;
	size_t next = 0;

	assert(count > 0);
	assert(count <= HX_OUTBOX_BATCH_MAX);
	/* No call of an earlier publish is left. */
	assert(sink->busy == 0);
	sink->is_away = sink->has_taken = false;
	sink->doubtful_count = 0;
	hx_reactor_turn(&sink->reactor, 0);
	late_ns = hx_reactor_now_ns(&sink->reactor) + CALL_NS;
	if (late_ns > deadline_ns)
		late_ns = deadline_ns;
	while (sink->busy > 0 || (next < count && !sink->is_away)) {
		while (next < count && !sink->is_away && sink->busy < sink->slot_count)
			begin_call(sink, rows[(sink->first + next++) % count], late_ns);
		if (sink->busy > 0)
			hx_reactor_turn(&sink->reactor, -1);
	}
	assert(next <= count);
	assert(next == count || sink->is_away);
	if (sink->has_taken)
		count_doubtful(sink);
	else if (sink->doubtful_count > 0)
		be_away_with(sink, sink->doubtful_status);
	http_assert(sink);
	if (!sink->is_away)
		return HAPAX_OK;
	sink->first += CALLS_MAX;
	if (err != NULL)
		*err = sink->away;
	return HAPAX_ERR_UNAVAILABLE;
}

/* ------------------------------------------------------------------ open */

static void sink_close(struct hx_sink *base)
{
	struct http_sink *sink = http_of(base);

	assert(sink->busy == 0);
	assert(sink->slot_count == 0 || sink->has_reactor);
	for (size_t i = 0; i < sink->slot_count; i++) {
		hx_http_call_done(&sink->slots[i].call, &sink->reactor);
		hx_buf_done(&sink->slots[i].head);
	}
	if (sink->has_reactor) {
		hx_http_client_close(&sink->client);
		hx_reactor_turn(&sink->reactor, 0);
		hx_http_client_done(&sink->client);
		hx_resolver_done(&sink->resolver);
		hx_reactor_done(&sink->reactor);
	}
	hx_tls_context_free(sink->tls);
}

/* "http://host[:port][/path][?query]" */
static enum hapax_status parse_url(
	struct http_sink *sink, const char *text, bool *has_tls, struct hapax_error *err)
{
	struct hx_url url;
	const char *path;

	(void)hx_url_split(text, &url);
	*has_tls = hx_url_has_scheme(&url, "https");
	path = (const char *)url.hosts.data + url.hosts.size;
	if (url.hosts.size >= sizeof(sink->host) || url.user.data != NULL ||
	    strlen(path) >= sizeof(sink->path) || strpbrk(text, " #\r\n\t") != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"invalid URL of the sink; use 'http://host:port/path'");
	if (!hx_endpoint_from_host(url.hosts, *has_tls ? 443 : 80, &sink->endpoint))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the URL of the sink has no valid host and port");
	memcpy(sink->host, url.hosts.data, url.hosts.size);
	(void)snprintf(sink->path, sizeof(sink->path), "%s", *path == '\0' ? "/" : path);
	sink->has_topic = *path != '\0' && sink->path[strlen(sink->path) - 1] == '/' &&
		strlen(sink->path) > 1;
	assert(sink->path[0] != '\0');
	assert(strlen(sink->host) == url.hosts.size);
	return HAPAX_OK;
}

static enum hapax_status make_slots(struct http_sink *sink)
{
	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct slot *slot = &sink->slots[i];
		enum hapax_status status =
			hx_http_call_init(&slot->call, &sink->reactor, &call_ops, slot);

		if (status != HAPAX_OK)
			return status;
		hx_buf_init(&slot->head, HEAD_SIZE_MAX);
		slot->sink = sink;
		sink->slot_count++;
	}
	assert(sink->slot_count == CALLS_MAX);
	return HAPAX_OK;
}

static enum hapax_status sink_open(struct hx_sink *base, const char *url, struct hapax_error *err)
{
	struct hx_http_client_options options = {.connections_max = CALLS_MAX};
	struct hx_tls_options tls = {0};
	struct http_sink *sink = http_of(base);
	bool has_tls = false;
	enum hapax_status status = parse_url(sink, url, &has_tls, err);

	if (status == HAPAX_OK && has_tls)
		status = hx_tls_client_context_new(&tls, &sink->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&sink->reactor, hx_net_system(), err);
	if (status == HAPAX_OK) {
		sink->has_reactor = true;
		options.tls = sink->tls;
		hx_resolver_init(&sink->resolver, hx_net_system());
		hx_http_client_init(
			&sink->client, &sink->reactor, &sink->resolver, &sink->endpoint, &options);
		status = make_slots(sink);
		if (status != HAPAX_OK)
			(void)hx_error_set(err, status, 0, "not enough memory for a sink");
	}
	return status;
}

/* Connections are opened on demand. */
static enum hapax_status sink_connect(struct hx_sink *sink, struct hapax_error *err)
{
	(void)sink;
	(void)err;
	return HAPAX_OK;
}

static enum hapax_status sink_keep_alive(struct hx_sink *sink, struct hapax_error *err)
{
	(void)err;
	hx_reactor_turn(&http_of(sink)->reactor, 0);
	return HAPAX_OK;
}

const struct hx_sink_ops hx_sink_http_ops = {
	.size = sizeof(struct http_sink),
	.prefix = "ce-",
	.open = sink_open,
	.connect = sink_connect,
	.publish = sink_publish,
	.keep_alive = sink_keep_alive,
	.close = sink_close,
};
