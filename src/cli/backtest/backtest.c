/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backtest.c - count what a strategy would have done.
 */
#include "cli/backtest/backtest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sha256.h"

void hx_backtest_init(struct hx_backtest *backtest, size_t memory_max)
{
	size_t both = sizeof(struct hx_backtest_key) + sizeof(struct hx_backtest_payload);
	size_t for_keys = memory_max / both * sizeof(struct hx_backtest_key);

	hx_digest_table_init(&backtest->keys, sizeof(struct hx_backtest_key), for_keys);
	hx_digest_table_init(
		&backtest->payloads, sizeof(struct hx_backtest_payload), memory_max - for_keys);
}

void hx_backtest_done(struct hx_backtest *backtest)
{
	hapax_key_strategy_free(backtest->strategy);
	backtest->strategy = NULL;
	hx_digest_table_done(&backtest->keys);
	hx_digest_table_done(&backtest->payloads);
}

static void count_reason(struct hx_backtest *backtest, const char *text)
{
	size_t i = 0;

	while (i < backtest->reason_count && strcmp(backtest->reasons[i].text, text) != 0)
		i++;
	if (i == HX_BACKTEST_REASONS_MAX) {
		backtest->reasons_other++;
		return;
	}
	if (i == backtest->reason_count) {
		(void)snprintf(
			backtest->reasons[i].text, sizeof(backtest->reasons[i].text), "%s", text);
		backtest->reason_count++;
	}
	backtest->reasons[i].count++;
}

/*
 * Hash bytes within the scope of a key. Tenant and group hold no control characters, so a NUL
 * separates them.
 */
static struct hx_digest scoped_digest(const struct hapax_key *key, const void *data, size_t size)
{
	unsigned char bytes[2 * (HAPAX_SCOPE_SIZE_MAX + 1) + HAPAX_KEY_SIZE_MAX];
	unsigned char sha256[HX_SHA256_SIZE];
	size_t at = key->tenant_size + 1;

	assert(size <= HAPAX_KEY_SIZE_MAX);
	memcpy(bytes, key->tenant, at);
	memcpy(bytes + at, key->group, key->group_size + 1);
	at += key->group_size + 1;
	memcpy(bytes + at, data, size);
	hx_sha256(bytes, at + size, sha256);
	return hx_digest_of(sha256);
}

static void note_example(
	struct hx_backtest *backtest, const struct hapax_key *key, uint64_t line,
	uint64_t first_line)
{
	struct hx_backtest_example *example = &backtest->examples[backtest->example_count];

	if (backtest->example_count == HX_BACKTEST_EXAMPLES_MAX)
		return;
	backtest->example_count++;
	example->line = line;
	example->first_line = first_line;
	memcpy(example->key, key->key, sizeof(example->key));
}

/* Count an event that has a key. */
static enum hapax_status add_key(
	struct hx_backtest *backtest, const struct hapax_key *key, uint64_t line,
	enum hx_backtest_decision *ret, struct hapax_error *err)
{
	struct hx_digest digest = scoped_digest(key, key->key, key->key_size);
	struct hx_digest payload = scoped_digest(key, key->fingerprint, sizeof(key->fingerprint));
	bool is_new_key = false;
	bool is_new_payload = false;
	struct hx_backtest_key *seen = hx_digest_table_at(&backtest->keys, &digest, &is_new_key);

	if (seen == NULL ||
	    hx_digest_table_at(&backtest->payloads, &payload, &is_new_payload) == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0,
			"not enough memory for more than %zu keys; raise --memory",
			backtest->keys.count);
	if (is_new_key) {
		seen->line = line;
		seen->payload = payload.words[0];
		backtest->escapes += !is_new_payload;
		*ret = HX_BACKTEST_RUN;
		return HAPAX_OK;
	}
	backtest->drops++;
	*ret = HX_BACKTEST_DROP;
	if (seen->payload != payload.words[0]) {
		backtest->drops_other++;
		note_example(backtest, key, line, seen->line);
	}
	return HAPAX_OK;
}

enum hapax_status hx_backtest_add(
	struct hx_backtest *backtest, const struct hapax_event *event, uint64_t line,
	struct hapax_buf *scratch, enum hx_backtest_decision *ret, struct hapax_error *err)
{
	struct hapax_key key = HAPAX_KEY_INIT;
	enum hapax_status status = hapax_key_make(backtest->strategy, event, scratch, &key, err);

	*ret = HX_BACKTEST_NO_KEY;
	if (status != HAPAX_OK && status != HAPAX_ERR_INVALID && status != HAPAX_ERR_LIMIT)
		return status;
	backtest->events++;
	if (status != HAPAX_OK) {
		backtest->missing++;
		count_reason(backtest, err->message);
		return HAPAX_OK;
	}
	if (key.kind != HAPAX_KEY_MADE)
		count_reason(backtest, key.missing);
	if (key.kind == HAPAX_KEY_NONE) {
		backtest->unprotected++;
		return HAPAX_OK;
	}
	backtest->content_keys += key.kind == HAPAX_KEY_CONTENT;
	return add_key(backtest, &key, line, ret, err);
}

enum hx_backtest_verdict hx_backtest_judge(
	const struct hx_backtest *backtest, const struct hx_backtest_run *run)
{
	if (backtest->events == 0)
		return HX_BACKTEST_EMPTY;
	if (backtest->drops_other > 0)
		return HX_BACKTEST_UNSAFE;
	if (backtest->missing > 0 || backtest->unprotected > 0 || run->bad_lines > 0 || run->is_cut)
		return HX_BACKTEST_INCOMPLETE;
	if (backtest->escapes > backtest->drops)
		return HX_BACKTEST_LEAKY;
	return backtest->drops == 0 ? HX_BACKTEST_UNPROVEN : HX_BACKTEST_FIT;
}

const char *hx_backtest_verdict_name(enum hx_backtest_verdict verdict)
{
	switch (verdict) {
	case HX_BACKTEST_EMPTY: return "empty";
	case HX_BACKTEST_UNSAFE: return "unsafe";
	case HX_BACKTEST_INCOMPLETE: return "incomplete";
	case HX_BACKTEST_LEAKY: return "leaky";
	case HX_BACKTEST_UNPROVEN: return "unproven";
	case HX_BACKTEST_FIT: return "fit";
	}
	return "unknown";
}
