/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - one connection to a Redis server.
 *
 *	IDLE ──submit──▶ DIALLING ──▶ GREETING ──▶ READY
 *	  ▲                 │            │           │
 *	  └── WAITING ◀─────┴── failed ──┴── lost ───┘
 */
#include "store/redis/client.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/random.h"
#include "store/core.h"
#include "store/redis/pipeline.h"

enum {
	/* Memory for replies and commands that is always there. */
	KEPT_SIZE = 256 * 1024,

	/* A group of 1,024 with the largest results. The scan refuses far smaller nonsense. */
	INPUT_SIZE_MAX = 1 << 30,
	OUTPUT_SIZE_MAX = 1 << 30,

	/* Between attempts to connect: doubles from the first to the last, with jitter. */
	RETRY_MS_FIRST = 10,
	RETRY_MS_LAST = 1000,
};

#define MS_NS INT64_C(1000000)

int64_t hx_redis_client_now_ms(const struct hx_redis_client *client)
{
	const struct hapax_clock *clock = client->session.clock;

	return clock == NULL ? -1 : client->session.epoch_ms + clock->boot_ms(clock->context);
}

enum hapax_status hx_redis_client_write(struct hx_redis_client *client)
{
	return hx_connection_write(&client->connection, client->output.data, client->output.size);
}

static void greeted(struct hx_redis_client *client)
{
	client->state = HX_REDIS_CLIENT_READY;
	client->failures = 0;
	hx_connection_set_deadline(&client->connection, INT64_MAX);
	if (!client->is_opened) {
		client->is_opened = true;
		client->session.must_be_durable |= client->session.is_durable;
		hx_event_set(&client->opened);
	}
	hx_redis_pipeline_pump(client);
}

/* False: the connection is closed. */
static bool take_greeting(struct hx_redis_client *client, struct hapax_bytes reply)
{
	struct hapax_error err = {.status = HAPAX_OK};
	enum hx_redis_session_result result;

	hx_buf_clear(&client->output);
	result = hx_redis_session_reply(&client->session, reply, &client->output, &err);
	if (result != HX_REDIS_SESSION_REFUSED && client->output.size > 0 &&
	    hx_redis_client_write(client) != HAPAX_OK)
		result = HX_REDIS_SESSION_REFUSED;
	if (result == HX_REDIS_SESSION_REFUSED) {
		hx_connection_close(&client->connection, &err);
		return false;
	}
	if (result == HX_REDIS_SESSION_READY)
		greeted(client);
	return true;
}

static void close_broken(struct hx_redis_client *client, const char *why)
{
	struct hapax_error err;

	(void)hx_error_set(
		&err, HAPAX_ERR_UNAVAILABLE, 0, "the server does not answer as Redis does: %s",
		why);
	hx_connection_close(&client->connection, &err);
}

/* One message from the front of input. False: none, or the end. */
static bool take_message(struct hx_redis_client *client, struct hapax_bytes input, size_t *ret_size)
{
	enum hx_resp_result result;
	bool is_good;

	if (input.size == 0)
		return false;
	if (client->state == HX_REDIS_CLIENT_READY && client->unit_count == 0) {
		close_broken(client, "it says something unasked");
		return false;
	}
	result = hx_resp_scan(&client->scan, input, hx_redis_pipeline_reply_size_max(client));
	if (result == HX_RESP_MORE)
		return false;
	if (result == HX_RESP_BAD) {
		close_broken(client, client->scan.why);
		return false;
	}
	*ret_size = client->scan.size;
	memset(&client->scan, 0, sizeof(client->scan));
	input.size = *ret_size;
	if (client->state != HX_REDIS_CLIENT_READY)
		return take_greeting(client, input);
	is_good = hx_redis_pipeline_take(client, input);
	if (!is_good)
		close_broken(client, "a reply has another form");
	return is_good;
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_redis_client *client = connection->context;
	size_t consumed = 0;
	size_t size = 0;

	while (connection->state == HX_CONNECTION_OPEN &&
	       take_message(
		       client,
		       (struct hapax_bytes){
			       (const char *)input.data + consumed, input.size - consumed},
		       &size))
		consumed += size;
	/* What is not sent yet must not be: nobody would answer it. */
	if (is_end)
		hx_connection_close(connection, NULL);
	if (connection->state == HX_CONNECTION_OPEN)
		hx_redis_pipeline_pump(client);
	return consumed;
}

/* ---------------------------------------------------------------- connecting */

static void fail_to_connect(struct hx_redis_client *client, const struct hapax_error *err)
{
	int64_t span_ms = RETRY_MS_LAST;
	uint64_t random = 0;

	if (!client->is_opened) {
		client->is_opened = true;
		client->open_err = *err;
		if (client->open_err.status == HAPAX_OK)
			(void)hx_error_set(
				&client->open_err, HAPAX_ERR_UNAVAILABLE, 0,
				"Redis closed the connection");
		client->state = HX_REDIS_CLIENT_IDLE;
		hx_event_set(&client->opened);
		return;
	}
	if (client->failures < 7)
		span_ms = (int64_t)RETRY_MS_FIRST << client->failures;
	client->failures++;
	hx_random_bytes(&random, sizeof(random));
	client->state = HX_REDIS_CLIENT_WAITING;
	hx_timer_set(
		&client->reactor.timers, &client->retry,
		hx_reactor_now_ns(&client->reactor) + span_ms * MS_NS / 2 +
			(int64_t)(random % (uint64_t)(span_ms * MS_NS / 2)));
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_redis_client *client = connection->context;
	bool was_ready = client->state == HX_REDIS_CLIENT_READY;

	hx_redis_pipeline_lose(client);
	memset(&client->scan, 0, sizeof(client->scan));
	client->needs_scripts = false;
	if (client->state == HX_REDIS_CLIENT_STOPPED) {
		hx_reactor_stop(&client->reactor);
		return;
	}
	if (was_ready)
		client->state = HX_REDIS_CLIENT_IDLE;
	else
		fail_to_connect(client, why);
	hx_redis_pipeline_pump(client);
}

static const struct hx_connection_ops connection_ops = {
	.on_input = on_input,
	.on_close = on_close,
};

static enum hapax_status greet(struct hx_redis_client *client, int fd, struct hapax_error *err)
{
	struct hx_connection_limits limits = {
		.input_size_max = INPUT_SIZE_MAX,
		.output_size_max = OUTPUT_SIZE_MAX,
		.stall_ms_max = client->options->timeout_ms,
	};
	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (client->tls != NULL)
		status = hx_tls_new(client->tls, client->place->endpoint.host, &tls, err);
	if (status == HAPAX_OK) {
		client->connection.context = client;
		status = hx_connection_open(
			&client->connection, &client->reactor, fd, tls, &connection_ops, &limits,
			err);
		if (status != HAPAX_OK)
			hx_tls_free(tls);
	}
	if (status != HAPAX_OK) {
		client->net->ops->close(client->net->context, fd);
		return status;
	}
	if (!client->place->endpoint.is_unix)
		(void)client->net->ops->set_option(client->net->context, fd, HX_NET_KEEPALIVE, 30);
	client->connection.input.keep_size = KEPT_SIZE;
	client->connection.output.keep_size = KEPT_SIZE;
	client->state = HX_REDIS_CLIENT_GREETING;
	hx_connection_set_deadline(
		&client->connection,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * MS_NS);
	hx_buf_clear(&client->output);
	status = hx_byte_queue_reserve(&client->connection.input, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_byte_queue_reserve(&client->connection.output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_redis_session_begin(&client->session, &client->output);
	if (status == HAPAX_OK)
		status = hx_redis_client_write(client);
	if (status != HAPAX_OK) {
		struct hapax_error why;

		(void)hx_error_set(&why, status, 0, "no memory to greet the server");
		hx_connection_close(&client->connection, &why);
	}
	return HAPAX_OK;
}

static void on_dialled(struct hx_dial *dial, int fd, const struct hapax_error *err)
{
	struct hx_redis_client *client = dial->context;
	struct hapax_error why = *err;

	if (client->state == HX_REDIS_CLIENT_STOPPED) {
		if (fd >= 0)
			client->net->ops->close(client->net->context, fd);
		return;
	}
	if (fd >= 0 && greet(client, fd, &why) == HAPAX_OK)
		return;
	fail_to_connect(client, &why);
	hx_redis_pipeline_pump(client);
}

void hx_redis_client_connect(struct hx_redis_client *client)
{
	client->state = HX_REDIS_CLIENT_DIALLING;
	hx_dial_begin(
		&client->dial, &client->place->endpoint,
		hx_reactor_now_ns(&client->reactor) + client->options->timeout_ms * MS_NS);
}

static void on_retry(struct hx_timer *timer)
{
	struct hx_redis_client *client = timer->context;

	client->state = HX_REDIS_CLIENT_IDLE;
	hx_redis_pipeline_pump(client);
}

static void on_arrived(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;
	struct hx_redis_request *next;

	for (struct hx_redis_request *request = hx_redis_request_take(&client->queue);
	     request != NULL; request = next) {
		next = request->next;
		hx_redis_pipeline_add(client, request);
	}
	/* The first connection is made without being asked for. */
	if (!client->is_opened && client->state == HX_REDIS_CLIENT_IDLE)
		hx_redis_client_connect(client);
	hx_redis_pipeline_pump(client);
}

static void on_stop(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;
	bool has_connection = client->connection.state != HX_CONNECTION_NONE;

	assert(client->pending == NULL && client->unit_count == 0);
	client->state = HX_REDIS_CLIENT_STOPPED;
	hx_timer_clear(&client->reactor.timers, &client->retry);
	if (has_connection)
		hx_connection_close(&client->connection, NULL);
	else
		hx_reactor_stop(&client->reactor);
}

static void io_run(void *arg)
{
	struct hx_redis_client *client = arg;

	hx_reactor_run(&client->reactor);
}

/* ---------------------------------------------------------------- life */

void hx_redis_client_close(struct hx_redis_client *client)
{
	if (client->has_thread) {
		hx_reactor_post(&client->reactor, &client->stop);
		hx_thread_join(&client->thread);
		client->has_thread = false;
	}
	if (client->has_reactor) {
		hx_dial_done(&client->dial);
		hx_timer_retire(&client->reactor.timers, &client->retry);
		hx_timer_retire(&client->reactor.timers, &client->deadline);
		hx_resolver_done(&client->resolver);
		/* An answer of the resolver that nobody waits for. */
		hx_reactor_turn(&client->reactor, 0);
		hx_reactor_done(&client->reactor);
		client->has_reactor = false;
	}
	if (client->has_queue)
		hx_redis_request_queue_done(&client->queue);
	client->has_queue = false;
	hx_tls_context_free(client->tls);
	client->tls = NULL;
	hx_buf_done(&client->output);
	hx_buf_done(&client->encoder.member);
}

static enum hapax_status make_parts(struct hx_redis_client *client, struct hapax_error *err)
{
	const struct hx_redis_place *place = client->place;
	struct hx_tls_options tls = {
		.authority_file = place->authority_file[0] == '\0' ? NULL : place->authority_file,
		.certificate_file =
			place->certificate_file[0] == '\0' ? NULL : place->certificate_file,
		.key_file = place->key_file[0] == '\0' ? NULL : place->key_file,
	};
	enum hapax_status status = hx_redis_request_queue_init(&client->queue);

	client->has_queue = status == HAPAX_OK;
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->encoder.member, client->encoder.member.size_max);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no memory to open a store");
	if (place->has_tls)
		status = hx_tls_client_context_new(&tls, &client->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&client->reactor, client->net, err);
	if (status != HAPAX_OK)
		return status;
	client->has_reactor = true;
	hx_resolver_init(&client->resolver, client->net);
	status = hx_dial_init(
		&client->dial, &client->reactor, &client->resolver, on_dialled, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->retry, on_retry, client);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&client->reactor.timers, &client->deadline, hx_redis_pipeline_deadline,
			client);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "no memory to open a store");
	return HAPAX_OK;
}

enum hapax_status hx_redis_client_open(
	struct hx_redis_client *client, struct hapax_store *store,
	const struct hx_redis_place *place, const struct hapax_store_options *options,
	const struct hx_net *net, struct hapax_error *err)
{
	enum hapax_status status;

	memset(client, 0, sizeof(*client));
	client->store = store;
	client->place = place;
	client->options = options;
	client->net = net;
	client->arrived = (struct hx_task){.fn = on_arrived, .context = client};
	client->stop = (struct hx_task){.fn = on_stop, .context = client};
	client->session = (struct hx_redis_session){
		.place = place,
		.scripts = &client->scripts,
		.must_exist = (options->flags & HAPAX_STORE_MUST_EXIST) != 0,
		.must_be_durable = place->requires_durable,
		.clock = options->clock == hapax_clock_system() ? NULL : options->clock,
	};
	client->encoder = (struct hx_redis_encoder){
		.place = place, .scripts = &client->scripts, .options = options};
	hx_buf_init(
		&client->encoder.member,
		HX_REDIS_PREFIX_SIZE_MAX + 6 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 8);
	hx_buf_init(&client->output, OUTPUT_SIZE_MAX);
	status = make_parts(client, err);
	if (status == HAPAX_OK)
		status = hx_thread_start(&client->thread, io_run, client, "hapax-redis", err);
	client->has_thread = status == HAPAX_OK;
	if (status == HAPAX_OK) {
		hx_reactor_post(&client->reactor, &client->arrived);
		hx_event_wait(&client->opened);
		status = client->open_err.status;
		if (status != HAPAX_OK && err != NULL)
			*err = client->open_err;
	}
	if (status != HAPAX_OK)
		hx_redis_client_close(client);
	return status;
}

static enum hapax_status enqueue(
	struct hx_redis_client *client, const struct hx_redis_request *request)
{
	enum hapax_status status = hx_redis_request_push(&client->queue, request);

	if (status == HAPAX_OK)
		hx_reactor_post(&client->reactor, &client->arrived);
	return status;
}

static int64_t deadline_ns(const struct hx_redis_client *client)
{
	return client->net->ops->now_ns(client->net->context) + client->options->timeout_ms * MS_NS;
}

void hx_redis_client_submit(
	struct hx_redis_client *client, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct hx_redis_request request = {
		.ops = ops,
		.count = count,
		.completion = completion,
		.deadline_ns = deadline_ns(client),
		.again_from = SIZE_MAX,
	};
	enum hapax_status status = enqueue(client, &request);

	if (status == HAPAX_OK)
		return;
	hx_store_fail(ops, count, status);
	hapax_store_complete(client->store, ops, count, completion);
}

enum hapax_status hx_redis_client_call(
	struct hx_redis_client *client, struct hapax_bytes command, struct hapax_buf *reply,
	struct hapax_error *err)
{
	struct hx_redis_call call = {.command = command, .reply = reply};
	struct hx_redis_request request = {
		.call = &call,
		.count = 1,
		.deadline_ns = deadline_ns(client),
		.again_from = SIZE_MAX,
	};
	enum hapax_status status;

	hx_event_init(&call.done);
	status = enqueue(client, &request);
	if (status == HAPAX_OK) {
		hx_event_wait(&call.done);
		status = call.status;
	}
	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, 0,
		status == HAPAX_ERR_NO_MEMORY ? "no memory to talk to Redis"
					      : "Redis was not reached or did not answer");
}
