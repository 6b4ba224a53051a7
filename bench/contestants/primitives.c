/* SPDX-License-Identifier: Apache-2.0 */
/*
 * primitives.c - what every operation on a UUID key pays before it touches memory:
 * text to 16 bytes, and the hash. For reference, so that a slower row can be told
 * from a slower machine. Uses internal headers; keys stay in the first cache.
 */
#include <getopt.h>
#include <stdlib.h>

#include <hapax/hapax.h>

#include "base/siphash.h"
#include "base/uuid7.h"

#include "contest.h"
#include "keys.h"

enum { KEYS = 256 };

struct primitives_contest {
	uint64_t operations;
	char texts[KEYS][KEY_TEXT_SIZE];
	unsigned char packed[KEYS][HX_UUID_SIZE];
};

/* Keeps a result alive without storing it. */
static void use(uint64_t value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}

static void time_pack(
	struct primitives_contest *contest, const char *name,
	bool (*pack)(const char text[HX_UUID_TEXT_SIZE], unsigned char out[HX_UUID_SIZE]))
{
	struct contest_time time = {0, 0};
	uint64_t packed = 0;

	contest_start(&time);
	for (uint64_t i = 0; i < contest->operations; i++)
		packed += pack(contest->texts[i % KEYS], contest->packed[i % KEYS]);
	contest_stop(&time);
	if (packed != contest->operations)
		contest_fail("%s refused a key", name);
	contest_print_time(name, &time, contest->operations);
}

/* Chained: the next hash waits for this one, as the lookup that follows it does. */
static void time_hash(const struct primitives_contest *contest, const char *name, bool chained)
{
	static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
	struct contest_time time = {0, 0};
	uint32_t scope = 0;

	contest_start(&time);
	for (uint64_t i = 0; i < contest->operations; i++) {
		uint64_t hash = hx_siphash13_20(key, contest->packed[i % KEYS], scope);

		use(hash);
		if (chained)
			scope = (uint32_t)hash;
	}
	contest_stop(&time);
	contest_print_time(name, &time, contest->operations);
}

static void run_round(uint64_t seed, void *context)
{
	struct primitives_contest *contest = context;

	for (uint64_t i = 0; i < KEYS; i++)
		key_text(seed, i, contest->texts[i]);
	time_pack(contest, "uuid_pack", hx_uuid7_pack);
	time_pack(contest, "uuid_pack_scalar", hx_uuid7_pack_scalar);
	time_hash(contest, "siphash13_20", false);
	time_hash(contest, "siphash13_20_chained", true);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"operations", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	static struct primitives_contest contest = {.operations = 10000000};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'o': contest.operations = contest_parse_count(optarg); break;
		default: exit(64);
		}
	}
	contest_run("hapax", hapax_version(), run_round, &contest);
	return 0;
}
