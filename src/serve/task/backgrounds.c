/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backgrounds.c - all tasks of the daemon besides its doors: relay and audits of the outbox, and
 * the consumers.
 */
#include "serve/daemon/daemon.h"

static void on_ended(void *context)
{
	hx_serve_idle(context);
}

enum hapax_status hx_serve_start_backgrounds(struct hx_serve *serve, struct hapax_error *err)
{
	enum hapax_status status = hx_background_start(
		&serve->outbox.background, &hx_outbox_relay_ops, serve->config, serve->log,
		on_ended, serve, err);

	if (status == HAPAX_OK)
		status = hx_background_start(
			&serve->audits.background, &hx_outbox_audits_ops, serve->config, serve->log,
			on_ended, serve, err);
	if (status == HAPAX_OK)
		status = hx_consumers_start(
			&serve->consumers, serve, serve->config, on_ended, serve, err);
	return status;
}

static void reload(struct hx_serve *serve, struct hx_background *background)
{
	struct hapax_error err;

	if (hx_background_reload(background, serve->config, &err) != HAPAX_OK) {
		const struct hx_logger_field field = HX_LOGGER_TEXT("error", err.message);

		hx_logger(serve->log, HX_LOGGER_ERROR, "service could not be started", &field, 1);
	}
}

void hx_serve_reload_backgrounds(struct hx_serve *serve)
{
	reload(serve, &serve->outbox.background);
	reload(serve, &serve->audits.background);
	hx_consumers_reload(&serve->consumers, serve->config);
}

void hx_serve_drain_backgrounds(struct hx_serve *serve)
{
	hx_consumers_drain(&serve->consumers);
	hx_background_drain(&serve->outbox.background);
	hx_background_drain(&serve->audits.background);
}

bool hx_serve_join_backgrounds(struct hx_serve *serve, int64_t deadline_ns)
{
	bool have_ended = hx_consumers_join(&serve->consumers, deadline_ns);

	have_ended = hx_background_join(&serve->outbox.background, deadline_ns) && have_ended;
	return hx_background_join(&serve->audits.background, deadline_ns) && have_ended;
}
