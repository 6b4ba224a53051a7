/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the daemon from its start to its end.
 *
 *	start: log, store, processor, loops, doors ──▶ ready
 *	TERM: not ready ──delay──▶ doors close, requests end ──▶ all loops idle ──▶ end
 *	                                   └──timeout, second TERM──▶ end at once
 *
 * An immediate end leaves everything as it is, like a crash: claims lapse, and a retry runs.
 */
#include "serve/daemon/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/process.h"
#include "api/api.h"
#include "net/tls/tls.h"
#include "observe/duplicate_watch.h"
#include "observe/feed.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/inspection.h"
#include "serve/http/delivery.h"

enum {
	LOG_WAIT_MS = 2000,
	PAGE_MAX = 64 * 1024 * 1024,
	LAST_TURNS_MAX = 1000,

	/* How long the shutdown waits for a pending question to the store. */
	LAST_ANSWER_MS = 200,

	/* How long it waits for the trace collector. */
	LAST_SPANS_MS = 1000,
};

/* Text for a terminal, which people read; JSON for programs. */
static enum hx_logger_format log_format(const struct hx_config *config)
{
	if (config->log.format == HX_CONFIG_LOG_AUTO)
		return isatty(STDERR_FILENO) ? HX_LOGGER_LOGFMT : HX_LOGGER_JSON;
	return config->log.format == HX_CONFIG_LOG_LOGFMT ? HX_LOGGER_LOGFMT : HX_LOGGER_JSON;
}

struct hx_logger_options hx_serve_log_options(const struct hx_serve *serve)
{
	const struct hx_config_log *log = &serve->config->log;
	hx_config_variable_fn *variable = serve->source->variable;

	return (struct hx_logger_options){
		.level = (enum hx_logger_level)log->level,
		.format = log_format(serve->config),
		.keys = (enum hx_logger_keys)log->keys,
		.rate = log->rate,
		.has_priority = variable != NULL &&
			hx_logger_is_journal(STDERR_FILENO, variable("JOURNAL_STREAM")),
	};
}

static void log_text(
	struct hx_serve *serve, enum hx_logger_level level, const char *msg, const char *name,
	const char *value)
{
	const struct hx_logger_field field = HX_LOGGER_TEXT(name, value);

	hx_logger(serve->log, level, msg, &field, value != NULL ? 1 : 0);
}

static void stop_loops(struct hx_serve *serve)
{
	for (size_t i = 0; i < serve->loop_count; i++)
		hx_reactor_stop(&serve->loops[i].reactor);
	hx_reactor_stop(&serve->reactor);
}

static void all_idle(struct hx_task *task)
{
	stop_loops(task->context);
}

void hx_serve_idle(struct hx_serve *serve)
{
	if (atomic_fetch_add(&serve->idle_count, 1) + 1 == serve->loop_count + HX_SERVE_BACKGROUNDS)
		hx_reactor_post(&serve->reactor, &serve->idle_task);
}

static void close_doors(struct hx_serve *serve)
{
	for (size_t i = 0; i < serve->loop_count; i++)
		hx_loop_drain(&serve->loops[i]);
	hx_serve_drain_backgrounds(serve);
	hx_timer_set(
		&serve->reactor.timers, &serve->drain_timer,
		hx_reactor_now_ns(&serve->reactor) +
			serve->config->drain.timeout_ms * HX_NS_PER_MS);
}

/* First the delay to leave rotation, then the timeout of requests in progress. */
static void on_drain_timer(struct hx_timer *timer)
{
	struct hx_serve *serve = timer->context;

	if (atomic_load(&serve->is_draining) == 1) {
		atomic_store(&serve->is_draining, 2);
		close_doors(serve);
		return;
	}
	log_text(serve, HX_LOGGER_WARN, "drain timeout reached, requests abandoned", NULL, NULL);
	serve->is_cut = true;
	stop_loops(serve);
}

static void ask_suspected(struct hx_serve *serve)
{
	serve->is_suspected = false;
	serve->suspected_ns = hx_reactor_now_ns(&serve->reactor);
	(void)hx_store_view_ask(&serve->view);
}

/* Periodic work for which no request waits. */
static void on_chore_timer(struct hx_timer *timer)
{
	enum { SECONDS_MAX = 60 };
	struct hx_serve *serve = timer->context;

	hx_logger_tick(serve->log);
	hx_decision_file_tick(&serve->decisions, serve->log);
	hx_store_stack_watch(&serve->stack, &serve->conditions);
	for (size_t i = 0; i < serve->loop_count; i++)
		hx_loop_beat(&serve->loops[i]);
	if (serve->is_suspected)
		ask_suspected(serve);
	if (serve->stack.limit != NULL)
		(void)hx_store_view_ask(&serve->view);
	hx_serve_refresh_resp(serve);
	hx_consumers_tidy(&serve->consumers);
	hx_api_tick(serve->api);
	hx_condition_watch_look(serve);
	hx_serve_watch_also(serve, false);
	hx_peers_watch(&serve->peers, serve->log, hx_reactor_now_ns(&serve->reactor));
	serve->chores++;
	if (serve->chores % SECONDS_MAX == 0)
		(void)hx_duplicate_watch_look(
			serve->watch, serve->log, serve->config->log.duplicate_percent);
	hx_timer_set(
		&serve->reactor.timers, timer,
		hx_reactor_now_ns(&serve->reactor) + 1000 * HX_NS_PER_MS);
}

static void begin_drain(struct hx_serve *serve, const char *reason)
{
	if (atomic_load(&serve->is_draining) != 0)
		return;
	log_text(serve, HX_LOGGER_INFO, "draining", "reason", reason);
	hx_service_stopping(&serve->service, "draining");
	atomic_store(&serve->is_draining, 1);
	for (size_t i = 0; i < serve->loop_count; i++)
		hx_loop_leave(&serve->loops[i]);
	hx_timer_set(
		&serve->reactor.timers, &serve->drain_timer,
		hx_reactor_now_ns(&serve->reactor) + serve->config->drain.delay_ms * HX_NS_PER_MS);
}

/* Many events may report a suspicion at once; the store is asked once a second. */
static void on_suspicion(struct hx_task *task)
{
	struct hx_serve *serve = task->context;

	if (hx_reactor_now_ns(&serve->reactor) - serve->suspected_ns < 1000 * HX_NS_PER_MS)
		serve->is_suspected = true;
	else
		ask_suspected(serve);
}

void hx_serve_suspect(struct hx_serve *serve)
{
	if (serve->can_latch)
		hx_reactor_post(&serve->reactor, &serve->suspect_task);
}

/* The store has answered. After a permanent failure, a new process must reopen it. */
static void take_answer(struct hx_task *task)
{
	struct hx_serve *serve = task->context;
	struct hx_store_facts facts;

	hx_store_view_look(&serve->view, &facts);
	if (facts.status == HAPAX_ERR_FAILED && atomic_exchange(&serve->is_latched, 1) == 0) {
		log_text(
			serve, HX_LOGGER_ERROR, "store failed, daemon shuts down", "error",
			facts.error.message);
		begin_drain(serve, "store failed");
	}
	hx_admin_told(serve, facts.answered);
}

/* Threads: the view's. */
static void on_told(void *context)
{
	struct hx_serve *serve = context;

	hx_reactor_post(&serve->reactor, &serve->told_task);
}

enum hapax_status hx_serve_prepare_tls(
	struct hx_serve *serve, const struct hx_config *config, struct hapax_error *err)
{
	const struct hx_tls_options options = {.authority_file = NULL};
	bool is_needed = false;

	for (size_t i = 0; i < config->gateway.route_count; i++)
		is_needed = is_needed || config->gateway.routes[i].target.is_tls;
	for (size_t i = 0; i < config->proxy.route_count; i++)
		is_needed = is_needed || config->proxy.routes[i].target.is_tls;
	if (is_needed && serve->tls == NULL)
		return hx_tls_client_context_new(&options, &serve->tls, err);
	return HAPAX_OK;
}

void hx_serve_unsecured(
	struct hx_serve *serve, struct hx_cells *cells, const char *door, const char *client,
	const struct hapax_error *why)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("door", door), HX_LOGGER_TEXT("error", why->message),
		HX_LOGGER_TEXT("client", client)};

	/* A port scan connects and leaves without sending data. */
	bool has_spoken = why->status != HAPAX_OK &&
		(why->os_errno == 0 || why->os_errno == EPROTO || why->os_errno == EKEYREJECTED);

	hx_metrics_add(cells, HX_METRIC_REFUSED, 0, HX_REFUSED_HANDSHAKE, 1);
	hx_logger(
		serve->log, has_spoken ? HX_LOGGER_WARN : HX_LOGGER_DEBUG, "TLS handshake failed",
		fields, client[0] != '\0' ? 3 : 2);
}

static void reload_by_signal(struct hx_serve *serve)
{
	struct hapax_error err;
	enum hapax_status status;

	hx_service_reloading(&serve->service);
	hx_decision_file_rotate(&serve->decisions, serve->log);
	status = hx_serve_reload(serve, &err);
	hx_api_audit(
		serve->api, "HUP", "reload",
		status == HAPAX_OK ? "applied" : hapax_status_name(status));
	hx_service_ready(
		&serve->service,
		status == HAPAX_OK
			? "serving"
			: "serving; the last configuration was rejected, the previous one "
			  "stays active");
}

static void end_by_signal(struct hx_serve *serve, const char *name)
{
	if (atomic_load(&serve->is_draining) == 0) {
		begin_drain(serve, name);
		return;
	}
	serve->is_cut = true;
	stop_loops(serve);
}

static void on_signal(struct hx_signals *signals, int number)
{
	struct hx_serve *serve = signals->context;

	switch (number) {
	case SIGHUP: reload_by_signal(serve); break;
	case SIGUSR1:
		/* Log rotation tools send it; it must not stop the daemon. */
		log_text(
			serve, HX_LOGGER_INFO, "nothing to reopen, the log is standard error", NULL,
			NULL);
		break;
	case SIGUSR2: hx_serve_say_state(serve); break;
	default: end_by_signal(serve, number == SIGINT ? "INT" : "TERM"); break;
	}
}

/* Leases and waiters, on the first loop. */
static void tick(struct hx_task *task)
{
	struct hx_serve *serve = task->context;
	struct hx_loop *loop = &serve->loops[0];
	const struct hapax_clock *clock = hapax_clock_system();
	int64_t next_ms = hapax_processor_tick(serve->processor);
	int64_t now_ms = clock->boot_ms(clock->context);

	if (next_ms == HAPAX_TIME_NEVER)
		hx_timer_clear(&loop->reactor.timers, &serve->tick_timer);
	else
		hx_timer_set(
			&loop->reactor.timers, &serve->tick_timer,
			hx_reactor_now_ns(&loop->reactor) +
				(next_ms > now_ms ? next_ms - now_ms : 0) * HX_NS_PER_MS);
}

static void on_tick_timer(struct hx_timer *timer)
{
	struct hx_serve *serve = timer->context;

	tick(&serve->tick_task);
}

/* Threads: any. */
static void on_wake(void *context)
{
	struct hx_serve *serve = context;

	hx_reactor_post(&serve->loops[0].reactor, &serve->tick_task);
}

static enum hapax_status open_store(struct hx_serve *serve, struct hapax_error *err)
{
	struct hapax_processor_options options = HAPAX_PROCESSOR_OPTIONS_INIT;
	enum hapax_status status = hx_store_stack_open(
		&serve->stack, serve->config, serve->memory.plan.store, &serve->current, serve->log,
		&serve->store, err);

	options.timeout_ms = serve->config->store.timeout_ms;
	options.wake = on_wake;
	options.wake_context = serve;
	if (status == HAPAX_OK)
		status = hx_serve_check_also(serve, serve->config, err);
	if (status == HAPAX_OK)
		status = hapax_processor_new(serve->store, &options, &serve->processor, err);
	serve->can_latch = status == HAPAX_OK && hx_store_stack_can_latch(&serve->stack);
	serve->view.keys = (struct hx_tenant_keys){
		.limit = serve->stack.limit,
		.keys_max = serve->config->store.max_keys_per_tenant,
		.current = &serve->current,
		.scopes_max = serve->config->metrics.max_scopes};
	if (status == HAPAX_OK)
		status = hx_store_view_start(
			&serve->view, &serve->stack, serve->store, on_told, serve, err);
	return status;
}

/* The gateway or the proxy. */
static enum hapax_status open_door(
	struct hx_serve *serve, enum hx_config_tls_index index, struct hapax_error *err)
{
	struct hx_service_door door;
	enum hapax_status status = hx_service_find_door(&serve->service, index, &door, err);

	for (size_t i = 0; status == HAPAX_OK && i < door.loop_count; i++) {
		struct hx_loop *loop = &serve->loops[i];
		struct hx_http_server *server =
			index == HX_CONFIG_TLS_PROXY ? &loop->proxy : &loop->gateway;

		status = hx_service_take_door(
			&serve->service, hx_config_tls_name(index), i,
			&server->listener.inherited_fd, err);
		if (status == HAPAX_OK)
			status = hx_loop_listen(loop, server, &door.address, err);
		/* The port that the first one got, if it was to be any. */
		door.address = server->listener.address;
	}
	return status;
}

static bool has_door(struct hx_serve *serve, const struct hx_config_door *door, const char *name)
{
	struct hx_address address;

	return !door->is_off || hx_service_has_door(&serve->service, name, &address);
}

/* Runs before any part opens descriptors that stay open. */
static void find_descriptors(struct hx_serve *serve)
{
	const struct hx_config_listen *listen = &serve->config->listen;
	struct hx_descriptors *descriptors = &serve->descriptors;

	hx_descriptors_init(descriptors, hx_process_raise_descriptors(), serve->loop_count);
	descriptors->is_open[HX_DOOR_GATEWAY] = has_door(serve, &listen->gateway, "gateway");
	descriptors->is_open[HX_DOOR_PROXY] = has_door(serve, &listen->proxy, "proxy");
	descriptors->is_open[HX_DOOR_RESP] = has_door(serve, &listen->resp, "resp");
}

static enum hapax_status open_loops(struct hx_serve *serve, struct hapax_error *err)
{
	/* The loops, the API, the consumers. */
	struct hx_metrics_options options = {.writers = serve->loop_count + 2};
	enum hapax_status status;
	size_t count = serve->loop_count;

	options.scopes_max = serve->config->metrics.max_scopes;
	options.types_max = serve->config->metrics.max_event_types;
	options.no_aliases = !serve->config->metrics.aliases;
	status = hx_metrics_new(&options, &serve->metrics, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_duplicate_watch_new(serve->metrics, &serve->watch, err);
	if (status != HAPAX_OK)
		return status;
	status = hx_feed_new(options.writers, &serve->feed, err);
	if (status != HAPAX_OK)
		return status;
	serve->cells = hx_metrics_cells(serve->metrics, count);
	serve->loops = hx_alloc_zero(count, sizeof(*serve->loops));
	if (serve->loops == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for the event loops");
	for (size_t i = 0; i < count && status == HAPAX_OK; i++)
		status = hx_loop_init(&serve->loops[i], serve, i, err);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&serve->loops[0].reactor.timers, &serve->tick_timer, on_tick_timer, serve);
	return status;
}

static enum hapax_status open_control(struct hx_serve *serve, struct hapax_error *err)
{
	static const int wanted[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, 0};
	enum hapax_status status = hx_reactor_init(&serve->reactor, hx_net_system(), err);

	serve->reactor.blocks.budget = &serve->memory.listeners;
	if (status == HAPAX_OK)
		status = hx_signals_open(
			&serve->signals, &serve->reactor, wanted, on_signal, serve, err);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&serve->reactor.timers, &serve->drain_timer, on_drain_timer, serve);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&serve->reactor.timers, &serve->chore_timer, on_chore_timer, serve);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&serve->reactor.timers, &serve->wait_timer, hx_admin_wait_timer, serve);
	if (status == HAPAX_OK)
		status = hx_service_open(&serve->service, serve, serve->source->variable, err);
	return status;
}

static void run_loop(void *arg)
{
	hx_loop_run(arg);
}

static enum hapax_status start_loops(struct hx_serve *serve, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < serve->loop_count && status == HAPAX_OK; i++) {
		char name[40];

		(void)snprintf(name, sizeof(name), "hapax-loop-%zu", i);
		status = hx_thread_start(
			&serve->loops[i].thread, run_loop, &serve->loops[i], name, err);
		serve->running_count += status == HAPAX_OK;
	}
	return status;
}

static const char *address_text(
	bool is_open, const struct hx_listener *listener, char text[HX_ADDRESS_TEXT_SIZE])
{
	if (!is_open)
		return "off";
	hx_address_format(&listener->address, text);
	return text;
}

static void say_ready(struct hx_serve *serve)
{
	const struct hx_loop *loop = &serve->loops[0];
	const struct hx_http_server *gateway = &loop->gateway;
	const struct hx_http_server *proxy = &loop->proxy;
	const struct hx_http_server *admin = &serve->admin;
	char texts[4][HX_ADDRESS_TEXT_SIZE];
	const char *const addresses[] = {
		address_text(gateway->reactor != NULL, &gateway->listener, texts[0]),
		address_text(proxy->reactor != NULL, &proxy->listener, texts[1]),
		address_text(loop->resp.service != NULL, &loop->resp.listener, texts[2]),
		address_text(admin->reactor != NULL, &admin->listener, texts[3]),
	};
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("gateway", addresses[0]),
		HX_LOGGER_TEXT("proxy", addresses[1]),
		HX_LOGGER_TEXT("resp", addresses[2]),
		HX_LOGGER_TEXT("admin", addresses[3]),
		HX_LOGGER_TEXT("store", hapax_store_url(serve->store)),
		HX_LOGGER_UNSIGNED("loops", serve->loop_count),
	};

	hx_logger(serve->log, HX_LOGGER_INFO, "ready", fields, HX_COUNT(fields));
}

/* What a store that is not durable may lose. memory: says so by its name. */
static void say_loss(struct hx_serve *serve)
{
	char guarantee[512];
	const struct hapax_store *store = serve->store;

	if ((hapax_store_capabilities(store) & HAPAX_STORE_DURABLE) ||
	    strncmp(hapax_store_name(store), "redis", 5) != 0)
		return;
	hapax_store_guarantee(serve->store, guarantee, sizeof(guarantee));
	{
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT("store", hapax_store_url(store)),
			HX_LOGGER_TEXT("why", guarantee),
			HX_LOGGER_TEXT("hint", "set appendonly yes and appendfsync always"),
		};

		hx_logger(
			serve->log, HX_LOGGER_WARN, "store may lose answers", fields,
			HX_COUNT(fields));
	}
}

static enum hapax_status start(struct hx_serve *serve, struct hapax_error *err)
{
	struct hx_logger_options options = hx_serve_log_options(serve);
	enum hapax_status status = open_control(serve, err);

	if (status == HAPAX_OK)
		status = hx_logger_new(2, &options, &serve->log, err);
	hx_conditions_init(&serve->conditions, serve->log, NULL);
	if (status == HAPAX_OK)
		status = hx_inspection_run(
			&(struct hx_inspection){
				.config = serve->config,
				.service = &serve->service,
				.log = serve->log},
			&serve->door_tls, err);
	if (status == HAPAX_OK)
		status = hx_decision_file_open(&serve->decisions, serve->config, err);
	if (status == HAPAX_OK) {
		hx_memory_plan(&serve->memory, serve->config);
		find_descriptors(serve);
		status = hx_serve_prepare_tls(serve, serve->config, err);
	}
	if (status == HAPAX_OK)
		status = open_loops(serve, err);
	if (status == HAPAX_OK)
		status = open_store(serve, err);
	if (status == HAPAX_OK)
		status = open_door(serve, HX_CONFIG_TLS_GATEWAY, err);
	if (status == HAPAX_OK)
		status = open_door(serve, HX_CONFIG_TLS_PROXY, err);
	if (status == HAPAX_OK)
		status = hx_serve_open_resp(serve, err);
	if (status == HAPAX_OK)
		status = hx_serve_open_api(serve, err);
	if (status == HAPAX_OK)
		status = hx_serve_open_admin(serve, err);
	if (status == HAPAX_OK)
		status = hx_service_check_doors(&serve->service, err);
	if (status == HAPAX_OK)
		status = hx_exporter_start(
			&serve->exporter, serve->config, &serve->resolver, serve->log, err);
	if (status == HAPAX_OK)
		status = start_loops(serve, err);
	if (status == HAPAX_OK)
		status = hx_serve_start_backgrounds(serve, err);
	return status;
}

static void close_control(struct hx_serve *serve)
{
	hx_http_server_close(&serve->admin);
	for (int i = 0; i < LAST_TURNS_MAX && serve->admin.peer_count > 0; i++)
		hx_reactor_turn(&serve->reactor, 0);
	hx_http_server_done(&serve->admin);
	hx_timer_retire(&serve->reactor.timers, &serve->drain_timer);
	hx_timer_retire(&serve->reactor.timers, &serve->wait_timer);
	hx_service_done(&serve->service);
	hx_reactor_done(&serve->reactor);
}

/* All work has ended: frees everything, and stops all readers first. */
static void close_all(struct hx_serve *serve)
{
	hx_signals_close(&serve->signals);
	hx_timer_retire(&serve->reactor.timers, &serve->chore_timer);
	hapax_processor_free(serve->processor);
	hx_timer_retire(&serve->loops[0].reactor.timers, &serve->tick_timer);
	hx_resolver_done(&serve->resolver);
	hx_reader_done(&serve->reader);
	for (size_t i = 0; i < serve->loop_count; i++)
		hx_loop_done(&serve->loops[i]);
	hx_serve_close_resp(serve);
	close_control(serve);
	hx_store_stack_close(&serve->stack);
	hx_tls_context_free(serve->tls);
	hx_tls_set_close(&serve->door_tls);
	hx_duplicate_watch_free(serve->watch);
	hx_feed_free(serve->feed);
	hx_metrics_free(serve->metrics);
	hx_config_release(serve->config);
	hx_config_current_done(&serve->current);
	hx_quota_done(&serve->tenants);
	hx_peers_done(&serve->peers);
	hx_buf_done(&serve->page);
	hx_free(serve->loops);
}

/*
 * The process ends with what is left, and threads of the store may still run: the log is written
 * out but stays, because the guard's thread may say a last word in it. Names of unix sockets are
 * all that would outlive the process.
 */
static void leave_all(struct hx_serve *serve)
{
	hx_serve_drain_backgrounds(serve);
	(void)hx_serve_join_backgrounds(serve, 0);
	for (size_t i = 0; i < serve->loop_count && serve->loops != NULL; i++) {
		hx_listener_close(&serve->loops[i].gateway.listener);
		hx_listener_close(&serve->loops[i].proxy.listener);
		hx_listener_close(&serve->loops[i].resp.listener);
	}
	hx_listener_close(&serve->admin.listener);
	if (serve->log == NULL)
		return;
	hx_logger_tick(serve->log);
	if (serve->decisions.log != NULL)
		(void)hx_logger_flush(
			serve->decisions.log, hx_clock_mono_ns() + LOG_WAIT_MS * HX_NS_PER_MS);
	(void)hx_logger_flush(serve->log, hx_clock_mono_ns() + LOG_WAIT_MS * HX_NS_PER_MS);
}

/*
 * Whether the store can be closed without waiting. An unavailable store would delay the end by its
 * timeout for no gain: all answered operations are in it or in the journal.
 */
static bool may_close(struct hx_serve *serve)
{
	struct hapax_outage outage = HAPAX_OUTAGE_INIT;
	int64_t deadline_ns = hx_clock_mono_ns() + LAST_ANSWER_MS * HX_NS_PER_MS;
	bool has_stopped;

	if (serve->stack.guard != NULL)
		(void)hapax_outage_tell(serve->stack.guard, &outage, NULL);
	/* Each must stop, even if another does not. */
	has_stopped = hx_api_close(serve->api, deadline_ns);
	has_stopped = hx_store_view_stop(&serve->view, deadline_ns) && has_stopped;
	has_stopped = hx_serve_stop_resp(serve, deadline_ns) && has_stopped;
	has_stopped = hx_serve_join_backgrounds(serve, deadline_ns) && has_stopped;
	return has_stopped && !outage.is_away;
}

static size_t loop_count(const struct hx_config *config)
{
	uint64_t count = config->loops != 0 ? config->loops : hx_thread_cpu_count();

	return count < HX_LOOPS_MAX ? (size_t)count : HX_LOOPS_MAX;
}

static void join_loops(struct hx_serve *serve)
{
	for (size_t i = 0; i < serve->running_count; i++)
		hx_thread_join(&serve->loops[i].thread);
}

enum hx_serve_end hx_serve_run(
	struct hx_config *config, struct hx_config_source *source, struct hapax_error *err)
{
	static struct hx_serve whole;
	struct hx_serve *serve = &whole;

	hx_alloc_keep_little();
	serve->source = source;
	if (source->variable != NULL)
		serve->folder = source->variable("TMPDIR");
	serve->config = hx_config_keep(config);
	serve->loop_count = loop_count(config);
	serve->idle_task = (struct hx_task){.fn = all_idle, .context = serve};
	serve->suspect_task = (struct hx_task){.fn = on_suspicion, .context = serve};
	serve->told_task = (struct hx_task){.fn = take_answer, .context = serve};
	serve->tick_task = (struct hx_task){.fn = tick, .context = serve};
	hx_config_current_init(&serve->current, config);
	hx_resolver_init(&serve->resolver, hx_net_system());
	hx_reader_init(&serve->reader);
	hx_quota_init(&serve->tenants);
	hx_peers_init(&serve->peers);
	hx_buf_init(&serve->page, PAGE_MAX);
	if (start(serve, err) != HAPAX_OK) {
		leave_all(serve);
		return HX_SERVE_FAILED;
	}
	serve->is_started = true;
	say_ready(serve);
	say_loss(serve);
	hx_memory_say(&serve->memory, serve->folder, serve->log);
	hx_serve_say_config(serve);
	hx_service_ready(&serve->service, "serving");
	on_chore_timer(&serve->chore_timer);
	hx_reactor_run(&serve->reactor);
	join_loops(serve);
	/* Handle their last messages. */
	hx_reactor_turn(&serve->reactor, 0);
	hx_exporter_stop(&serve->exporter, serve->is_cut ? 0 : LAST_SPANS_MS);
	log_text(serve, HX_LOGGER_INFO, "stopped", NULL, NULL);
	/* Admin requests that still wait for the store are answered now. */
	hx_admin_told(serve, UINT64_MAX);
	serve->is_cut = serve->is_cut || !may_close(serve);
	if (serve->is_cut) {
		leave_all(serve);
	} else {
		close_all(serve);
		hx_decision_file_close(&serve->decisions, LOG_WAIT_MS);
		hx_logger_close(serve->log, LOG_WAIT_MS);
	}
	if (atomic_load(&serve->is_latched) != 0)
		return HX_SERVE_LATCHED;
	return serve->is_cut ? HX_SERVE_CUT : HX_SERVE_STOPPED;
}
