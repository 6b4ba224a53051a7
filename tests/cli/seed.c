/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.c - put into a store what no command can put there yet: claims, failures,
 * parked keys, results, keys of any bytes, many keys at once.
 *
 *	seed URL claim KEY LEASE_MS OWNER     in progress
 *	seed URL release KEY ERROR            failed
 *	seed URL park KEY ERROR               parked
 *	seed URL http KEY STATUS BODY         done, with an HTTP result
 *	seed URL exec KEY STATUS BODY         done, with an exit code and output
 *	seed URL large KEY BYTES              done, with a body of that size
 *	seed URL shelved PREFIX COUNT BYTES   done, PREFIX000000 ..., each with a body of its own of that
 *	                                      size, which on file: has left memory for a class segment
 *	seed URL journal KEY TOKEN BODY       done, as a journal keeps it
 *	seed URL many PREFIX COUNT TTL_MS     marks PREFIX000000 ...
 *
 * KEY, BODY and PREFIX are in hexadecimal digits. Prints the token that was given.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

enum { TEXT_MAX = 4096, BATCH = 1000, SMALL_SEGMENT = 64 * 1024 };

static void fail(const char *message)
{
	(void)fprintf(stderr, "seed: %s\n", message);
	exit(1); /* NOLINT(concurrency-mt-unsafe) */
}

static struct hapax_bytes from_hex(const char *hex, unsigned char *out)
{
	size_t size = strlen(hex) / 2;

	if (size > TEXT_MAX)
		fail("a text is too long");
	for (size_t i = 0; i < size; i++) {
		char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

		out[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	return (struct hapax_bytes){out, size};
}

static void run(struct hapax_store *store, struct hapax_op *ops, size_t count)
{
	struct hapax_error err;

	if (hapax_store_run(store, ops, count, &err) != HAPAX_OK)
		fail(err.message);
}

static struct hapax_op claim(
	struct hapax_store *store, struct hapax_bytes key, int64_t lease_ms, const char *owner)
{
	static const unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE] = {1};
	struct hapax_op op = {
		.type = HAPAX_OP_CLAIM,
		.key = key,
		.attempt_id = attempt_id,
		.lease_ms = lease_ms,
		.owner = hapax_bytes_from_text(owner),
	};

	run(store, &op, 1);
	if (op.outcome != HAPAX_OUTCOME_ACQUIRED)
		fail("the key was not free");
	return op;
}

/* The token of the claim that it ends. */
static uint64_t finish(
	struct hapax_store *store, enum hapax_op_type type, struct hapax_bytes key,
	const struct hapax_result *result, const char *error)
{
	struct hapax_op op = {
		.type = type,
		.key = key,
		.token = claim(store, key, 0, "seed").token,
		.result = result,
		.error = hapax_bytes_from_text(error),
	};

	run(store, &op, 1);
	return op.token;
}

static uint64_t finish_large(struct hapax_store *store, struct hapax_bytes key, size_t size)
{
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	char *body = malloc(size);
	uint64_t token;

	if (body == NULL)
		fail("no memory");
	memset(body, 'x', size);
	result.body = (struct hapax_bytes){body, size};
	token = finish(store, HAPAX_OP_COMPLETE, key, &result, NULL);
	free(body);
	return token;
}

static void load_done(
	struct hapax_store *store, struct hapax_bytes key, uint64_t token, struct hapax_bytes body)
{
	struct hapax_record record = {
		.state = HAPAX_STATE_DONE,
		.attempt = 1,
		.token = token,
		.expires_ms = HAPAX_TIME_NEVER,
		.ttl_ms = HAPAX_TTL_FOREVER,
		.result = {.kind = HAPAX_RESULT_BYTES, .body = body},
	};
	struct hapax_op op = {.type = HAPAX_OP_LOAD, .key = key, .load = &record};

	run(store, &op, 1);
}

static void mark_many(struct hapax_store *store, const char *prefix, uint64_t count, int64_t ttl_ms)
{
	static struct hapax_op ops[BATCH];
	static char keys[BATCH][64];

	for (uint64_t done = 0; done < count;) {
		size_t some = count - done < BATCH ? (size_t)(count - done) : BATCH;

		for (size_t i = 0; i < some; i++) {
			(void)snprintf(keys[i], sizeof(keys[i]), "%s%06" PRIu64, prefix, done + i);
			ops[i] = (struct hapax_op){
				.type = HAPAX_OP_CHECK,
				.key = hapax_bytes_from_text(keys[i]),
				.ttl_ms = ttl_ms,
			};
		}
		run(store, ops, some);
		done += some;
	}
}

static void finish_shelved(
	struct hapax_store *store, const char *prefix, uint64_t count, size_t size)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_result result = {.kind = HAPAX_RESULT_BYTES};
	unsigned char *body = malloc(size);
	struct hapax_error err;

	if (body == NULL)
		fail("no memory");
	result.body = (struct hapax_bytes){body, size};
	for (uint64_t number = 0; number < count; number++) {
		char key[64];

		for (size_t i = 0; i < size; i++)
			body[i] = (unsigned char)(i * 31 + number * 7 + i / 251);
		(void)snprintf(key, sizeof(key), "%s%06" PRIu64, prefix, number);
		(void)finish(store, HAPAX_OP_COMPLETE, hapax_bytes_from_text(key), &result, NULL);
	}
	free(body);
	/* So that the segments of the log that hold them are old: then a pass copies them. */
	mark_many(store, "filler-", 2 * (uint64_t)BATCH, 0);
	while (!sweep.done) {
		if (hapax_store_sweep(store, &sweep, &err) != HAPAX_OK)
			fail(err.message);
	}
}

static struct hapax_result result_of(
	enum hapax_result_kind kind, const char *status, struct hapax_bytes body)
{
	return (struct hapax_result){
		.kind = kind,
		.status = (int32_t)strtol(status, NULL, 10),
		.headers = hapax_bytes_from_text(
			kind == HAPAX_RESULT_HTTP ? "Content-Type: text/plain\r\n" : ""),
		.body = body,
	};
}

int main(int argc, char **argv)
{
	unsigned char key_bytes[TEXT_MAX + 1] = {0}, body_bytes[TEXT_MAX + 1] = {0};
	const char *command = argc > 4 ? argv[2] : "";
	const char *last = argc > 5 ? argv[5] : "";
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store;
	uint64_t token = 0;
	struct hapax_result result;
	struct hapax_bytes key;
	struct hapax_error err;

	if (argc < 5)
		fail("usage: see the top of seed.c");
	if (strcmp(command, "shelved") == 0) {
		options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
		options.segment_bytes = SMALL_SEGMENT;
	}
	if (hapax_store_open(argv[1], &options, &store, &err) != HAPAX_OK)
		fail(err.message);
	key = from_hex(argv[3], key_bytes);
	if (strcmp(command, "claim") == 0) {
		token = claim(store, key, strtoll(argv[4], NULL, 10), last).token;
	} else if (strcmp(command, "release") == 0) {
		token = finish(store, HAPAX_OP_RELEASE, key, NULL, argv[4]);
	} else if (strcmp(command, "park") == 0) {
		token = finish(store, HAPAX_OP_PARK, key, NULL, argv[4]);
	} else if (strcmp(command, "http") == 0) {
		result = result_of(HAPAX_RESULT_HTTP, argv[4], from_hex(last, body_bytes));
		token = finish(store, HAPAX_OP_COMPLETE, key, &result, NULL);
	} else if (strcmp(command, "exec") == 0) {
		result = result_of(HAPAX_RESULT_EXEC, argv[4], from_hex(last, body_bytes));
		token = finish(store, HAPAX_OP_COMPLETE, key, &result, NULL);
	} else if (strcmp(command, "large") == 0) {
		token = finish_large(store, key, strtoull(argv[4], NULL, 10));
	} else if (strcmp(command, "shelved") == 0) {
		finish_shelved(
			store, (const char *)key_bytes, strtoull(argv[4], NULL, 10),
			strtoull(last, NULL, 10));
	} else if (strcmp(command, "journal") == 0) {
		load_done(store, key, strtoull(argv[4], NULL, 10), from_hex(last, body_bytes));
	} else if (strcmp(command, "many") == 0) {
		mark_many(
			store, (const char *)key_bytes, strtoull(argv[4], NULL, 10),
			strtoll(last, NULL, 10));
	} else {
		fail("unknown command");
	}
	hapax_store_close(store);
	if (token != 0)
		(void)printf("%" PRIu64 "\n", token);
	return 0;
}
