/* SPDX-License-Identifier: Apache-2.0 */
#include "store/server/server_client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/tls/tls.h"
#include "store/core.h"
#include "store/server/server_codec.h"
#include "wire/http1/http1_write.h"

enum {
	HEAD_SIZE_MAX = 16 * 1024,
	/* The largest body that a daemon accepts or sends. */
	BODY_SIZE_MAX = 24 * 1024 * 1024,
	ANSWER_SIZE_MAX = 64 * 1024 * 1024,
	/* A call that reaches this size is sent: results of many operations add up. */
	BODY_SIZE_USUAL = 4 * 1024 * 1024,
	SCRATCH_SIZE_MAX = 64 * 1024 * 1024,
	LAST_TURNS_MAX = 100,
};

/* ------------------------------------------------------------------ one call */

static void on_head(struct hx_http_call *call, const struct hx_http1_head *head)
{
	struct hx_server_client *client = call->context;

	client->http_status = head->status;
}

static void on_data(struct hx_http_call *call, struct hapax_bytes data)
{
	struct hx_server_client *client = call->context;

	if (client->reply_status == HAPAX_OK)
		client->reply_status = hx_buf_append(client->reply, data.data, data.size);
}

static void on_end(
	struct hx_http_call *call, enum hx_http_call_end end, const struct hapax_error *err)
{
	struct hx_server_client *client = call->context;

	client->is_over = true;
	client->end = end;
	if (err != NULL)
		client->end_err = *err;
}

static const struct hx_http_call_ops call_ops = {
	.on_head = on_head, .on_data = on_data, .on_end = on_end};

static enum hapax_status write_head(
	struct hx_server_client *client, const char *method, const char *path, size_t body_size,
	struct hapax_error *err)
{
	char target[HX_SERVER_PREFIX_SIZE + HEAD_SIZE_MAX / 2];
	char bearer[HX_SERVER_TOKEN_SIZE + 8];
	struct hx_http1_writer writer;
	int size = snprintf(target, sizeof(target), "%s/api/v1%s", client->place->prefix, path);

	if (size < 0 || (size_t)size >= sizeof(target))
		return hx_error_set(err, HAPAX_ERR_LIMIT, 0, "the request is too long");
	hx_buf_clear(&client->head);
	hx_http1_write_request(
		&writer, &client->head, hapax_bytes_from_text(method),
		hapax_bytes_from_text(target));
	hx_http1_write_field(
		&writer, HX_BYTES_LIT("Host"), hapax_bytes_from_text(client->place->authority));
	if (client->token[0] != '\0') {
		(void)snprintf(bearer, sizeof(bearer), "Bearer %s", client->token);
		hx_http1_write_field(
			&writer, HX_BYTES_LIT("Authorization"), hapax_bytes_from_text(bearer));
		explicit_bzero(bearer, sizeof(bearer));
	}
	if (body_size > 0) {
		hx_http1_write_field(
			&writer, HX_BYTES_LIT("Content-Type"), HX_BYTES_LIT("application/json"));
		hx_http1_write_length(&writer, body_size);
	} else if (strcmp(method, "GET") != 0) {
		hx_http1_write_length(&writer, 0);
	}
	return hx_http1_write_end(&writer, err);
}

/* Send, and turn the reactor until the call ends. OK: a whole reply, with http_status. */
static enum hapax_status call(
	struct hx_server_client *client, const char *method, const char *path,
	struct hapax_bytes body, struct hapax_buf *reply, struct hapax_error *err)
{
	struct hx_http_call *http = &client->http_call;
	enum hapax_status status = write_head(client, method, path, body.size, err);

	if (status != HAPAX_OK)
		return status;
	hx_buf_clear(reply);
	http->head = hapax_buf_bytes(&client->head);
	http->body = body;
	client->reply = reply;
	client->reply_status = HAPAX_OK;
	client->http_status = 0;
	client->is_over = false;
	/* Timers use the time of the turn. Large results may take as long as a slow line needs. */
	hx_reactor_turn(&client->reactor, 0);
	status = hx_http_call_begin(
		http, &client->http,
		hx_reactor_now_ns(&client->reactor) + client->call_ms * HX_NS_PER_MS +
			(int64_t)(body.size / 1024) * HX_NS_PER_MS,
		err);
	if (status != HAPAX_OK)
		return status == HAPAX_ERR_NO_MEMORY ? status : HAPAX_ERR_UNAVAILABLE;
	while (!client->is_over)
		hx_reactor_turn(&client->reactor, -1);
	if (client->end == HX_HTTP_CALL_COMPLETE && client->reply_status == HAPAX_OK)
		return HAPAX_OK;
	if (client->end == HX_HTTP_CALL_COMPLETE)
		return hx_error_set(err, HAPAX_ERR_UNCERTAIN, 0, "the answer is too long");
	status = hx_error_set(
		err,
		client->end == HX_HTTP_CALL_UNSENT ? HAPAX_ERR_UNAVAILABLE : HAPAX_ERR_UNCERTAIN, 0,
		"%s", client->end_err.message);
	if (err != NULL)
		err->os_errno = client->end_err.os_errno; /* the text has it already */
	return status;
}

/*
 * The status for a reply other than 200. "Nothing was done" is believed if the daemon says so, or
 * if the reply proves that no request got through. A proxy that answers instead (502, 503, 504)
 * may have forwarded the request.
 */
static enum hapax_status refusal(
	struct hx_server_client *client, struct hapax_buf *reply, struct hapax_error *err)
{
	static const char urn[] = "urn:hapax:";
	const struct hx_json_node *type, *detail;
	struct hx_json_tree *tree = &client->reader.tree;
	enum hapax_status status = HAPAX_ERR_UNCERTAIN;
	bool is_hapax = false;
	char text[160] = "";

	if (hx_json_reader_read(&client->reader, hapax_buf_bytes(reply), NULL) == HAPAX_OK) {
		type = hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("type"));
		detail = hx_json_tree_member(tree, &tree->nodes[0], HX_BYTES_LIT("detail"));
		if (type != NULL && type->token.type == HX_JSON_STRING) {
			struct hx_json_string string = hx_json_node_string(tree, type);

			status = hx_server_status_of(hx_bytes(string.data, string.size));
			is_hapax = string.size > strlen(urn) &&
				memcmp(string.data, urn, strlen(urn)) == 0;
		}
		if (detail != NULL && detail->token.type == HX_JSON_STRING) {
			struct hx_json_string string = hx_json_node_string(tree, detail);

			(void)snprintf(
				text, sizeof(text), "%.*s", (int)string.size,
				(const char *)string.data);
		}
	}
	if (client->http_status == 401 || client->http_status == 403 ||
	    client->http_status == 404 || client->http_status == 405)
		status = HAPAX_ERR_UNSUPPORTED;
	else if (client->http_status == 400 || client->http_status == 415)
		status = HAPAX_ERR_INVALID;
	else if (client->http_status == 413)
		status = HAPAX_ERR_LIMIT;
	else if (client->http_status == 409 && is_hapax && status == HAPAX_ERR_UNCERTAIN)
		status = HAPAX_ERR_UNSUPPORTED; /* refused in this state */
	if (!is_hapax && (status == HAPAX_ERR_UNSUPPORTED || status == HAPAX_ERR_INVALID) &&
	    client->http_status != 401 && client->http_status != 403)
		return hx_error_set(
			err, status, 0,
			"%s is not the admin listener of a hapax daemon: it answered %u",
			client->place->authority, client->http_status);
	(void)hx_error_set(
		err, status, 0, "%s answered %u%s%s", client->place->authority, client->http_status,
		text[0] != '\0' ? ": " : "", text);
	if (err != NULL && (client->http_status == 401 || client->http_status == 403))
		err->os_errno = EACCES; /* the cause, without the system's text for it */
	return status;
}

/* ------------------------------------------------------------------ operations */

/* End the sent operations without an answer. */
static void fail_sent(struct hx_server_client *client, enum hapax_status status)
{
	for (size_t i = 0; i < client->sent_count; i++)
		hx_server_refuse(client->sent[i], status);
}

static void read_answers(struct hx_server_client *client)
{
	struct hx_json_tree *tree = &client->reader.tree;
	const struct hx_json_node *node;
	uint32_t at;

	if (hx_json_reader_read(&client->reader, hapax_buf_bytes(&client->answer), NULL) !=
		    HAPAX_OK ||
	    tree->nodes[0].token.type != HX_JSON_ARRAY) {
		fail_sent(client, HAPAX_ERR_UNCERTAIN);
		return;
	}
	at = tree->nodes[0].child;
	for (size_t i = 0; i < client->sent_count; i++) {
		node = at != 0 ? &tree->nodes[at] : NULL;
		if (node == NULL || !hx_server_read_answer(&client->reader, node, client->sent[i]))
			hx_server_refuse(client->sent[i], HAPAX_ERR_UNCERTAIN);
		at = node != NULL ? node->next : 0;
	}
}

static void send_operations(struct hx_server_client *client)
{
	struct hapax_error err;
	enum hapax_status status;

	if (client->sent_count == 0)
		return;
	status = hx_buf_append_byte(&client->body, ']');
	if (status == HAPAX_OK)
		status =
			call(client, "POST", "/operations", hapax_buf_bytes(&client->body),
			     &client->answer, &err);
	if (status == HAPAX_OK && client->http_status != 200)
		status = refusal(client, &client->answer, &err);
	if (status == HAPAX_OK)
		read_answers(client);
	else
		fail_sent(client, status);
	client->sent_count = 0;
	hx_buf_clear(&client->body);
}

/* Add ops from first to end that were not refused before. LIMIT, NO_MEMORY: nothing was added. */
static enum hapax_status add_group(
	struct hx_server_client *client, struct hapax_op *ops, size_t first, size_t end)
{
	size_t begin = client->body.size;
	size_t sent = client->sent_count;
	struct hx_json_write json;
	size_t last = end;

	for (size_t i = first; i < end; i++) {
		if (ops[i].status == HAPAX_OK)
			last = i;
	}
	for (size_t i = first; i < end; i++) {
		struct hx_server_group group = {
			.is_linked = i < last,
			.is_all_or_nothing = client->sent_count == sent &&
				(ops[first].flags & HAPAX_OP_ALL_OR_NOTHING) != 0};
		enum hapax_status status;

		if (ops[i].status != HAPAX_OK)
			continue;
		status = hx_buf_append_byte(&client->body, client->sent_count == 0 ? '[' : ',');
		hx_json_write_init(&json, &client->body);
		if (status == HAPAX_OK)
			hx_server_write_op(&json, &ops[i], group);
		if (status == HAPAX_OK)
			status = json.status;
		if (status != HAPAX_OK) {
			client->body.size = begin;
			client->sent_count = sent;
			return status;
		}
		client->sent[client->sent_count++] = &ops[i];
	}
	return HAPAX_OK;
}

static void run_group(
	struct hx_server_client *client, struct hapax_op *ops, size_t first, size_t end)
{
	enum hapax_status status;

	if (client->sent_count + (end - first) > HX_SERVER_OPS_MAX ||
	    client->body.size > BODY_SIZE_USUAL)
		send_operations(client);
	status = add_group(client, ops, first, end);
	/* It may fit into a call of its own. */
	if (status != HAPAX_OK && client->sent_count > 0) {
		send_operations(client);
		status = add_group(client, ops, first, end);
	}
	if (status != HAPAX_OK)
		hx_store_fail(ops + first, end - first, status);
}

/* ------------------------------------------------------------------ the thread */

static void run_call(struct hx_server_client *client, struct hx_server_call *waiting)
{
	if (waiting->timeout_ms > 0)
		client->call_ms = waiting->timeout_ms;
	waiting->status =
		call(client, waiting->method, waiting->path, waiting->body, waiting->reply,
		     &waiting->err);
	if (waiting->status == HAPAX_OK && client->http_status != 200)
		waiting->status = refusal(client, waiting->reply, &waiting->err);
	waiting->http_status = client->http_status;
	client->call_ms = client->timeout_ms;
	hx_event_set(&waiting->done);
}

/* Requests queued together complete when all are answered. */
static void run_list(struct hx_server_client *client, struct hx_server_request *first)
{
	for (struct hx_server_request *at = first; at != NULL; at = hx_request_queue_next(at)) {
		size_t end;

		for (size_t i = 0; i < at->count && at->call == NULL; i = end) {
			end = hx_store_group_end(at->ops, at->count, i);
			run_group(client, at->ops, i, end);
		}
	}
	send_operations(client);
	while (first != NULL) {
		struct hx_server_request request = *first;
		struct hx_server_request *next = hx_request_queue_next(first);

		hx_request_queue_give_back(&client->queue, first);
		if (request.call != NULL)
			run_call(client, request.call);
		else
			hapax_store_complete(
				client->store, request.ops, request.count, request.completion);
		first = next;
	}
}

static void io_run(void *arg)
{
	struct hx_server_client *client = arg;
	struct hx_server_request *first;

	while ((first = hx_request_queue_wait(&client->queue)) != NULL)
		run_list(client, first);
	hx_http_client_close(&client->http);
	for (int i = 0; i < LAST_TURNS_MAX && client->http.link_count > 0; i++)
		hx_reactor_turn(&client->reactor, HX_NS_PER_MS);
}

/* ------------------------------------------------------------------ life */

static enum hapax_status make_parts(struct hx_server_client *client, struct hapax_error *err)
{
	const struct hx_server_place *place = client->place;
	const struct hx_tls_options tls = {
		.authority_file = place->authority_file[0] != '\0' ? place->authority_file : NULL,
		.certificate_file =
			place->certificate_file[0] != '\0' ? place->certificate_file : NULL,
		.key_file = place->key_file[0] != '\0' ? place->key_file : NULL};
	struct hx_http_client_options options = {.connections_max = 1};
	enum hapax_status status = hx_server_token_read(place, client->token, err);

	if (status == HAPAX_OK && place->is_tls)
		status = hx_tls_client_context_new(&tls, &client->tls, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_request_queue_init(&client->queue, sizeof(struct hx_server_request));
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	client->has_queue = true;
	status = hx_reactor_init(&client->reactor, hx_net_system(), err);
	if (status != HAPAX_OK)
		return status;
	client->has_reactor = true;
	options.connect_ms = client->timeout_ms;
	options.tls = client->tls;
	hx_http_client_init(
		&client->http, &client->reactor, &client->resolver, &place->endpoint, &options);
	status = hx_http_call_init(&client->http_call, &client->reactor, &call_ops, client);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	status = hx_thread_start(&client->thread, io_run, client, "hapax-server", err);
	client->has_thread = status == HAPAX_OK;
	return status;
}

enum hapax_status hx_server_client_open(
	struct hx_server_client *client, struct hapax_store *store,
	const struct hx_server_place *place, int64_t timeout_ms, struct hapax_error *err)
{
	enum hapax_status status;

	memset(client, 0, sizeof(*client));
	client->store = store;
	client->place = place;
	client->timeout_ms = timeout_ms;
	client->call_ms = timeout_ms;
	hx_resolver_init(&client->resolver, hx_net_system());
	hx_buf_init(&client->head, HEAD_SIZE_MAX);
	hx_buf_init(&client->body, BODY_SIZE_MAX);
	hx_buf_init(&client->answer, ANSWER_SIZE_MAX);
	hx_json_reader_init(&client->reader, SCRATCH_SIZE_MAX, NULL);
	status = make_parts(client, err);
	if (status != HAPAX_OK)
		hx_server_client_close(client);
	return status;
}

void hx_server_client_close(struct hx_server_client *client)
{
	if (client->has_thread) {
		hx_request_queue_stop(&client->queue);
		hx_thread_join(&client->thread);
	}
	if (client->has_queue)
		hx_request_queue_done(&client->queue);
	hx_resolver_done(&client->resolver);
	if (client->has_reactor) {
		hx_http_call_done(&client->http_call, &client->reactor);
		hx_http_client_done(&client->http);
		hx_reactor_done(&client->reactor);
	}
	hx_tls_context_free(client->tls);
	hx_buf_done(&client->head);
	hx_buf_done(&client->body);
	hx_buf_done(&client->answer);
	hx_json_reader_done(&client->reader);
	explicit_bzero(client->token, sizeof(client->token));
	client->has_thread = client->has_queue = client->has_reactor = false;
}

void hx_server_client_submit(
	struct hx_server_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	const struct hx_server_request request = {
		.ops = ops, .count = count, .completion = completion};
	enum hapax_status status = hx_request_queue_push(&client->queue, &request);

	if (status != HAPAX_OK)
		hx_store_fail_submit(client->store, ops, count, completion, status);
}

enum hapax_status hx_server_client_call(
	struct hx_server_client *client, const char *method, const char *path,
	struct hapax_bytes body, int64_t timeout_ms, struct hapax_buf *reply,
	struct hapax_error *err)
{
	struct hx_server_call waiting = {
		.method = method,
		.path = path,
		.body = body,
		.timeout_ms = timeout_ms,
		.reply = reply};
	const struct hx_server_request request = {.call = &waiting};
	enum hapax_status status;

	hx_event_init(&waiting.done);
	status = hx_request_queue_push(&client->queue, &request);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to ask the daemon");
	hx_event_wait(&waiting.done);
	if (waiting.status != HAPAX_OK && err != NULL)
		*err = waiting.err;
	return waiting.status;
}
