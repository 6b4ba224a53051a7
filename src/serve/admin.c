/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin.c - the admin door: is it well, what has it done.
 *
 * It runs on the control loop, where asking the store may take a moment.
 */
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/io.h"
#include "observe/health.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "serve/daemon.h"
#include "wire/promtext.h"

enum { COMPONENTS_MAX = 4 };

static struct hapax_bytes field_of(const struct hx_http1_head *head, struct hapax_bytes name)
{
	size_t index = hx_http1_find(head, name, 0);

	return index < head->field_count ? head->fields[index].value : hx_bytes(NULL, 0);
}

static void reply(
	struct hx_http_exchange *exchange, unsigned status, const char *content_type,
	struct hapax_bytes body)
{
	const struct hapax_field fields[] = {
		{HX_BYTES_LIT("Content-Type"), hapax_bytes_from_text(content_type)},
		{HX_BYTES_LIT("Cache-Control"), HX_BYTES_LIT("no-store")},
	};
	struct hx_serve *serve = exchange->server->context;

	hx_metrics_add(
		serve->cells, HX_METRIC_REQUESTS, 0, hx_metrics_request(HX_DOOR_ADMIN, status), 1);
	hx_http_reply(
		exchange,
		&(struct hx_http_reply){
			.status = status, .fields = fields, .field_count = 2, .body = body});
}

static void reply_problem(struct hx_http_exchange *exchange, unsigned status, const char *detail)
{
	const struct hx_http_problem problem = {.status = status, .detail = detail};

	hx_http_reply_problem(exchange, &problem, NULL, 0);
}

static void show_metrics(struct hx_serve *serve, struct hx_http_exchange *exchange)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_processor_stats processor = HAPAX_PROCESSOR_STATS_INIT;
	enum hx_promtext_format format =
		hx_promtext_accept(field_of(&exchange->head, HX_BYTES_LIT("Accept")));
	struct hx_metrics_facts facts = {
		.version = hapax_version(),
		.store = hapax_store_name(serve->store),
		.processor = &processor,
		.reloads = serve->reloads,
		.reload_failures = serve->reload_failures,
		.reloaded_ms = serve->reloaded_ms,
		.log_suppressed = hx_log_suppressed(serve->log),
		.log_lost = hx_log_lost(serve->log),
		.is_ready = atomic_load(&serve->is_draining) == 0,
		.process_io = hx_io_system(),
	};
	struct hapax_error err;

	hapax_processor_stats(serve->processor, &processor);
	if (hapax_store_stats(serve->store, &stats, NULL, NULL, NULL) == HAPAX_OK)
		facts.stats = &stats;
	hx_buf_clear(&serve->page);
	if (hx_metrics_render(serve->metrics, &facts, format, &serve->page, &err) != HAPAX_OK) {
		reply_problem(exchange, 500, err.message);
		return;
	}
	reply(exchange, 200, hx_promtext_content_type(format), hapax_buf_bytes(&serve->page));
}

static void show_deduplication(struct hx_serve *serve, struct hx_http_exchange *exchange)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_error err;

	hx_buf_clear(&serve->page);
	if (hapax_store_stats(serve->store, &stats, NULL, NULL, &err) != HAPAX_OK) {
		reply_problem(exchange, 503, err.message);
		return;
	}
	if (hx_deduplication_render(&stats, &serve->page) != HAPAX_OK) {
		reply_problem(exchange, 500, NULL);
		return;
	}
	reply(exchange, 200, "application/json", hapax_buf_bytes(&serve->page));
}

/* Does the store answer? A process that only lives is not asked that. */
static size_t look_around(
	struct hx_serve *serve, bool is_live_only, struct hx_health_component *components,
	struct hapax_error *err)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	size_t count = 0;

	components[count++] = (struct hx_health_component){.name = "loops", .is_ok = true};
	if (is_live_only)
		return count;
	components[count] = (struct hx_health_component){.name = "store", .is_ok = true};
	if (atomic_load(&serve->is_latched) != 0) {
		components[count].is_ok = false;
		components[count].reason = "it failed; a new start is needed";
	} else if (hapax_store_stats(serve->store, &stats, NULL, NULL, err) != HAPAX_OK) {
		components[count].is_ok = false;
		components[count].reason = err->message;
	}
	count++;
	components[count] = (struct hx_health_component){.name = "drain", .is_ok = true};
	if (atomic_load(&serve->is_draining) != 0) {
		components[count].is_ok = false;
		components[count].reason = "it is about to end";
	}
	return count + 1;
}

static void show_health(
	struct hx_serve *serve, struct hx_http_exchange *exchange, const char *probe,
	struct hapax_bytes query)
{
	struct hx_health_component components[COMPONENTS_MAX];
	struct hapax_error err;
	bool is_live_only = strcmp(probe, "livez") == 0 || strcmp(probe, "startupz") == 0;
	size_t count = look_around(serve, is_live_only, components, &err);
	enum hx_health_form form =
		hx_health_form_of(query, field_of(&exchange->head, HX_BYTES_LIT("Accept")));

	count = hx_health_exclude(components, count, query);
	hx_buf_clear(&serve->page);
	if (hx_health_render(probe, components, count, form, &serve->page) != HAPAX_OK) {
		reply_problem(exchange, 500, NULL);
		return;
	}
	reply(exchange, hx_health_is_ok(components, count) ? 200 : 503,
	      hx_health_content_type(form), hapax_buf_bytes(&serve->page));
}

static void show_page(
	struct hx_serve *serve, struct hx_http_exchange *exchange, struct hapax_bytes path,
	struct hapax_bytes query)
{
	static const char *const probes[] = {"livez", "readyz", "healthz", "startupz"};

	if (hx_bytes_equal(path, HX_BYTES_LIT("/metrics"))) {
		show_metrics(serve, exchange);
		return;
	}
	if (hx_bytes_equal(path, HX_BYTES_LIT("/actuator/deduplication"))) {
		show_deduplication(serve, exchange);
		return;
	}
	for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		struct hapax_bytes name = hapax_bytes_from_text(probes[i]);

		if (path.size == name.size + 1 &&
		    memcmp((const char *)path.data + 1, name.data, name.size) == 0) {
			show_health(serve, exchange, probes[i], query);
			return;
		}
	}
	reply_problem(
		exchange, 404,
		"there are /metrics, /livez, /readyz, /healthz, /startupz and "
		"/actuator/deduplication");
}

void hx_admin_handle(struct hx_http_exchange *exchange)
{
	const struct hapax_field allow = {HX_BYTES_LIT("Allow"), HX_BYTES_LIT("GET, HEAD")};
	struct hapax_bytes path = exchange->head.path;
	struct hapax_bytes query = {NULL, 0};
	const char *mark = path.size == 0 ? NULL : memchr(path.data, '?', path.size);

	if (!hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("GET")) &&
	    !hx_bytes_equal(exchange->head.method, HX_BYTES_LIT("HEAD"))) {
		hx_http_reply_problem(
			exchange, &(struct hx_http_problem){.status = 405}, &allow, 1);
		return;
	}
	if (mark != NULL) {
		query = hx_bytes(
			mark + 1, path.size - (size_t)(mark + 1 - (const char *)path.data));
		path.size = (size_t)(mark - (const char *)path.data);
	}
	show_page(exchange->server->context, exchange, path, query);
}
