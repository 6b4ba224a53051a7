/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_key.c - the content key of JSON documents, bytes in, key out, through the
 * public API; and the SHA-256 of the same bytes alone, which is what no content key
 * can do without.
 *
 * --documents FILE has one document in each line; they are taken in turn.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/sha256.h"

#include "contest.h"

enum { DOCUMENTS_MAX = 1024, FILE_SIZE_MAX = 1 << 24, SCRATCH_SIZE = 1 << 20 };

struct content_contest {
	uint64_t operations;
	const char *what; /* lossless, python, sha256 */
	char *file;
	struct hapax_bytes documents[DOCUMENTS_MAX];
	size_t document_count;
	struct hapax_key_strategy *strategy;
	struct hapax_buf *scratch;
};

static void read_documents(struct content_contest *contest, const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t size;
	char *at;

	if (file == NULL)
		contest_fail("%s could not be opened", path);
	contest->file = malloc(FILE_SIZE_MAX);
	if (contest->file == NULL)
		contest_fail("memory ran out");
	size = fread(contest->file, 1, FILE_SIZE_MAX, file);
	(void)fclose(file);
	for (at = contest->file;
	     at < contest->file + size && contest->document_count < DOCUMENTS_MAX;) {
		char *end = memchr(at, '\n', size - (size_t)(at - contest->file));

		if (end == NULL)
			break;
		contest->documents[contest->document_count++] =
			(struct hapax_bytes){at, (size_t)(end - at)};
		at = end + 1;
	}
	if (contest->document_count == 0)
		contest_fail("%s has no documents", path);
}

static void make_strategy(struct content_contest *contest)
{
	struct hapax_key_options options = HAPAX_KEY_OPTIONS_INIT;
	struct hapax_error err;

	if (strcmp(contest->what, "python") == 0)
		options.canonical = HAPAX_CANONICAL_PYTHON;
	options.flags = HAPAX_KEY_NO_FINGERPRINT;
	contest_expect_ok(
		hapax_key_strategy_new("content", &options, &contest->strategy, &err), &err,
		"strategy");
	contest->scratch = hapax_buf_new(SCRATCH_SIZE);
	if (contest->scratch == NULL)
		contest_fail("memory ran out");
}

static void make_key(struct content_contest *contest, size_t index, struct hapax_key *key)
{
	struct hapax_event event = HAPAX_EVENT_INIT;
	struct hapax_error err;

	event.data = contest->documents[index];
	contest_expect_ok(
		hapax_key_make(contest->strategy, &event, contest->scratch, key, &err), &err,
		"key");
}

/* No two documents have one key, and each has the same one again. */
static void check_keys(struct content_contest *contest)
{
	static char keys[DOCUMENTS_MAX][HAPAX_KEY_SIZE_MAX + 1];
	struct hapax_key key = HAPAX_KEY_INIT;

	for (size_t i = 0; i < contest->document_count; i++) {
		make_key(contest, i, &key);
		memcpy(keys[i], key.key, sizeof(keys[i]));
		make_key(contest, i, &key);
		if (strlen(key.key) != 64 || strcmp(key.key, keys[i]) != 0)
			contest_fail("key '%s' is not one", key.key);
		for (size_t j = 0; j < i; j++) {
			if (strcmp(keys[i], keys[j]) == 0)
				contest_fail("two documents have one key");
		}
	}
}

static void run_round(uint64_t seed, void *context)
{
	struct content_contest *contest = context;
	struct contest_time time = {0, 0};
	size_t index = (size_t)seed % contest->document_count;

	contest_start(&time);
	for (uint64_t i = 0; i < contest->operations; i++) {
		if (contest->strategy != NULL) {
			struct hapax_key key = HAPAX_KEY_INIT;

			make_key(contest, index, &key);
			__asm__ volatile("" : : "r"(&key) : "memory");
		} else {
			unsigned char digest[HX_SHA256_SIZE];

			hx_sha256(
				contest->documents[index].data, contest->documents[index].size,
				digest);
			__asm__ volatile("" : : "r"(digest) : "memory");
		}
		index = index + 1 == contest->document_count ? 0 : index + 1;
	}
	contest_stop(&time);
	contest_print_time("key", &time, contest->operations);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"operations", required_argument, NULL, 'o'},
		{"documents", required_argument, NULL, 'd'},
		{"what", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	static struct content_contest contest = {.operations = 1000000, .what = "lossless"};
	const char *path = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'o': contest.operations = contest_parse_count(optarg); break;
		case 'd': path = optarg; break;
		case 'w': contest.what = optarg; break;
		default: exit(64);
		}
	}
	if (path == NULL)
		contest_fail("--documents was missing");
	read_documents(&contest, path);
	if (strcmp(contest.what, "sha256") != 0) {
		make_strategy(&contest);
		check_keys(&contest);
	}
	contest_run("hapax", hapax_version(), run_round, &contest);
	hapax_buf_free(contest.scratch);
	hapax_key_strategy_free(contest.strategy);
	free(contest.file);
	return 0;
}
