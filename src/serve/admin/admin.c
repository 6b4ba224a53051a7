/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.c - the admin door: health and metrics.
 *
 * It runs on the control loop, with the signals, and never waits for the store. A page about the
 * store asks for its state (store_view.h). It is written when the answer is there or, if that takes
 * too long, with the last known state.
 */
#include <stdio.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "observe/health.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "observe/metrics/metrics_consumers.h"
#include "serve/admin/auth.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/probe.h"
#include "base/revision.h"
#include "wire/http1/http_path.h"
#include "wire/promtext.h"

enum {
	/* How long a page waits for the store: a probe allows a second, a scrape ten. */
	PROBE_MS_MAX = 250,
	FIGURES_MS_MAX = 2000,

	/* How long the last answer of the store is shown if there is no new one. */
	STATS_SECONDS_MAX = 30,
};

/* A request, and the known state when it is answered. */
struct question {
	struct hx_serve *serve;
	struct hx_http_exchange *exchange;
	const struct page *page;
	int64_t came_ns;
	struct hapax_bytes query;
	struct hx_store_facts facts;
};

typedef void show_fn(struct question *question);

/* A page of the door. */
struct page {
	const char *path;
	show_fn *show;
	int64_t wait_ms_max; /* 0: not about the store */
	int64_t age_ns_max;  /* newer stats are used without waiting */
	bool is_whole;       /* it shows all tenants: not for clients limited to one */
};

/* A request that waits for the store. */
struct hx_admin_wait {
	struct hx_http_exchange *exchange;
	const struct page *page;
	uint64_t number; /* of the question to the store */
	int64_t came_ns;
	int64_t until_ns;
	struct hx_admin_wait *next;
};

static struct hapax_bytes field_of(const struct hx_http1_head *head, struct hapax_bytes name)
{
	size_t index = hx_http1_find(head, name, 0);

	return index < head->field_count ? head->fields[index].value : hx_bytes(NULL, 0);
}

static void reply(
	struct question *question, unsigned status, const char *content_type,
	struct hapax_bytes body)
{
	const struct hapax_field fields[] = {
		{HX_BYTES_LIT("Content-Type"), hapax_bytes_from_text(content_type)},
		{HX_BYTES_LIT("Cache-Control"), HX_BYTES_LIT("no-store")},
	};

	hx_admin_answered(question->serve, status, hx_clock_mono_ns() - question->came_ns);
	hx_http_reply(
		question->exchange,
		&(struct hx_http_reply){
			.status = status, .fields = fields, .field_count = 2, .body = body});
}

static void reply_problem(struct question *question, unsigned status, const char *detail)
{
	const struct hx_http_problem problem = {.status = status, .detail = detail};

	hx_admin_answered(question->serve, status, hx_clock_mono_ns() - question->came_ns);
	hx_http_reply_problem(question->exchange, &problem, NULL, 0);
}

/* The last answer of the store, unless it is too old. */
static const struct hapax_stats *stats_of(const struct question *question)
{
	const struct hx_store_facts *facts = &question->facts;

	if (!facts->has_stats ||
	    hx_clock_mono_ns() - facts->stats_ns > STATS_SECONDS_MAX * HX_NS_PER_S)
		return NULL;
	return &facts->stats;
}

static void show_metrics(struct question *question)
{
	struct hx_serve *serve = question->serve;
	const struct hx_store_facts *known = &question->facts;
	struct hapax_processor_stats processor = HAPAX_PROCESSOR_STATS_INIT;
	enum hx_promtext_format format =
		hx_promtext_accept(field_of(&question->exchange->head, HX_BYTES_LIT("Accept")));
	struct hx_probe probe = {.count = 0};
	struct hx_metrics_facts facts = {
		.version = hapax_version(),
		.revision = HX_REVISION,
		.store = hapax_store_name(serve->store),
		.stats = stats_of(question),
		.stats_age_seconds = (double)(hx_clock_mono_ns() - known->stats_ns) / 1e9,
		.outage = known->has_outage ? &known->outage : NULL,
		.journal_records = known->journal_records,
		.processor = &processor,
		.reloads = serve->reloads,
		.reload_failures = serve->reload_failures,
		.reloaded_ms = serve->reloaded_ms,
		.log_suppressed = hx_logger_suppressed(serve->log),
		.log_lost = hx_logger_lost(serve->log) + hx_decision_file_lost(&serve->decisions),
		.has_traces = serve->exporter.is_on,
		.spans_exported = atomic_load(&serve->exporter.exported),
		.spans_dropped = atomic_load(&serve->exporter.dropped),
		.spans_failed = atomic_load(&serve->exporter.failed),
		.memory =
			{.limit = serve->memory.plan.limit,
			 .listeners = hx_budget_used(&serve->memory.listeners),
			 .listeners_max = hx_budget_max(&serve->memory.listeners),
			 .files = hx_budget_used(&serve->memory.files),
			 .files_max = hx_budget_max(&serve->memory.files)},
		.process_io = hx_io_system(),
	};
	struct hapax_relay_stats outbox = HAPAX_RELAY_STATS_INIT;
	struct hx_consumer_facts *consumers;
	struct hx_audit_facts *audits;
	enum hapax_status status;
	struct hapax_error err;

	if (hx_outbox_relay_stats(&serve->outbox, &outbox)) {
		facts.outbox = &outbox;
		facts.is_outbox_up = hx_background_look(&serve->outbox.background, &err) &&
			err.status == HAPAX_OK;
	}
	consumers = hx_consumers_facts(&serve->consumers, &facts.consumer_count);
	facts.consumers = consumers;
	audits = hx_outbox_audits_facts(&serve->audits, &facts.audit_count);
	facts.audits = audits;
	hx_probe_ready(&probe, serve, known);
	facts.is_store_up = probe.is_store_up;
	facts.is_ready = hx_health_is_ok(probe.components, probe.count);
	facts.conditions = probe.conditions;
	facts.condition_count = probe.condition_count;
	hapax_processor_stats(serve->processor, &processor);
	hx_buf_clear(&serve->page);
	facts.scope_keys = hx_tenant_keys_hold(&serve->view.keys, &facts.scope_key_count);
	status = hx_metrics_render(serve->metrics, &facts, format, &serve->page, &err);
	hx_tenant_keys_release(&serve->view.keys);
	if (status == HAPAX_OK)
		reply(question, 200, hx_promtext_content_type(format),
		      hapax_buf_bytes(&serve->page));
	else
		reply_problem(question, 500, err.message);
	hx_free(consumers);
	hx_free(audits);
}

static void show_deduplication(struct question *question)
{
	struct hx_serve *serve = question->serve;
	const struct hapax_stats *stats = stats_of(question);

	hx_buf_clear(&serve->page);
	if (stats == NULL) {
		reply_problem(
			question, 503,
			question->facts.status != HAPAX_OK ? question->facts.error.message
							   : "the store has not answered "
							     "yet; retry later");
		return;
	}
	if (hx_health_deduplication_render(stats, &serve->page) != HAPAX_OK) {
		reply_problem(question, 500, NULL);
		return;
	}
	reply(question, 200, "application/json", hapax_buf_bytes(&serve->page));
}

/* The probe of the page: about the store or, at /livez and /startupz, only about this process. */
static void show_health(struct question *question)
{
	struct hx_serve *serve = question->serve;
	enum hx_health_form form = hx_health_form_of(
		question->query, field_of(&question->exchange->head, HX_BYTES_LIT("Accept")));
	struct hx_probe probe = {.count = 0};
	struct hx_health health = {
		.probe = question->page->path + 1, .components = probe.components};

	if (question->page->wait_ms_max == 0) {
		hx_probe_live(&probe, serve);
	} else {
		hx_probe_ready(&probe, serve, &question->facts);
		health.conditions = probe.conditions;
		health.condition_count = probe.condition_count;
	}
	if (strcmp(health.probe, "healthz") == 0)
		hx_probe_health(&probe);
	health.count = hx_health_exclude(probe.components, probe.count, question->query);
	hx_buf_clear(&serve->page);
	if (hx_health_render(&health, form, &serve->page) != HAPAX_OK) {
		reply_problem(question, 500, NULL);
		return;
	}
	reply(question, hx_health_is_ok(probe.components, health.count) ? 200 : 503,
	      hx_health_content_type(form), hapax_buf_bytes(&serve->page));
}

static void show_nothing(struct question *question)
{
	reply_problem(
		question, 404,
		"no such path; use /metrics, /livez, /readyz, /healthz, /startupz, "
		"/actuator/deduplication or /openapi.json");
}

/* Figures are current; health may be a second old. The door is open only after the start. */
static const struct page pages[] = {
	{"/metrics", show_metrics, FIGURES_MS_MAX, 0, true},
	{"/actuator/deduplication", show_deduplication, FIGURES_MS_MAX, 0, true},
	{"/livez", show_health, 0, 0, false},
	{"/readyz", show_health, PROBE_MS_MAX, HX_NS_PER_S, false},
	{"/healthz", show_health, PROBE_MS_MAX, HX_NS_PER_S, false},
	{"/startupz", show_health, 0, 0, false},
};

static const struct page no_page = {"", show_nothing, 0, 0, false};

static const struct page *find_page(struct hapax_bytes path)
{
	for (size_t i = 0; i < HX_COUNT(pages); i++) {
		if (hx_bytes_equal(path, hapax_bytes_from_text(pages[i].path)))
			return &pages[i];
	}
	return &no_page;
}

static void show(
	struct hx_serve *serve, struct hx_http_exchange *exchange, const struct page *page,
	int64_t came_ns)
{
	struct question question = {
		.serve = serve, .exchange = exchange, .page = page, .came_ns = came_ns};

	(void)hx_http_path_split(exchange->head.path, &question.query);
	hx_store_view_look(&serve->view, &question.facts);
	page->show(&question);
}

/* ------------------------------------------------------------------ waiting */

/* Whether the known state is too old for the page, and an answer is likely soon. */
static bool is_worth_waiting(struct hx_serve *serve, const struct page *page)
{
	struct hx_store_facts facts;
	int64_t now_ns = hx_clock_mono_ns();

	if (page->wait_ms_max == 0)
		return false;
	hx_store_view_look(&serve->view, &facts);
	/* The store is already slow: another request need not wait to find out. */
	if (facts.asked_ns != INT64_MAX &&
	    now_ns - facts.asked_ns > page->wait_ms_max * HX_NS_PER_MS)
		return false;
	return facts.answered == 0 || now_ns - facts.answered_ns >= page->age_ns_max;
}

static void wait(struct hx_serve *serve, struct hx_http_exchange *exchange, const struct page *page)
{
	struct hx_admin_wait **last = &serve->waits;
	struct hx_admin_wait *wait = hx_alloc(sizeof(*wait));
	int64_t now_ns = hx_clock_mono_ns();

	if (wait == NULL) {
		show(serve, exchange, page, now_ns);
		return;
	}
	*wait = (struct hx_admin_wait){
		.exchange = exchange,
		.page = page,
		.number = hx_store_view_ask(&serve->view),
		.came_ns = now_ns,
		.until_ns = now_ns + page->wait_ms_max * HX_NS_PER_MS,
	};
	while (*last != NULL)
		last = &(*last)->next;
	*last = wait;
	if (!hx_timer_is_set(&serve->wait_timer) || wait->until_ns < serve->wait_timer.at)
		hx_timer_set(&serve->reactor.timers, &serve->wait_timer, wait->until_ns);
}

/* Answers the requests whose question was answered, or whose time is over. */
static void end_waits(struct hx_serve *serve, uint64_t answered, int64_t now_ns)
{
	struct hx_admin_wait **at = &serve->waits;
	int64_t next_ns = INT64_MAX;

	while (*at != NULL) {
		struct hx_admin_wait *wait = *at;

		if (wait->number > answered && wait->until_ns > now_ns) {
			next_ns = wait->until_ns < next_ns ? wait->until_ns : next_ns;
			at = &wait->next;
			continue;
		}
		*at = wait->next;
		show(serve, wait->exchange, wait->page, wait->came_ns);
		hx_free(wait);
	}
	if (next_ns == INT64_MAX)
		hx_timer_clear(&serve->reactor.timers, &serve->wait_timer);
	else
		hx_timer_set(&serve->reactor.timers, &serve->wait_timer, next_ns);
}

void hx_admin_told(struct hx_serve *serve, uint64_t answered)
{
	end_waits(serve, answered, INT64_MIN);
}

void hx_admin_wait_timer(struct hx_timer *timer)
{
	end_waits(timer->context, 0, hx_clock_mono_ns());
}

/* ------------------------------------------------------------------ the door */

/* The same error as the API's. */
static void refuse_tenant(
	struct hx_serve *serve, struct hx_http_exchange *exchange,
	const struct hx_auth_identity *identity)
{
	char detail[sizeof(identity->tenant) + 64];

	(void)snprintf(
		detail, sizeof(detail), "this API token is limited to tenant '%s'",
		identity->tenant);
	hx_admin_answered(serve, 403, 0);
	hx_http_reply_problem(
		exchange,
		&(struct hx_http_problem){
			.status = 403, .type = "urn:hapax:problem:forbidden", .detail = detail},
		NULL, 0);
}

/* False: the client may not see that, and got an error. */
static bool may_read(
	struct hx_serve *serve, struct hx_http_exchange *exchange, const struct page *page)
{
	const struct hx_config_auth *auth = &serve->config->auth;
	struct hapax_bytes query;
	struct hx_auth_identity identity;

	if (hx_auth_is_open(auth, hx_http_path_split(exchange->head.path, &query)))
		return true;
	if (!hx_admin_identify(serve, exchange, &identity)) {
		hx_admin_answered(serve, 429, 0);
		return false;
	}
	if (identity.role >= HX_ROLE_READ && (!page->is_whole || identity.tenant[0] == '\0'))
		return true;
	if (identity.role >= HX_ROLE_READ)
		refuse_tenant(serve, exchange, &identity);
	else
		hx_admin_answered(serve, hx_auth_refuse(exchange, &identity, HX_ROLE_READ), 0);
	return false;
}

void hx_admin_handle(struct hx_http_exchange *exchange)
{
	const struct hapax_field allow = {HX_BYTES_LIT("Allow"), HX_BYTES_LIT("GET, HEAD")};
	struct hx_serve *serve = exchange->server->context;
	struct hapax_bytes query;
	const struct page *page = find_page(hx_http_path_split(exchange->head.path, &query));

	if (hx_serve_handle_api(serve, exchange))
		return;
	hx_metrics_add(serve->cells, HX_METRIC_IN_PROGRESS, 0, HX_DOOR_ADMIN, 1);
	if (!may_read(serve, exchange, page))
		return;
	if (!hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("GET")) &&
	    !hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"))) {
		hx_admin_answered(serve, 405, 0);
		hx_http_reply_problem(
			exchange, &(struct hx_http_problem){.status = 405}, &allow, 1);
	} else if (is_worth_waiting(serve, page)) {
		wait(serve, exchange, page);
	} else {
		show(serve, exchange, page, hx_clock_mono_ns());
	}
}
