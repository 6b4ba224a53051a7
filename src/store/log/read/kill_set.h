/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_set.h - keys whose older versions are dead: the REMOVE entries that recovery has read.
 * Exact: keys are compared whole.
 *
 * Threads: one at a time.
 */
#ifndef HX_STORE_LOG_READ_KILL_SET_H
#define HX_STORE_LOG_READ_KILL_SET_H

#include "base/buf.h"
#include "store/index/index.h"

struct hx_log_kill {
	uint64_t hash;
	uint64_t lsn;    /* 0: the slot is empty */
	uint64_t offset; /* of the key in text */
	uint32_t scope_id;
	uint16_t size;
	uint8_t encoding;
};

struct hx_log_kill_set {
	struct hx_log_kill *slots; /* a power of two */
	size_t capacity;
	size_t count;
	struct hapax_buf text;
};

void hx_log_kill_set_init(struct hx_log_kill_set *set);
void hx_log_kill_set_done(struct hx_log_kill_set *set);

/* Versions of key below lsn are dead. False: no memory. */
bool hx_log_kill_set_add(struct hx_log_kill_set *set, const struct hx_index_key *key, uint64_t lsn);

/* Is the version of key with this lsn dead? */
bool hx_log_kill_set_has(
	const struct hx_log_kill_set *set, const struct hx_index_key *key, uint64_t lsn);

#endif
