/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.c - what a journal let through, into the store that is back.
 *
 * A record is settled by steps that may each be repeated: claim it in the store, note the
 * store's token in the journal, complete it by that token, forget it in the journal. A
 * record with a token of the store is one whose first two steps were done, or whose claim
 * was there before the outage; completing it again is no second run.
 */
#include <string.h>

#include <hapax/outage.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/outage/journal.h"

enum {
	BATCH_RECORDS = 256,
	BATCH_BYTES = 4 * 1024 * 1024,
	RECORD_BYTES_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + HX_OWNER_SIZE_MAX +
		HX_ERROR_TEXT_SIZE_MAX + HX_RESULT_HEADERS_SIZE_MAX + HX_RESULT_SIZE_LIMIT,
};

struct batch {
	size_t count;
	size_t bytes;
	int64_t begin_ms; /* of the pass, by the journal's clock */
	enum hapax_status status;
	struct hapax_record records[BATCH_RECORDS];
	struct hapax_buf bufs[BATCH_RECORDS];
};

struct pair {
	struct hapax_store *journal;
	struct hapax_store *store;
	struct hapax_error *err;
};

const char *hapax_reconciled_name(enum hapax_reconciled verdict)
{
	switch (verdict) {
	case HAPAX_RECONCILED_KEPT: return "kept";
	case HAPAX_RECONCILED_TWICE: return "twice";
	case HAPAX_RECONCILED_MISMATCH: return "mismatch";
	case HAPAX_RECONCILED_FAILED: return "failed";
	case HAPAX_RECONCILED_LATER: return "later";
	}
	return "unknown";
}

static struct hapax_op op_on(enum hapax_op_type type, const struct hapax_record *record)
{
	return (struct hapax_op){
		.type = type,
		.tenant = record->tenant,
		.group = record->group,
		.key = record->key,
		.ttl_ms = record->ttl_ms,
		.fingerprint = record->fingerprint_size == HAPAX_FINGERPRINT_SIZE
			? record->fingerprint
			: NULL,
	};
}

/* Run one, and say in the error which record it was. */
static enum hapax_status run(
	struct hapax_store *store, struct hapax_op *op, const struct hapax_record *record,
	struct hapax_error *err)
{
	struct hapax_error cause = {.status = HAPAX_OK};
	enum hapax_status status = hapax_store_run(store, op, 1, &cause);

	if (status == HAPAX_OK)
		return HAPAX_OK;
	return hx_error_set(
		err, status, cause.os_errno, "'%.100s' refused key '%.*s': %.100s",
		hapax_store_url(store), (int)(record->key.size < 64 ? record->key.size : 64),
		(const char *)record->key.data, cause.message);
}

static enum hapax_status forget(struct pair *pair, const struct hapax_record *record)
{
	struct hapax_op op = op_on(HAPAX_OP_FORGET, record);

	op.fingerprint = NULL;
	return run(pair->journal, &op, record, pair->err);
}

/* The claim in the store is ours: keep its token where a crash does not lose it. */
static enum hapax_status note_token(struct pair *pair, struct hapax_record *record, uint64_t token)
{
	struct hapax_op op = op_on(HAPAX_OP_LOAD, record);

	record->token = token;
	op.load = record;
	op.fingerprint = NULL;
	return run(pair->journal, &op, record, pair->err);
}

/* FENCED: somebody else has it there, or it is not there any more. */
static enum hapax_status complete(struct pair *pair, const struct hapax_record *record)
{
	struct hapax_op op = op_on(HAPAX_OP_COMPLETE, record);

	op.fingerprint = NULL;
	op.token = record->token;
	op.result = &record->result;
	return run(pair->store, &op, record, pair->err);
}

static enum hapax_reconciled verdict_of(enum hapax_outcome outcome)
{
	switch (outcome) {
	case HAPAX_OUTCOME_ACQUIRED: return HAPAX_RECONCILED_KEPT;
	case HAPAX_OUTCOME_REPLAY: return HAPAX_RECONCILED_TWICE;
	case HAPAX_OUTCOME_MISMATCH: return HAPAX_RECONCILED_MISMATCH;
	default: return HAPAX_RECONCILED_LATER;
	}
}

/* A run that the journal let through. */
static enum hapax_status settle_run(
	struct pair *pair, struct hapax_record *record, enum hapax_reconciled *ret)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = op_on(HAPAX_OP_CLAIM, record);
	enum hapax_status status;

	hapax_attempt_id(attempt_id);
	op.attempt_id = attempt_id;
	op.owner = hapax_bytes_from_text("reconcile");
	status = run(pair->store, &op, record, pair->err);
	if (status != HAPAX_OK)
		return status;
	*ret = verdict_of(op.outcome);
	if (op.outcome != HAPAX_OUTCOME_ACQUIRED)
		return HAPAX_OK;
	status = note_token(pair, record, op.token);
	return status == HAPAX_OK ? complete(pair, record) : status;
}

/* A mark that the journal let through. */
static enum hapax_status settle_mark(
	struct pair *pair, struct hapax_record *record, enum hapax_reconciled *ret)
{
	struct hapax_op op = op_on(HAPAX_OP_CHECK, record);
	enum hapax_status status = run(pair->store, &op, record, pair->err);

	*ret = verdict_of(op.outcome);
	/* Its own mark would be taken for another one's next time: noted before it is forgotten. */
	if (status == HAPAX_OK && op.outcome == HAPAX_OUTCOME_ACQUIRED)
		status = note_token(pair, record, op.token);
	return status;
}

/* A run whose claim is in the store. */
static enum hapax_status settle_claimed(
	struct pair *pair, struct hapax_record *record, enum hapax_reconciled *ret)
{
	enum hapax_status status;

	*ret = HAPAX_RECONCILED_KEPT;
	if (record->origin == HAPAX_ORIGIN_CHECK)
		return HAPAX_OK;
	status = complete(pair, record);
	/* Somebody took it over, or it is not there any more: what became of it decides. */
	return status == HAPAX_ERR_FENCED ? settle_run(pair, record, ret) : status;
}

/* Does it say something of the store, rather than of this record? */
static bool ends_the_pass(enum hapax_status status)
{
	return status == HAPAX_ERR_UNAVAILABLE || status == HAPAX_ERR_UNCERTAIN ||
		status == HAPAX_ERR_FAILED || status == HAPAX_ERR_CORRUPT ||
		status == HAPAX_ERR_NO_MEMORY;
}

static enum hapax_status settle(
	struct pair *pair, struct hapax_record *record, enum hapax_reconciled *ret)
{
	enum hapax_status status = HAPAX_OK;

	*ret = HAPAX_RECONCILED_LATER;
	if (record->state == HAPAX_STATE_FAILED)
		*ret = HAPAX_RECONCILED_FAILED;
	else if (record->state != HAPAX_STATE_DONE)
		return HAPAX_OK; /* runs, or waits for a person, on this side */
	else if (!hx_journal_gave(record->token))
		status = settle_claimed(pair, record, ret);
	else if (record->origin == HAPAX_ORIGIN_CHECK)
		status = settle_mark(pair, record, ret);
	else
		status = settle_run(pair, record, ret);
	if (status == HAPAX_OK && *ret != HAPAX_RECONCILED_LATER)
		status = forget(pair, record);
	return status;
}

static int take(const struct hapax_record *record, void *context)
{
	struct batch *batch = context;

	/* What comes while we work is for the next pass, or this one might never end. */
	if (record->changed_ms > batch->begin_ms)
		return 0;
	batch->status =
		hx_record_copy(record, &batch->records[batch->count], &batch->bufs[batch->count]);
	if (batch->status != HAPAX_OK)
		return 1;
	batch->bytes += record->result.body.size + record->result.headers.size;
	batch->count++;
	return batch->count == BATCH_RECORDS || batch->bytes >= BATCH_BYTES;
}

static enum hapax_status settle_batch(
	struct pair *pair, struct batch *batch, struct hapax_reconcile *reconcile)
{
	for (size_t i = 0; i < batch->count; i++) {
		enum hapax_reconciled verdict;
		enum hapax_status status = settle(pair, &batch->records[i], &verdict);

		if (ends_the_pass(status))
			return status;
		/* What the store refuses stays in the journal, and does not hold up the rest. */
		if (status != HAPAX_OK)
			verdict = HAPAX_RECONCILED_LATER;
		reconcile->counts[verdict]++;
		if (reconcile->each != NULL)
			reconcile->each(&batch->records[i], verdict, reconcile->context);
	}
	return HAPAX_OK;
}

static enum hapax_status settle_all(
	struct pair *pair, struct batch *batch, struct hapax_reconcile *reconcile)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(pair->journal, &stats, NULL, NULL, pair->err);

	batch->begin_ms = stats.now_ms;
	scan.count_max = BATCH_RECORDS;
	while (status == HAPAX_OK && !cursor.done) {
		batch->count = batch->bytes = 0;
		status = hapax_store_scan(pair->journal, &scan, &cursor, take, batch, pair->err);
		if (status == HAPAX_OK && batch->status != HAPAX_OK)
			status = hx_error_set(
				pair->err, batch->status, 0,
				"no memory for a record of the journal");
		if (status == HAPAX_OK)
			status = settle_batch(pair, batch, reconcile);
	}
	return status;
}

enum hapax_status hapax_journal_reconcile(
	struct hapax_store *journal, struct hapax_store *store, struct hapax_reconcile *reconcile,
	struct hapax_error *err)
{
	struct pair pair = {journal, store, err};
	struct batch *batch;
	enum hapax_status status;

	if (journal == NULL || store == NULL || journal == store || reconcile == NULL ||
	    reconcile->size != sizeof(*reconcile))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a journal, a store and a reconcile of a known size are needed");
	status = hx_journal_prepare(journal, err);
	if (status != HAPAX_OK)
		return status;
	batch = hx_alloc_zero(1, sizeof(*batch));
	if (batch == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory to reconcile");
	for (size_t i = 0; i < BATCH_RECORDS; i++)
		hx_buf_init(&batch->bufs[i], RECORD_BYTES_MAX);
	status = settle_all(&pair, batch, reconcile);
	for (size_t i = 0; i < BATCH_RECORDS; i++)
		hx_buf_done(&batch->bufs[i]);
	hx_free(batch);
	return status;
}
