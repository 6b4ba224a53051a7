/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload.c - puts a new configuration in force while the daemon runs, and logs what it changes.
 */
#include "base/bytes.h"
#include "base/macros.h"
#include "api/api.h"
#include "config/change.h"
#include "observe/condition.h"
#include "observe/logger/logger.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/inspection.h"

/* Open doors stay open: checks whether the new configuration allows that. */
static enum hapax_status inspect_reload(
	struct hx_serve *serve, const struct hx_config *config, struct hx_tls_set *fresh,
	struct hapax_error *err)
{
	const struct hx_loop *loop = &serve->loops[0];
	struct hx_inspection inspection = {
		.config = config,
		.service = &serve->service,
		.current = &serve->door_tls,
		.log = serve->log};

	if (loop->gateway.reactor != NULL)
		inspection.addresses[HX_CONFIG_TLS_GATEWAY] = &loop->gateway.listener.address;
	if (loop->proxy.reactor != NULL)
		inspection.addresses[HX_CONFIG_TLS_PROXY] = &loop->proxy.listener.address;
	if (loop->resp.service != NULL)
		inspection.addresses[HX_CONFIG_TLS_RESP] = &loop->resp.listener.address;
	if (serve->admin.reactor != NULL)
		inspection.addresses[HX_CONFIG_TLS_ADMIN] = &serve->admin.listener.address;
	return hx_inspection_run(&inspection, fresh, err);
}

static void log_change(void *context, const struct hx_config_change *change)
{
	struct hx_serve *serve = context;
	bool is_shown = !hx_bytes_equal(change->before, change->after);
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("setting", change->setting),
		HX_LOGGER_BYTES(is_shown ? "old" : NULL, change->before),
		HX_LOGGER_BYTES(is_shown ? "new" : NULL, change->after),
	};

	if (change->needs_restart)
		hx_logger(
			serve->log, HX_LOGGER_WARN, "setting takes effect after a restart", fields,
			HX_COUNT(fields));
	else
		hx_logger(serve->log, HX_LOGGER_INFO, "setting changed", fields, HX_COUNT(fields));
}

/* What is read, for people. */
static const char *source_name(const struct hx_serve *serve)
{
	return serve->source->path != NULL ? serve->source->path : "none";
}

/* Reads and inspects a new configuration. fresh: its certificates; to be closed in any case. */
static enum hapax_status load_again(
	struct hx_serve *serve, struct hx_config **ret_config, struct hx_tls_set *fresh,
	struct hapax_error *err)
{
	bool had_file = serve->source->path != NULL;
	enum hapax_status status;

	if (!had_file && serve->source->variable != NULL)
		hx_config_source_find(serve->source, NULL);
	status = hx_config_load(serve->source, ret_config, NULL, err);
	if (status == HAPAX_OK)
		status = hx_serve_prepare_tls(serve, *ret_config, err);
	if (status == HAPAX_OK)
		status = hx_serve_check_also(serve, *ret_config, err);
	if (status == HAPAX_OK)
		status = inspect_reload(serve, *ret_config, fresh, err);
	if (status == HAPAX_OK)
		return HAPAX_OK;
	serve->reload_failures++;
	{
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT("file", source_name(serve)),
			HX_LOGGER_TEXT("error", err->message),
		};

		hx_logger(
			serve->log, HX_LOGGER_ERROR,
			"configuration rejected, previous one stays active", fields, 2);
	}
	/* The configuration in force is from no file. */
	if (!had_file)
		serve->source->path = NULL;
	return status;
}

static void log_reload(struct hx_serve *serve, const struct hx_config *before)
{
	size_t count = hx_config_changes(before, serve->config, log_change, serve);
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("file", source_name(serve)),
		HX_LOGGER_UNSIGNED("changes", count),
	};

	hx_logger(serve->log, HX_LOGGER_INFO, "configuration reloaded", fields, HX_COUNT(fields));
}

enum hapax_status hx_serve_reload(struct hx_serve *serve, struct hapax_error *err)
{
	const struct hapax_clock *clock = hapax_clock_system();
	struct hx_config *config = NULL;
	struct hx_config *before = serve->config;
	struct hx_tls_set fresh = {.doors = {NULL}};
	enum hapax_status status = load_again(serve, &config, &fresh, err);

	if (status != HAPAX_OK) {
		hx_condition_begin(
			&serve->conditions, HX_CONDITION_RELOAD_REFUSED, NULL, err->message);
		hx_tls_set_close(&fresh);
		hx_config_release(config);
		return status;
	}
	hx_tls_set_renew(&serve->door_tls, &fresh, serve->log);
	serve->config = hx_config_keep(config);
	hx_memory_configure(&serve->memory, config);
	hx_config_current_swap(&serve->current, config);
	serve->reloads++;
	serve->reloaded_ms = clock->wall_ms(clock->context);
	{
		struct hx_logger_options options = hx_serve_log_options(serve);

		hx_logger_configure(serve->log, &options);
	}
	hx_serve_say_config(serve);
	hx_serve_reload_backgrounds(serve);
	hx_api_reloaded(serve->api);
	hx_condition_watch_reload(serve);
	log_reload(serve, before);
	hx_config_release(before);
	return HAPAX_OK;
}
