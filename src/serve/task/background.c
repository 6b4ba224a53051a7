/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - run, pause, run again.
 */
#include "serve/task/background.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "config/config.h"

enum {
	PAUSE_MS_FIRST = 250,
	PAUSE_MS_MAX = 30 * 1000,
};

void hx_background_say(
	struct hx_background *background, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t count)
{
	hx_mutex_lock(&background->mutex);
	if (!background->is_left)
		hx_logger(background->log, level, msg, fields, count);
	hx_mutex_unlock(&background->mutex);
}

void hx_background_tell(
	struct hx_background *background, void (*tell)(struct hx_logger *log, const void *context),
	const void *context)
{
	hx_mutex_lock(&background->mutex);
	if (!background->is_left)
		tell(background->log, context);
	hx_mutex_unlock(&background->mutex);
}

void hx_background_trouble(struct hx_background *background, const struct hapax_error *trouble)
{
	hx_mutex_lock(&background->mutex);
	if (trouble != NULL) {
		background->trouble = *trouble;
	} else {
		background->trouble.status = HAPAX_OK;
		background->failures = 0;
	}
	hx_mutex_unlock(&background->mutex);
}

/* ------------------------------------------------------------------ its thread */

/* Waits for work and returns its configuration, kept; NULL: the end. */
static struct hx_config *await_turn(struct hx_background *background)
{
	struct hx_config *config = NULL;

	hx_mutex_lock(&background->mutex);
	for (;;) {
		if (background->stops)
			break;
		if (!background->is_wanted)
			hx_cond_wait(&background->wake, &background->mutex);
		else if (hx_clock_mono_ns() < background->resume_ns)
			(void)hx_cond_wait_until_ns(
				&background->wake, &background->mutex, background->resume_ns);
		else
			break;
	}
	if (!background->stops) {
		config = hx_config_keep(background->config);
		background->is_changed = false;
	}
	hx_mutex_unlock(&background->mutex);
	return config;
}

/* It ended by itself. A repeated reason is not logged. */
static void note_failure(struct hx_background *background, const struct hapax_error *err)
{
	int64_t wait_ms;
	bool is_news;

	hx_mutex_lock(&background->mutex);
	is_news = background->trouble.status == HAPAX_OK ||
		strcmp(background->trouble.message, err->message) != 0;
	wait_ms = hx_backoff(PAUSE_MS_FIRST, PAUSE_MS_MAX, background->failures++, hx_random_u64());
	background->trouble = *err;
	background->resume_ns = hx_clock_mono_ns() + wait_ms * HX_NS_PER_MS;
	/* It ran with a configuration that is no longer in force. */
	if (background->is_changed || background->stops)
		background->resume_ns = 0;
	hx_mutex_unlock(&background->mutex);
	{
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT("service", background->ops->name),
			HX_LOGGER_TEXT("error", err->message),
			HX_LOGGER_DURATION("again_in", wait_ms),
		};

		hx_background_say(
			background, is_news ? HX_LOGGER_WARN : HX_LOGGER_DEBUG,
			"service failed, restarting", fields, 3);
	}
}

static enum hapax_status run_once(
	struct hx_background *background, const struct hx_config *config, struct hapax_error *err)
{
	const struct hx_background_ops *ops = background->ops;
	void *work = NULL;
	enum hapax_status status = ops->open(background, config, &work, err);

	if (status != HAPAX_OK)
		return status;
	hx_mutex_lock(&background->mutex);
	background->work = work;
	if (background->stops || background->is_changed)
		ops->stop(work);
	hx_mutex_unlock(&background->mutex);
	status = ops->run(work, err);
	hx_mutex_lock(&background->mutex);
	background->work = NULL;
	if (ops->retire != NULL)
		ops->retire(background, work);
	if (status == HAPAX_OK && !background->stops && !background->is_changed)
		status = hx_error_set(
			err, HAPAX_ERR_FAILED, 0, "the task ended without reporting an error");
	hx_mutex_unlock(&background->mutex);
	ops->close(work);
	return status;
}

static void keep_running(void *arg)
{
	struct hx_background *background = arg;
	struct hx_config *config;

	while ((config = await_turn(background)) != NULL) {
		struct hapax_error err;

		if (run_once(background, config, &err) != HAPAX_OK)
			note_failure(background, &err);
		hx_config_release(config);
	}
	background->ended(background->context);
	hx_event_set(&background->has_ended);
}

/* ------------------------------------------------------------------ its owner */

/* Locks: mutex, where there is a thread. */
static void take_config(struct hx_background *background, struct hx_config *config)
{
	hx_config_release(background->config);
	background->config = hx_config_keep(config);
	background->is_wanted = background->ops->is_wanted(background, config);
}

/* It is not healthy until it reports so. Locks: as above. */
static void begin_anew(struct hx_background *background)
{
	background->resume_ns = 0;
	background->failures = 0;
	(void)hx_error_set(
		&background->trouble, HAPAX_ERR_UNAVAILABLE, EINPROGRESS, "not started yet");
}

static enum hapax_status start_thread(struct hx_background *background, struct hapax_error *err)
{
	char name[16];
	enum hapax_status status;

	/* A task that was told to end has reported that it did. */
	if (background->is_started || !background->is_wanted || background->stops)
		return HAPAX_OK;
	(void)snprintf(name, sizeof(name), "hapax-%s", background->ops->name);
	status = hx_thread_start(&background->thread, keep_running, background, name, err);
	background->is_started = status == HAPAX_OK;
	return status;
}

enum hapax_status hx_background_start(
	struct hx_background *background, const struct hx_background_ops *ops,
	struct hx_config *config, struct hx_logger *log, void (*ended)(void *context),
	void *context, struct hapax_error *err)
{
	background->ops = ops;
	background->log = log;
	background->ended = ended;
	background->context = context;
	hx_mutex_init(&background->mutex);
	hx_cond_init(&background->wake);
	hx_event_init(&background->has_ended);
	take_config(background, config);
	begin_anew(background);
	return start_thread(background, err);
}

static enum hapax_status renew(
	struct hx_background *background, struct hx_config *config, bool is_changed,
	struct hapax_error *err)
{
	hx_mutex_lock(&background->mutex);
	background->is_changed = background->is_changed || is_changed;
	take_config(background, config);
	if (background->is_changed) {
		begin_anew(background);
		if (background->work != NULL)
			background->ops->stop(background->work);
		hx_cond_signal(&background->wake);
	}
	hx_mutex_unlock(&background->mutex);
	return start_thread(background, err);
}

enum hapax_status hx_background_reload(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err)
{
	/* Only its owner changes config, so it stays as it is meanwhile. */
	return renew(
		background, config,
		!hx_config_is_same(background->config, config, background->ops->section), err);
}

enum hapax_status hx_background_renew(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err)
{
	return renew(background, config, true, err);
}

void hx_background_drain(struct hx_background *background)
{
	if (background->ops == NULL)
		return;
	hx_mutex_lock(&background->mutex);
	background->stops = true;
	if (background->work != NULL)
		background->ops->stop(background->work);
	hx_cond_signal(&background->wake);
	hx_mutex_unlock(&background->mutex);
	if (!background->is_started)
		background->ended(background->context);
}

bool hx_background_join(struct hx_background *background, int64_t deadline_ns)
{
	if (background->ops == NULL)
		return true;
	if (background->is_started) {
		if (!hx_event_wait_until_ns(&background->has_ended, deadline_ns)) {
			hx_mutex_lock(&background->mutex);
			background->is_left = true;
			hx_mutex_unlock(&background->mutex);
			return false;
		}
		hx_thread_join(&background->thread);
	}
	hx_config_release(background->config);
	hx_mutex_done(&background->mutex);
	hx_cond_done(&background->wake);
	background->ops = NULL;
	background->is_started = false;
	return true;
}

bool hx_background_look(struct hx_background *background, struct hapax_error *ret_trouble)
{
	bool is_wanted;

	if (background->ops == NULL)
		return false;
	hx_mutex_lock(&background->mutex);
	*ret_trouble = background->trouble;
	is_wanted = background->is_wanted;
	hx_mutex_unlock(&background->mutex);
	return is_wanted;
}

bool hx_background_works(struct hx_background *background)
{
	bool works;

	if (background->ops == NULL)
		return false;
	hx_mutex_lock(&background->mutex);
	works = background->work != NULL;
	hx_mutex_unlock(&background->mutex);
	return works;
}

bool hx_background_visit(
	struct hx_background *background,
	void (*look)(struct hx_background *background, void *work, void *context), void *context)
{
	bool is_wanted;

	if (background->ops == NULL)
		return false;
	hx_mutex_lock(&background->mutex);
	is_wanted = background->is_wanted;
	if (is_wanted)
		look(background, background->work, context);
	hx_mutex_unlock(&background->mutex);
	return is_wanted;
}
