/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/loop.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"
#include "serve/daemon/origin.h"

enum {
	/* Turns until all closed connections are gone. */
	LAST_TURNS_MAX = 1000,
};

static void on_drained(struct hx_http_server *server)
{
	hx_loop_check_idle(server->context);
}

static void drain(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	loop->is_draining = true;
	if (loop->gateway.reactor != NULL)
		hx_http_server_drain(&loop->gateway);
	if (loop->proxy.reactor != NULL)
		hx_http_server_drain(&loop->proxy);
	hx_resp_door_drain(&loop->resp);
	hx_loop_check_idle(loop);
}

static void leave(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	hx_http_server_leave(&loop->gateway);
	hx_http_server_leave(&loop->proxy);
}

void hx_loop_leave(struct hx_loop *loop)
{
	hx_reactor_post(&loop->reactor, &loop->leave_task);
}

void hx_loop_drain(struct hx_loop *loop)
{
	hx_reactor_post(&loop->reactor, &loop->drain_task);
}

static void beat(struct hx_task *task)
{
	struct hx_loop *loop = task->context;

	atomic_store(&loop->beat_ns, INT64_MAX);
}

void hx_loop_beat(struct hx_loop *loop)
{
	/* Do not repost a pending beat: its age is the measurement. */
	if (atomic_load(&loop->beat_ns) != INT64_MAX)
		return;
	atomic_store(&loop->beat_ns, hx_clock_mono_ns());
	hx_reactor_post(&loop->reactor, &loop->beat_task);
}

int64_t hx_loop_stalled_ns(const struct hx_loop *loop, int64_t now_ns)
{
	int64_t beat_ns = atomic_load(&loop->beat_ns);

	return beat_ns < now_ns ? now_ns - beat_ns : 0;
}

void hx_loop_check_idle(struct hx_loop *loop)
{
	if (!loop->is_draining || loop->is_idle || loop->delivery_count > 0 ||
	    (loop->gateway.reactor != NULL && !hx_http_server_has_drained(&loop->gateway)) ||
	    (loop->proxy.reactor != NULL && !hx_http_server_has_drained(&loop->proxy)) ||
	    !hx_resp_door_has_gone(&loop->resp))
		return;
	loop->is_idle = true;
	hx_serve_idle(loop->serve);
}

enum hapax_status hx_loop_init(
	struct hx_loop *loop, struct hx_serve *serve, size_t index, struct hapax_error *err)
{
	enum hapax_status status = hx_reactor_init(&loop->reactor, hx_net_system(), err);

	if (status != HAPAX_OK)
		return status;
	loop->reactor.blocks.budget = &serve->memory.listeners;
	if (hx_sha256_init(&loop->sha) != HAPAX_OK)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for an event loop");
	hx_prng_seed(&loop->trace_lot, hx_random_u64());
	loop->serve = serve;
	loop->index = index;
	loop->cells = hx_metrics_cells(serve->metrics, index);
	loop->observer = (struct hx_observer){
		.cells = loop->cells,
		.log = serve->log,
		.decisions = serve->decisions.log,
		.feed = serve->feed,
		.writer = index};
	loop->read_task = (struct hx_task){.fn = hx_delivery_read_all, .context = loop};
	loop->begin_task = (struct hx_task){.fn = hx_delivery_begin_all, .context = loop};
	loop->finish_task = (struct hx_task){.fn = hx_delivery_finish_all, .context = loop};
	loop->leave_task = (struct hx_task){.fn = leave, .context = loop};
	loop->drain_task = (struct hx_task){.fn = drain, .context = loop};
	loop->beat_task = (struct hx_task){.fn = beat, .context = loop};
	atomic_init(&loop->beat_ns, INT64_MAX);
	hx_buf_init(&loop->event_text, HX_EVENT_TEXT_MAX);
	hx_buf_init(&loop->key_scratch, HX_KEY_SCRATCH_MAX);
	hx_buf_init(&loop->body_text, HX_RESULT_SIZE_LIMIT * 4);
	return HAPAX_OK;
}

static enum hx_door door_of(const struct hx_http_server *server)
{
	const struct hx_loop *loop = server->context;

	return server == &loop->proxy ? HX_DOOR_PROXY : HX_DOOR_GATEWAY;
}

/* Applies the limit in force; existing connections stay. */
static enum hapax_status admit(
	struct hx_http_server *server, const char *client, bool *ret_is_counted)
{
	struct hx_loop *loop = server->context;
	struct hx_serve *serve = loop->serve;
	struct hx_loop_config *config = hx_loop_config_use(loop);
	enum hapax_status status = HAPAX_OK;

	if (config == NULL)
		return HAPAX_ERR_NO_MEMORY;
	*ret_is_counted = !hx_origin_is_trusted(&config->config->http, client);
	if (*ret_is_counted)
		status = hx_peers_take(
			&serve->peers, client, HX_PEERS_CONNECTIONS,
			hx_descriptors_per_address(
				&serve->descriptors, config->config, door_of(server)));
	hx_loop_config_give(loop, config);
	if (status == HAPAX_OK)
		hx_metrics_add(loop->cells, HX_METRIC_CONNECTIONS, 0, door_of(server), 1);
	return status;
}

static enum hapax_status loop_take(struct hx_http_exchange *exchange)
{
	struct hx_loop *loop = exchange->server->context;
	struct hx_loop_config *config = hx_loop_config_use(loop);
	enum hapax_status status;

	if (config == NULL)
		return HAPAX_ERR_NO_MEMORY;
	hx_origin_find(&config->config->http, exchange);
	status = hx_peers_take(
		&loop->serve->peers, exchange->origin, HX_PEERS_REQUESTS,
		config->config->http.max_requests_per_address);
	hx_loop_config_give(loop, config);
	return status;
}

static void give(struct hx_http_exchange *exchange)
{
	struct hx_loop *loop = exchange->server->context;

	hx_peers_give(&loop->serve->peers, exchange->origin, HX_PEERS_REQUESTS);
}

void hx_loop_count_refused(
	struct hx_cells *cells, enum hx_door door, unsigned status, enum hx_http_refusal why)
{
	static const unsigned reasons[] = {
		[HX_HTTP_REFUSED_MESSAGE] =
			HX_REFUSED_COUNT, /* not a limit: counted by its status */
		[HX_HTTP_REFUSED_HEAD] = HX_REFUSED_HEAD_TIMEOUT,
		[HX_HTTP_REFUSED_BODY] = HX_REFUSED_BODY_TIMEOUT,
		[HX_HTTP_REFUSED_UNREAD] = HX_REFUSED_SEND_TIMEOUT,
		[HX_HTTP_REFUSED_REQUESTS] = HX_REFUSED_REQUESTS,
		[HX_HTTP_REFUSED_MEMORY] = HX_REFUSED_MEMORY,
		[HX_HTTP_REFUSED_FILE] = HX_REFUSED_FILE,
		[HX_HTTP_REFUSED_ADMIT] = HX_REFUSED_ADDRESS,
		[HX_HTTP_REFUSED_IDLE] = HX_REFUSED_IDLE,
	};

	if (status != 0)
		hx_metrics_add(cells, HX_METRIC_REQUESTS, 0, hx_metrics_request(door, status), 1);
	if (reasons[why] != HX_REFUSED_COUNT)
		hx_metrics_add(cells, HX_METRIC_REFUSED, 0, reasons[why], 1);
}

static void refused(struct hx_http_server *server, unsigned status, enum hx_http_refusal why)
{
	struct hx_loop *loop = server->context;

	hx_loop_count_refused(loop->cells, door_of(server), status, why);
}

static void left(struct hx_http_server *server, const char *client, bool is_counted)
{
	struct hx_loop *loop = server->context;

	if (is_counted)
		hx_peers_give(&loop->serve->peers, client, HX_PEERS_CONNECTIONS);
	hx_metrics_add(loop->cells, HX_METRIC_CONNECTIONS, 0, door_of(server), -1);
}

static enum hx_config_tls_index tls_of(
	const struct hx_loop *loop, const struct hx_http_server *server)
{
	return server == &loop->proxy ? HX_CONFIG_TLS_PROXY : HX_CONFIG_TLS_GATEWAY;
}

static void unsecured(
	struct hx_http_server *server, const char *client, const struct hapax_error *why)
{
	struct hx_loop *loop = server->context;

	hx_serve_unsecured(
		loop->serve, loop->cells, hx_config_tls_name(tls_of(loop, server)), client, why);
}

/* One loop's share of a common limit; 0 means no limit. */
static size_t share(const struct hx_loop *loop, uint64_t max)
{
	size_t loops = loop->serve->loop_count;

	return max == 0 ? SIZE_MAX : (size_t)(max / loops + (max % loops != 0));
}

static struct hx_http_server_options door_options(
	const struct hx_loop *loop, const struct hx_http_server *door,
	const struct hx_config *config)
{
	const struct hx_config_http *http = &config->http;
	uint64_t connections = hx_descriptors_connections(
		&loop->serve->descriptors, config,
		door == &loop->proxy ? HX_DOOR_PROXY : HX_DOOR_GATEWAY);

	return (struct hx_http_server_options){
		.idle_ms = http->idle_timeout_ms,
		.head_ms = http->head_timeout_ms,
		.body_ms = http->body_timeout_ms,
		.body_max = http->max_body,
		.limits =
			{.line_max = (uint32_t)http->max_line,
			 .head_max = (uint32_t)http->max_head,
			 .field_max = (uint32_t)http->max_fields},
		.stall_ms = http->send_timeout_ms,
		/* Clients of the proxy expect errors like those of Stripe's API. */
		.has_errors = door == &loop->proxy,
		.body_memory_max = (size_t)http->max_body_memory,
		.folder = loop->serve->folder,
		.admit = admit,
		.left = left,
		.take = loop_take,
		.give = give,
		.refused = refused,
		.gone = hx_delivery_gone,
		.tls = loop->serve->door_tls.doors[tls_of(loop, door)],
		.handshake_ms = config->tls.handshake_timeout_ms,
		.unsecured = unsecured,
		.connections_max = share(loop, connections),
		.exchanges_max = share(loop, http->max_requests),
		.budget = &loop->serve->memory.listeners,
		.file_budget = &loop->serve->memory.files,
	};
}

enum hapax_status hx_loop_listen(
	struct hx_loop *loop, struct hx_http_server *door, const struct hx_address *address,
	struct hapax_error *err)
{
	const struct hx_http_server_options options = door_options(loop, door, loop->serve->config);

	return hx_http_server_open(
		door, &loop->reactor, address, loop->serve->loop_count > 1, &options,
		hx_delivery_accept, on_drained, loop, err);
}

static bool is_same(const struct hx_upstream *upstream, const struct hx_config_target *target)
{
	const struct hx_endpoint *a = &upstream->client.endpoint;
	const struct hx_endpoint *b = &target->endpoint;

	return upstream->is_tls == target->is_tls && a->is_unix == b->is_unix &&
		a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Connections survive a change of configuration; the options are new. NULL: no memory. */
static struct hx_upstream *find_upstream(
	struct hx_loop *loop, const struct hx_config *config, const struct hx_config_target *target)
{
	const struct hx_http_client_options options = {
		.connect_ms = config->upstream.connect_timeout_ms,
		.idle_ms = config->upstream.idle_timeout_ms,
		.connections_max = share(loop, config->upstream.max_connections),
		.idle_max = config->upstream.max_idle != 0 ? (size_t)config->upstream.max_idle
							   : HX_HTTP_IDLE_NONE,
		.tls = target->is_tls ? loop->serve->tls : NULL,
	};
	struct hx_upstream *upstream = loop->upstreams;

	while (upstream != NULL && !is_same(upstream, target))
		upstream = upstream->next;
	if (upstream != NULL) {
		hx_http_client_configure(&upstream->client, &options);
		return upstream;
	}
	upstream = hx_alloc_zero(1, sizeof(*upstream));
	if (upstream == NULL)
		return NULL;
	hx_http_client_init(
		&upstream->client, &loop->reactor, &loop->serve->resolver, &target->endpoint,
		&options);
	upstream->is_tls = target->is_tls;
	upstream->next = loop->upstreams;
	loop->upstreams = upstream;
	return upstream;
}

static void free_config(struct hx_loop_config *config)
{
	if (config == NULL)
		return;
	hx_config_release(config->config);
	hx_free(config->upstreams);
	hx_free(config);
}

/* The routes of the gateway, then those of the proxy. */
static const struct hx_config_target *target_of(const struct hx_config *config, size_t index)
{
	size_t count = config->gateway.route_count;

	return index < count ? &config->gateway.routes[index].target
			     : &config->proxy.routes[index - count].target;
}

static void configure_doors(struct hx_loop *loop, const struct hx_config *config)
{
	struct hx_http_server *const doors[] = {&loop->gateway, &loop->proxy};

	for (size_t i = 0; i < HX_COUNT(doors); i++) {
		const struct hx_http_server_options options = door_options(loop, doors[i], config);

		if (doors[i]->reactor != NULL)
			hx_http_server_configure(doors[i], &options);
	}
}

static struct hx_loop_config *adopt(struct hx_loop *loop)
{
	struct hx_loop_config *config = hx_alloc_zero(1, sizeof(*config));
	size_t count;

	if (config == NULL)
		return NULL;
	config->config = hx_config_current_keep(&loop->serve->current);
	count = config->config->gateway.route_count + config->config->proxy.route_count;
	config->upstreams = hx_alloc_zero(count + 1, sizeof(struct hx_upstream *));
	for (size_t i = 0; i < count && config->upstreams != NULL; i++) {
		config->upstreams[i] =
			find_upstream(loop, config->config, target_of(config->config, i));
		if (config->upstreams[i] == NULL) {
			free_config(config);
			return NULL;
		}
	}
	if (config->upstreams == NULL) {
		free_config(config);
		return NULL;
	}
	config->next = loop->config;
	loop->config = config;
	configure_doors(loop, config->config);
	return config;
}

/* Drops configurations without deliveries. */
static void drop_unused(struct hx_loop *loop)
{
	struct hx_loop_config **at = &loop->config;

	while (*at != NULL) {
		struct hx_loop_config *config = *at;

		if (config->users > 0 || config == loop->config) {
			at = &config->next;
			continue;
		}
		*at = config->next;
		free_config(config);
	}
}

struct hx_loop_config *hx_loop_config_use(struct hx_loop *loop)
{
	struct hx_loop_config *config = loop->config;

	if (config == NULL || !hx_config_current_is(&loop->serve->current, config->config)) {
		config = adopt(loop);
		if (config == NULL)
			return NULL;
		drop_unused(loop);
	}
	config->users++;
	return config;
}

void hx_loop_config_give(struct hx_loop *loop, struct hx_loop_config *config)
{
	config->users--;
	if (config->users == 0 && config != loop->config)
		drop_unused(loop);
}

void hx_loop_run(struct hx_loop *loop)
{
	loop->thread_id = hx_thread_id();
	hx_reactor_run(&loop->reactor);
}

static bool has_gone(const struct hx_loop *loop)
{
	for (const struct hx_upstream *upstream = loop->upstreams; upstream != NULL;
	     upstream = upstream->next) {
		if (upstream->client.link_count > 0)
			return false;
	}
	return hx_resp_door_has_gone(&loop->resp) &&
		(loop->gateway.reactor == NULL || loop->gateway.peer_count == 0) &&
		(loop->proxy.reactor == NULL || loop->proxy.peer_count == 0);
}

void hx_loop_done(struct hx_loop *loop)
{
	assert(loop->delivery_count == 0);
	hx_http_server_close(&loop->gateway);
	hx_http_server_close(&loop->proxy);
	hx_resp_door_close(&loop->resp);
	for (struct hx_upstream *upstream = loop->upstreams; upstream != NULL;
	     upstream = upstream->next)
		hx_http_client_close(&upstream->client);
	for (int i = 0; i < LAST_TURNS_MAX && !has_gone(loop); i++)
		hx_reactor_turn(&loop->reactor, 0);
	hx_http_server_done(&loop->gateway);
	hx_http_server_done(&loop->proxy);
	hx_resp_door_done(&loop->resp);
	hx_deliveries_free(loop);
	while (loop->upstreams != NULL) {
		struct hx_upstream *upstream = loop->upstreams;

		loop->upstreams = upstream->next;
		hx_http_client_done(&upstream->client);
		hx_free(upstream);
	}
	while (loop->config != NULL) {
		struct hx_loop_config *config = loop->config;

		loop->config = config->next;
		free_config(config);
	}
	hx_buf_done(&loop->event_text);
	hx_buf_done(&loop->key_scratch);
	hx_buf_done(&loop->body_text);
	hx_sha256_done(&loop->sha);
	hx_reactor_done(&loop->reactor);
}
