/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_fates.h"

#include <assert.h>
#include <string.h>

static void one_fate(struct sim_fates *fates, enum sim_fate fate)
{
	memset(fates, 0, sizeof(*fates));
	fates->weights[fate] = fates->weight_sum = 1;
	fates->whole_percent = 100;
}

void sim_fates_lose_all(struct sim_fates *fates)
{
	one_fate(fates, SIM_FATE_OLD);
}

void sim_fates_keep_all(struct sim_fates *fates)
{
	one_fate(fates, SIM_FATE_NEW);
	fates->new_percent = 100;
	fates->name_percent = 100;
}

void sim_fates_draw(struct sim_fates *fates, struct hx_prng *prng)
{
	static const unsigned percents[] = {0, 10, 50, 90, 100};
	enum { PERCENTS = sizeof(percents) / sizeof(percents[0]) };

	memset(fates, 0, sizeof(*fates));
	/* Most crashes lose and keep; a half also tear, fill or mix up. */
	fates->weights[SIM_FATE_OLD] = 1 + (unsigned)hx_prng_below(prng, 4);
	fates->weights[SIM_FATE_NEW] = 1 + (unsigned)hx_prng_below(prng, 4);
	if (hx_prng_below(prng, 2))
		for (unsigned i = SIM_FATE_TORN; i < SIM_FATE_COUNT; i++)
			fates->weights[i] = (unsigned)hx_prng_below(prng, 3);
	for (unsigned i = 0; i < SIM_FATE_COUNT; i++)
		fates->weight_sum += fates->weights[i];
	fates->whole_percent = percents[hx_prng_below(prng, PERCENTS)];
	fates->new_percent = percents[hx_prng_below(prng, PERCENTS)];
	fates->name_percent = percents[hx_prng_below(prng, PERCENTS)];
	fates->names_are_in_order = hx_prng_below(prng, 2);
}

bool sim_fates_whole(const struct sim_fates *fates, struct hx_prng *prng, enum sim_fate *ret_fate)
{
	uint64_t draw = hx_prng_next(prng);

	if ((draw & 0xffff) % 100 >= fates->whole_percent)
		return false;
	*ret_fate = (draw >> 16 & 0xffff) % 100 < fates->new_percent ? SIM_FATE_NEW : SIM_FATE_OLD;
	return true;
}

bool sim_fates_blast(const struct sim_fates *fates, struct hx_prng *prng)
{
	return fates->blast_percent && hx_prng_below(prng, 100) < fates->blast_percent;
}

enum sim_fate sim_fates_sector(const struct sim_fates *fates, struct hx_prng *prng)
{
	unsigned at = (unsigned)hx_prng_below(prng, fates->weight_sum);

	for (unsigned i = 0; i < SIM_FATE_COUNT; i++) {
		if (at < fates->weights[i])
			return (enum sim_fate)i;
		at -= fates->weights[i];
	}
	assert(false);
	return SIM_FATE_OLD;
}
