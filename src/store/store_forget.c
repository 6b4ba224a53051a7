/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_forget.c - forget all keys of a scope, a page at a time.
 */
#include <stdbool.h>
#include <string.h>

#include <hapax/store.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

enum { PAGE_MAX = 1000, KEYS_SIZE_MAX = PAGE_MAX * 1024 };

struct page {
	struct hapax_buf keys;
	size_t sizes[PAGE_MAX];
	size_t count;
	enum hapax_status status;
	struct hapax_op ops[PAGE_MAX];
};

static int take_key(const struct hapax_record *record, void *context)
{
	struct page *page = context;

	if (page->count == PAGE_MAX)
		return 1;
	page->status = hx_buf_append(&page->keys, record->key.data, record->key.size);
	if (page->status != HAPAX_OK)
		return 1;
	page->sizes[page->count++] = record->key.size;
	return 0;
}

/* Keys that another caller removes meanwhile do not count. */
static enum hapax_status forget_page(
	struct hapax_store *store, struct page *page, const struct hapax_scan *scan,
	uint64_t *forgotten, struct hapax_error *err)
{
	const unsigned char *at = page->keys.data;
	enum hapax_status status;

	for (size_t i = 0; i < page->count; at += page->sizes[i++])
		page->ops[i] = (struct hapax_op){
			.type = HAPAX_OP_FORGET,
			.flags = HAPAX_OP_FORCE,
			.tenant = scan->tenant,
			.group = scan->group,
			.key = hx_bytes(at, page->sizes[i]),
		};
	if (page->count == 0)
		return HAPAX_OK;
	status = hapax_store_run(store, page->ops, page->count, err);
	for (size_t i = 0; i < page->count; i++)
		*forgotten += page->ops[i].status == HAPAX_OK &&
			page->ops[i].outcome == HAPAX_OUTCOME_APPLIED;
	return status;
}

enum hapax_status hapax_store_forget_scope(
	struct hapax_store *store, struct hapax_bytes tenant, struct hapax_bytes group,
	int (*told)(void *context, uint64_t forgotten), void *context, uint64_t *ret_forgotten,
	struct hapax_error *err)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	struct page *page = hx_alloc_zero(1, sizeof(*page));
	enum hapax_status status = HAPAX_OK;
	bool is_enough = false;

	*ret_forgotten = 0;
	if (page == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
	hx_buf_init(&page->keys, KEYS_SIZE_MAX);
	/* Empty is "default" for forget, but all of them for a scan. */
	scan.tenant = tenant.size == 0 ? HX_BYTES_LIT("default") : tenant;
	scan.group = group.size == 0 ? HX_BYTES_LIT("default") : group;
	scan.count_max = PAGE_MAX;
	while (status == HAPAX_OK && !cursor.done && !is_enough) {
		hx_buf_clear(&page->keys);
		page->count = 0;
		status = hapax_store_scan(store, &scan, &cursor, take_key, page, err);
		if (status == HAPAX_OK && page->status != HAPAX_OK)
			status = hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory");
		if (status == HAPAX_OK)
			status = forget_page(store, page, &scan, ret_forgotten, err);
		if (status == HAPAX_OK && told != NULL)
			is_enough = told(context, *ret_forgotten) != 0;
	}
	hx_buf_done(&page->keys);
	hx_free(page);
	return status;
}
