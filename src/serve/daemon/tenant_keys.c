/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/tenant_keys.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "config/config.h"
#include "observe/metrics/metrics.h"
#include "store/tenant/tenant_limit.h"

enum { BUCKETS = 1024 };

/* Counters are part of commits, and are summed once a second: asking more often gains nothing. */
#define INTERVAL_NS (2 * HX_NS_PER_S)

/* For figures alone: a store may read all of its records to answer. */
#define FIGURES_INTERVAL_NS (60 * HX_NS_PER_S)

/* The keys of a scope, or of a tenant: then group is empty. */
struct sum {
	struct sum *next;
	uint64_t keys;
	size_t tenant_size;
	size_t group_size;
	char text[2 * HX_SCOPE_PART_SIZE_MAX]; /* tenant, then group */
};

struct table {
	struct sum *buckets[BUCKETS];
	size_t count;
};

struct hx_tenant_sums {
	struct table tenants;
	struct table scopes; /* at most scopes_max */
	uint64_t other;      /* of the scopes that are not there */
	bool has_other;
	struct hx_scope_keys *shown; /* of scopes and other */
	size_t shown_count;

	/* During the walk. */
	const struct hx_tenant_keys *keys;
	const struct hx_config *config;
	int64_t now_ms;
	bool is_short; /* of memory: the count is incomplete */
};

static size_t add_hash(size_t hash, struct hapax_bytes text)
{
	const unsigned char *at = text.data;

	for (size_t i = 0; i < text.size; i++)
		hash = hash * 33 + at[i];
	return hash;
}

static struct hapax_bytes tenant_of(const struct sum *sum)
{
	return hx_bytes(sum->text, sum->tenant_size);
}

static struct hapax_bytes group_of(const struct sum *sum)
{
	return hx_bytes(sum->text + sum->tenant_size, sum->group_size);
}

/* A new one only if there are fewer than count_max. NULL: there is none, and no memory or room. */
static struct sum *sum_of(
	struct table *table, struct hapax_bytes tenant, struct hapax_bytes group,
	uint64_t count_max)
{
	struct sum **bucket =
		&table->buckets[add_hash(add_hash(5381, tenant) * 33, group) % BUCKETS];
	struct sum *sum = *bucket;

	while (sum != NULL &&
	       !(hx_bytes_equal(tenant_of(sum), tenant) && hx_bytes_equal(group_of(sum), group)))
		sum = sum->next;
	if (sum != NULL || table->count >= count_max ||
	    tenant.size + group.size > sizeof(sum->text))
		return sum;
	sum = hx_alloc_zero(1, sizeof(*sum));
	if (sum == NULL)
		return NULL;
	sum->tenant_size = tenant.size;
	sum->group_size = group.size;
	if (tenant.size > 0)
		memcpy(sum->text, tenant.data, tenant.size);
	if (group.size > 0)
		memcpy(sum->text + tenant.size, group.data, group.size);
	sum->next = *bucket;
	*bucket = sum;
	table->count++;
	return sum;
}

/* How long keys of the scope live: its ttl, or a longer one of a proxy route or a consumer. */
static int64_t window_ms(
	const struct hx_config *config, struct hapax_bytes tenant, struct hapax_bytes group)
{
	int64_t ttl_ms = hx_config_scope_find(config, tenant, group)->ttl_ms;

	for (size_t i = 0; i < config->proxy.route_count; i++) {
		const struct hx_config_proxy_route *route = &config->proxy.routes[i];

		if (route->ttl_ms > ttl_ms &&
		    hx_bytes_equal(hx_config_scope_part(route->tenant), tenant) &&
		    hx_bytes_equal(hx_config_scope_part(route->group), group))
			ttl_ms = route->ttl_ms;
	}
	for (size_t i = 0; i < config->consumer_count; i++) {
		const struct hx_config_consumer *consumer = &config->consumers[i];

		if (consumer->run.ttl_ms > ttl_ms &&
		    hx_bytes_equal(hx_config_scope_part(consumer->keying.tenant), tenant) &&
		    hx_bytes_equal(hx_config_scope_part(consumer->keying.group), group))
			ttl_ms = consumer->run.ttl_ms;
	}
	return ttl_ms;
}

static int add_row(const struct hapax_counters *row, void *context)
{
	struct hx_tenant_sums *sums = context;
	int64_t ttl_ms = window_ms(sums->config, row->tenant, row->group);
	uint64_t acquired = row->counts[HAPAX_DECISION_ACQUIRED];
	struct sum *sum;

	if (ttl_ms != HAPAX_TTL_FOREVER && row->hour_ms + HX_MS_PER_HOUR <= sums->now_ms - ttl_ms)
		return 0;
	sum = sum_of(&sums->tenants, row->tenant, hx_bytes(NULL, 0), UINT64_MAX);
	if (sum == NULL) {
		sums->is_short = true;
		return 1;
	}
	sum->keys += acquired;
	sum = sum_of(&sums->scopes, row->tenant, row->group, sums->keys->scopes_max);
	if (sum != NULL) {
		sum->keys += acquired;
	} else {
		sums->other += acquired;
		sums->has_other = true;
	}
	return 0;
}

/* The number of tenants above the limit; found may be NULL. */
static size_t list(const struct table *tenants, uint64_t keys_max, struct hapax_bytes *found)
{
	size_t count = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct sum *sum = tenants->buckets[i]; sum != NULL; sum = sum->next) {
			if (sum->keys < keys_max)
				continue;
			if (found != NULL)
				found[count] = tenant_of(sum);
			count++;
		}
	}
	return count;
}

static void tell(struct hx_tenant_keys *keys, const struct hx_tenant_sums *sums)
{
	size_t count = list(&sums->tenants, keys->keys_max, NULL);
	struct hapax_bytes *found = hx_alloc_zero(count + 1, sizeof(*found));

	if (found == NULL)
		return;
	(void)list(&sums->tenants, keys->keys_max, found);
	/* Without memory the previous list stays. */
	(void)hx_tenant_limit_set(keys->limit, found, count);
	hx_free(found);
}

static void free_table(struct table *table)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (table->buckets[i] != NULL) {
			struct sum *sum = table->buckets[i];

			table->buckets[i] = sum->next;
			hx_free(sum);
		}
	}
}

static void free_sums(struct hx_tenant_sums *sums)
{
	if (sums == NULL)
		return;
	free_table(&sums->tenants);
	free_table(&sums->scopes);
	hx_free(sums->shown);
	hx_free(sums);
}

/* Makes sums the shown ones. Returns those to free. */
static struct hx_tenant_sums *show(struct hx_tenant_keys *keys, struct hx_tenant_sums *sums)
{
	struct hx_tenant_sums *old;

	sums->shown = hx_alloc_zero(sums->scopes.count + 1, sizeof(*sums->shown));
	if (sums->shown == NULL)
		return sums;
	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct sum *at = sums->scopes.buckets[i]; at != NULL; at = at->next)
			sums->shown[sums->shown_count++] = (struct hx_scope_keys){
				.tenant = tenant_of(at), .group = group_of(at), .keys = at->keys};
	}
	if (sums->has_other)
		sums->shown[sums->shown_count++] = (struct hx_scope_keys){
			.tenant = HX_BYTES_LIT("other"),
			.group = HX_BYTES_LIT("other"),
			.keys = sums->other};
	hx_mutex_lock(&keys->mutex);
	old = keys->shown;
	keys->shown = sums;
	hx_mutex_unlock(&keys->mutex);
	return old;
}

/* Asks the store. False: it did not answer, or there is no memory. */
static bool add_up(
	const struct hx_tenant_keys *keys, struct hapax_store *store, int64_t now_ms,
	struct hx_tenant_sums *sums)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hx_config *config = hx_config_current_keep(keys->current);
	bool is_whole;

	sums->keys = keys;
	sums->config = config;
	sums->now_ms = now_ms;
	is_whole = hapax_store_stats(store, &stats, add_row, sums, NULL) == HAPAX_OK &&
		!sums->is_short;
	hx_config_release(config);
	return is_whole;
}

void hx_tenant_keys_look(struct hx_tenant_keys *keys, struct hapax_store *store, int64_t now_ms)
{
	int64_t now_ns = hx_clock_mono_ns();
	int64_t interval_ns = keys->limit != NULL ? INTERVAL_NS : FIGURES_INTERVAL_NS;
	struct hx_tenant_sums *sums;

	if ((keys->limit == NULL && keys->scopes_max == 0) ||
	    (keys->asked_ns != 0 && now_ns - keys->asked_ns < interval_ns))
		return;
	keys->asked_ns = now_ns;
	sums = hx_alloc_zero(1, sizeof(*sums));
	if (sums != NULL && add_up(keys, store, now_ms, sums)) {
		if (keys->limit != NULL)
			tell(keys, sums);
		if (keys->scopes_max != 0)
			sums = show(keys, sums);
	}
	free_sums(sums);
}

void hx_tenant_keys_init(struct hx_tenant_keys *keys)
{
	hx_mutex_init(&keys->mutex);
}

void hx_tenant_keys_done(struct hx_tenant_keys *keys)
{
	free_sums(keys->shown);
	keys->shown = NULL;
	hx_mutex_done(&keys->mutex);
}

const struct hx_scope_keys *hx_tenant_keys_hold(struct hx_tenant_keys *keys, size_t *ret_count)
{
	hx_mutex_lock(&keys->mutex);
	*ret_count = keys->shown == NULL ? 0 : keys->shown->shown_count;
	return keys->shown == NULL ? NULL : keys->shown->shown;
}

void hx_tenant_keys_release(struct hx_tenant_keys *keys)
{
	hx_mutex_unlock(&keys->mutex);
}
