/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - a disk after a crash: open the store on it, and judge what it holds.
 *
 * A judge is given the states that are allowed, each a model. It opens the store
 * with the real recovery and checks
 *
 *  I9   the content is one of them, whole; also when recovery itself was cut short,
 *       and when it runs a second time
 *  I2b  what was seen once is seen after every later crash
 *  I5   the next token is above all that were given out
 *  I8   the store's clock has not gone back behind the last commit
 *
 * I2 is in the choice of what is allowed: everything that was acknowledged.
 */
#ifndef TEST_CRASH_IMAGE_H
#define TEST_CRASH_IMAGE_H

#include "crash/content.h"
#include "crash/subject.h"
#include "support/sim_disk.h"
#include "support/virtual_clock.h"

enum {
	IMAGE_STATES_MAX = 257,
	IMAGE_CAPTURES_MAX = 48,
	/* Of a store with a limit the index is small, and opens and is read in a quarter of the time. */
	IMAGE_KEYS_MAX = 1024,
	IMAGE_WHY_SIZE = 1024,
};

#define IMAGE_PATH "/store"

/* Disks as they were when something had changed. */
struct captures {
	size_t count;
	uint64_t seen; /* beyond IMAGE_CAPTURES_MAX a random choice of them is kept */
	struct hx_prng prng;
	struct sim_disk *disks[IMAGE_CAPTURES_MAX];
};

/* For sim_disk_observe(). */
void captures_take(struct sim_disk *disk, enum sim_call call, void *context);
void captures_drop(struct captures *captures);

struct judge {
	const struct crash_subject *subject;
	struct hapax_store_options options;
	struct hx_prng prng;
	struct content *content;
	struct model *scratch;

	/* What is allowed. */
	struct model *states[IMAGE_STATES_MAX];
	size_t state_count;
	bool is_between; /* two states, and each key as in one or the other */
	bool draws_mode; /* stores are opened in the default mode or in unsafe mode, by chance */
	int64_t committed_ms;
	uint64_t token; /* given out and acknowledged */

	uint64_t images;
	uint64_t recoveries_cut;
	char why[IMAGE_WHY_SIZE];
};

bool judge_init(struct judge *judge, const struct crash_subject *subject, uint64_t seed);
void judge_done(struct judge *judge);

/*
 * Crash the disk by fates of the judge's choice, open a store on it and judge. clock
 * is that of the machine before the crash. False: why says what is wrong. The disk is
 * changed; it stays the caller's.
 */
bool judge_crash(struct judge *judge, struct sim_disk *disk, const struct hx_virtual_clock *clock);

/*
 * Open a store on the disk as it is, on this clock, and judge. *ret_state is the
 * state it is in; with is_between 0. Owned: *ret_store, by the caller.
 */
bool judge_open(
	struct judge *judge, struct sim_disk *disk, const struct hx_virtual_clock *clock,
	struct hapax_store **ret_store, size_t *ret_state);

/*
 * The model was judged to be the store's state, but what was in flight may not have
 * happened and still look so: the store knows which token is the last.
 */
void judge_settle_tokens(const struct judge *judge, struct model *model);

/* With draws_mode: the mode in which the next store is opened. */
void judge_draw_mode(struct judge *judge);

/* Fates for the next crash. */
void judge_draw(struct judge *judge, struct sim_fates *fates);

/* The machine restarts a little later. */
void clock_after_reboot(
	struct hx_virtual_clock *target, const struct hx_virtual_clock *source, int64_t later_ms);

#endif
