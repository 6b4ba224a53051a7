/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random_record.h"

#include <stdio.h>
#include <string.h>

#include <hapax/store.h>

#include "base/bytes.h"

static bool one_in(struct hx_prng *prng, uint64_t n)
{
	return hx_prng_below(prng, n) == 0;
}

static void fill(struct hx_prng *prng, unsigned char *data, size_t size)
{
	/* Runs of one byte, text, and noise. */
	uint64_t kind = hx_prng_below(prng, 3);
	unsigned char byte = (unsigned char)hx_prng_next(prng);

	for (size_t i = 0; i < size; i++) {
		if (kind == 0)
			data[i] = byte;
		else if (kind == 1)
			data[i] = (unsigned char)('a' + hx_prng_below(prng, 26));
		else
			data[i] = (unsigned char)hx_prng_next(prng);
	}
}

/* A size from min to max, often an end of that or next to a power of two. */
static size_t choose_size(struct hx_prng *prng, size_t min, size_t max)
{
	size_t size = min;

	switch (hx_prng_below(prng, 4)) {
	case 0: size = min + hx_prng_below(prng, 3); break;
	case 1: size = max - hx_prng_below(prng, 2); break;
	case 2: size = ((size_t)1 << hx_prng_below(prng, 14)) - 1 + hx_prng_below(prng, 3); break;
	default: size = min + hx_prng_below(prng, max - min + 1); break;
	}
	if (size < min)
		return min;
	return size > max ? max : size;
}

static struct hapax_bytes choose_bytes(
	struct hx_prng *prng, unsigned char *data, size_t min, size_t max)
{
	size_t size = choose_size(prng, min, max);

	fill(prng, data, size);
	return hx_bytes(data, size);
}

static size_t hex_text(struct hx_prng *prng, unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)"0123456789abcdef"[hx_prng_below(prng, 16)];
	return size;
}

static struct hapax_bytes choose_key(struct hx_prng *prng, unsigned char *data)
{
	static const size_t dashes[] = {8, 13, 18, 23};
	size_t size;

	switch (hx_prng_below(prng, 4)) {
	case 0:
		size = hex_text(prng, data, 36);
		for (size_t i = 0; i < 4; i++)
			data[dashes[i]] = '-';
		break;
	case 1: size = hex_text(prng, data, 1 + hx_prng_below(prng, 70)); break;
	case 2:
		size = hex_text(prng, data, (size_t[]){16, 32, 40, 64}[hx_prng_below(prng, 4)]);
		break;
	default: return choose_bytes(prng, data, 1, HX_KEY_SIZE_MAX);
	}
	/* Nearly, but not quite: one byte is another one. */
	if (one_in(prng, 4))
		data[hx_prng_below(prng, size)] = (unsigned char)"ABG-\0"[hx_prng_below(prng, 5)];
	return hx_bytes(data, size);
}

static void choose_result(struct random_record *random, struct hx_prng *prng)
{
	struct hapax_result *result = &random->record.result;

	if (one_in(prng, 3))
		return;
	result->kind = (enum hapax_result_kind)hx_prng_below(prng, 4);
	result->result_class = (enum hapax_result_class)hx_prng_below(prng, 2);
	result->status = one_in(prng, 2) ? (int32_t)hx_prng_below(prng, 600)
					 : (int32_t)(uint32_t)hx_prng_next(prng);
	if (one_in(prng, 2))
		result->headers = choose_bytes(prng, random->headers, 0, sizeof(random->headers));
	if (one_in(prng, 4))
		/* Below 2^63: no body is larger, and JSON and Redis count so far. */
		result->omitted_bytes = hx_prng_next(prng) >> (1 + hx_prng_below(prng, 60));
	else
		result->body = choose_bytes(prng, random->body, 0, sizeof(random->body));
}

static int64_t choose_ttl(struct hx_prng *prng)
{
	switch (hx_prng_below(prng, 4)) {
	case 0: return HAPAX_TTL_FOREVER;
	case 1: return HX_TTL_MS_DEFAULT;
	case 2: return 1 + (int64_t)hx_prng_below(prng, 100000);
	default: return 1 + (int64_t)hx_prng_below(prng, HX_TTL_MS_MAX);
	}
}

static void choose_times(struct hapax_record *record, struct hx_prng *prng, int64_t now_ms)
{
	/* Old ones, ones from a moment ago, and one from before 1970. */
	record->changed_ms =
		now_ms - (int64_t)(hx_prng_next(prng) >> (20 + hx_prng_below(prng, 44)));
	record->first_seen_ms = record->changed_ms -
		(one_in(prng, 2) ? 0
				 : (int64_t)(hx_prng_next(prng) >> (20 + hx_prng_below(prng, 44))));
	record->ttl_ms = choose_ttl(prng);
	record->expires_ms = HAPAX_TIME_NEVER;
	if (record->state == HAPAX_STATE_CLAIMED)
		record->lease_ends_ms =
			record->changed_ms + 1 + (int64_t)hx_prng_below(prng, HX_LEASE_MS_MAX * 5);
	if ((record->state == HAPAX_STATE_DONE || record->state == HAPAX_STATE_FAILED) &&
	    record->ttl_ms != HAPAX_TTL_FOREVER)
		record->expires_ms = record->changed_ms + record->ttl_ms;
	/* expire and KEEP_TTL leave an expiry that ttl does not explain. */
	if (record->state == HAPAX_STATE_DONE && record->origin == HAPAX_ORIGIN_SET &&
	    one_in(prng, 2))
		record->expires_ms =
			record->changed_ms + 1 + (int64_t)hx_prng_below(prng, 1u << 30);
}

/* Some have none, some only an id, some all. */
static void choose_cause(struct random_record *random, struct hx_prng *prng)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz/.:-0123456789";
	char text[3 * HAPAX_CAUSE_PART_SIZE_MAX];
	struct hapax_cause cause = {.time_ms = 0};
	size_t sizes[3];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = letters[hx_prng_below(prng, sizeof(letters) - 1)];
	for (size_t i = 0; i < 3; i++)
		sizes[i] = one_in(prng, 2) ? hx_prng_below(prng, HAPAX_CAUSE_PART_SIZE_MAX + 1) : 0;
	cause.id = hx_bytes(text, sizes[0]);
	cause.type = hx_bytes(text + HAPAX_CAUSE_PART_SIZE_MAX, sizes[1]);
	cause.source = hx_bytes(text + 2 * HAPAX_CAUSE_PART_SIZE_MAX, sizes[2]);
	if (one_in(prng, 2))
		cause.time_ms =
			(int64_t)hx_prng_below(prng, UINT64_C(1) << 47) - (INT64_C(1) << 45);
	random->record.cause = hapax_cause_write(&cause, random->cause);
}

void random_record_make(struct random_record *random, struct hx_prng *prng, int64_t now_ms)
{
	struct hapax_record *record = &random->record;

	memset(random, 0, sizeof(*random));
	record->state = (enum hapax_state)(1 + hx_prng_below(prng, 4));
	if (record->state == HAPAX_STATE_DONE)
		record->origin = (enum hapax_origin)hx_prng_below(prng, 3);
	record->on_lapse = (enum hapax_on_lapse)hx_prng_below(prng, 2);
	record->attempt = one_in(prng, 2) ? 1 : 1 + (uint32_t)(hx_prng_next(prng) >> 33);
	record->token = 1 + hx_prng_below(prng, HX_TOKEN_MAX);
	choose_times(record, prng, now_ms);
	if (one_in(prng, 2)) {
		record->fingerprint_size = HAPAX_FINGERPRINT_SIZE;
		fill(prng, record->fingerprint, HAPAX_FINGERPRINT_SIZE);
	}
	record->tenant = choose_bytes(prng, random->tenant, 1, sizeof(random->tenant));
	record->group = choose_bytes(prng, random->group, 1, sizeof(random->group));
	record->key = choose_key(prng, random->key);
	if (record->origin == HAPAX_ORIGIN_CLAIM)
		choose_cause(random, prng);
	if (record->state == HAPAX_STATE_DONE) {
		choose_result(random, prng);
		return;
	}
	if (record->state != HAPAX_STATE_FAILED)
		fill(prng, record->attempt_id, sizeof(record->attempt_id));
	record->owner = choose_bytes(prng, random->owner, 0, sizeof(random->owner));
	record->error = choose_bytes(prng, random->error, 0, sizeof(random->error));
}

const char *random_record_difference(
	const struct hapax_record *a, const struct hapax_record *b, size_t fingerprint_size)
{
	if (a->state != b->state || a->origin != b->origin || a->on_lapse != b->on_lapse)
		return "state, origin or on_lapse";
	if (a->attempt != b->attempt || a->token != b->token)
		return "attempt or token";
	if (a->first_seen_ms != b->first_seen_ms)
		return "first_seen_ms";
	if (a->changed_ms != b->changed_ms)
		return "changed_ms";
	if (a->lease_ends_ms != b->lease_ends_ms)
		return "lease_ends_ms";
	if (a->expires_ms != b->expires_ms)
		return "expires_ms";
	if (a->ttl_ms != b->ttl_ms)
		return "ttl_ms";
	if (!a->fingerprint_size != !b->fingerprint_size ||
	    memcmp(a->fingerprint, b->fingerprint, fingerprint_size) != 0)
		return "fingerprint";
	if (memcmp(a->attempt_id, b->attempt_id, sizeof(a->attempt_id)) != 0)
		return "attempt_id";
	if (!hx_bytes_equal(a->tenant, b->tenant) || !hx_bytes_equal(a->group, b->group))
		return "scope";
	if (!hx_bytes_equal(a->key, b->key))
		return "key";
	if (!hx_bytes_equal(a->owner, b->owner) || !hx_bytes_equal(a->error, b->error))
		return "owner or error";
	if (!hx_bytes_equal(a->cause, b->cause))
		return "cause";
	if (a->result.kind != b->result.kind || a->result.result_class != b->result.result_class ||
	    a->result.status != b->result.status ||
	    a->result.omitted_bytes != b->result.omitted_bytes)
		return "result";
	if (!hx_bytes_equal(a->result.headers, b->result.headers) ||
	    !hx_bytes_equal(a->result.body, b->result.body))
		return "result's bytes";
	return NULL;
}
