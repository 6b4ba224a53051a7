/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_fates.h - what a power cut does to what was on its way to the disk.
 *
 * Each crash draws its own rates first (swarm testing: a run in which nothing is
 * torn and a run in which everything is find different bugs), then a fate for each
 * page and sector. Only what was on its way is touched: what a sync has carried over
 * stays, unless blast is set.
 */
#ifndef TEST_SUPPORT_SIM_FATES_H
#define TEST_SUPPORT_SIM_FATES_H

#include <stdbool.h>

#include "base/random.h"

enum sim_fate {
	SIM_FATE_OLD,     /* never arrived */
	SIM_FATE_NEW,     /* arrived */
	SIM_FATE_TORN,    /* its first bytes arrived */
	SIM_FATE_GARBAGE, /* anything */
	SIM_FATE_ZERO,
	SIM_FATE_STALE, /* what another file held once */
};
enum { SIM_FATE_COUNT = 6 };

struct sim_fates {
	unsigned weights[SIM_FATE_COUNT]; /* of a sector; the sum is not 0 */
	unsigned weight_sum;
	unsigned whole_percent;  /* of pages that meet one fate, OLD or NEW, as a whole */
	unsigned new_percent;    /* of those: NEW */
	unsigned blast_percent;  /* of pages in which untouched sectors suffer too */
	unsigned name_percent;   /* of names on their way that arrive */
	bool names_are_in_order; /* as a journal keeps them: all before the last that arrived */
};

/* Everything on its way is lost; everything arrives. */
void sim_fates_lose_all(struct sim_fates *fates);
void sim_fates_keep_all(struct sim_fates *fates);

/* Rates of their own. Never blast: a store whose frames share no page may set it. */
void sim_fates_draw(struct sim_fates *fates, struct hx_prng *prng);

/* Does the page meet one fate as a whole? Then which, in *ret_fate. */
bool sim_fates_whole(const struct sim_fates *fates, struct hx_prng *prng, enum sim_fate *ret_fate);
bool sim_fates_blast(const struct sim_fates *fates, struct hx_prng *prng);
enum sim_fate sim_fates_sector(const struct sim_fates *fates, struct hx_prng *prng);

#endif
