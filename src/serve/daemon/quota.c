/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/quota.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/siphash.h"

struct hx_quota_entry {
	struct hx_quota_entry *next;
	uint64_t count;
	size_t name_size;
	char name[HX_QUOTA_NAME_MAX];
};

void hx_quota_init(struct hx_quota *quota)
{
	memset(quota, 0, sizeof(*quota));
	hx_lock_init(&quota->lock);
	hx_random_bytes(quota->hash_key, sizeof(quota->hash_key));
}

void hx_quota_done(struct hx_quota *quota)
{
	for (size_t i = 0; i < HX_QUOTA_BUCKETS; i++) {
		while (quota->buckets[i] != NULL) {
			struct hx_quota_entry *entry = quota->buckets[i];

			quota->buckets[i] = entry->next;
			hx_free(entry);
		}
	}
}

/* The link to the entry of name, or to its place. Locks: lock held. */
static struct hx_quota_entry **find(struct hx_quota *quota, struct hapax_bytes name)
{
	uint64_t hash = hx_siphash13(quota->hash_key, name.data, name.size);
	struct hx_quota_entry **at = &quota->buckets[hash % HX_QUOTA_BUCKETS];

	while (*at != NULL && !hx_bytes_equal(hx_bytes((*at)->name, (*at)->name_size), name))
		at = &(*at)->next;
	return at;
}

static struct hapax_bytes cut(struct hapax_bytes name)
{
	return hx_bytes(name.data, name.size < HX_QUOTA_NAME_MAX ? name.size : HX_QUOTA_NAME_MAX);
}

static struct hx_quota_entry *new_entry(struct hapax_bytes name)
{
	struct hx_quota_entry *entry = hx_alloc_zero(1, sizeof(*entry));

	if (entry == NULL)
		return NULL;
	entry->name_size = name.size;
	if (name.size > 0)
		memcpy(entry->name, name.data, name.size);
	return entry;
}

enum hapax_status hx_quota_take(struct hx_quota *quota, struct hapax_bytes name, uint64_t max)
{
	enum hapax_status status = HAPAX_OK;
	struct hx_quota_entry **at;

	name = cut(name);
	hx_lock_acquire(&quota->lock);
	at = find(quota, name);
	if (*at == NULL)
		*at = new_entry(name);
	if (*at == NULL)
		status = HAPAX_ERR_NO_MEMORY;
	else if ((*at)->count >= max)
		status = HAPAX_ERR_LIMIT;
	else
		(*at)->count++;
	hx_lock_release(&quota->lock);
	return status;
}

void hx_quota_give(struct hx_quota *quota, struct hapax_bytes name)
{
	struct hx_quota_entry **at;
	struct hx_quota_entry *entry;

	name = cut(name);
	hx_lock_acquire(&quota->lock);
	at = find(quota, name);
	entry = *at;
	assert(entry != NULL && entry->count > 0);
	entry->count--;
	if (entry->count == 0)
		*at = entry->next;
	else
		entry = NULL;
	hx_lock_release(&quota->lock);
	hx_free(entry);
}
