/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/key_queue.h"

#include <assert.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/siphash.h"
#include "processor/run.h"

enum {
	BUCKETS_FIRST = 64,
	/* As many as are kept for the next ones: a crowd that has gone gives its memory back. */
	SPARE_MAX = 4096,
};

uint64_t hx_lines_hash(const struct hx_lines *lines, const struct hx_run_key *key)
{
	uint64_t hash = hx_siphash13(lines->hash_key, key->key.data, key->key.size);

	/* Sums of odd multiples: the same text as tenant and as group is not the same. */
	hash += 3 * hx_siphash13(lines->hash_key, key->tenant.data, key->tenant.size);
	hash += 5 * hx_siphash13(lines->hash_key, key->group.data, key->group.size);
	return hash;
}

static bool is_same(const struct hx_run_key *a, const struct hx_run_key *b)
{
	return hx_bytes_equal(a->key, b->key) && hx_bytes_equal(a->tenant, b->tenant) &&
		hx_bytes_equal(a->group, b->group);
}

static struct hx_line **bucket_of(const struct hx_lines *lines, uint64_t hash)
{
	return &lines->buckets[hash & (lines->bucket_count - 1)];
}

/* Longer chains are slower, not wrong: only the first buckets must be had. */
static bool grow(struct hx_lines *lines)
{
	size_t count = lines->bucket_count == 0 ? BUCKETS_FIRST : lines->bucket_count * 2;
	struct hx_line **old = lines->buckets;
	size_t old_count = lines->bucket_count;
	struct hx_line **buckets;

	if (lines->count < lines->bucket_count)
		return true;
	buckets = hx_alloc_zero(count, sizeof(struct hx_line *));
	if (buckets == NULL)
		return old != NULL;
	lines->buckets = buckets;
	lines->bucket_count = count;
	for (size_t i = 0; i < old_count; i++) {
		while (old[i] != NULL) {
			struct hx_line *line = old[i];
			struct hx_line **bucket = bucket_of(lines, line->hash);

			old[i] = line->next;
			line->next = *bucket;
			*bucket = line;
		}
	}
	hx_free(old);
	return true;
}

static struct hx_line *take_spare(struct hx_lines *lines, struct hx_timer_heap *timers)
{
	struct hx_line *line = lines->spare;

	if (line != NULL) {
		lines->spare = line->next;
		lines->spare_count--;
		return line;
	}
	line = hx_alloc_zero(1, sizeof(*line));
	if (line == NULL)
		return NULL;
	if (hx_timer_heap_reserve(timers) != HAPAX_OK) {
		hx_free(line);
		return NULL;
	}
	return line;
}

static void free_chain(struct hx_line *line)
{
	while (line != NULL) {
		struct hx_line *next = line->next;

		hx_free(line);
		line = next;
	}
}

void hx_lines_done(struct hx_lines *lines)
{
	for (size_t i = 0; i < lines->bucket_count; i++)
		free_chain(lines->buckets[i]);
	free_chain(lines->spare);
	hx_free(lines->buckets);
	lines->buckets = NULL;
	lines->spare = NULL;
	lines->spare_count = 0;
	lines->bucket_count = 0;
	lines->count = 0;
}

static struct hx_line *find(
	const struct hx_lines *lines, uint64_t hash, const struct hx_run_key *key)
{
	struct hx_line *line = lines->bucket_count == 0 ? NULL : *bucket_of(lines, hash);

	while (line != NULL && (line->hash != hash || !is_same(line->members, key)))
		line = line->next;
	return line;
}

struct hx_line *hx_lines_find(const struct hx_lines *lines, const struct hx_run_key *key)
{
	return lines->count == 0 ? NULL : find(lines, hx_lines_hash(lines, key), key);
}

bool hx_lines_join(struct hx_lines *lines, struct hx_timer_heap *timers, struct hx_run_key *key)
{
	uint64_t hash = hx_lines_hash(lines, key);
	struct hx_line *line = find(lines, hash, key);

	assert(key->line == NULL);
	if (line == NULL) {
		struct hx_line **bucket;

		if (!grow(lines))
			return false;
		line = take_spare(lines, timers);
		if (line == NULL)
			return false;
		*line = (struct hx_line){.hash = hash};
		bucket = bucket_of(lines, hash);
		line->next = *bucket;
		*bucket = line;
		lines->count++;
	}
	key->line = line;
	key->member_back = NULL;
	key->member_next = line->members;
	if (line->members != NULL)
		line->members->member_back = key;
	line->members = key;
	return true;
}

static void drop(struct hx_lines *lines, struct hx_timer_heap *timers, struct hx_line *line)
{
	struct hx_line **at = bucket_of(lines, line->hash);

	assert(line->first == NULL && line->holder == NULL && line->scout == NULL);
	while (*at != line)
		at = &(*at)->next;
	*at = line->next;
	hx_timer_clear(timers, &line->timer);
	lines->count--;
	if (lines->spare_count == SPARE_MAX) {
		hx_timer_heap_unreserve(timers);
		hx_free(line);
		return;
	}
	line->next = lines->spare;
	lines->spare = line;
	lines->spare_count++;
}

void hx_lines_quit(struct hx_lines *lines, struct hx_timer_heap *timers, struct hx_run_key *key)
{
	struct hx_line *line = key->line;

	if (line == NULL)
		return;
	if (key->member_back != NULL)
		key->member_back->member_next = key->member_next;
	else
		line->members = key->member_next;
	if (key->member_next != NULL)
		key->member_next->member_back = key->member_back;
	key->line = NULL;
	if (line->members == NULL)
		drop(lines, timers, line);
}

void hx_line_wait(struct hx_line *line, struct hapax_run *run)
{
	struct hapax_run *after = line->last;

	/* A new one is the youngest; one that asked in vain is among the oldest. */
	if (after != NULL && after->sequence > run->sequence) {
		after = NULL;
		for (struct hapax_run *at = line->first; at->sequence < run->sequence;
		     at = at->wait_next)
			after = at;
	}
	run->wait_back = after;
	run->wait_next = after == NULL ? line->first : after->wait_next;
	if (run->wait_next != NULL)
		run->wait_next->wait_back = run;
	else
		line->last = run;
	if (after != NULL)
		after->wait_next = run;
	else
		line->first = run;
}

void hx_line_step_out(struct hx_line *line, struct hapax_run *run)
{
	if (run->wait_back != NULL)
		run->wait_back->wait_next = run->wait_next;
	else
		line->first = run->wait_next;
	if (run->wait_next != NULL)
		run->wait_next->wait_back = run->wait_back;
	else
		line->last = run->wait_back;
	run->wait_back = NULL;
	run->wait_next = NULL;
}
