/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unsafe_log.c - what the mode that syncs later promises all the same: a power cut
 * takes what was answered since the last sync, and nothing else. It never takes what was
 * durable (a pass over old segments least of all), and no token is given out twice (I5).
 *
 * Every cut here loses all that was on its way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "crash/image.h"
#include "crash/log_subject.h"
#include "store/log/log_private.h"
#include "support/scale.h"
#include "support/store_case.h"
#include "support/virtual_clock.h"

enum { KEYS = 48, BATCH = 512 };

struct scene {
	struct sim_disk *disk;
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct hapax_store *store;
	uint64_t cuts; /* images that were looked at */
};

static void open_scene(struct scene *scene)
{
	struct hapax_error err = {0};

	scene->options.clock = hx_virtual_clock_clock(&scene->clock);
	if (log_subject.open(
		    sim_disk_io(scene->disk), IMAGE_PATH, &scene->options, &scene->store, &err) !=
	    HAPAX_OK)
		fail_msg("%s", err.message);
}

static void scene_init(struct scene *scene, uint64_t segment_bytes)
{
	memset(scene, 0, sizeof(*scene));
	hx_random_seed_for_tests(1);
	scene->disk = sim_disk_new(1);
	hx_virtual_clock_init(&scene->clock, CASE_EPOCH_MS);
	scene->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	scene->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	scene->options.unsafe_interval_ms = 1000;
	scene->options.segment_bytes = segment_bytes;
	open_scene(scene);
}

static void scene_done(struct scene *scene)
{
	hapax_store_close(scene->store);
	sim_disk_free(scene->disk);
	hx_random_seed_for_tests(0);
}

static struct hapax_op key_op(enum hapax_op_type type, char text[64], const char *row, uint64_t i)
{
	snprintf(text, 64, "%s %llu", row, (unsigned long long)i);
	return (struct hapax_op){
		.type = type,
		.key = hapax_bytes_from_text(text),
		.attempt_id = case_attempt_id(1),
		.lease_ms = 1000,
		.ttl_ms = HAPAX_TTL_FOREVER};
}

/* One frame for each key. */
static void mark_each(struct scene *scene, const char *row, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[64];
		struct hapax_op op = key_op(HAPAX_OP_CHECK, text, row, i);

		assert_int_equal(hapax_store_run(scene->store, &op, 1, NULL), HAPAX_OK);
	}
}

static void sweep(struct hapax_store *store)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_error err = {0};

	while (!sweep.done)
		if (hapax_store_sweep(store, &sweep, &err) != HAPAX_OK)
			fail_msg("%s", err.message);
}

/* The store that a power cut leaves of the disk, on an image that the caller frees. */
static struct hapax_store *open_after_cut(
	struct scene *scene, struct sim_disk *disk, struct hx_virtual_clock *later,
	struct sim_disk **ret_image)
{
	struct hapax_store_options options = scene->options;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};
	struct sim_fates fates;
	struct hx_prng prng;

	*ret_image = sim_disk_clone(disk);
	sim_fates_lose_all(&fates);
	hx_prng_seed(&prng, 1);
	sim_disk_crash(*ret_image, &fates, &prng);
	clock_after_reboot(later, &scene->clock, 0);
	options.clock = hx_virtual_clock_clock(later);
	if (log_subject.open(sim_disk_io(*ret_image), IMAGE_PATH, &options, &store, &err) !=
	    HAPAX_OK)
		fail_msg("cut %llu: %s", (unsigned long long)scene->cuts, err.message);
	scene->cuts++;
	return store;
}

static void expect_row(struct hapax_store *store, const char *row, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char text[64];
		struct hapax_op op = key_op(HAPAX_OP_LOOKUP, text, row, i);

		assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
		if (op.outcome != HAPAX_OUTCOME_FOUND)
			fail_msg("\"%s\" was durable, and is gone", text);
	}
}

/* The disk has changed: would a cut now take what was durable? */
static void expect_durable(struct sim_disk *disk, enum sim_call call, void *context)
{
	struct scene *scene = context;
	struct hx_virtual_clock later;
	struct sim_disk *image;
	struct hapax_store *store;

	(void)call;
	store = open_after_cut(scene, disk, &later, &image);
	expect_row(store, "durable", KEYS);
	hapax_store_close(store);
	sim_disk_free(image);
}

/* What a pass gives up was copied, and the manifest that says so is durable before it goes. */
static void a_pass_takes_nothing_that_was_durable(void **state)
{
	struct scene scene;
	char text[64];
	struct hapax_op claim = key_op(HAPAX_OP_CLAIM, text, "claimed", 0);

	(void)state;
	scene_init(&scene, LOG_SEGMENT_BYTES);
	assert_int_equal(hapax_store_run(scene.store, &claim, 1, NULL), HAPAX_OK);
	mark_each(&scene, "durable", KEYS);
	/* A clean close syncs. */
	hapax_store_close(scene.store);
	open_scene(&scene);
	for (unsigned round = 0; round < 3; round++) {
		char row[16];

		snprintf(row, sizeof(row), "round %u", round);
		mark_each(&scene, row, 8);
		sim_disk_observe(scene.disk, expect_durable, &scene);
		sweep(scene.store);
		sim_disk_observe(scene.disk, NULL, NULL);
	}
	/* There was something to give up. */
	assert_true(sim_disk_calls(scene.disk, SIM_UNLINK | SIM_RENAME) > 8);
	assert_true(scene.cuts > 20);
	scene_done(&scene);
}

/* Without a keeper it is the sweep that syncs. */
static void a_sweep_syncs(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, 1 << 20);
	mark_each(&scene, "durable", KEYS);
	sweep(scene.store);
	expect_durable(scene.disk, SIM_FDATASYNC, &scene);
	scene_done(&scene);
}

static enum hapax_status run_sync(void *context)
{
	return hx_log_writer_sync(context);
}

/* A sync that comes between an operation and its frame has not synced that frame. */
static void a_sync_counts_only_what_is_written(void **state)
{
	struct hx_log_task sync = {.run = run_sync};
	struct hx_log_request requests[2] = {{.count = 1}, {.task = &sync}};
	struct scene scene;
	char text[64], other[64];
	struct hapax_op op = key_op(HAPAX_OP_CHECK, text, "durable", KEYS - 1);
	struct hapax_op known = key_op(HAPAX_OP_LOOKUP, other, "durable", 0);

	(void)state;
	scene_init(&scene, 1 << 20);
	mark_each(&scene, "durable", KEYS - 1);
	sync.context = &((struct hx_log *)scene.store)->writer;
	/* As the checked dispatch hands it on. */
	assert_int_equal(hapax_store_run(scene.store, &known, 1, NULL), HAPAX_OK);
	op.private_scope = known.private_scope;
	op.tenant = known.tenant;
	op.group = known.group;
	requests[0].ops = &op;
	hx_log_lead(scene.store, requests, 2);
	assert_int_equal(op.status, HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	sweep(scene.store);
	expect_durable(scene.disk, SIM_FDATASYNC, &scene);
	scene_done(&scene);
}

static uint64_t claim_tokens(struct hapax_store *store, const char *row, uint64_t first)
{
	static char texts[BATCH][64];
	struct hapax_op ops[BATCH];

	for (unsigned i = 0; i < BATCH; i++)
		ops[i] = key_op(HAPAX_OP_SET, texts[i], row, first + i);
	assert_int_equal(hapax_store_run(store, ops, BATCH, NULL), HAPAX_OK);
	return ops[BATCH - 1].token;
}

/* However many tokens are given out between two syncs, none of them comes back. */
static void tokens_do_not_come_back(void **state)
{
	enum { TOKENS = 150000 };
	struct scene scene;

	(void)state;
	/* So large that no new segment, which syncs the old one, comes in between. */
	scene_init(&scene, 32 << 20);
	for (uint64_t given = 0; given < TOKENS; given += BATCH) {
		uint64_t token = claim_tokens(scene.store, "set", given);
		struct hx_virtual_clock later;
		struct hapax_store *store;
		struct sim_disk *image;
		char text[64];
		struct hapax_op op = key_op(HAPAX_OP_CLAIM, text, "after the cut", 0);

		if (given % (16 * BATCH) != 0)
			continue;
		store = open_after_cut(&scene, scene.disk, &later, &image);
		assert_int_equal(hapax_store_run(store, &op, 1, NULL), HAPAX_OK);
		if (op.token <= token)
			fail_msg("token %llu was given out again", (unsigned long long)op.token);
		hapax_store_close(store);
		sim_disk_free(image);
	}
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_takes_nothing_that_was_durable),
		cmocka_unit_test(a_sweep_syncs),
		cmocka_unit_test(a_sync_counts_only_what_is_written),
		cmocka_unit_test(tokens_do_not_come_back),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("unsafe_log", tests, NULL, NULL);
}
