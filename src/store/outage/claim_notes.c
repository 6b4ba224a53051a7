/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outage/claim_notes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/thread.h"

/* A power of two: enough for all concurrent runs, in less than 2 MiB. */
enum { PAIRS = 8192 };

struct note {
	uint64_t hash;
	uint64_t token; /* 0: empty */
	int64_t ttl_ms;
	uint32_t fingerprint_size;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
};

struct pair {
	struct hx_lock lock;
	uint32_t next;        /* Locks: lock. Index of the next note to write */
	struct note notes[2]; /* Locks: lock */
};

struct hx_claim_notes {
	uint64_t siphash_key[2];
	struct pair pairs[PAIRS];
};

struct hx_claim_notes *hx_claim_notes_new(void)
{
	struct hx_claim_notes *notes = hx_alloc_zero(1, sizeof(*notes));

	if (notes != NULL)
		hx_random_bytes(notes->siphash_key, sizeof(notes->siphash_key));
	return notes;
}

void hx_claim_notes_free(struct hx_claim_notes *notes)
{
	hx_free(notes);
}

/* Tokens may be unique per key only, so the hash covers the whole name. */
static uint64_t hash_of(const struct hx_claim_notes *notes, const struct hapax_op *op)
{
	const uint64_t *key = notes->siphash_key;

	return hx_siphash13(key, op->key.data, op->key.size) ^
		hx_siphash_rotate(hx_siphash13(key, op->group.data, op->group.size), 21) ^
		hx_siphash_rotate(hx_siphash13(key, op->tenant.data, op->tenant.size), 42);
}

static struct pair *pair_of(struct hx_claim_notes *notes, uint64_t hash)
{
	return &notes->pairs[hash % PAIRS];
}

void hx_claim_notes_put(struct hx_claim_notes *notes, const struct hapax_op *op)
{
	uint64_t hash = hash_of(notes, op);
	struct pair *pair = pair_of(notes, hash);
	struct note *note;

	hx_lock_acquire(&pair->lock);
	note = &pair->notes[pair->next];
	pair->next ^= 1;
	note->hash = hash;
	note->token = op->token;
	note->ttl_ms = op->ttl_ms;
	note->fingerprint_size = op->fingerprint != NULL ? HAPAX_FINGERPRINT_SIZE : 0;
	if (op->fingerprint != NULL)
		memcpy(note->fingerprint, op->fingerprint, HAPAX_FINGERPRINT_SIZE);
	hx_lock_release(&pair->lock);
}

static void copy(const struct note *note, struct hapax_record *ret_record)
{
	ret_record->ttl_ms = note->ttl_ms;
	ret_record->fingerprint_size = note->fingerprint_size;
	memcpy(ret_record->fingerprint, note->fingerprint, note->fingerprint_size);
}

bool hx_claim_notes_find(
	struct hx_claim_notes *notes, const struct hapax_op *op, struct hapax_record *ret_record)
{
	uint64_t hash = hash_of(notes, op);
	struct pair *pair = pair_of(notes, hash);
	bool is_found = false;

	hx_lock_acquire(&pair->lock);
	for (size_t i = 0; i < 2 && !is_found; i++) {
		const struct note *note = &pair->notes[i];

		is_found = note->hash == hash && note->token == op->token;
		if (is_found)
			copy(note, ret_record);
	}
	hx_lock_release(&pair->lock);
	return is_found;
}
