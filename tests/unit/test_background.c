/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something beside the doors: started, stopped, started again by a reload, retried when it
 * fails, left behind when it does not end.
 */
#include "serve/task/background.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"

#define SECOND_NS INT64_C(1000000000)

/* What the one that is tested does, and has done. Locks: mutex. */
static struct {
	struct hx_mutex mutex;
	struct hx_cond changed;
	unsigned opens, runs, stops, retires, closes, ends;
	unsigned failures_left; /* of open */
	bool is_deaf;           /* run does not hear stop */
	bool is_released;       /* then it hears this */
	bool quits;             /* run returns by itself */
	uint64_t batch;         /* of the configuration that it was opened with */
	bool stop_wanted;
} it;

static void set_up_it(void)
{
	memset(&it, 0, sizeof(it));
	hx_mutex_init(&it.mutex);
	hx_cond_init(&it.changed);
}

/* tools/mutants knows that there is a bug: it need not be waited for as on a busy machine. */
static int64_t patience_ns(void)
{
	return (getenv("HAPAX_FAIL_FAST") ? 5 : 60) * SECOND_NS;
}

/*
 * Wait until a counter has come to value. Where it does not, that is the end of the program: a
 * thread uses the stack of this test.
 */
static void await(const unsigned *counter, unsigned value)
{
	int64_t deadline_ns = hx_clock_mono_ns() + patience_ns();

	hx_mutex_lock(&it.mutex);
	while (*counter < value && hx_cond_wait_until_ns(&it.changed, &it.mutex, deadline_ns))
		;
	if (*counter < value) {
		(void)printf(
			"Bail out! opens %u, runs %u, closes %u, ends %u: waited in vain\n",
			it.opens, it.runs, it.closes, it.ends);
		(void)fflush(stdout);
		_Exit(1);
	}
	hx_mutex_unlock(&it.mutex);
}

static void count(unsigned *counter)
{
	hx_mutex_lock(&it.mutex);
	(*counter)++;
	hx_cond_broadcast(&it.changed);
	hx_mutex_unlock(&it.mutex);
}

static bool is_wanted(const struct hx_background *background, const struct hx_config *config)
{
	(void)background;
	return config->outbox.url[0] != '\0';
}

static enum hapax_status open_it(
	struct hx_background *background, const struct hx_config *config, void **ret_work,
	struct hapax_error *err)
{
	bool fails;

	hx_mutex_lock(&it.mutex);
	fails = it.failures_left > 0;
	it.failures_left -= fails;
	it.batch = config->outbox.batch;
	it.stop_wanted = false;
	hx_mutex_unlock(&it.mutex);
	count(&it.opens);
	if (fails)
		return hx_error_set(err, HAPAX_ERR_UNAVAILABLE, 0, "not today");
	*ret_work = background;
	return HAPAX_OK;
}

static enum hapax_status run_it(void *work, struct hapax_error *err)
{
	(void)err;
	hx_background_trouble(work, NULL);
	count(&it.runs);
	hx_mutex_lock(&it.mutex);
	while (it.is_deaf ? !it.is_released : !it.stop_wanted && !it.quits)
		hx_cond_wait(&it.changed, &it.mutex);
	it.quits = false;
	hx_mutex_unlock(&it.mutex);
	/* A task that was left behind has no peer to talk to. */
	hx_background_say(work, HX_LOGGER_INFO, "it has run", NULL, 0);
	return HAPAX_OK;
}

static void stop_it(void *work)
{
	(void)work;
	hx_mutex_lock(&it.mutex);
	it.stop_wanted = true;
	hx_mutex_unlock(&it.mutex);
	count(&it.stops);
}

static void retire_it(struct hx_background *background, void *work)
{
	assert_ptr_equal(background, work);
	count(&it.retires);
}

static void close_it(void *work)
{
	(void)work;
	count(&it.closes);
}

static void on_ended(void *context)
{
	assert_ptr_equal(context, &it);
	count(&it.ends);
}

static const struct hx_background_ops ops = {
	.name = "it",
	.section = "outbox",
	.is_wanted = is_wanted,
	.open = open_it,
	.run = run_it,
	.stop = stop_it,
	.retire = retire_it,
	.close = close_it,
};

#define ON(batch)                                                                 \
	"outbox: {url: 'sqlite:x.db', sink: 'http://127.0.0.1:1/', batch: " batch \
	"}\nstore: {url: 'memory:'}\n"
#define OFF "store: {url: 'memory:'}\n"

static struct hx_config *config_of(const char *text)
{
	struct hapax_bytes bytes = hapax_bytes_from_text(text);
	const struct hx_config_source source = {.text = &bytes};
	struct hx_config *config = NULL;
	struct hapax_error err;

	if (hx_config_load(&source, &config, NULL, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
	return config;
}

static void start(struct hx_background *background, const char *text)
{
	struct hx_config *config = config_of(text);

	memset(background, 0, sizeof(*background));
	assert_int_equal(
		hx_background_start(background, &ops, config, NULL, on_ended, &it, NULL), HAPAX_OK);
	hx_config_release(config);
}

static void reload(struct hx_background *background, const char *text)
{
	struct hx_config *config = config_of(text);

	assert_int_equal(hx_background_reload(background, config, NULL), HAPAX_OK);
	hx_config_release(config);
}

static void end(struct hx_background *background)
{
	hx_background_drain(background);
	await(&it.ends, 1);
	assert_true(hx_background_join(background, hx_clock_mono_ns() + patience_ns()));
	assert_int_equal(it.opens - it.retires, it.opens - it.closes);
}

static void runs_until_it_is_told_to_end(void **state)
{
	struct hx_background background;
	struct hapax_error trouble;

	(void)state;
	start(&background, ON("7"));
	await(&it.runs, 1);
	assert_int_equal(it.batch, 7);
	assert_true(hx_background_look(&background, &trouble));
	assert_int_equal(trouble.status, HAPAX_OK);
	end(&background);
	assert_int_equal(it.opens, 1);
	assert_int_equal(it.stops, 1);
	assert_int_equal(it.closes, 1);
	assert_int_equal(it.ends, 1);
	assert_false(hx_background_look(&background, &trouble));
}

static void is_off_until_it_is_wanted(void **state)
{
	struct hx_background background;
	struct hapax_error trouble;

	(void)state;
	start(&background, OFF);
	assert_false(hx_background_look(&background, &trouble));
	assert_false(background.is_started);
	reload(&background, ON("1"));
	await(&it.runs, 1);
	assert_true(hx_background_look(&background, &trouble));
	reload(&background, OFF);
	await(&it.closes, 1);
	assert_false(hx_background_look(&background, &trouble));
	end(&background);
	assert_int_equal(it.opens, 1);
}

static void ends_though_it_never_began(void **state)
{
	struct hx_background background;

	(void)state;
	start(&background, OFF);
	end(&background);
	assert_int_equal(it.opens, 0);
}

/* A caller that counts those that have ended counts each once. */
static void nothing_begins_after_the_end(void **state)
{
	struct hx_background background;

	(void)state;
	start(&background, OFF);
	hx_background_drain(&background);
	assert_int_equal(it.ends, 1);
	reload(&background, ON("1"));
	assert_false(background.is_started);
	assert_true(hx_background_join(&background, 0));
	assert_int_equal(it.ends, 1);
}

static void only_its_own_settings_concern_it(void **state)
{
	struct hx_background background;

	(void)state;
	start(&background, ON("1"));
	await(&it.runs, 1);
	reload(&background, ON("1") "log: {level: debug}\n");
	assert_int_equal(it.stops, 0);
	reload(&background, ON("2"));
	await(&it.runs, 2);
	assert_int_equal(it.batch, 2);
	end(&background);
	assert_int_equal(it.opens, 2);
	assert_int_equal(it.closes, 2);
}

static void its_owner_may_know_better(void **state)
{
	struct hx_background background;
	struct hx_config *config = config_of(ON("1") "log: {level: debug}\n");

	(void)state;
	start(&background, ON("1"));
	await(&it.runs, 1);
	assert_int_equal(hx_background_renew(&background, config, NULL), HAPAX_OK);
	hx_config_release(config);
	await(&it.runs, 2);
	end(&background);
	assert_int_equal(it.opens, 2);
	assert_int_equal(it.closes, 2);
}

static void is_tried_again_when_it_fails(void **state)
{
	struct hx_background background;
	struct hapax_error trouble;

	(void)state;
	it.failures_left = 2;
	start(&background, ON("1"));
	/* It has not said that it is well. */
	assert_true(hx_background_look(&background, &trouble));
	assert_int_equal(trouble.status, HAPAX_ERR_UNAVAILABLE);
	await(&it.opens, 2);
	/* That of the first time, which a second one did not take back. */
	assert_true(hx_background_look(&background, &trouble));
	assert_int_equal(trouble.status, HAPAX_ERR_UNAVAILABLE);
	assert_string_equal(trouble.message, "not today");
	await(&it.runs, 1);
	assert_true(hx_background_look(&background, &trouble));
	assert_int_equal(trouble.status, HAPAX_OK);
	end(&background);
	assert_int_equal(it.opens, 3);
}

/* A pause does not make a caller wait that ends it or has something better. */
static void a_pause_is_cut_short(void **state)
{
	struct hx_background background;

	(void)state;
	it.failures_left = 1000;
	start(&background, ON("1"));
	await(&it.opens, 3);
	hx_mutex_lock(&it.mutex);
	it.failures_left = 0;
	hx_mutex_unlock(&it.mutex);
	reload(&background, ON("3"));
	await(&it.runs, 1);
	assert_int_equal(it.batch, 3);
	end(&background);
	set_up_it();
	it.failures_left = 1000;
	start(&background, ON("1"));
	await(&it.opens, 1);
	end(&background);
}

static void an_end_by_itself_is_a_failure(void **state)
{
	struct hx_background background;

	(void)state;
	it.quits = true;
	start(&background, ON("1"));
	await(&it.runs, 2);
	end(&background);
	assert_int_equal(it.opens, 2);
}

static void whoever_does_not_end_is_left_behind(void **state)
{
	struct hx_background background;

	(void)state;
	it.is_deaf = true;
	start(&background, ON("1"));
	await(&it.runs, 1);
	hx_background_drain(&background);
	assert_false(hx_background_join(&background, 0));
	/* From here on there is no log. */
	background.log = (struct hx_logger *)(void *)1;
	hx_mutex_lock(&it.mutex);
	it.is_released = true;
	hx_cond_broadcast(&it.changed);
	hx_mutex_unlock(&it.mutex);
	await(&it.ends, 1);
	assert_true(hx_background_join(&background, hx_clock_mono_ns() + patience_ns()));
}

static void look(struct hx_background *background, void *work, void *context)
{
	*(bool *)context = work == background;
}

static void it_can_be_visited(void **state)
{
	struct hx_background background;
	bool is_running = true;

	(void)state;
	start(&background, OFF);
	assert_false(hx_background_visit(&background, look, &is_running));
	reload(&background, ON("1"));
	await(&it.runs, 1);
	assert_true(hx_background_visit(&background, look, &is_running));
	assert_true(is_running);
	end(&background);
	assert_false(hx_background_visit(&background, look, &is_running));
}

static int set_up(void **state)
{
	(void)state;
	set_up_it();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(runs_until_it_is_told_to_end, set_up),
		cmocka_unit_test_setup(is_off_until_it_is_wanted, set_up),
		cmocka_unit_test_setup(ends_though_it_never_began, set_up),
		cmocka_unit_test_setup(nothing_begins_after_the_end, set_up),
		cmocka_unit_test_setup(only_its_own_settings_concern_it, set_up),
		cmocka_unit_test_setup(its_owner_may_know_better, set_up),
		cmocka_unit_test_setup(is_tried_again_when_it_fails, set_up),
		cmocka_unit_test_setup(a_pause_is_cut_short, set_up),
		cmocka_unit_test_setup(an_end_by_itself_is_a_failure, set_up),
		cmocka_unit_test_setup(whoever_does_not_end_is_left_behind, set_up),
		cmocka_unit_test_setup(it_can_be_visited, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
