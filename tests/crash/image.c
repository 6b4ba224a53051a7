/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/store_case.h"
#include "support/virtual_clock.h"

void captures_take(struct sim_disk *disk, enum sim_call call, void *context)
{
	struct captures *captures = context;
	size_t at = captures->count;

	(void)call;
	captures->seen++;
	if (at == IMAGE_CAPTURES_MAX) {
		at = (size_t)hx_prng_below(&captures->prng, captures->seen);
		if (at >= IMAGE_CAPTURES_MAX)
			return;
		sim_disk_free(captures->disks[at]);
	} else {
		captures->count++;
	}
	captures->disks[at] = sim_disk_clone(disk);
}

void captures_drop(struct captures *captures)
{
	for (size_t i = 0; i < captures->count; i++)
		sim_disk_free(captures->disks[i]);
	captures->count = 0;
	captures->seen = 0;
}

bool judge_init(struct judge *judge, const struct crash_subject *subject, uint64_t seed)
{
	*judge = (struct judge){.subject = subject};
	hx_prng_seed(&judge->prng, seed);
	judge->options = (struct hapax_store_options)HAPAX_STORE_OPTIONS_INIT;
	judge->options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	if (seed % 8 != 0)
		judge->options.keys_max = IMAGE_KEYS_MAX;
	judge->content = content_new();
	judge->scratch = calloc(1, sizeof(*judge->scratch));
	for (size_t i = 0; i < IMAGE_STATES_MAX; i++) {
		judge->states[i] = malloc(sizeof(*judge->states[i]));
		if (!judge->states[i])
			return false;
	}
	return judge->content && judge->scratch;
}

void judge_done(struct judge *judge)
{
	content_free(judge->content);
	free(judge->scratch);
	for (size_t i = 0; i < IMAGE_STATES_MAX; i++)
		free(judge->states[i]);
}

void clock_after_reboot(
	struct hx_virtual_clock *target, const struct hx_virtual_clock *source, int64_t later_ms)
{
	hx_virtual_clock_init(target, source->wall_ms + later_ms);
	target->boot_number = source->boot_number + 1;
}

void judge_draw(struct judge *judge, struct sim_fates *fates)
{
	sim_fates_draw(fates, &judge->prng);
	if (judge->subject->keeps_pages_apart && hx_prng_below(&judge->prng, 4) == 0)
		fates->blast_percent = 1 + (unsigned)hx_prng_below(&judge->prng, 100);
}

void judge_draw_mode(struct judge *judge)
{
	if (judge->draws_mode)
		judge->options.unsafe_interval_ms = hx_prng_below(&judge->prng, 2) ? 1000 : 0;
}

static bool judge_fail(struct judge *judge, const char *what, const char *detail)
{
	snprintf(judge->why, sizeof(judge->why), "%s: %.900s", what, detail);
	return false;
}

/* Which of the allowed states is it? */
static bool find_state(struct judge *judge, size_t *ret_state)
{
	char first_why[MODEL_WHY_SIZE];

	if (judge->is_between) {
		*ret_state = 0;
		return content_is_between(judge->content, judge->states[0], judge->states[1]) ||
			judge_fail(judge, "I9", judge->content->why);
	}
	/* The latest first: usually nothing is lost. */
	for (size_t i = judge->state_count; i-- > 0;) {
		if (content_is(judge->content, judge->states[i])) {
			*ret_state = i;
			return true;
		}
		if (i + 1 == judge->state_count)
			memcpy(first_why, judge->content->why, sizeof(first_why));
	}
	snprintf(
		judge->why, sizeof(judge->why),
		"I2, I9: none of %zu allowed states. Not the last: %.300s. Not the first: %.300s",
		judge->state_count, first_why, judge->content->why);
	return false;
}

static bool judge_content(struct judge *judge, struct hapax_store *store, size_t *ret_state)
{
	struct content *content = judge->content;
	char text[128];

	if (!content_read(content, store))
		return judge_fail(judge, "reading", content->why);
	if (!find_state(judge, ret_state))
		return false;
	if (content->token < judge->token) {
		snprintf(
			text, sizeof(text), "token %" PRIu64 " after %" PRIu64 " was given out",
			content->token, judge->token);
		return judge_fail(judge, "I5", text);
	}
	if (content->now_ms < judge->committed_ms) {
		snprintf(
			text, sizeof(text), "clock %" PRId64 " after a commit at %" PRId64,
			content->now_ms, judge->committed_ms);
		return judge_fail(judge, "I8", text);
	}
	return true;
}

bool judge_open(
	struct judge *judge, struct sim_disk *disk, const struct hx_virtual_clock *clock,
	struct hapax_store **ret_store, size_t *ret_state)
{
	struct hapax_error err = {0};
	struct hapax_store *store = NULL;

	judge->images++;
	judge->options.clock = &clock->clock;
	if (judge->subject->open(sim_disk_io(disk), IMAGE_PATH, &judge->options, &store, &err) !=
	    HAPAX_OK)
		return judge_fail(judge, "does not open", err.message);
	if (!judge_content(judge, store, ret_state)) {
		hapax_store_close(store);
		return false;
	}
	*ret_store = store;
	return true;
}

/* From now on it must be in this state. */
static void narrow(struct judge *judge, size_t state)
{
	if (judge->is_between)
		return;
	if (state != 0) {
		struct model *kept = judge->states[state];

		judge->states[state] = judge->states[0];
		judge->states[0] = kept;
	}
	judge->state_count = 1;
}

void judge_settle_tokens(const struct judge *judge, struct model *model)
{
	uint64_t token = judge->content->token;

	model->token_max = model->token_high = token;
	for (size_t i = 0; i < model->count; i++)
		if (model->keys[i].token_max > token)
			model->keys[i].token_max = token;
}

/* A recovered store takes new work, with a token above all. */
static bool use_store(struct judge *judge, struct hapax_store *store)
{
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {0xab, 1};
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = hapax_bytes_from_text("after the crash"),
		.attempt_id = attempt_id,
		.lease_ms = 60000,
		.ttl_ms = 86400000,
	};
	struct hapax_error err = {0};

	if (hapax_store_run(store, &op, 1, &err) != HAPAX_OK)
		return judge_fail(judge, "a recovered store refuses work", err.message);
	op.tenant = op.group = (struct hapax_bytes){NULL, 0};
	if (op.token <= judge->token)
		return judge_fail(judge, "I5", "a token came back");
	judge_settle_tokens(judge, judge->states[0]);
	if (!model_submit(judge->states[0], judge->content->now_ms, &op, 1))
		return judge_fail(judge, "after recovery", judge->states[0]->why);
	judge->token = op.token;
	judge->committed_ms = judge->content->now_ms;
	return true;
}

/*
 * What was seen once stays: use the store, then end it in one of three ways, and look
 * again.
 */
static bool judge_again(
	struct judge *judge, struct sim_disk *disk, const struct hx_virtual_clock *clock,
	struct hapax_store *store, size_t state)
{
	struct hx_virtual_clock later;
	struct sim_fates fates;
	uint64_t end = hx_prng_below(&judge->prng, 3);
	size_t again;
	bool ok;

	narrow(judge, state);
	/* In unsafe mode what is answered may be lost: then it is only looked at. */
	if (!judge->is_between && hx_prng_below(&judge->prng, 2) &&
	    judge->options.unsafe_interval_ms == 0 && !use_store(judge, store)) {
		hapax_store_close(store);
		return false;
	}
	if (end == 0) {
		/* The power goes while it is open: what the dying process does is not seen. */
		struct sim_disk *left = sim_disk_clone(disk);

		hapax_store_close(store);
		judge_draw(judge, &fates);
		sim_disk_crash(left, &fates, &judge->prng);
		clock_after_reboot(&later, clock, 2);
		judge_draw_mode(judge);
		ok = judge_open(judge, left, &later, &store, &again);
		if (ok)
			hapax_store_close(store);
		sim_disk_free(left);
		return ok;
	}
	hapax_store_close(store);
	judge_draw(judge, &fates);
	if (end == 1)
		sim_disk_crash(disk, &fates, &judge->prng);
	clock_after_reboot(&later, clock, 3);
	judge_draw_mode(judge);
	ok = judge_open(judge, disk, end == 1 ? &later : clock, &store, &again);
	if (ok)
		hapax_store_close(store);
	return ok;
}

/* Recovery itself is cut short, at a random step of it. */
static bool judge_cut_recoveries(
	struct judge *judge, struct captures *captures, const struct hx_virtual_clock *clock)
{
	bool ok = true;

	for (int i = 0; ok && i < 2 && captures->count > 0; i++) {
		size_t at = (size_t)hx_prng_below(&judge->prng, captures->count);
		struct sim_disk *disk = sim_disk_clone(captures->disks[at]);
		struct hapax_store *store = NULL;
		struct hx_virtual_clock later;
		struct sim_fates fates;
		size_t state;

		judge->recoveries_cut++;
		judge_draw(judge, &fates);
		sim_disk_crash(disk, &fates, &judge->prng);
		clock_after_reboot(&later, clock, 1);
		judge_draw_mode(judge);
		ok = judge_open(judge, disk, &later, &store, &state);
		if (ok)
			hapax_store_close(store);
		sim_disk_free(disk);
	}
	return ok;
}

/* States, token and time as they were: looking again has narrowed and moved them. */
struct allowed {
	size_t state_count;
	uint64_t token;
	int64_t committed_ms;
};

bool judge_crash(struct judge *judge, struct sim_disk *disk, const struct hx_virtual_clock *clock)
{
	struct captures captures = {.count = 0};
	struct allowed allowed = {judge->state_count, judge->token, judge->committed_ms};
	struct hx_virtual_clock later;
	struct hapax_store *store = NULL;
	struct sim_fates fates;
	uint64_t choice = hx_prng_below(&judge->prng, 8);
	size_t state = 0;
	bool ok;

	/* What unsafe mode leaves behind the end shows when the log has gone on. */
	if (judge->draws_mode && choice > 3)
		choice = 1;
	judge_draw(judge, &fates);
	sim_disk_crash(disk, &fates, &judge->prng);
	clock_after_reboot(&later, clock, (int64_t)hx_prng_below(&judge->prng, 3));
	if (choice == 0) {
		hx_prng_seed(&captures.prng, judge->images);
		sim_disk_observe(disk, captures_take, &captures);
	}
	judge_draw_mode(judge);
	ok = judge_open(judge, disk, &later, &store, &state);
	sim_disk_observe(disk, NULL, NULL);
	if (ok && choice == 0)
		ok = judge_cut_recoveries(judge, &captures, &later);
	captures_drop(&captures);
	if (!ok || choice != 1) {
		hapax_store_close(store);
		return ok;
	}
	*judge->scratch = *judge->states[state];
	ok = judge_again(judge, disk, &later, store, state);
	/* Narrowing exchanged two states, using the store changed the first. */
	*judge->states[0] = *judge->scratch;
	if (state != 0) {
		struct model *moved = judge->states[0];

		judge->states[0] = judge->states[state];
		judge->states[state] = moved;
	}
	judge->state_count = allowed.state_count;
	judge->token = allowed.token;
	judge->committed_ms = allowed.committed_ms;
	return ok;
}
