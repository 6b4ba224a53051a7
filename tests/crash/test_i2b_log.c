/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_i2b_log.c - I2b: no caller sees what a crash could still take back; I14: every
 * waiter is answered, once.
 *
 * One thread commits. In the middle of its write, when the frame is on its way and not
 * yet durable, a second thread submits operations on the same key and on others, and
 * the write goes on when that submit has returned: so submits do not wait for the disk.
 * Whenever the second thread is answered, the disk is kept as it is then; after a
 * power cut that loses all that was on its way, the store must hold what was shown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/thread.h"
#include "crash/image.h"
#include "crash/log_subject.h"
#include "support/scale.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

enum { BESIDE_MAX = 3 };

/* A submit of the second thread. */
struct beside {
	struct hapax_op op;
	char key[32];
	struct sim_disk *at_answer; /* the disk when it was answered */
	bool was_early;             /* answered while the write of the first went on */
	_Atomic int answers;
};

struct scene {
	struct sim_disk *disk;
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct hapax_store *store;
	struct hx_thread thread;
	struct hx_event go;       /* the write is on its way */
	struct hx_event has_sent; /* the second thread's submits have returned */
	_Atomic int is_writing;
	bool was_armed;
	struct beside beside[BESIDE_MAX];
	size_t count;
	uint64_t attempts;
};

static struct hapax_op first_op(enum hapax_op_type type, const char *key)
{
	return (struct hapax_op){
		.type = type,
		.key = hapax_bytes_from_text(key),
		.attempt_id = case_attempt_id(1),
		.ttl_ms = 60000,
		.lease_ms = 1000,
	};
}

static void scene_init(struct scene *scene, uint64_t seed)
{
	struct hapax_op before = first_op(HAPAX_OP_CHECK, "durable");
	struct hapax_error err = {0};

	memset(scene, 0, sizeof(*scene));
	hx_random_seed_for_tests(seed);
	scene->disk = sim_disk_new(seed);
	hx_virtual_clock_init(&scene->clock, CASE_EPOCH_MS);
	scene->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	scene->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	scene->options.clock = hx_virtual_clock_clock(&scene->clock);
	if (log_subject.open(
		    sim_disk_io(scene->disk), IMAGE_PATH, &scene->options, &scene->store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	/* A first commit makes a segment: the next write is that of a frame. */
	assert_int_equal(hapax_store_run(scene->store, &before, 1, NULL), HAPAX_OK);
}

static void scene_done(struct scene *scene)
{
	for (size_t i = 0; i < scene->count; i++)
		sim_disk_free(scene->beside[i].at_answer);
	hapax_store_close(scene->store);
	sim_disk_free(scene->disk);
	hx_random_seed_for_tests(0);
}

static void answered(struct hapax_op *ops, size_t count, void *context)
{
	struct scene *scene = context;
	struct beside *beside = ops->context;

	assert_int_equal(count, 1);
	beside->answers++;
	beside->was_early = scene->is_writing;
	beside->at_answer = sim_disk_clone(scene->disk);
}

static void submit_beside(void *arg)
{
	struct scene *scene = arg;

	hx_event_wait(&scene->go);
	for (size_t i = 0; i < scene->count; i++)
		hapax_store_submit(
			scene->store, &scene->beside[i].op, 1,
			(struct hapax_completion){answered, scene});
	hx_event_set(&scene->has_sent);
}

/* In the first write: the frame is on its way. Later ones pass. */
static void interrupt_write(struct sim_disk *disk, enum sim_call call, void *context)
{
	struct scene *scene = context;

	(void)disk;
	if (call != SIM_PWRITE || !scene->was_armed)
		return;
	scene->was_armed = false;
	scene->is_writing = 1;
	hx_event_set(&scene->go);
	hx_event_wait(&scene->has_sent);
	scene->is_writing = 0;
}

static void add_beside(struct scene *scene, enum hapax_op_type type, const char *key)
{
	struct beside *beside = &scene->beside[scene->count++];

	snprintf(beside->key, sizeof(beside->key), "%s", key);
	beside->op = (struct hapax_op){
		.type = type,
		.key = hapax_bytes_from_text(beside->key),
		.attempt_id = case_attempt_id(50 + scene->count),
		.ttl_ms = 60000,
		.lease_ms = 1000,
		.context = beside,
	};
}

/* Run op on the first thread, with the others in the middle of its write. */
static void run_with_others(struct scene *scene, struct hapax_op *op)
{
	struct hapax_error err = {0};

	assert_int_equal(
		hx_thread_start(&scene->thread, submit_beside, scene, "beside", &err), HAPAX_OK);
	scene->was_armed = true;
	sim_disk_observe(scene->disk, interrupt_write, scene);
	(void)hapax_store_run(scene->store, op, 1, NULL);
	sim_disk_observe(scene->disk, NULL, NULL);
	/* The write did not happen: no caller waits forever. */
	hx_event_set(&scene->go);
	hx_thread_join(&scene->thread);
	assert_false(scene->was_armed);
	for (size_t i = 0; i < scene->count; i++)
		assert_int_equal(scene->beside[i].answers, 1);
}

/* What state does the key have after a power cut at that moment, if all is lost that can be? */
static enum hapax_state state_after_cut(struct scene *scene, struct sim_disk *disk, const char *key)
{
	struct sim_disk *image = sim_disk_clone(disk);
	struct hx_virtual_clock later;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	struct hapax_record record = {.state = HAPAX_STATE_ABSENT};
	struct hapax_buf *buf = hapax_buf_new(1 << 20);
	struct hapax_op op = {
		.type = HAPAX_OP_LOOKUP,
		.key = hapax_bytes_from_text(key),
		.record = &record,
		.buf = buf};
	struct sim_fates fates;
	struct hx_prng prng;

	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, 1);
	sim_disk_crash(image, &fates, &prng);
	clock_after_reboot(&later, &scene->clock, 0);
	scene->options.clock = &later.clock;
	if (log_subject.open(sim_disk_io(image), IMAGE_PATH, &scene->options, &store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
	assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
	hapax_store_close(store);
	sim_disk_free(image);
	hapax_buf_free(buf);
	scene->options.clock = hx_virtual_clock_clock(&scene->clock);
	return op.outcome == HAPAX_OUTCOME_FOUND ? record.state : HAPAX_STATE_ABSENT;
}

/* A mark is on its way; others ask for the same key in every way that shows it. */
static void a_mark_is_not_shown_before_it_is_durable(void **state)
{
	static const enum hapax_op_type asks[] = {HAPAX_OP_CHECK, HAPAX_OP_CLAIM, HAPAX_OP_LOOKUP};
	double begin = scale_seconds();
	uint64_t rounds = scale_count(2000, 60);

	(void)state;
	for (uint64_t round = 0; round < rounds; round++) {
		struct hapax_op op = first_op(HAPAX_OP_CHECK, "k");
		struct scene scene;

		scene_init(&scene, round + 1);
		for (size_t i = 0; i < 3; i++)
			add_beside(&scene, asks[(i + round) % 3], "k");
		run_with_others(&scene, &op);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		for (size_t i = 0; i < scene.count; i++) {
			const struct beside *beside = &scene.beside[i];

			assert_int_equal(beside->op.status, HAPAX_OK);
			assert_true(
				beside->op.outcome == HAPAX_OUTCOME_REPLAY ||
				beside->op.outcome == HAPAX_OUTCOME_FOUND);
			assert_int_equal(
				state_after_cut(&scene, beside->at_answer, "k"), HAPAX_STATE_DONE);
		}
		scene_done(&scene);
	}
	scale_report(
		"I2b: marks asked for while they are written", rounds * 3, scale_seconds() - begin,
		true);
}

/* The same for a claim, which is "in progress" for others, and for its end. */
static void a_claim_is_not_shown_before_it_is_durable(void **state)
{
	uint64_t rounds = scale_count(1000, 30);

	(void)state;
	for (uint64_t round = 0; round < rounds; round++) {
		struct hapax_op op = first_op(HAPAX_OP_CLAIM, "k");
		struct hapax_op complete = first_op(HAPAX_OP_COMPLETE, "k");
		struct scene scene;
		bool ends = round % 2;

		scene_init(&scene, round + 1);
		if (ends) {
			assert_int_equal(hapax_store_run(scene.store, &op, 1, NULL), HAPAX_OK);
			complete.token = op.token;
		}
		add_beside(&scene, HAPAX_OP_CLAIM, "k");
		add_beside(&scene, HAPAX_OP_LOOKUP, "k");
		run_with_others(&scene, ends ? &complete : &op);
		for (size_t i = 0; i < scene.count; i++) {
			const struct beside *beside = &scene.beside[i];
			enum hapax_state kept = state_after_cut(&scene, beside->at_answer, "k");

			if (beside->op.outcome == HAPAX_OUTCOME_REPLAY)
				assert_int_equal(kept, HAPAX_STATE_DONE);
			else
				assert_int_not_equal(kept, HAPAX_STATE_ABSENT);
		}
		scene_done(&scene);
	}
}

/* What is durable is answered at once, whatever is being written. */
static void readers_of_other_keys_do_not_wait(void **state)
{
	struct hapax_op op = first_op(HAPAX_OP_CHECK, "k");
	struct scene scene;

	(void)state;
	scene_init(&scene, 1);
	add_beside(&scene, HAPAX_OP_LOOKUP, "durable");
	add_beside(&scene, HAPAX_OP_CHECK, "durable");
	add_beside(&scene, HAPAX_OP_CHECK, "new");
	run_with_others(&scene, &op);
	assert_true(scene.beside[0].was_early);
	assert_true(scene.beside[1].was_early);
	assert_false(scene.beside[2].was_early);
	assert_int_equal(scene.beside[2].op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(
		state_after_cut(&scene, scene.beside[2].at_answer, "new"), HAPAX_STATE_DONE);
	scene_done(&scene);
}

/* I11, I14: the write fails; those who came meanwhile are answered, and nothing was done. */
static void waiters_are_answered_when_the_write_fails(void **state)
{
	struct hapax_op op = first_op(HAPAX_OP_CHECK, "k");
	struct scene scene;

	(void)state;
	scene_init(&scene, 1);
	add_beside(&scene, HAPAX_OP_CHECK, "one");
	add_beside(&scene, HAPAX_OP_CHECK, "two");
	add_beside(&scene, HAPAX_OP_LOOKUP, "k");
	sim_disk_fail_at(scene.disk, SIM_PWRITE, 1, false, EIO);
	run_with_others(&scene, &op);
	assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(scene.beside[i].op.status, HAPAX_ERR_FAILED);
		assert_int_equal(
			state_after_cut(&scene, scene.beside[i].at_answer, scene.beside[i].key),
			HAPAX_STATE_ABSENT);
	}
	assert_int_not_equal(scene.beside[2].op.outcome, HAPAX_OUTCOME_FOUND);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_is_not_shown_before_it_is_durable),
		cmocka_unit_test(a_claim_is_not_shown_before_it_is_durable),
		cmocka_unit_test(readers_of_other_keys_do_not_wait),
		cmocka_unit_test(waiters_are_answered_when_the_write_fails),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("i2b_log", tests, NULL, NULL);
}
