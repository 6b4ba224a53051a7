/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/tenant_keys.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "config/config.h"
#include "store/tenant/tenant_limit.h"

enum { BUCKETS = 1024 };

/* Counters are part of commits, and are summed once a second: asking more often gains nothing. */
#define INTERVAL_NS (2 * HX_NS_PER_S)

struct hx_tenant_sum {
	struct hx_tenant_sum *next;
	uint64_t keys;
	size_t size;
	char tenant[HX_SCOPE_PART_SIZE_MAX];
};

struct sums {
	struct hx_tenant_sum *buckets[BUCKETS];
	const struct hx_config *config;
	int64_t now_ms;
	bool is_short; /* of memory: the count is incomplete */
};

static size_t bucket_of(struct hapax_bytes tenant)
{
	const unsigned char *at = tenant.data;
	size_t hash = 5381;

	for (size_t i = 0; i < tenant.size; i++)
		hash = hash * 33 + at[i];
	return hash % BUCKETS;
}

static struct hx_tenant_sum *sum_of(struct sums *sums, struct hapax_bytes tenant)
{
	struct hx_tenant_sum **bucket = &sums->buckets[bucket_of(tenant)];
	struct hx_tenant_sum *sum = *bucket;

	while (sum != NULL && !hx_bytes_equal(hx_bytes(sum->tenant, sum->size), tenant))
		sum = sum->next;
	if (sum != NULL || tenant.size > sizeof(sum->tenant))
		return sum;
	sum = hx_alloc_zero(1, sizeof(*sum));
	if (sum == NULL)
		return NULL;
	sum->size = tenant.size;
	if (tenant.size > 0)
		memcpy(sum->tenant, tenant.data, tenant.size);
	sum->next = *bucket;
	*bucket = sum;
	return sum;
}

/* How long keys of the scope live: its ttl, or that of a proxy route if it is longer. */
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
	return ttl_ms;
}

static int add_row(const struct hapax_counters *row, void *context)
{
	struct sums *sums = context;
	int64_t ttl_ms = window_ms(sums->config, row->tenant, row->group);
	struct hx_tenant_sum *sum;

	if (ttl_ms != HAPAX_TTL_FOREVER && row->hour_ms + HX_MS_PER_HOUR <= sums->now_ms - ttl_ms)
		return 0;
	sum = sum_of(sums, row->tenant);
	if (sum == NULL) {
		sums->is_short = true;
		return 1;
	}
	sum->keys += row->counts[HAPAX_DECISION_ACQUIRED];
	return 0;
}

/* The number of tenants above the limit; found may be NULL. */
static size_t list(const struct sums *sums, uint64_t keys_max, struct hapax_bytes *found)
{
	size_t count = 0;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct hx_tenant_sum *sum = sums->buckets[i]; sum != NULL;
		     sum = sum->next) {
			if (sum->keys < keys_max)
				continue;
			if (found != NULL)
				found[count] = hx_bytes(sum->tenant, sum->size);
			count++;
		}
	}
	return count;
}

static void tell(struct hx_tenant_keys *keys, const struct sums *sums)
{
	size_t count = list(sums, keys->keys_max, NULL);
	struct hapax_bytes *found = hx_alloc_zero(count + 1, sizeof(*found));

	if (found == NULL)
		return;
	(void)list(sums, keys->keys_max, found);
	/* Without memory the previous list stays. */
	(void)hx_tenant_limit_set(keys->limit, found, count);
	hx_free(found);
}

static void free_sums(struct sums *sums)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		while (sums->buckets[i] != NULL) {
			struct hx_tenant_sum *sum = sums->buckets[i];

			sums->buckets[i] = sum->next;
			hx_free(sum);
		}
	}
	hx_free(sums);
}

void hx_tenant_keys_look(struct hx_tenant_keys *keys, struct hapax_store *store)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	int64_t now_ns = hx_clock_mono_ns();
	struct hx_config *config;
	struct sums *sums;

	if (keys->limit == NULL || (keys->asked_ns != 0 && now_ns - keys->asked_ns < INTERVAL_NS))
		return;
	keys->asked_ns = now_ns;
	sums = hx_alloc_zero(1, sizeof(*sums));
	/* The hours are by the store's clock. */
	if (sums == NULL || hapax_store_stats(store, &stats, NULL, NULL, NULL) != HAPAX_OK) {
		hx_free(sums);
		return;
	}
	config = hx_config_current_keep(keys->current);
	sums->config = config;
	sums->now_ms = stats.now_ms;
	if (hapax_store_stats(store, &stats, add_row, sums, NULL) == HAPAX_OK && !sums->is_short)
		tell(keys, sums);
	free_sums(sums);
	hx_config_release(config);
}
