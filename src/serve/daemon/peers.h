/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - counts per address, for every door: connections, requests, wrong passwords.
 *
 * An address is one of IPv4 or a network of 64 bits of IPv6 (hx_address_network()). The empty text
 * means no limit and is never counted. Only addresses with a count take memory; at most
 * HX_PEERS_FAILED_MAX of them have only wrong passwords.
 *
 * Wrong passwords are a debt of time. Each adds a minute divided by the limit, and a minute pays a
 * minute off. An address that owes a minute is locked: its passwords are ignored until there is
 * room for one more. So a limit of 20 allows 20 at once, then one every three seconds. A credential
 * that this address has used successfully before is still accepted: one client with an old password
 * must not lock out its neighbors, and a guesser gains nothing.
 *
 * Threads: any. One lock for each of HX_PEERS_SHARDS.
 */
#ifndef HX_SERVE_DAEMON_PEERS_H
#define HX_SERVE_DAEMON_PEERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "base/thread.h"

struct hx_logger;

enum {
	HX_PEERS_SHARDS = 16,
	HX_PEERS_BUCKETS = 256, /* of a shard */
	HX_PEERS_FAILED_MAX = 16 * 1024,
	HX_PEERS_NAME_SIZE = 64,
	HX_PEERS_KNOWN_SLOTS = 4096,
};

/* The things counted; each has its own limit. */
enum hx_peers_what {
	HX_PEERS_CONNECTIONS, /* of gateway and proxy together */
	HX_PEERS_REQUESTS,    /* the same */
	HX_PEERS_RESP_CONNECTIONS,
	HX_PEERS_ADMIN_CONNECTIONS,
	HX_PEERS_ADMIN_REQUESTS,
	HX_PEERS_WHATS,
};

enum hx_peers_credential {
	HX_PEERS_API_TOKEN,
	HX_PEERS_PASSWORD, /* at the Redis door */
};

struct hx_peers_entry;

struct hx_peers_shard {
	struct hx_lock lock;
	/* Locks: lock for everything below. */
	struct hx_peers_entry *buckets[HX_PEERS_BUCKETS];
	struct hx_peers_entry *failed_first; /* by last failure, oldest first */
	struct hx_peers_entry *failed_last;
	size_t failed_count;
};

/* Addresses at a limit: logged when that begins and when it ends. */
struct hx_peers_trouble {
	_Atomic uint64_t refused; /* total */
	struct hx_lock lock;
	char address[HX_PEERS_NAME_SIZE]; /* Locks: lock. The last refused one */
	/* The control loop's. */
	uint64_t seen;
	uint64_t before; /* when the trouble began */
	int64_t last_ns;
	bool is_told;
};

struct hx_peers {
	uint64_t hash_key[2];
	_Atomic size_t failed_count; /* of all shards */
	/* Hashes of address and credential, one per slot: a later one replaces it. */
	_Atomic uint64_t known[HX_PEERS_KNOWN_SLOTS];
	struct hx_peers_shard shards[HX_PEERS_SHARDS];
	/* One for each thing counted, then one for wrong passwords. */
	struct hx_peers_trouble troubles[HX_PEERS_WHATS + 1];
};

void hx_peers_init(struct hx_peers *peers);

/* Remaining counts are forgotten. */
void hx_peers_done(struct hx_peers *peers);

/*
 * Counts one more for address, up to max; 0: no limit. LIMIT: it already has max; NO_MEMORY: there
 * was none for the count. Nothing was counted then.
 */
enum hapax_status hx_peers_take(
	struct hx_peers *peers, const char *address, enum hx_peers_what what, uint64_t max);

/* Counts one less; it was taken before. */
void hx_peers_give(struct hx_peers *peers, const char *address, enum hx_peers_what what);

/* A password from address was wrong; max per minute are allowed; 0: no limit. */
void hx_peers_failed(struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns);

/* How long passwords from address are still ignored; 0: they are checked. */
int64_t hx_peers_locked_ns(
	struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns);

/* A credential from address was right; name is its owner. Others may replace it. */
void hx_peers_remember(
	struct hx_peers *peers, const char *address, enum hx_peers_credential kind,
	struct hapax_bytes name);

/* Whether it was right from this address before. */
bool hx_peers_knows(
	const struct hx_peers *peers, const char *address, enum hx_peers_credential kind,
	struct hapax_bytes name);

/* A password from address was ignored: for the log. */
void hx_peers_note_locked(struct hx_peers *peers, const char *address);

/* Whether any password was wrong lately: if not, no address is locked. */
static inline bool hx_peers_has_failed(const struct hx_peers *peers)
{
	return atomic_load_explicit(&peers->failed_count, memory_order_relaxed) != 0;
}

/* Logs limits that were reached or are over. Once a second, on the control loop. */
void hx_peers_watch(struct hx_peers *peers, struct hx_logger *log, int64_t now_ns);

#endif
