/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backgrounds.c - all tasks of the daemon besides its doors. To add one: a member of struct
 * hx_serve and a line here.
 */
#include "serve/daemon/daemon.h"

enum { OUTBOX, COUNT };

static struct hx_background *background_of(struct hx_serve *serve, size_t index)
{
	struct hx_background *const all[COUNT] = {[OUTBOX] = &serve->outbox.background};

	return all[index];
}

/* All consumers together count as one more. */
size_t hx_serve_background_count(void)
{
	return COUNT + 1;
}

static void on_ended(void *context)
{
	hx_serve_idle(context);
}

enum hapax_status hx_serve_start_backgrounds(struct hx_serve *serve, struct hapax_error *err)
{
	static const struct hx_background_ops *const ops[COUNT] = {[OUTBOX] = &hx_outbox_relay_ops};
	enum hapax_status status = HAPAX_OK;

	for (size_t i = 0; i < COUNT && status == HAPAX_OK; i++)
		status = hx_background_start(
			background_of(serve, i), ops[i], serve->config, serve->log, on_ended, serve,
			err);
	if (status == HAPAX_OK)
		status = hx_consumers_start(
			&serve->consumers, serve, serve->config, on_ended, serve, err);
	return status;
}

void hx_serve_reload_backgrounds(struct hx_serve *serve)
{
	for (size_t i = 0; i < COUNT; i++) {
		struct hapax_error err;

		if (hx_background_reload(background_of(serve, i), serve->config, &err) == HAPAX_OK)
			continue;
		{
			const struct hx_logger_field field = HX_LOGGER_TEXT("error", err.message);

			hx_logger(
				serve->log, HX_LOGGER_ERROR, "service could not be started", &field,
				1);
		}
	}
	hx_consumers_reload(&serve->consumers, serve->config);
}

void hx_serve_drain_backgrounds(struct hx_serve *serve)
{
	hx_consumers_drain(&serve->consumers);
	for (size_t i = 0; i < COUNT; i++)
		hx_background_drain(background_of(serve, i));
}

bool hx_serve_join_backgrounds(struct hx_serve *serve, int64_t deadline_ns)
{
	bool has_ended = hx_consumers_join(&serve->consumers, deadline_ns);

	for (size_t i = 0; i < COUNT; i++)
		has_ended = hx_background_join(background_of(serve, i), deadline_ns) && has_ended;
	return has_ended;
}
