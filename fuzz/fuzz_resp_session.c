/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the commands of the Redis door (src/resp) on a store in memory, from the bytes
 * of a client to the bytes of its replies.
 *
 * The first byte chooses where the rest is cut in two: in pieces and in one the replies are
 * the same, but for SCAN and KEYS, whose order is another one in every store, and INFO, whose
 * memory is. Replies are whole messages, whatever was sent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "support/virtual_clock.h"
#include "resp/resp_job.h"
#include "resp/resp_session.h"
#include "wire/resp/resp_reply.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum {
	OUT_SIZE_MAX = 1 << 26,
	VALUE_SIZE_MAX = 4096,
	KEYS_MAX = 1000,
	INPUT_SIZE_MAX = 768, /* longer inputs only repeat commands */
	INPUTS_PER_STORE = 128,
	COMMAND_SIZE_MAX = 48, /* of an input with COMMAND */
};

static void must(int condition)
{
	if (!condition)
		abort();
}

/* The leak checker does not see the pointers in the pages of a store that stays open. */
const char *__asan_default_options(void); /* NOLINT(bugprone-reserved-identifier): its name */
const char *__asan_default_options(void)  /* NOLINT(bugprone-reserved-identifier): its name */
{
	return "detect_leaks=0";
}

/*
 * A door with one client, and time that stands still. A store serves many inputs, each in a tenant
 * of its own: opening one takes longer than most inputs.
 */
struct world {
	struct hx_virtual_clock clock;
	struct hapax_store *store;
	struct hx_resp_service service;
	struct hx_resp_session session;
	struct hx_resp_batch batches[2];
	struct hapax_buf input;
	struct hapax_buf out;
	unsigned inputs; /* that this store has seen */
	char tenant[16];
};

static void open_world(struct world *world)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hx_resp_service_options service = {
		.flags = HX_RESP_ALLOW_FLUSH | HX_RESP_TEST_COMMANDS,
		.value_size_max = VALUE_SIZE_MAX};

	hx_virtual_clock_init(&world->clock, INT64_C(1700000000000));
	options.clock = hx_virtual_clock_clock(&world->clock);
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.keys_max = KEYS_MAX;
	must(hapax_store_open("memory:", &options, &world->store, NULL) == HAPAX_OK);
	service.store = world->store;
	service.clock = options.clock;
	hx_resp_service_init(&world->service, &service);
	hx_resp_batch_init(&world->batches[0]);
	hx_resp_batch_init(&world->batches[1]);
	hx_buf_init(&world->input, OUT_SIZE_MAX);
	hx_buf_init(&world->out, OUT_SIZE_MAX);
}

static void close_world(struct world *world)
{
	hx_resp_service_done(&world->service);
	hx_resp_batch_done(&world->batches[0]);
	hx_resp_batch_done(&world->batches[1]);
	hx_buf_done(&world->input);
	hx_buf_done(&world->out);
	hapax_store_close(world->store);
	memset(world, 0, sizeof(*world));
}

static void begin(struct world *world)
{
	if (world->store == NULL)
		open_world(world);
	hx_resp_session_init(&world->session, &world->service);
	(void)snprintf(world->tenant, sizeof(world->tenant), "t%u", world->inputs++);
	world->session.tenant = hapax_bytes_from_text(world->tenant);
}

/* A client that left the tenant (AUTH, RESET) may have left something for the next input. */
static bool is_spent(const struct world *world)
{
	return world->inputs == INPUTS_PER_STORE || world->session.tenant.size == 0 ||
		world->session.is_abrupt;
}

/* Both stores have seen the same inputs: CLIENT ID counts their clients. */
static void end(struct world *whole, struct world *parts)
{
	struct world *worlds[] = {whole, parts};
	bool is_last = is_spent(whole) || is_spent(parts);

	for (size_t i = 0; i < HX_COUNT(worlds); i++) {
		hx_resp_session_done(&worlds[i]->session);
		hx_buf_clear(&worlds[i]->input);
		hx_buf_clear(&worlds[i]->out);
		if (is_last)
			close_world(worlds[i]);
	}
}

static void finish(struct world *world)
{
	size_t at = 0;
	bool is_done = false;

	while (hx_resp_session_has_job(&world->session) && hx_resp_job_run(world->session.job))
		;
	while (!is_done) {
		struct hx_resp_batch *batch = &world->batches[at];
		struct hx_resp_batch *next = &world->batches[1 - at];

		hx_resp_batch_seal(batch);
		if (batch->count > 0)
			(void)hapax_store_run(world->store, batch->ops, batch->count, NULL);
		is_done = hx_resp_session_finish(&world->session, batch, next, &world->out);
		hx_resp_batch_clear(batch);
		at = 1 - at;
	}
	hx_resp_batch_clear(&world->batches[0]);
	hx_resp_batch_clear(&world->batches[1]);
}

/* As the door does it: what is not understood yet stays. */
static void feed(struct world *world, struct hapax_bytes piece)
{
	size_t used = 0;

	must(hx_buf_append(&world->input, piece.data, piece.size) == HAPAX_OK);
	while (!world->session.is_closing) {
		size_t step = hx_resp_session_plan(
			&world->session, &world->batches[0],
			used == world->input.size
				? hx_bytes(NULL, 0)
				: hx_bytes(world->input.data + used, world->input.size - used));

		used += step;
		must(used <= world->input.size);
		if (!hx_resp_session_is_busy(&world->session) && step == 0)
			break;
		finish(world);
	}
	memmove(world->input.data, world->input.data + used, world->input.size - used);
	world->input.size -= used;
}

static bool has_whole_replies(const struct world *world)
{
	size_t at = 0;

	while (at < world->out.size) {
		struct hx_resp_scan scan = {0};
		struct hapax_bytes rest = hx_bytes(world->out.data + at, world->out.size - at);

		if (hx_resp_scan(&scan, rest, OUT_SIZE_MAX) != HX_RESP_DONE)
			return false;
		at += scan.size;
	}
	return true;
}

static bool has_word(const unsigned char *data, size_t size, const char *word)
{
	for (size_t i = 0; i + strlen(word) <= size; i++) {
		if ((data[i] | 0x20) == word[0] &&
		    strncasecmp((const char *)data + i, word, strlen(word)) == 0)
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct world whole, parts;
	size_t split;

	if (size < 2)
		return 0;
	if (size > INPUT_SIZE_MAX)
		size = INPUT_SIZE_MAX;
	/* It lists all commands, in 20 KiB: most of the time would go there. */
	if (size > COMMAND_SIZE_MAX && has_word(data, size, "command"))
		return 0;
	split = data[0] * (size - 1) / 256;
	begin(&whole);
	begin(&parts);
	feed(&whole, hx_bytes(data + 1, size - 1));
	if (split > 0)
		feed(&parts, hx_bytes(data + 1, split));
	feed(&parts, hx_bytes(data + 1 + split, size - 1 - split));
	if (!whole.session.is_abrupt && !parts.session.is_abrupt) {
		/* A client that switches replies off inside of EXEC gets what it asked for. */
		must((has_whole_replies(&whole) && has_whole_replies(&parts)) ||
		     has_word(data, size, "reply"));
		must(hx_bytes_equal(hapax_buf_bytes(&whole.out), hapax_buf_bytes(&parts.out)) ||
		     has_word(data, size, "scan") || has_word(data, size, "keys") ||
		     has_word(data, size, "info"));
	}
	end(&whole, &parts);
	return 0;
}
