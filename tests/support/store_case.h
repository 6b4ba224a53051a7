/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_case.h - a fresh store of the kind under test, on a clock that the test
 * moves, and short ways to ask it things.
 *
 * A kind is a store URL without its place: "memory:", "sqlite:", "redis+unix:". Nothing runs in
 * the background: the test sweeps. The functions that return an operation fill in
 * what its type needs; case_run() submits it and waits.
 *
 * Whatever goes wrong in the preparation ends the program with a message.
 */
#ifndef TEST_SUPPORT_STORE_CASE_H
#define TEST_SUPPORT_STORE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "support/temp_dir.h"
#include "support/virtual_clock.h"

/* 2026-01-01T00:00:00Z, where every case begins. */
#define CASE_EPOCH_MS INT64_C(1767225600000)

struct api_case;

struct store_case {
	const char *kind;
	char url[256];
	bool has_dir;
	struct temp_dir dir;
	struct hx_virtual_clock clock;
	struct hapax_store_options options; /* change them before open or reopen */
	struct hapax_store *store;
	struct hapax_record record; /* what case_run() reads records into */
	struct hapax_buf *buf;
	uint64_t attempts;       /* attempt ids given out */
	struct api_case *server; /* of the kind "http:" */
};

/* Set by support/api_case.c, where it is linked in; it has the kind "http:". */
extern struct hapax_store *(*store_case_open_server)(struct store_case *c);
extern void (*store_case_close_server)(struct store_case *c);

/* Make it, closed: default options on the virtual clock, without housekeeping. */
void store_case_init(struct store_case *c, const char *kind);
void store_case_done(struct store_case *c);

/* init and open in one. */
void store_case_begin(struct store_case *c, const char *kind);

void store_case_open(struct store_case *c);

/* Close and open again; the place stays, so only a store with files remembers. */
void store_case_reopen(struct store_case *c);

bool store_case_is_durable(const struct store_case *c);

/* One counter of tokens, and groups and limits over all keys. */
bool store_case_is_whole(const struct store_case *c);

/* It keeps its clock itself, over restarts; others take a server's word for it. */
bool store_case_has_own_clock(const struct store_case *c);

/* It can be opened with keys_max and bytes_max. */
bool store_case_has_limits(const struct store_case *c);

/* Time passes. */
void store_case_advance(struct store_case *c, int64_t ms);

/* The store's own time, as its statistics tell it. */
int64_t store_case_now(struct store_case *c);

/* Fingerprints: 32 bytes of that letter, or NULL for 0. They live forever. */
const unsigned char *case_fingerprint(char letter);

/* Attempt ids: of that number; equal numbers give equal ids. Below 65,536 they live forever. */
const unsigned char *case_attempt_id(uint64_t number);

/* An operation on key in default/default. A claim has lease 1 s, ttl 1 min, a new attempt_id. */
struct hapax_op case_op(struct store_case *c, enum hapax_op_type type, const char *key);

/* The same with a token. */
struct hapax_op case_op_token(
	struct store_case *c, enum hapax_op_type type, const char *key, uint64_t token);

/* Submit one, wait, and return its status; the record goes into c->record. */
enum hapax_status case_run(struct store_case *c, struct hapax_op *op);

/* Submit a new claim and return its outcome; its token goes into *ret_token, if not NULL. */
enum hapax_outcome case_claim(struct store_case *c, const char *key, uint64_t *ret_token);

/* The state of a key: a lookup into c->record. ABSENT when there is none. */
enum hapax_state case_state(struct store_case *c, const char *key);

/* complete, release, park, renew with the token; the status. */
enum hapax_status case_complete(struct store_case *c, const char *key, uint64_t token);
enum hapax_status case_release(struct store_case *c, const char *key, uint64_t token);
enum hapax_status case_park(struct store_case *c, const char *key, uint64_t token);
enum hapax_status case_renew(struct store_case *c, const char *key, uint64_t token);

struct hapax_stats case_stats(struct store_case *c);

/* Sweep until done; sums. */
struct hapax_sweep case_sweep(struct store_case *c);

/* How many records a scan hands out, with count_max records a call. */
size_t case_scan_count(struct store_case *c, const struct hapax_scan *scan);

bool case_bytes_are(struct hapax_bytes bytes, const void *data, size_t size);

#endif
