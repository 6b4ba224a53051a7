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
 * room for one more. So a limit of 20 allows 20 at once, then one every three seconds.
 *
 * One client must not lock out its neighbors, so three things are exempt. A guesser gains nothing
 * by any of them:
 * - A right credential that this address has used successfully before is accepted.
 * - A right credential with the form of an API token (wire/api_token.h) is accepted: 256 random
 *   bits are not found by guessing. Passwords that people choose do not have this form.
 * - A wrong credential is counted once. A client that repeats an old password does not guess.
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
	HX_PEERS_KNOWN_SLOTS = 4096, /* of right credentials, and as many of wrong ones */
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

enum hx_peers_kind {
	HX_PEERS_API_TOKEN,
	HX_PEERS_PASSWORD, /* at the Redis door */
};

/* A credential that a client sent. */
struct hx_peers_credential {
	enum hx_peers_kind kind;
	struct hapax_bytes name; /* of a user, as sent; of the owner of a right API token */
	struct hapax_bytes secret;
	bool is_right;
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
	_Atomic uint64_t right[HX_PEERS_KNOWN_SLOTS]; /* by kind and name */
	_Atomic uint64_t wrong[HX_PEERS_KNOWN_SLOTS]; /* by kind, name and secret */
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

/*
 * Judges a credential from address, and counts it if it is wrong; max per minute are allowed; 0: no
 * limit. Returns 0 if the client is told whether it is right, else how long the address is still
 * locked: the credential is ignored, and the answer must not depend on is_right.
 */
int64_t hx_peers_judge(
	struct hx_peers *peers, const char *address, uint64_t max, int64_t now_ns,
	const struct hx_peers_credential *credential);

/* Logs limits that were reached or are over. Once a second, on the control loop. */
void hx_peers_watch(struct hx_peers *peers, struct hx_logger *log, int64_t now_ns);

#endif
