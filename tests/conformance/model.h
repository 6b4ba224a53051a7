/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - the record's rules a second time, naively, to check stores against.
 *
 * Written from the design and the comments of the public headers, not
 * from src/record: the two meet only in the tests. It knows one caller and no
 * clock; after each submit it is given the time and the operations as the store
 * answered them, predicts every answer, and says what differs. Tokens are the one
 * thing it does not predict: it takes the store's and checks that they rise.
 *
 * Threads: one at a time.
 */
#ifndef TEST_CONFORMANCE_MODEL_H
#define TEST_CONFORMANCE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

enum {
	MODEL_KEYS_MAX = 64,  /* different (tenant, group, key) in one history */
	MODEL_TEXT_MAX = 64,  /* tenant, group, key, owner, error, cause, headers */
	MODEL_BODY_MAX = 512, /* result bodies */
	MODEL_WHY_SIZE = 512,
};

struct model_text {
	size_t size;
	unsigned char data[MODEL_TEXT_MAX];
};

struct model_record {
	enum hapax_state state; /* ABSENT: no record */
	enum hapax_origin origin;
	enum hapax_on_lapse on_lapse;
	uint32_t attempt;
	uint64_t token;
	int64_t first_seen_ms;
	int64_t changed_ms;
	int64_t lease_ends_ms;
	int64_t expires_ms;
	int64_t ttl_ms;
	bool has_fingerprint;
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct model_text owner;
	struct model_text error;
	bool error_is_free; /* the store chooses the text: no caller gave any, or it was full */
	struct model_text cause;
	bool cause_may_go; /* a full store may have left it out */
	bool may_be_cut;   /* and headers and body */
	enum hapax_result_kind kind;
	enum hapax_result_class result_class;
	int32_t status;
	uint64_t omitted_bytes;
	struct model_text headers;
	size_t body_size;
	unsigned char body[MODEL_BODY_MAX];
};

/* A key is never forgotten here, its record may be. */
struct model_key {
	struct model_text tenant;
	struct model_text group;
	struct model_text key;
	uint64_t token_max; /* the largest that this key was given */
	bool seen;          /* by the comparison with a scan */
	struct model_record record;
};

struct model {
	uint64_t result_size_max;
	uint64_t keys_max;    /* 0: no limit */
	uint64_t parked_max;  /* per tenant and group; 0: no limit */
	bool has_bytes_max;   /* then anything new may be refused, and results cut */
	bool evicts;          /* then DONE records may go, as far as answers show */
	uint64_t evicted;     /* how many were seen to be gone */
	size_t submitted;     /* operations in the submit that is being checked, */
	size_t held_before;   /* and how many records, */
	size_t parked_before; /* and parked ones, there were before it */
	bool tokens_per_key;  /* they rise for each key, not over all: a Redis Cluster */
	uint64_t token_max;   /* the largest given out by submits that have ended */
	uint64_t token_high;  /* by the one that is being checked, too */
	uint64_t counts[HAPAX_DECISION_COUNT];
	size_t count;
	struct model_key keys[MODEL_KEYS_MAX];
	char why[MODEL_WHY_SIZE]; /* what differed, when something did */
};

/* Histories keep to what fits; a longer text is a mistake in the test. */
struct model_text model_text_of(struct hapax_bytes bytes);

bool model_text_is(const struct model_text *text, struct hapax_bytes bytes);

/* What of record is not as expected, by name, or NULL. Where the text leaves room, this does. */
const char *model_record_difference(
	const struct model_record *expected, const struct hapax_record *record);

/* Does the answer to op say that its DONE record was not there? When both could be: no. */
bool model_shows_absence(
	const struct model *model, const struct hapax_op *op, const struct model_record *record);

void model_init(struct model *model);

/* Check the answers to one submit at now_ms. False: model->why says what differs. */
bool model_submit(struct model *model, int64_t now_ms, const struct hapax_op *ops, size_t count);

/*
 * The answer to one operation, or to a group of them that is all or nothing, is unknown, but
 * it was decided: token is what a claim, check or set was given, if it was. False: model->why
 * says why that cannot be.
 */
bool model_assume(
	struct model *model, int64_t now_ms, const struct hapax_op *ops, size_t count,
	uint64_t token);

/* A sweep ran until it was done: returns how many lapsed claims it had to settle. */
size_t model_sweep(struct model *model, int64_t now_ms);

/*
 * Compare with a scan: begin, then each record of it, then end, which wants every
 * unexpired record to have been seen.
 */
void model_scan_begin(struct model *model);
bool model_scan_record(struct model *model, int64_t now_ms, const struct hapax_record *record);
bool model_scan_end(struct model *model, int64_t now_ms);

/* How many unexpired records there are in that state; ABSENT: in any. */
size_t model_count(const struct model *model, int64_t now_ms, enum hapax_state state);

/* The record of a key, or NULL when there is none or it has expired. */
const struct model_record *model_find(
	const struct model *model, int64_t now_ms, struct hapax_bytes tenant,
	struct hapax_bytes group, struct hapax_bytes key);

#endif
