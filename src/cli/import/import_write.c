/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_write.c - decide about a batch of rows: new, existing or in conflict; and write it.
 *
 * A mark is one operation. Any other row is claimed and, in a second submit, completed. The lease
 * of the claim covers the time between them; if the import dies, its next run acquires the claim
 * again by its attempt id.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "cli/frame/key_command.h"
#include "cli/frame/report.h"
#include "cli/import/import.h"

static bool is_same(const struct hapax_result *a, const struct hapax_result *b)
{
	return a->kind == b->kind && a->result_class == b->result_class && a->status == b->status &&
		hx_bytes_equal(a->body, b->body);
}

/* A store keeps no key longer than its limit, whatever the source says. */
static int64_t stored_end(const struct hx_import_entry *entry)
{
	const struct hapax_record *record = &entry->record;

	return record->ttl_ms == HX_TTL_MS_MAX ? HAPAX_TIME_NEVER : record->expires_ms;
}

/* The store has a record for the key, in a state that the import does not change. */
static void judge_record(struct hx_import *import, const struct hx_import_entry *entry)
{
	const char *why = NULL;

	switch (entry->record.state) {
	case HAPAX_STATE_CLAIMED: why = "a run is in progress"; break;
	case HAPAX_STATE_PARKED: why = "it is parked"; break;
	case HAPAX_STATE_ABSENT:
	case HAPAX_STATE_FAILED:
	case HAPAX_STATE_DONE:
		if (entry->result.kind != HAPAX_RESULT_NONE &&
		    !is_same(&entry->result, &entry->record.result))
			why = "the store has a different result";
		else if (hx_import_is_longer(entry, stored_end(entry)))
			why = "it expires earlier in the store than in the source";
		break;
	}
	if (why == NULL)
		import->existing++;
	else
		hx_import_note(&import->conflicts, entry->key, why);
}

/* Would a claim or check answer ACQUIRED? An earlier import may have left its claim. */
static bool is_free(const struct hapax_op *op)
{
	const struct hx_import_entry *entry = op->context;

	if (op->outcome == HAPAX_OUTCOME_ABSENT || op->record->state == HAPAX_STATE_FAILED)
		return true;
	return op->record->state == HAPAX_STATE_CLAIMED &&
		(op->lease_left_ms == 0 ||
		 memcmp(op->record->attempt_id, entry->digest, HAPAX_ATTEMPT_ID_SIZE) == 0);
}

static void count_new(struct hx_import *import, const struct hx_import_entry *entry)
{
	if (entry->is_mark)
		import->marks++;
	else
		import->results++;
	if (entry->ends_ms == HAPAX_TIME_NEVER) {
		import->forever++;
		return;
	}
	if (import->first_end_ms == 0 || entry->ends_ms < import->first_end_ms)
		import->first_end_ms = entry->ends_ms;
	if (entry->ends_ms > import->last_end_ms)
		import->last_end_ms = entry->ends_ms;
}

static void add_sample(struct hx_import *import, const struct hx_import_entry *entry)
{
	struct hx_import_sample *sample = &import->samples[import->sample_count];

	if (import->sample_count == HX_IMPORT_SAMPLES_MAX)
		return;
	*sample = (struct hx_import_sample){.is_mark = entry->is_mark, .ends_ms = entry->ends_ms};
	hx_buf_init(&sample->name, 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + 2);
	if (hx_buf_append(&sample->name, entry->tenant.data, entry->tenant.size) == HAPAX_OK &&
	    hx_buf_append_byte(&sample->name, '/') == HAPAX_OK &&
	    hx_buf_append(&sample->name, entry->group.data, entry->group.size) == HAPAX_OK) {
		sample->key_at = sample->name.size;
		if (hx_buf_append(&sample->name, entry->key.data, entry->key.size) == HAPAX_OK)
			import->sample_count++;
	}
}

static struct hapax_op op_of(struct hx_import_entry *entry, int64_t now_ms)
{
	struct hapax_op op = {
		.tenant = entry->tenant,
		.group = entry->group,
		.key = entry->key,
		.record = &entry->record,
		.buf = &entry->record_bytes,
		.context = entry,
	};

	op.ttl_ms = HAPAX_TTL_FOREVER;
	if (entry->ends_ms != HAPAX_TIME_NEVER) {
		/* It was not expired when it was taken; it may be now. */
		op.ttl_ms = entry->ends_ms > now_ms ? entry->ends_ms - now_ms : 1;
		if (op.ttl_ms > HX_TTL_MS_MAX)
			op.ttl_ms = HX_TTL_MS_MAX;
	}
	return op;
}

static int run_ops(struct hx_import *import, size_t count)
{
	struct hapax_error err;

	if (count == 0 || hapax_store_run(import->store, import->ops, count, &err) == HAPAX_OK)
		return HX_EXIT_OK;
	return hx_key_command_report(import->inv, import->store, &import->ops[0], &err);
}

static int look_up(struct hx_import *import)
{
	int code = HX_EXIT_OK;

	for (size_t i = 0; i < import->batch_count; i++) {
		import->ops[i] = op_of(&import->batch[i], 0);
		import->ops[i].type = HAPAX_OP_LOOKUP;
		import->ops[i].outcome = HAPAX_OUTCOME_ABSENT;
	}
	if (import->store != NULL)
		code = run_ops(import, import->batch_count);
	for (size_t i = 0; code == HX_EXIT_OK && i < import->batch_count; i++) {
		struct hx_import_entry *entry = &import->batch[i];

		if (is_free(&import->ops[i])) {
			count_new(import, entry);
			add_sample(import, entry);
		} else {
			judge_record(import, entry);
		}
	}
	return code;
}

/* Make ops[i] complete the claim of *op, which it may replace. */
static struct hapax_op completion_of(const struct hapax_op *op)
{
	struct hx_import_entry *entry = op->context;

	return (struct hapax_op){
		.type = HAPAX_OP_COMPLETE,
		.tenant = entry->tenant,
		.group = entry->group,
		.key = entry->key,
		.token = op->token,
		.result = &entry->result,
		.context = entry,
	};
}

static int complete(struct hx_import *import, size_t count)
{
	int code = run_ops(import, count);

	for (size_t i = 0; i < count; i++)
		if (import->ops[i].status == HAPAX_OK)
			count_new(import, import->ops[i].context);
	return code;
}

static int write_batch(struct hx_import *import)
{
	int64_t now_ms = hx_clock_wall_ms();
	size_t claims = 0;
	int code;

	for (size_t i = 0; i < import->batch_count; i++) {
		struct hx_import_entry *entry = &import->batch[i];

		import->ops[i] = op_of(entry, now_ms);
		import->ops[i].type = entry->is_mark ? HAPAX_OP_CHECK : HAPAX_OP_CLAIM;
		if (entry->is_mark)
			continue;
		import->ops[i].attempt_id = entry->digest;
		import->ops[i].cause = entry->cause;
		import->ops[i].owner = HX_BYTES_LIT("hapax store import");
	}
	code = run_ops(import, import->batch_count);
	for (size_t i = 0; i < import->batch_count; i++) {
		const struct hapax_op *op = &import->ops[i];
		struct hx_import_entry *entry = op->context;

		if (op->status != HAPAX_OK)
			continue;
		if (op->outcome != HAPAX_OUTCOME_ACQUIRED) {
			judge_record(import, entry);
		} else if (entry->is_mark) {
			count_new(import, entry);
		} else {
			assert(claims <= i);
			import->ops[claims++] = completion_of(op);
		}
	}
	/* Claims that were acquired are completed, also when another operation failed. */
	if (code != HX_EXIT_OK) {
		(void)complete(import, claims);
		return code;
	}
	return complete(import, claims);
}

int hx_import_flush(struct hx_import *import)
{
	int code = HX_EXIT_OK;

	if (import->batch_count > 0)
		code = import->is_written ? write_batch(import) : look_up(import);
	import->batch_count = 0;
	import->batch_bytes = 0;
	return code;
}
