/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_stream.c - the sink redis://: each event is an entry of a stream, pipelined.
 *
 *  (1) A row is SENT when the reply to its XADD is an id. Durability depends on the server: with
 *      appendfsync always, the entry is on disk.
 *  (2) Replies come in the order of the commands, so each error belongs to a row. Errors of the
 *      server (OOM, READONLY, LOADING ...) count against no row. WRONGTYPE, a missing stream
 *      (create=no) and a value beyond proto-max-bulk-len park the row. Any other error is retried.
 *  (3) In a Cluster a row goes to the server of its stream's slot if known, otherwise to any. On a
 *      redirect, the row and later rows of the slot go to the named server.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/redis_connection.h"
#include "outbox/sink.h"
#include "outbox/sink/redis_entry.h"
#include "outbox/sink/redis_target.h"
#include "store/redis/slot.h"

enum {
	CONNECT_MS = 10 * 1000,
	AHEAD_SIZE = 1024 * 1024, /* written, but not yet accepted by the server */
	SERVERS_MAX = 64,
	HOPS_MAX = 8, /* redirects */
	/* Every server accepts this: proto-max-bulk-len is never smaller. */
	SAFE_SIZE = 1024 * 1024,
	/* The owner of a slot without a known server. */
	NO_SERVER = 255,
	/* Replies are ids, errors, and the answer to CONFIG GET. */
	REPLY_SIZE_MAX = 64 * 1024,
	INPUT_SIZE_MAX = 4 * 1024 * 1024,
	/* One event of the largest size, after all that is written ahead. */
	OUTPUT_SIZE_MAX = HX_OUTBOX_PAYLOAD_SIZE_MAX + 8 * 1024 * 1024,
};

/* A row that is being published. */
struct entry {
	struct hx_outbox_row *row;
	uint16_t slot;
	uint8_t asked; /* the server of an ASK redirect, for one try; or NO_SERVER */
	bool is_due;   /* to be sent */
};

struct server {
	struct hx_redis_connection connection;
	struct hx_endpoint endpoint;
	struct redis_sink *sink; /* NULL: unused */
	/* Expected replies, in order. */
	struct entry *entries[2 * HX_OUTBOX_BATCH_MAX]; /* NULL: a reply to ignore */
	size_t sent;
	size_t answered;
	int64_t value_size_max; /* the server's limit; 0: unknown */
	struct hapax_error why; /* why it is closed */
	bool is_named;          /* the reply to CLIENT SETNAME has come */
	bool is_cut;            /* the server will close the connection because of a command */
	bool is_away;           /* could not be reached in this call */
};

struct redis_sink {
	struct hx_sink base;
	struct hx_redis_target target;
	struct hx_reactor reactor;
	bool has_reactor;
	struct hx_resolver resolver;
	struct hx_tls_context *tls;
	struct hapax_buf head;
	struct server *servers[SERVERS_MAX];
	size_t server_count;
	size_t next; /* server to try if no better one is known */
	uint8_t owners[HX_REDIS_SLOTS];
	struct entry entries[HX_OUTBOX_BATCH_MAX];
	size_t entry_count;
	bool is_away;
	struct hapax_error away;
};

static struct redis_sink *redis_stream_of(struct hx_sink *sink)
{
	assert(sink->ops == &hx_sink_redis_ops);
	return (struct redis_sink *)sink;
}

static void server_assert(const struct server *server)
{
	assert(server->answered <= server->sent);
	assert(server->sent <= HX_COUNT(server->entries));
	assert(server->value_size_max >= 0);
	/* An unused entry has sent nothing. */
	assert(server->sink != NULL || server->sent == 0);
}

/* What holds between two calls; no reply is expected any more. */
static void redis_stream_assert(const struct redis_sink *sink)
{
	assert(sink->server_count <= SERVERS_MAX);
	assert(sink->entry_count <= HX_OUTBOX_BATCH_MAX);
	/* The servers of the URL are the first ones, and are never vacated. */
	assert(sink->server_count >= sink->target.place.endpoint_count);
	for (size_t i = 0; i < sink->server_count; i++) {
		server_assert(sink->servers[i]);
		assert(sink->servers[i]->sent == 0);
		assert(!sink->servers[i]->is_cut);
	}
}

static void be_away(struct redis_sink *sink, const struct hapax_error *why)
{
	if (!sink->is_away)
		sink->away = *why;
	sink->is_away = true;
}

/* ------------------------------------------------------------------ connections */

static void take_reply(struct server *server, struct hapax_bytes reply);

static bool is_open(const struct server *server)
{
	return server->connection.state == HX_REDIS_CONNECTION_READY;
}

static enum hapax_status greet(struct hx_redis_connection *connection)
{
	static const char greeting[] =
		"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$12\r\nhapax-outbox\r\n"
		"*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$18\r\nproto-max-bulk-len\r\n";

	((struct server *)connection->context)->is_named = false;
	return hx_connection_write(&connection->stream, greeting, sizeof(greeting) - 1);
}

/* ["proto-max-bulk-len", "536870912"]; a user without permission gets an error: no limit known. */
static void take_size(struct server *server, struct hapax_bytes rest)
{
	struct hx_resp_value value;
	int64_t size = 0;

	while (hx_resp_next(&rest, &value))
		if (hx_resp_integer(&value, &size) && size > 0 && value.type == HX_RESP_BULK)
			server->value_size_max = size;
}

static size_t reply_size_max(struct hx_redis_connection *connection)
{
	const struct server *server = connection->context;

	server_assert(server);
	return server->answered < server->sent ? REPLY_SIZE_MAX : 0;
}

static bool on_reply(struct hx_redis_connection *connection, struct hapax_bytes reply)
{
	struct server *server = connection->context;

	assert(connection == &server->connection);
	if (is_open(server)) {
		take_reply(server, reply);
	} else if (!server->is_named) {
		server->is_named = true;
	} else {
		take_size(server, reply);
		hx_redis_connection_ready(connection);
	}
	return true;
}

static bool on_closed(struct hx_redis_connection *connection, const struct hapax_error *why)
{
	((struct server *)connection->context)->why = *why;
	return false;
}

static const struct hx_redis_connection_ops connection_ops = {
	.greet = greet,
	.reply_size_max = reply_size_max,
	.reply = on_reply,
	.closed = on_closed,
};

/* Wait until it is open or has failed, at most until the deadline. */
static void connect_server(struct server *server, int64_t deadline_ns)
{
	assert(server->sent == 0);
	hx_redis_connection_open(&server->connection, &server->endpoint, deadline_ns);
	while (server->connection.state != HX_REDIS_CONNECTION_CLOSED && !is_open(server))
		hx_reactor_turn(&server->sink->reactor, -1);
}

static void close_server(struct server *server)
{
	if (!hx_redis_connection_close(&server->connection))
		return;
	while (server->connection.state != HX_REDIS_CONNECTION_CLOSED)
		hx_reactor_turn(&server->sink->reactor, 0);
	assert(!is_open(server));
}

static void end_server(struct server *server)
{
	if (server->sink == NULL)
		return;
	close_server(server);
	hx_redis_connection_done(&server->connection);
}

/* ------------------------------------------------------------------ servers */

static void forget_slots(struct redis_sink *sink, uint8_t number)
{
	assert(number < sink->server_count);
	for (size_t i = 0; i < HX_REDIS_SLOTS; i++)
		if (sink->owners[i] == number)
			sink->owners[i] = NO_SERVER;
}

/* Free the entry of an idle server that is not in the URL; NO_SERVER: none. */
static uint8_t vacate(struct redis_sink *sink)
{
	for (size_t i = sink->target.place.endpoint_count; i < sink->server_count; i++) {
		struct server *server = sink->servers[i];

		if (server->connection.state != HX_REDIS_CONNECTION_CLOSED ||
		    server->answered < server->sent)
			continue;
		assert(!is_open(server));
		forget_slots(sink, (uint8_t)i);
		end_server(server);
		return (uint8_t)i;
	}
	return NO_SERVER;
}

/* An entry for another server; NO_SERVER: no memory, or too many. */
static uint8_t make_server(struct redis_sink *sink)
{
	assert(sink->server_count <= SERVERS_MAX);
	if (sink->server_count == SERVERS_MAX)
		return vacate(sink);
	sink->servers[sink->server_count] = hx_alloc_zero(1, sizeof(struct server));
	if (sink->servers[sink->server_count] == NULL)
		return NO_SERVER;
	return (uint8_t)sink->server_count++;
}

/* The number of the server at endpoint; adds it if new. NO_SERVER: no memory, or too many. */
static uint8_t server_at(struct redis_sink *sink, const struct hx_endpoint *endpoint)
{
	const struct hx_redis_connection_options options = {
		.ops = &connection_ops,
		.reactor = &sink->reactor,
		.resolver = &sink->resolver,
		.tls = sink->tls,
		.place = &sink->target.place,
		.limits.input_size_max = INPUT_SIZE_MAX,
		.limits.output_size_max = OUTPUT_SIZE_MAX,
	};
	struct server *server;
	uint8_t number;

	for (size_t i = 0; i < sink->server_count; i++) {
		const struct hx_endpoint *other = &sink->servers[i]->endpoint;

		if (other->port == endpoint->port && strcmp(other->host, endpoint->host) == 0)
			return (uint8_t)i;
	}
	number = make_server(sink);
	if (number == NO_SERVER)
		return NO_SERVER;
	assert(number < sink->server_count);
	server = sink->servers[number];
	memset(server, 0, sizeof(*server));
	server->endpoint = *endpoint;
	if (hx_redis_connection_init(&server->connection, &options, server) != HAPAX_OK) {
		/* Leave the entry unnamed, for another server. */
		server->endpoint = (struct hx_endpoint){0};
		return NO_SERVER;
	}
	server->sink = sink;
	return number;
}

/* The server cannot be reached: another one may own its slots. */
static void give_up_server(struct redis_sink *sink, uint8_t number, const struct hapax_error *why)
{
	assert(number < sink->server_count);
	be_away(sink, why);
	sink->servers[number]->is_away = true;
	forget_slots(sink, number);
}

/*
 * The connection is closed, or everything is answered. An unanswered row has an unknown outcome,
 * unless the server rejected a command: it never read the commands after that.
 */
static void settle_server(struct redis_sink *sink, uint8_t number)
{
	struct server *server = sink->servers[number];

	server_assert(server);
	/* An open server has answered everything. */
	assert(!is_open(server) || server->answered == server->sent);
	if (server->is_cut)
		for (size_t i = server->answered; i < server->sent; i++)
			if (server->entries[i] != NULL) {
				assert(server->entries[i]->row->outcome == HX_OUTBOX_UNDECIDED);
				server->entries[i]->is_due = true;
				server->entries[i]->row->is_awaited = false;
			}
	if (!server->is_cut && server->answered < server->sent)
		give_up_server(sink, number, &server->why);
	server->sent = server->answered = 0;
	server->is_cut = false;
}

static bool open_server(struct redis_sink *sink, uint8_t number, int64_t deadline_ns)
{
	struct server *server = sink->servers[number];
	int64_t late_ns = hx_clock_mono_ns() + CONNECT_MS * HX_NS_PER_MS;

	assert(number < sink->server_count);
	if (is_open(server))
		return !server->is_away;
	settle_server(sink, number);
	/* sink is NULL if memory ran out in server_at(). */
	if (server->is_away || server->sink == NULL)
		return false;
	connect_server(server, deadline_ns < late_ns ? deadline_ns : late_ns);
	if (is_open(server))
		return true;
	give_up_server(sink, number, &server->why);
	return false;
}

/* Any server that can be reached, whatever its slots. NO_SERVER: none. */
static uint8_t any_server(struct redis_sink *sink, int64_t deadline_ns)
{
	for (size_t i = 0; i < sink->server_count; i++) {
		uint8_t number = (uint8_t)(sink->next % sink->server_count);

		if (open_server(sink, number, deadline_ns))
			return number;
		sink->next++;
	}
	return NO_SERVER;
}

/* ------------------------------------------------------------------ replies */

/* "MOVED 3999 127.0.0.1:6381": the server's number. Without a host: the server that replied. */
static uint8_t redirected_to(struct server *server, struct hapax_bytes text)
{
	const char *end = (const char *)text.data + text.size;
	const char *space = memrchr(text.data, ' ', text.size);
	const char *colon = space == NULL ? NULL : memrchr(space, ':', (size_t)(end - space));
	struct hx_endpoint endpoint = {0};
	int64_t port = 0;

	if (colon == NULL ||
	    !hx_resp_parse_integer(hx_bytes(colon + 1, (size_t)(end - colon - 1)), &port) ||
	    port <= 0 || port > UINT16_MAX || colon - space > HX_HOST_SIZE_MAX)
		return NO_SERVER;
	endpoint.port = (uint16_t)port;
	(void)snprintf(
		endpoint.host, sizeof(endpoint.host), "%.*s", (int)(colon - space - 1), space + 1);
	if (endpoint.host[0] == '\0' || strcmp(endpoint.host, "?") == 0)
		(void)snprintf(endpoint.host, sizeof(endpoint.host), "%s", server->endpoint.host);
	return server_at(server->sink, &endpoint);
}

static void redirect(struct server *server, struct entry *entry, struct hapax_bytes text)
{
	struct redis_sink *sink = server->sink;
	bool is_asked = ((const char *)text.data)[0] == 'A';
	struct hapax_error why;
	uint8_t number = NO_SERVER;

	if (sink->target.place.is_cluster)
		number = redirected_to(server, text);
	else
		(void)hx_error_set(
			&why, HAPAX_ERR_UNAVAILABLE, 0,
			"the server is part of a Redis Cluster; use redis+cluster:// instead of "
			"redis://");
	if (number == NO_SERVER) {
		if (sink->target.place.is_cluster)
			(void)hx_error_set(
				&why, HAPAX_ERR_UNAVAILABLE, 0,
				"the Redis Cluster has more than %d servers, or reports none",
				SERVERS_MAX);
		be_away(sink, &why);
		return;
	}
	assert(number < sink->server_count);
	assert(entry->slot < HX_REDIS_SLOTS);
	/* If that server is unreachable, the row waits for the next call. */
	entry->is_due = !sink->servers[number]->is_away;
	if (is_asked)
		entry->asked = number;
	else if (entry->is_due)
		sink->owners[entry->slot] = number;
}

/* Whether the error concerns the server, not the row. */
static bool is_of_server(const struct hx_resp_value *value)
{
	static const char *const codes[] = {
		"OOM",     "READONLY",   "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
		"MISCONF", "NOREPLICAS", "BUSY",    "NOAUTH",     "WRONGPASS",
	};
	static const char unknown[] = "ERR unknown command";

	for (size_t i = 0; i < HX_COUNT(codes); i++)
		if (hx_resp_is_error(value, codes[i]))
			return true;
	return value->text.size > sizeof(unknown) &&
		memcmp(value->text.data, unknown, sizeof(unknown) - 1) == 0;
}

static void judge_error(struct server *server, struct entry *entry, struct hapax_bytes text)
{
	static const char protocol[] = "ERR Protocol error";
	struct hx_resp_value value = {.type = HX_RESP_ERROR, .text = text};
	int size = (int)(text.size < 160 ? text.size : 160);
	struct hapax_error why;

	assert(entry->row->outcome == HX_OUTBOX_UNDECIDED);
	assert(!entry->row->is_awaited);
	if (hx_resp_is_error(&value, "MOVED") || hx_resp_is_error(&value, "ASK")) {
		redirect(server, entry, text);
	} else if (is_of_server(&value)) {
		(void)hx_error_set(
			&why, HAPAX_ERR_UNAVAILABLE, 0, "Redis accepts no entries: %.*s", size,
			(const char *)text.data);
		be_away(server->sink, &why);
		/* The name may now point to another server. */
		if (hx_resp_is_error(&value, "READONLY"))
			hx_connection_close(&server->connection.stream, &why);
	} else if (
		text.size >= sizeof(protocol) - 1 &&
		memcmp(text.data, protocol, sizeof(protocol) - 1) == 0) {
		hx_sink_decide(
			entry->row, HX_OUTBOX_REFUSED, "Redis rejected the event (%zu bytes): %.*s",
			entry->row->payload.size, size, (const char *)text.data);
		server->is_cut = true;
	} else {
		hx_sink_decide(
			entry->row,
			hx_resp_is_error(&value, "WRONGTYPE") ? HX_OUTBOX_REFUSED
							      : HX_OUTBOX_FAILED,
			"Redis rejected the event: %.*s", size, (const char *)text.data);
	}
}

static void take_reply(struct server *server, struct hapax_bytes reply)
{
	struct entry *entry = server->entries[server->answered++];
	struct hx_resp_value value;

	server_assert(server);
	assert(entry == NULL || entry >= server->sink->entries);
	assert(entry == NULL || entry < server->sink->entries + server->sink->entry_count);
	if (!hx_resp_next(&reply, &value) || entry == NULL)
		return;
	assert(entry->row->outcome == HX_OUTBOX_UNDECIDED);
	entry->row->is_awaited = false;
	if (value.type == HX_RESP_ERROR || value.type == HX_RESP_BULK_ERROR)
		judge_error(server, entry, value.text);
	else if (value.type == HX_RESP_BULK)
		entry->row->outcome = HX_OUTBOX_SENT;
	else
		hx_sink_decide(
			entry->row, HX_OUTBOX_REFUSED,
			"the stream does not exist, and create=no; create it, then retry");
}

/* ------------------------------------------------------------------ publish */

static bool is_late(struct redis_sink *sink, int64_t deadline_ns, int64_t *ret_left_ns)
{
	struct hapax_error why;

	*ret_left_ns = deadline_ns - hx_clock_mono_ns();
	if (*ret_left_ns > 0)
		return false;
	(void)hx_error_set(&why, HAPAX_ERR_UNAVAILABLE, 0, "Redis did not answer in time");
	be_away(sink, &why);
	return true;
}

/* Wait until the server has read enough of the output. False: it does not. */
static bool pace(struct redis_sink *sink, struct server *server, int64_t deadline_ns)
{
	int64_t left_ns;

	while (is_open(server) && hx_connection_unsent(&server->connection.stream) > AHEAD_SIZE) {
		if (is_late(sink, deadline_ns, &left_ns))
			return false;
		hx_reactor_turn(&sink->reactor, left_ns);
	}
	return is_open(server);
}

static bool write_entry(struct redis_sink *sink, struct server *server, struct entry *entry)
{
	static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
	struct hx_connection *connection = &server->connection.stream;
	struct hapax_bytes payload = entry->row->payload;
	enum hapax_status status = HAPAX_OK;

	assert(server->sink == sink);
	assert(server->sent + 2 <= HX_COUNT(server->entries));
	assert(entry->row->outcome == HX_OUTBOX_UNDECIDED);
	assert(!entry->is_due);
	if (entry->asked != NO_SERVER) {
		status = hx_connection_write(connection, asking, sizeof(asking) - 1);
		server->entries[server->sent++] = NULL;
	}
	if (status == HAPAX_OK)
		status = hx_connection_write(connection, sink->head.data, sink->head.size);
	if (status == HAPAX_OK && payload.size > 0)
		status = hx_connection_write(connection, payload.data, payload.size);
	if (status == HAPAX_OK)
		status = hx_connection_write(connection, "\r\n", 2);
	server->entries[server->sent++] = entry;
	entry->row->is_awaited = status == HAPAX_OK;
	entry->asked = NO_SERVER;
	return status == HAPAX_OK;
}

static void read_replies(struct redis_sink *sink, int64_t deadline_ns);

/*
 * Send a row that may be too large for a server with an unknown limit. Such a server closes the
 * connection, and its error may get lost. The row therefore goes alone, and fails if it gets no
 * answer.
 */
static void send_risky(
	struct redis_sink *sink, struct server *server, struct entry *entry, int64_t deadline_ns)
{
	size_t size = entry->row->payload.size;

	assert(size > SAFE_SIZE);
	read_replies(sink, deadline_ns);
	if (!is_open(server) ||
	    !hx_redis_entry_write(&sink->target, &sink->base, entry->row, &sink->head))
		return;
	(void)write_entry(sink, server, entry);
	read_replies(sink, deadline_ns);
	if (entry->row->outcome == HX_OUTBOX_UNDECIDED && !entry->is_due && !is_open(server))
		hx_sink_decide(
			entry->row, HX_OUTBOX_FAILED,
			"the connection was lost while Redis read %zu bytes, perhaps because of "
			"their size (proto-max-bulk-len)",
			size);
}

/* Send a row to its server. A row that cannot be sent stays undecided, or is refused. */
static void send_entry(struct redis_sink *sink, struct entry *entry, int64_t deadline_ns)
{
	uint8_t number = entry->asked != NO_SERVER ? entry->asked : sink->owners[entry->slot];
	struct hx_outbox_row *row = entry->row;
	struct server *server;

	assert(entry->is_due);
	assert(row->outcome == HX_OUTBOX_UNDECIDED);
	assert(number == NO_SERVER || number < sink->server_count);
	entry->is_due = false;
	if (number == NO_SERVER || !open_server(sink, number, deadline_ns))
		number = any_server(sink, deadline_ns);
	if (number == NO_SERVER)
		return;
	server = sink->servers[number];
	assert(is_open(server));
	if (server->value_size_max > 0 && row->payload.size > (uint64_t)server->value_size_max) {
		hx_sink_decide(
			row, HX_OUTBOX_REFUSED,
			"its payload is too large: %zu bytes, limit of Redis %" PRId64 " "
			"(proto-max-bulk-len); store it elsewhere, and send a reference",
			row->payload.size, server->value_size_max);
		return;
	}
	if (server->value_size_max == 0 && row->payload.size > SAFE_SIZE) {
		send_risky(sink, server, entry, deadline_ns);
		return;
	}
	if (!hx_redis_entry_write(&sink->target, &sink->base, row, &sink->head))
		return;
	if (!write_entry(sink, server, entry)) {
		/* Half a command was written: nothing can follow it. */
		close_server(server);
		give_up_server(sink, number, &server->why);
		return;
	}
	(void)pace(sink, server, deadline_ns);
}

/* Wait for all replies. */
static void read_replies(struct redis_sink *sink, int64_t deadline_ns)
{
	for (size_t i = 0; i < sink->server_count; i++) {
		struct server *server = sink->servers[i];
		int64_t left_ns;

		while (is_open(server) && (server->answered < server->sent || server->is_cut)) {
			if (is_late(sink, deadline_ns, &left_ns)) {
				close_server(server);
				break;
			}
			hx_reactor_turn(&sink->reactor, left_ns);
		}
		settle_server(sink, (uint8_t)i);
		assert(server->sent == 0);
	}
}

static void begin_publish(struct redis_sink *sink, struct hx_outbox_row **rows, size_t count)
{
	assert(count <= HX_OUTBOX_BATCH_MAX);
	sink->is_away = false;
	sink->entry_count = count;
	for (size_t i = 0; i < sink->server_count; i++)
		sink->servers[i]->is_away = false;
	for (size_t i = 0; i < count; i++)
		sink->entries[i] = (struct entry){
			.row = rows[i],
			.slot = sink->target.place.is_cluster
				? (uint16_t)hx_redis_slot(
					  hx_redis_entry_stream(&sink->target, rows[i]))
				: 0,
			.asked = NO_SERVER,
			.is_due = true,
		};
}

static enum hapax_status sink_publish(
	struct hx_sink *base, struct hx_outbox_row **rows, size_t count, int64_t deadline_ns,
	struct hapax_error *err)
{
	struct redis_sink *sink = redis_stream_of(base);
	bool is_cluster = sink->target.place.is_cluster;
	bool is_done = false;

	begin_publish(sink, rows, count);
	/* Process pending input first, above all closed connections. */
	hx_reactor_turn(&sink->reactor, 0);
	for (int hop = 0; hop < HOPS_MAX && !is_done; hop++) {
		is_done = true;
		for (size_t i = 0; i < count; i++) {
			/* The only server is unavailable. */
			if (!sink->entries[i].is_due || (sink->is_away && !is_cluster))
				continue;
			is_done = false;
			send_entry(sink, &sink->entries[i], deadline_ns);
		}
		read_replies(sink, deadline_ns);
	}
	redis_stream_assert(sink);
	for (size_t i = 0; i < count && !sink->is_away; i++)
		if (rows[i]->outcome == HX_OUTBOX_UNDECIDED)
			be_away(sink,
				&(struct hapax_error){
					.status = HAPAX_ERR_UNAVAILABLE,
					.message = "too many redirections between Redis servers"});
	if (!sink->is_away)
		return HAPAX_OK;
	if (err != NULL)
		*err = sink->away;
	return HAPAX_ERR_UNAVAILABLE;
}

/* ------------------------------------------------------------------ open */

static void sink_close(struct hx_sink *base)
{
	struct redis_sink *sink = redis_stream_of(base);

	for (size_t i = 0; i < sink->server_count; i++) {
		end_server(sink->servers[i]);
		hx_free(sink->servers[i]);
	}
	if (sink->has_reactor) {
		hx_resolver_done(&sink->resolver);
		hx_reactor_done(&sink->reactor);
	}
	hx_tls_context_free(sink->tls);
	hx_buf_done(&sink->head);
	explicit_bzero(&sink->target, sizeof(sink->target));
}

static enum hapax_status make_servers(struct redis_sink *sink, struct hapax_error *err)
{
	const struct hx_redis_place *place = &sink->target.place;

	memset(sink->owners, place->is_cluster ? NO_SERVER : 0, sizeof(sink->owners));
	for (size_t i = 0; i < place->endpoint_count; i++)
		if (server_at(sink, &place->endpoints[i]) == NO_SERVER)
			return hx_error_set(
				err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a sink");
	redis_stream_assert(sink);
	return HAPAX_OK;
}

static enum hapax_status sink_open(struct hx_sink *base, const char *url, struct hapax_error *err)
{
	struct redis_sink *sink = redis_stream_of(base);
	enum hapax_status status;

	hx_buf_init(&sink->head, HX_REDIS_ENTRY_SIZE_MAX);
	status = hx_redis_target_parse(url, &sink->target, err);
	if (status == HAPAX_OK)
		status = hx_redis_connection_tls_context(&sink->target.place, &sink->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&sink->reactor, hx_net_system(), err);
	if (status == HAPAX_OK) {
		sink->has_reactor = true;
		hx_resolver_init(&sink->resolver, hx_net_system());
		status = make_servers(sink, err);
	}
	return status;
}

static enum hapax_status sink_connect(struct hx_sink *base, struct hapax_error *err)
{
	struct redis_sink *sink = redis_stream_of(base);

	hx_reactor_turn(&sink->reactor, 0);
	begin_publish(sink, NULL, 0);
	if (any_server(sink, INT64_MAX) != NO_SERVER)
		return HAPAX_OK;
	if (err != NULL)
		*err = sink->away;
	return HAPAX_ERR_UNAVAILABLE;
}

const struct hx_sink_ops hx_sink_redis_ops = {
	.size = sizeof(struct redis_sink),
	.prefix = "ce_",
	.open = sink_open,
	.connect = sink_connect,
	.publish = sink_publish,
	.keep_alive = sink_connect,
	.close = sink_close,
};
