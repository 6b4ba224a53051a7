/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/peers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/time.h"
#include "net/address.h"
#include "observe/logger/logger.h"
#include "wire/api_token.h"

#define MINUTE_NS (60 * HX_NS_PER_S)

/* A trouble is over after this long without a refusal. */
#define QUIET_NS (10 * HX_NS_PER_S)

struct hx_peers_entry {
	struct hx_peers_entry *next; /* in its bucket */
	struct hx_peers_entry *failed_next;
	struct hx_peers_entry *failed_back;
	bool is_failed;  /* it is in the failed list of its shard */
	int64_t debt_ns; /* when its wrong passwords are paid off */
	uint64_t counts[HX_PEERS_WHATS];
	char name[HX_PEERS_NAME_SIZE];
};

/* The position of an address: found once per call. */
struct place {
	char name[HX_ADDRESS_TEXT_SIZE];
	struct hx_peers_shard *shard;
	struct hx_peers_entry **bucket;
};

void hx_peers_init(struct hx_peers *peers)
{
	memset(peers, 0, sizeof(*peers));
	hx_random_bytes(peers->hash_key, sizeof(peers->hash_key));
	for (size_t i = 0; i < HX_PEERS_SHARDS; i++)
		hx_lock_init(&peers->shards[i].lock);
	for (size_t i = 0; i <= HX_PEERS_WHATS; i++)
		hx_lock_init(&peers->troubles[i].lock);
}

void hx_peers_done(struct hx_peers *peers)
{
	for (size_t i = 0; i < HX_PEERS_SHARDS; i++) {
		for (size_t k = 0; k < HX_PEERS_BUCKETS; k++) {
			struct hx_peers_entry *entry = peers->shards[i].buckets[k];

			while (entry != NULL) {
				struct hx_peers_entry *next = entry->next;

				hx_free(entry);
				entry = next;
			}
			peers->shards[i].buckets[k] = NULL;
		}
	}
}

static void find_place(struct hx_peers *peers, const char *address, struct place *place)
{
	uint64_t hash;

	hx_address_network(address, place->name);
	/* A text that is not an address is not longer than one. */
	place->name[HX_PEERS_NAME_SIZE - 1] = '\0';
	hash = hx_siphash13(peers->hash_key, place->name, strlen(place->name));
	place->shard = &peers->shards[hash % HX_PEERS_SHARDS];
	place->bucket = &place->shard->buckets[hash / HX_PEERS_SHARDS % HX_PEERS_BUCKETS];
}

/* The link to its entry, or to its place. Locks: the shard's. */
static struct hx_peers_entry **find(const struct place *place)
{
	struct hx_peers_entry **at = place->bucket;

	while (*at != NULL && strcmp((*at)->name, place->name) != 0)
		at = &(*at)->next;
	return at;
}

/* Its entry, created if needed; NULL: no memory. Locks: the shard's. */
static struct hx_peers_entry *need(const struct place *place)
{
	struct hx_peers_entry **at = find(place);

	if (*at == NULL) {
		*at = hx_alloc_zero(1, sizeof(**at));
		if (*at != NULL)
			memcpy((*at)->name, place->name, strlen(place->name) + 1);
	}
	return *at;
}

/* Locks: the shard's. */
static void drop_unused(const struct place *place)
{
	struct hx_peers_entry **at = find(place);
	struct hx_peers_entry *entry = *at;
	uint64_t sum = 0;

	assert(entry != NULL);
	for (size_t i = 0; i < HX_PEERS_WHATS; i++)
		sum += entry->counts[i];
	if (sum > 0 || entry->is_failed)
		return;
	*at = entry->next;
	hx_free(entry);
}

static void note_refused(struct hx_peers *peers, size_t index, const char *name)
{
	struct hx_peers_trouble *trouble = &peers->troubles[index];

	hx_lock_acquire(&trouble->lock);
	memcpy(trouble->address, name, strlen(name) + 1);
	hx_lock_release(&trouble->lock);
	atomic_fetch_add_explicit(&trouble->refused, 1, memory_order_relaxed);
}

enum hapax_status hx_peers_take(
	struct hx_peers *peers, const char *address, enum hx_peers_what what, uint64_t max)
{
	enum hapax_status status = HAPAX_OK;
	struct hx_peers_entry *entry;
	struct place place;

	if (address[0] == '\0')
		return HAPAX_OK;
	find_place(peers, address, &place);
	hx_lock_acquire(&place.shard->lock);
	entry = need(&place);
	if (entry == NULL)
		status = HAPAX_ERR_NO_MEMORY;
	else if (max != 0 && entry->counts[what] >= max)
		status = HAPAX_ERR_LIMIT;
	else
		entry->counts[what]++;
	hx_lock_release(&place.shard->lock);
	if (status == HAPAX_ERR_LIMIT)
		note_refused(peers, what, place.name);
	return status;
}

void hx_peers_give(struct hx_peers *peers, const char *address, enum hx_peers_what what)
{
	struct hx_peers_entry *entry;
	struct place place;

	if (address[0] == '\0')
		return;
	find_place(peers, address, &place);
	hx_lock_acquire(&place.shard->lock);
	entry = *find(&place);
	assert(entry != NULL && entry->counts[what] > 0);
	entry->counts[what]--;
	drop_unused(&place);
	hx_lock_release(&place.shard->lock);
}

/* ---------------------------------------------------------------- wrong passwords */

/* Locks: the shard's, as in the next three. */
static void unlink_failed(
	struct hx_peers *peers, struct hx_peers_shard *shard, struct hx_peers_entry *entry)
{
	if (entry->failed_back != NULL)
		entry->failed_back->failed_next = entry->failed_next;
	else
		shard->failed_first = entry->failed_next;
	if (entry->failed_next != NULL)
		entry->failed_next->failed_back = entry->failed_back;
	else
		shard->failed_last = entry->failed_back;
	entry->failed_next = entry->failed_back = NULL;
	entry->is_failed = false;
	shard->failed_count--;
	atomic_fetch_sub_explicit(&peers->failed_count, 1, memory_order_relaxed);
}

static void link_failed(
	struct hx_peers *peers, struct hx_peers_shard *shard, struct hx_peers_entry *entry)
{
	entry->failed_back = shard->failed_last;
	if (shard->failed_last != NULL)
		shard->failed_last->failed_next = entry;
	else
		shard->failed_first = entry;
	shard->failed_last = entry;
	entry->is_failed = true;
	shard->failed_count++;
	atomic_fetch_add_explicit(&peers->failed_count, 1, memory_order_relaxed);
}

/* Drops addresses that have paid, and the oldest if there are too many. */
static void tidy_failed(struct hx_peers *peers, struct hx_peers_shard *shard, int64_t now_ns)
{
	while (shard->failed_first != NULL &&
	       (shard->failed_first->debt_ns <= now_ns ||
		shard->failed_count > HX_PEERS_FAILED_MAX / HX_PEERS_SHARDS)) {
		struct hx_peers_entry *entry = shard->failed_first;
		struct place place;

		unlink_failed(peers, shard, entry);
		find_place(peers, entry->name, &place);
		assert(place.shard == shard);
		drop_unused(&place);
	}
}

static int64_t step_ns(uint64_t max)
{
	return MINUTE_NS / (int64_t)(max < (uint64_t)HX_NS_PER_S ? max : (uint64_t)HX_NS_PER_S);
}

static void add_failure(struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns)
{
	struct hx_peers_entry *entry;
	struct place place;

	find_place(peers, address, &place);
	hx_lock_acquire(&place.shard->lock);
	entry = need(&place);
	if (entry != NULL) {
		if (entry->is_failed)
			unlink_failed(peers, place.shard, entry);
		if (entry->debt_ns < now_ns)
			entry->debt_ns = now_ns;
		entry->debt_ns += step_ns(max);
		link_failed(peers, place.shard, entry);
		tidy_failed(peers, place.shard, now_ns);
	}
	hx_lock_release(&place.shard->lock);
}

/* How long the address is still locked; 0: it is not. */
static int64_t locked_ns(struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns)
{
	int64_t left_ns = 0;
	struct hx_peers_entry *entry;
	struct place place;

	/* No lookup is needed while no password was wrong. */
	if (atomic_load_explicit(&peers->failed_count, memory_order_relaxed) == 0)
		return 0;
	find_place(peers, address, &place);
	hx_lock_acquire(&place.shard->lock);
	entry = *find(&place);
	if (entry != NULL && entry->is_failed)
		left_ns = entry->debt_ns + step_ns(max) - MINUTE_NS - now_ns;
	hx_lock_release(&place.shard->lock);
	if (left_ns <= 0)
		return 0;
	note_refused(peers, HX_PEERS_WHATS, place.name);
	return left_ns;
}

/* Hash of address and credential. 0 marks an empty slot, so it is not a valid hash. */
static uint64_t hash_of(
	const struct hx_peers *peers, const char *address,
	const struct hx_peers_credential *credential)
{
	char network[HX_ADDRESS_TEXT_SIZE];
	uint64_t parts[4] = {(uint64_t)credential->kind};
	uint64_t hash;

	hx_address_network(address, network);
	parts[1] = hx_siphash13(peers->hash_key, network, strlen(network));
	parts[2] = hx_siphash13(peers->hash_key, credential->name.data, credential->name.size);
	if (!credential->is_right)
		parts[3] = hx_siphash13(
			peers->hash_key, credential->secret.data, credential->secret.size);
	hash = hx_siphash13(peers->hash_key, parts, sizeof(parts));
	return hash != 0 ? hash : 1;
}

int64_t hx_peers_judge(
	struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns,
	const struct hx_peers_credential *credential)
{
	_Atomic uint64_t *table = credential->is_right ? peers->right : peers->wrong;
	uint64_t hash = hash_of(peers, address, credential);
	_Atomic uint64_t *slot = &table[hash % HX_PEERS_KNOWN_SLOTS];
	bool is_known = atomic_load_explicit(slot, memory_order_relaxed) == hash;

	if (address[0] != '\0' && max != 0) {
		bool is_exempt = credential->is_right &&
			(is_known || hx_api_token_has_form(credential->secret));
		int64_t left_ns = is_exempt ? 0 : locked_ns(peers, address, max, now_ns);

		if (left_ns > 0)
			return left_ns;
		if (!credential->is_right && !is_known)
			add_failure(peers, address, max, now_ns);
	}
	atomic_store_explicit(slot, hash, memory_order_relaxed);
	return 0;
}

/* ---------------------------------------------------------------- the log */

static void tell_begun(struct hx_peers_trouble *trouble, const char *what, struct hx_logger *log)
{
	struct hx_logger_field fields[2] = {HX_LOGGER_TEXT("limit", what)};
	char address[HX_PEERS_NAME_SIZE];

	hx_lock_acquire(&trouble->lock);
	memcpy(address, trouble->address, sizeof(address));
	hx_lock_release(&trouble->lock);
	fields[1] = (struct hx_logger_field)HX_LOGGER_TEXT("client", address);
	hx_logger(log, HX_LOGGER_WARN, "address limit reached", fields, 2);
}

static void tell_over(
	const struct hx_peers_trouble *trouble, const char *what, struct hx_logger *log)
{
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("limit", what),
		HX_LOGGER_UNSIGNED("refused", trouble->seen - trouble->before)};

	hx_logger(log, HX_LOGGER_INFO, "address limit no longer reached", fields, 2);
}

void hx_peers_watch(struct hx_peers *peers, struct hx_logger *log, int64_t now_ns)
{
	static const char *const names[] = {
		[HX_PEERS_CONNECTIONS] = "http.max_connections_per_address",
		[HX_PEERS_REQUESTS] = "http.max_requests_per_address",
		[HX_PEERS_RESP_CONNECTIONS] = "resp.max_connections_per_address",
		[HX_PEERS_ADMIN_CONNECTIONS] = "connections of the admin listener",
		[HX_PEERS_ADMIN_REQUESTS] = "requests of the admin listener",
		[HX_PEERS_WHATS] = "auth.max_failures",
	};

	for (size_t i = 0; i <= HX_PEERS_WHATS; i++) {
		struct hx_peers_trouble *trouble = &peers->troubles[i];
		uint64_t refused = atomic_load_explicit(&trouble->refused, memory_order_relaxed);

		if (refused != trouble->seen) {
			if (!trouble->is_told) {
				trouble->before = trouble->seen;
				tell_begun(trouble, names[i], log);
			}
			trouble->is_told = true;
			trouble->seen = refused;
			trouble->last_ns = now_ns;
		} else if (trouble->is_told && now_ns - trouble->last_ns >= QUIET_NS) {
			trouble->is_told = false;
			tell_over(trouble, names[i], log);
		}
	}
}
