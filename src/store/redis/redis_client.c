/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_client.c - the I/O thread and its links.
 */
#include "store/redis/redis_client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "store/core.h"
#include "store/redis/cluster.h"
#include "store/redis/pipeline.h"

enum {
	/* Preallocated memory for commands, and its maximum. */
	KEPT_SIZE = 256 * 1024,
	OUTPUT_SIZE_MAX = 1 << 30,
};

int64_t hx_redis_client_now_ms(const struct hx_redis_client *client)
{
	const struct hapax_clock *clock = client->clock;

	return clock == NULL ? -1 : client->epoch_ms + clock->boot_ms(clock->context);
}

/* ---------------------------------------------------------------- links */

void hx_redis_client_judge(struct hx_redis_client *client)
{
	struct hx_redis_server all = {
		.has_log = true, .syncs_always = true, .is_cluster = client->cluster != NULL};
	char guarantee[HX_REDIS_GUARANTEE_SIZE];
	bool is_durable;

	for (size_t i = 0; i < client->link_count; i++) {
		const struct hx_redis_link *link = client->links[i];
		const struct hx_redis_server *server = &link->session.server;

		if (link->connection.state != HX_REDIS_CONNECTION_READY)
			continue;
		all.has_log &= server->has_log;
		all.syncs_always &= server->syncs_always;
		all.skips_sync |= server->skips_sync;
		all.evicts |= server->evicts;
		all.replica_count += server->replica_count;
	}
	is_durable = hx_redis_guarantee(&all, guarantee);
	hx_mutex_lock(&client->guarantee_mutex);
	memcpy(client->guarantee, guarantee, sizeof(guarantee));
	hx_mutex_unlock(&client->guarantee_mutex);
	if (!client->is_opened) {
		client->is_durable = is_durable;
		client->must_be_durable |= is_durable;
		for (size_t i = 0; i < client->link_count; i++)
			client->links[i]->session.must_be_durable = client->must_be_durable;
	}
}

void hx_redis_client_opened(struct hx_redis_client *client, const struct hapax_error *err)
{
	assert(!client->is_opened);
	client->is_opened = true;
	client->open_err = *err;
	hx_event_set(&client->opened);
}

void hx_redis_client_link_ready(struct hx_redis_link *link)
{
	struct hx_redis_client *client = link->client;
	const struct hapax_error fine = {.status = HAPAX_OK};

	if (client->cluster != NULL) {
		hx_redis_cluster_ready(client, link);
		return;
	}
	hx_redis_client_judge(client);
	if (!client->is_opened) {
		client->epoch_ms = link->session.epoch_ms;
		hx_redis_client_opened(client, &fine);
	}
}

bool hx_redis_client_link_failed(struct hx_redis_link *link, const struct hapax_error *err)
{
	struct hx_redis_client *client = link->client;

	if (client->cluster != NULL)
		return hx_redis_cluster_failed(client, link, err);
	if (client->is_opened)
		return true;
	hx_redis_client_opened(client, err);
	return false;
}

bool hx_redis_client_link_closed(struct hx_redis_link *link)
{
	struct hx_redis_client *client = link->client;

	if (!client->is_stopping) {
		if (client->cluster != NULL && client->is_opened)
			hx_redis_cluster_lost(client);
		return false;
	}
	hx_redis_client_stopped(client);
	return true;
}

void hx_redis_client_stopped(struct hx_redis_client *client)
{
	if (--client->open_count == 0)
		hx_reactor_stop(&client->reactor);
}

struct hx_redis_link *hx_redis_client_add_link(
	struct hx_redis_client *client, const struct hx_endpoint *endpoint)
{
	struct hx_redis_link *link;

	if (client->link_count == HX_REDIS_LINKS_MAX)
		return NULL;
	link = hx_alloc_zero(1, sizeof(*link));
	if (link == NULL)
		return NULL;
	if (hx_redis_link_init(link, client, endpoint) != HAPAX_OK) {
		hx_free(link);
		return NULL;
	}
	client->links[client->link_count++] = link;
	return link;
}

static void add_request(struct hx_redis_client *client, struct hx_redis_request *request)
{
	if (client->cluster != NULL)
		hx_redis_cluster_add(client, request);
	else
		hx_redis_pipeline_add(client->links[0], request);
}

static void pump(struct hx_redis_client *client)
{
	if (client->cluster != NULL)
		hx_redis_cluster_pump(client);
	else
		hx_redis_pipeline_pump(client->links[0]);
}

static void on_arrived(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;
	struct hx_redis_request *next;

	for (struct hx_redis_request *request = hx_request_queue_take(&client->queue);
	     request != NULL; request = next) {
		next = hx_request_queue_next(request);
		add_request(client, request);
	}
	/* The first connection opens without a request. */
	if (!client->is_opened && client->links[0]->connection.state == HX_REDIS_CONNECTION_CLOSED)
		hx_redis_link_connect(client->links[0]);
	pump(client);
}

/* No caller waits any more, but a request for the map of a Cluster may be in progress. */
static void end_own_calls(struct hx_redis_link *link)
{
	assert(link->client->cluster != NULL || (link->pending == NULL && link->unit_count == 0));
	while (link->pending != NULL) {
		struct hx_redis_request *request = link->pending;

		assert(request->call != NULL && request->call->fn != NULL);
		hx_redis_pipeline_withdraw(link, request);
		hx_redis_request_fail(request, HAPAX_ERR_UNAVAILABLE);
		hx_redis_request_end(link->client, request);
	}
}

static void on_stop(struct hx_task *task)
{
	struct hx_redis_client *client = task->context;

	client->is_stopping = true;
	for (size_t i = 0; i < client->link_count; i++) {
		struct hx_redis_link *link = client->links[i];

		end_own_calls(link);
		client->open_count += hx_redis_connection_close(&link->connection);
	}
	client->open_count += hx_redis_connection_close(&client->subscriber.connection);
	if (client->open_count == 0)
		hx_reactor_stop(&client->reactor);
}

static void io_run(void *arg)
{
	struct hx_redis_client *client = arg;

	hx_reactor_run(&client->reactor);
}

void hx_redis_client_guarantee(struct hx_redis_client *client, char *ret_text, size_t size)
{
	hx_mutex_lock(&client->guarantee_mutex);
	(void)snprintf(ret_text, size, "%s", client->guarantee);
	hx_mutex_unlock(&client->guarantee_mutex);
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
		for (size_t i = 0; i < client->link_count; i++)
			hx_redis_link_done(client->links[i]);
		hx_redis_subscriber_done(&client->subscriber);
		hx_redis_cluster_free(client);
		hx_resolver_done(&client->resolver);
		hx_reactor_done(&client->reactor);
		client->has_reactor = false;
		hx_mutex_done(&client->guarantee_mutex);
	}
	for (size_t i = 0; i < client->link_count; i++)
		hx_free(client->links[i]);
	client->link_count = 0;
	if (client->has_queue)
		hx_request_queue_done(&client->queue);
	client->has_queue = false;
	hx_tls_context_free(client->tls);
	client->tls = NULL;
	hx_buf_done(&client->output);
	hx_buf_done(&client->encoder.member);
}

/* One link, or one for each Cluster server in the URL; more are found later. */
static enum hapax_status make_links(struct hx_redis_client *client)
{
	const struct hx_redis_place *place = client->place;
	enum hapax_status status = HAPAX_OK;

	if (place->is_cluster)
		status = hx_redis_cluster_new(client);
	for (size_t i = 0; i < place->endpoint_count && status == HAPAX_OK; i++) {
		if (hx_redis_client_add_link(client, &place->endpoints[i]) == NULL)
			status = HAPAX_ERR_NO_MEMORY;
	}
	return status;
}

static enum hapax_status make_parts(struct hx_redis_client *client, struct hapax_error *err)
{
	enum hapax_status status =
		hx_request_queue_init(&client->queue, sizeof(struct hx_redis_request));

	client->has_queue = status == HAPAX_OK;
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->output, KEPT_SIZE);
	if (status == HAPAX_OK)
		status = hx_buf_reserve(&client->encoder.member, client->encoder.member.size_max);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
	status = hx_redis_connection_tls_context(client->place, &client->tls, err);
	if (status == HAPAX_OK)
		status = hx_reactor_init(&client->reactor, client->net, err);
	if (status != HAPAX_OK)
		return status;
	client->has_reactor = true;
	hx_resolver_init(&client->resolver, client->net);
	hx_mutex_init(&client->guarantee_mutex);
	status = hx_redis_subscriber_init(&client->subscriber, client);
	if (status == HAPAX_OK)
		status = make_links(client);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory to open a store");
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
	client->clock = options->clock == hapax_clock_system() ? NULL : options->clock;
	client->must_be_durable = place->requires_durable;
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
	if (status == HAPAX_OK && place->is_cluster)
		status = hx_redis_cluster_found(client, err);
	if (status != HAPAX_OK)
		hx_redis_client_close(client);
	return status;
}

static enum hapax_status enqueue(
	struct hx_redis_client *client, const struct hx_redis_request *request)
{
	enum hapax_status status = hx_request_queue_push(&client->queue, request);

	if (status == HAPAX_OK)
		hx_reactor_post(&client->reactor, &client->arrived);
	return status;
}

static int64_t deadline_ns(const struct hx_redis_client *client)
{
	return client->net->ops->now_ns(client->net->context) +
		client->options->timeout_ms * HX_NS_PER_MS;
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

	if (status != HAPAX_OK)
		hx_store_fail_submit(client->store, ops, count, completion, status);
}

void hx_redis_client_call_begin(
	struct hx_redis_client *client, unsigned partition, struct hx_redis_call *call)
{
	struct hx_redis_request request = {
		.call = call,
		.count = 1,
		.partition = (int)partition,
		.deadline_ns = deadline_ns(client),
		.again_from = SIZE_MAX,
	};
	enum hapax_status status;

	hx_event_init(&call->done);
	status = enqueue(client, &request);
	if (status == HAPAX_OK)
		return;
	call->status = status;
	hx_event_set(&call->done);
}

enum hapax_status hx_redis_client_call_wait(struct hx_redis_call *call, struct hapax_error *err)
{
	hx_event_wait(&call->done);
	if (call->status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, call->status, 0,
		call->status == HAPAX_ERR_NO_MEMORY ? "not enough memory to talk to Redis"
						    : "could not reach Redis, or it did not "
						      "answer");
}

enum hapax_status hx_redis_client_call(
	struct hx_redis_client *client, unsigned partition, struct hapax_bytes command,
	struct hapax_buf *reply, struct hapax_error *err)
{
	struct hx_redis_call call = {.command = command, .reply = reply};

	hx_redis_client_call_begin(client, partition, &call);
	return hx_redis_client_call_wait(&call, err);
}
