/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.c - moves journal records to the store when it is available again.
 *
 * Each record is settled in steps that may be repeated. A whole batch takes each step in one
 * submit, so that a round trip serves hundreds of records:
 *
 *	lapse     journal   release or park a claim whose holder is gone
 *	finish    store     a record with a store token: complete it with that token
 *	claim     store     all others: claim the key
 *	verify    journal   the key is done in the store: did another reconciler do it?
 *	note      journal   write down the store's token, to survive a crash
 *	complete  store     with that token
 *	forget    journal   only now is the record counted
 *
 * A record has a store token if its claim was in the store before the outage, or if its token was
 * noted but not completed. Completing it again is not a second run. A mark is settled like a
 * claim: after a crash, a check could not be told from another caller's check.
 *
 * A record counts when it leaves the journal. A pass that stops earlier leaves the rest to the
 * next pass, which finds the steps already taken.
 */
#include <assert.h>
#include <string.h>

#include <hapax/outage.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/outage/journal.h"

enum {
	BATCH_RECORDS = 256,
	BATCH_BYTES = 4 * 1024 * 1024,
	/* The buffer of a larger record is freed, or a batch could keep gigabytes. */
	KEPT_BYTES_MAX = 16 * 1024,
};

/* In order; an entry only moves to a later step. */
enum step {
	STEP_LAPSE,
	STEP_FINISH,
	STEP_CLAIM,
	STEP_VERIFY,
	STEP_NOTE,
	STEP_COMPLETE,
	STEP_FORGET,
	STEP_OVER, /* its verdict is final */
	STEP_LEFT, /* left to another reconciler or a later pass */
};

struct entry {
	enum step step;
	enum hapax_reconciled verdict;
	struct hapax_record record;
	struct hapax_buf buf;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];

	/* A failure as it was when forgotten; it may have become a success by then. */
	struct hapax_record forgotten;
	struct hapax_buf forgotten_buf;
};

struct pass {
	struct hapax_store *journal;
	struct hapax_store *store;
	struct hapax_reconcile *reconcile;
	struct hapax_error *err;
	int64_t begin_ms; /* by the journal's clock */
	bool has_lost_store;
	bool has_lost_journal;
	enum hapax_status status; /* why the pass ended, or OK */

	size_t count;
	size_t bytes;
	struct entry entries[BATCH_RECORDS];

	/* Operations that take a step together. */
	size_t op_count;
	struct hapax_op ops[BATCH_RECORDS];
	struct entry *takers[BATCH_RECORDS];
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

/* ------------------------------------------------------------------ one entry */

static void go_on(struct entry *entry, enum step step)
{
	assert(step > entry->step);
	entry->step = step;
}

/* The verdict is known, so the record may leave the journal. */
static void decide(struct entry *entry, enum hapax_reconciled verdict)
{
	entry->verdict = verdict;
	go_on(entry, verdict == HAPAX_RECONCILED_LATER ? STEP_OVER : STEP_FORGET);
}

/* Choose the first step of a journal record. */
static void classify(struct entry *entry, int64_t now_ms)
{
	const struct hapax_record *record = &entry->record;

	entry->verdict = HAPAX_RECONCILED_LATER;
	if (hx_record_is_lapsed(record, now_ms)) {
		entry->step = STEP_LAPSE;
	} else if (record->state == HAPAX_STATE_FAILED) {
		entry->verdict = HAPAX_RECONCILED_FAILED;
		entry->step = STEP_FORGET;
	} else if (record->state != HAPAX_STATE_DONE) {
		entry->step = STEP_OVER; /* runs here, or waits for a person here */
	} else {
		entry->step = hx_journal_gave(record->token) ? STEP_CLAIM : STEP_FINISH;
	}
}

static void fill_claim(struct entry *entry, struct hapax_op *op)
{
	const struct hapax_record *record = &entry->record;

	hapax_attempt_id(entry->attempt_id);
	op->type = HAPAX_OP_CLAIM;
	op->attempt_id = entry->attempt_id;
	op->owner = HX_BYTES_LIT("reconcile");
	op->cause = record->cause;
	op->ttl_ms = record->ttl_ms;
	if (record->fingerprint_size == HAPAX_FINGERPRINT_SIZE)
		op->fingerprint = record->fingerprint;
}

static void fill_op(struct entry *entry, struct hapax_op *op)
{
	struct hapax_record *record = &entry->record;

	*op = (struct hapax_op){
		.tenant = record->tenant, .group = record->group, .key = record->key};
	switch (entry->step) {
	case STEP_LAPSE:
		op->type =
			record->on_lapse == HAPAX_ON_LAPSE_PARK ? HAPAX_OP_PARK : HAPAX_OP_RELEASE;
		op->token = record->token;
		op->error = HX_BYTES_LIT("the lease lapsed");
		break;
	case STEP_CLAIM: fill_claim(entry, op); break;
	case STEP_VERIFY: op->type = HAPAX_OP_LOOKUP; break;
	case STEP_NOTE:
		op->type = HAPAX_OP_LOAD;
		op->load = record;
		break;
	case STEP_FINISH:
	case STEP_COMPLETE:
		op->type = HAPAX_OP_COMPLETE;
		op->token = record->token;
		op->result = &record->result;
		break;
	case STEP_FORGET:
		op->type = HAPAX_OP_FORGET;
		op->record = entry->verdict == HAPAX_RECONCILED_FAILED ? &entry->forgotten : NULL;
		op->buf = &entry->forgotten_buf;
		break;
	case STEP_OVER:
	case STEP_LEFT: assert(false && "there is nothing left to do");
	}
}

static void take_claim(struct entry *entry, const struct hapax_op *op)
{
	switch (op->outcome) {
	case HAPAX_OUTCOME_ACQUIRED:
		entry->record.token = op->token;
		go_on(entry, STEP_NOTE);
		break;
	case HAPAX_OUTCOME_REPLAY: go_on(entry, STEP_VERIFY); break;
	case HAPAX_OUTCOME_MISMATCH: decide(entry, HAPAX_RECONCILED_MISMATCH); break;
	default: decide(entry, HAPAX_RECONCILED_LATER); break;
	}
}

/* Another reconciler of this journal notes a token before it completes. */
static void take_look(struct entry *entry, const struct hapax_op *op)
{
	if (op->outcome == HAPAX_OUTCOME_FOUND && op->token == entry->record.token)
		decide(entry, HAPAX_RECONCILED_TWICE);
	else
		go_on(entry, STEP_LEFT);
}

static void take_answer(struct entry *entry, const struct hapax_op *op)
{
	switch (entry->step) {
	case STEP_LAPSE:
		decide(entry,
		       op->type == HAPAX_OP_PARK ? HAPAX_RECONCILED_LATER
						 : HAPAX_RECONCILED_FAILED);
		break;
	case STEP_CLAIM: take_claim(entry, op); break;
	case STEP_VERIFY: take_look(entry, op); break;
	case STEP_NOTE: go_on(entry, STEP_COMPLETE); break;
	case STEP_FINISH:
	case STEP_COMPLETE: decide(entry, HAPAX_RECONCILED_KEPT); break;
	case STEP_FORGET:
		/* Otherwise the record is gone: another reconciler has counted it. */
		go_on(entry, op->outcome == HAPAX_OUTCOME_APPLIED ? STEP_OVER : STEP_LEFT);
		break;
	case STEP_OVER:
	case STEP_LEFT: break;
	}
}

/* ------------------------------------------------------------------ one batch */

static bool is_of_store(enum step step)
{
	return step == STEP_FINISH || step == STEP_CLAIM || step == STEP_COMPLETE;
}

/* Is this a failure of the store, not of the record? */
static bool ends_the_pass(enum hapax_status status)
{
	return status == HAPAX_ERR_UNAVAILABLE || status == HAPAX_ERR_UNCERTAIN ||
		status == HAPAX_ERR_FAILED || status == HAPAX_ERR_CORRUPT ||
		status == HAPAX_ERR_NO_MEMORY;
}

/* Keep the first failure only. */
static void end_pass(
	struct pass *pass, enum step step, const struct hapax_op *op,
	const struct hapax_error *cause)
{
	struct hapax_store *store = is_of_store(step) ? pass->store : pass->journal;

	if (is_of_store(step))
		pass->has_lost_store = true;
	else
		pass->has_lost_journal = true;
	if (pass->status != HAPAX_OK)
		return;
	pass->status = hx_error_set(
		pass->err, op->status, cause->os_errno, "'%.100s' rejected key '%.*s': %.100s",
		hapax_store_url(store), (int)(op->key.size < 64 ? op->key.size : 64),
		(const char *)op->key.data,
		cause->status == op->status ? cause->message : hapax_status_name(op->status));
}

static void take_refusal(
	struct pass *pass, struct entry *entry, const struct hapax_op *op,
	const struct hapax_error *cause)
{
	if (ends_the_pass(op->status)) {
		end_pass(pass, entry->step, op, cause);
		entry->step = STEP_LEFT;
	} else if (entry->step == STEP_FINISH && op->status == HAPAX_ERR_FENCED) {
		/* The claim was taken over or is gone: the current record decides. */
		go_on(entry, STEP_CLAIM);
	} else {
		/* A refused record stays in the journal and does not block the others. */
		entry->verdict = HAPAX_RECONCILED_LATER;
		go_on(entry, STEP_OVER);
	}
}

/* The holder finished before the record was forgotten: leave it to the next pass. */
static void put_back(struct pass *pass, struct entry *entry)
{
	struct hapax_op op = {
		.type = HAPAX_OP_LOAD,
		.tenant = entry->forgotten.tenant,
		.group = entry->forgotten.group,
		.key = entry->forgotten.key,
		.load = &entry->forgotten,
	};
	struct hapax_error cause = {.status = HAPAX_OK};

	entry->step = STEP_LEFT;
	if (hapax_store_run(pass->journal, &op, 1, &cause) != HAPAX_OK)
		end_pass(pass, STEP_FORGET, &op, &cause);
}

/* Take the step for all entries that are at it, in one submit. */
static void take_step(struct pass *pass, enum step step)
{
	struct hapax_error cause = {.status = HAPAX_OK};

	pass->op_count = 0;
	for (size_t i = 0; i < pass->count; i++) {
		struct entry *entry = &pass->entries[i];

		if (entry->step != step)
			continue;
		fill_op(entry, &pass->ops[pass->op_count]);
		pass->takers[pass->op_count++] = entry;
	}
	if (pass->op_count == 0)
		return;
	(void)hapax_store_run(
		is_of_store(step) ? pass->store : pass->journal, pass->ops, pass->op_count, &cause);
	for (size_t i = 0; i < pass->op_count; i++) {
		struct entry *entry = pass->takers[i];

		if (pass->ops[i].status != HAPAX_OK)
			take_refusal(pass, entry, &pass->ops[i], &cause);
		else if (step == STEP_FORGET && entry->forgotten.state == HAPAX_STATE_DONE)
			put_back(pass, entry);
		else
			take_answer(entry, &pass->ops[i]);
	}
}

/*
 * If the store fails again, still note its claims and forget settled records, so that the next
 * pass continues from there.
 */
static void settle_batch(struct pass *pass)
{
	for (unsigned step = STEP_LAPSE; step < STEP_OVER && !pass->has_lost_journal; step++) {
		if (!is_of_store((enum step)step) || !pass->has_lost_store)
			take_step(pass, (enum step)step);
	}
	for (size_t i = 0; i < pass->count; i++) {
		const struct entry *entry = &pass->entries[i];
		struct hapax_reconcile *reconcile = pass->reconcile;

		if (entry->step != STEP_OVER)
			continue;
		reconcile->counts[entry->verdict]++;
		if (reconcile->each != NULL)
			reconcile->each(&entry->record, entry->verdict, reconcile->context);
	}
}

/* ------------------------------------------------------------------ the pass */

static int reconcile_take(const struct hapax_record *record, void *context)
{
	struct pass *pass = context;
	struct entry *entry = &pass->entries[pass->count];

	/* Leave later records to the next pass, or this one might never end. */
	if (record->changed_ms > pass->begin_ms)
		return 0;
	if (entry->buf.capacity > KEPT_BYTES_MAX)
		hx_buf_done(&entry->buf);
	if (entry->forgotten_buf.capacity > KEPT_BYTES_MAX)
		hx_buf_done(&entry->forgotten_buf);
	entry->forgotten.state = HAPAX_STATE_ABSENT;
	pass->status = hx_record_copy(record, &entry->record, &entry->buf);
	if (pass->status != HAPAX_OK)
		return 1;
	classify(entry, pass->begin_ms);
	pass->bytes += entry->buf.size;
	pass->count++;
	return pass->count == BATCH_RECORDS || pass->bytes >= BATCH_BYTES;
}

static bool is_same_place(const struct hapax_cursor *a, const struct hapax_cursor *b)
{
	return a->done == b->done && a->size == b->size && memcmp(a->place, b->place, a->size) == 0;
}

/*
 * Read the next batch. An unreadable record stays in the journal for a person and does not block
 * later ones: the scan continues from its cursor. A cursor that did not move never will.
 */
static enum hapax_status scan_batch(
	struct pass *pass, struct hapax_cursor *cursor, struct hapax_error *damage)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_cursor begin = *cursor;
	struct hapax_error cause = {.status = HAPAX_OK};
	enum hapax_status status;

	scan.count_max = BATCH_RECORDS;
	pass->count = pass->bytes = 0;
	status = hapax_store_scan(pass->journal, &scan, cursor, reconcile_take, pass, &cause);
	cause.status = status;
	if (status == HAPAX_ERR_CORRUPT && !is_same_place(&begin, cursor)) {
		pass->reconcile->counts[HAPAX_RECONCILED_LATER]++;
		if (damage->status == HAPAX_OK)
			*damage = cause;
		status = HAPAX_OK;
	}
	if (status == HAPAX_OK && pass->status != HAPAX_OK)
		return hx_error_set(
			pass->err, pass->status, 0,
			"not enough memory for a record of the journal");
	if (status != HAPAX_OK && pass->err != NULL)
		*pass->err = cause;
	return status;
}

static enum hapax_status settle_all(struct pass *pass)
{
	struct hapax_cursor cursor = {.size = 0};
	struct hapax_error damage = {.status = HAPAX_OK};
	struct hapax_stats stats = HAPAX_STATS_INIT;
	enum hapax_status status = hapax_store_stats(pass->journal, &stats, NULL, NULL, pass->err);

	pass->begin_ms = stats.now_ms;
	while (status == HAPAX_OK && !cursor.done) {
		status = scan_batch(pass, &cursor, &damage);
		if (status != HAPAX_OK)
			break;
		settle_batch(pass);
		status = pass->status;
	}
	if (status != HAPAX_OK || damage.status == HAPAX_OK)
		return status;
	if (pass->err != NULL)
		*pass->err = damage;
	return damage.status;
}

enum hapax_status hapax_journal_reconcile(
	struct hapax_store *journal, struct hapax_store *store, struct hapax_reconcile *reconcile,
	struct hapax_error *err)
{
	struct pass *pass;
	enum hapax_status status;

	if (journal == NULL || store == NULL || journal == store || reconcile == NULL ||
	    reconcile->size != sizeof(*reconcile))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"a journal, a store and a reconcile of a known size are required");
	status = hx_journal_prepare(journal, err);
	if (status != HAPAX_OK)
		return status;
	pass = hx_alloc_zero(1, sizeof(*pass));
	if (pass == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to reconcile");
	pass->journal = journal;
	pass->store = store;
	pass->reconcile = reconcile;
	pass->err = err;
	for (size_t i = 0; i < BATCH_RECORDS; i++) {
		hx_buf_init(&pass->entries[i].buf, HX_RECORD_SIZE_MAX);
		hx_buf_init(&pass->entries[i].forgotten_buf, HX_RECORD_SIZE_MAX);
	}
	status = settle_all(pass);
	for (size_t i = 0; i < BATCH_RECORDS; i++) {
		hx_buf_done(&pass->entries[i].buf);
		hx_buf_done(&pass->entries[i].forgotten_buf);
	}
	hx_free(pass);
	return status;
}
