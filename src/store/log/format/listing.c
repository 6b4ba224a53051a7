/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.c - the segments of a directory.
 */
#include "store/log/format/listing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"

static bool is_ours(const char *name)
{
	size_t size = strlen(name);

	return strcmp(name, "LOCK") == 0 || strcmp(name, "STORE") == 0 ||
		strcmp(name, "lost+found") == 0 ||
		strncmp(name, HX_LOG_RESERVE_PREFIX, strlen(HX_LOG_RESERVE_PREFIX)) == 0 ||
		strstr(name, ".seg.cut-") != NULL ||
		(size > 4 && strcmp(name + size - 4, ".tmp") == 0);
}

static int add(void *arg, const char *name)
{
	struct hx_log_listing *listing = arg;
	struct hx_log_listed listed;

	assert(listing->count <= listing->capacity);
	assert(!listing->is_short);
	if (!hx_log_name_parse(name, &listed.kind, &listed.id)) {
		listing->others += !is_ours(name);
		return 0;
	}
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity != 0 ? listing->capacity * 2 : 32;
		struct hx_log_listed *segments =
			hx_realloc(listing->segments, capacity * sizeof(*segments));

		if (segments == NULL) {
			listing->is_short = true;
			return 1;
		}
		listing->segments = segments;
		listing->capacity = capacity;
	}
	assert(listing->count < listing->capacity);
	assert((unsigned)listed.kind < HX_LOG_KIND_COUNT);
	listing->segments[listing->count++] = listed;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct hx_log_listed *left = a;
	const struct hx_log_listed *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->id < right->id ? -1 : left->id > right->id;
}

/* By kind, then id: has() searches by halves, and top() from the end. */
static void order_assert(const struct hx_log_listing *listing)
{
	for (size_t i = 1; i < listing->count; i++)
		assert(compare(&listing->segments[i - 1], &listing->segments[i]) <= 0);
}

enum hapax_status hx_log_listing_read(
	struct hx_log_listing *listing, const struct hx_log_directory *directory,
	struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	int failed;

	memset(listing, 0, sizeof(*listing));
	failed = io->ops->list(io->context, directory->path, add, listing);
	if (listing->is_short)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to list a store");
	if (failed != 0)
		return hx_error_set(
			err, hx_error_status_of(-failed), -failed, "could not read directory '%s'",
			directory->path);
	if (listing->count > 1)
		qsort(listing->segments, listing->count, sizeof(listing->segments[0]), compare);
	order_assert(listing);
	assert((listing->count == 0) == (listing->segments == NULL));
	return HAPAX_OK;
}

void hx_log_listing_done(struct hx_log_listing *listing)
{
	hx_free(listing->segments);
	memset(listing, 0, sizeof(*listing));
}

bool hx_log_listing_has(const struct hx_log_listing *listing, enum hx_log_kind kind, uint64_t id)
{
	struct hx_log_listed wanted = {kind, id};

	assert((unsigned)kind < HX_LOG_KIND_COUNT);
	assert(!listing->is_short);
	return listing->count != 0 &&
		bsearch(&wanted, listing->segments, listing->count, sizeof(wanted), compare) !=
		NULL;
}

bool hx_log_listed_is_named(
	const struct hx_log_listed *segment, const struct hx_log_manifest_item *items,
	uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (items[i].kind == segment->kind && items[i].id == segment->id)
			return true;
	}
	return false;
}

uint64_t hx_log_listing_top(const struct hx_log_listing *listing, enum hx_log_kind kind)
{
	assert((unsigned)kind < HX_LOG_KIND_COUNT);
	assert(!listing->is_short);
	for (size_t i = listing->count; i > 0; i--) {
		if (listing->segments[i - 1].kind == kind)
			return listing->segments[i - 1].id;
	}
	return 0;
}
