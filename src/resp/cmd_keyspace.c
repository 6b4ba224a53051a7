/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_keyspace.c - commands about all keys: SCAN, DBSIZE, FLUSHDB and FLUSHALL.
 *
 * They walk through the store while they are planned, a bounded piece at a time; what a
 * cursor means is kept by the service, since clients give it back as a number.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "resp/command.h"
#include "resp/commands.h"

enum {
	SCAN_COUNT_DEFAULT = 10,
	SCAN_COUNT_MAX = 1000, /* records looked at in one go */
	FLUSH_COUNT = 512,     /* removed in one step */
};

/* ---------------------------------------------------------------- SCAN */

struct scan {
	struct hapax_bytes pattern;
	bool has_pattern;
	bool wants_none; /* TYPE of something that there is not */
	int64_t count;
	struct hapax_buf *out;
	size_t found;
	enum hapax_status status;
};

static int see_key(const struct hapax_record *record, void *context)
{
	struct scan *scan = context;

	if (record->state == HAPAX_STATE_FAILED || scan->wants_none)
		return 0;
	if (scan->has_pattern && !hx_resp_glob(scan->pattern, record->key, false))
		return 0;
	scan->status = hx_resp_put_bulk(scan->out, record->key);
	scan->found += scan->status == HAPAX_OK;
	return scan->status != HAPAX_OK;
}

/* False: it was refused. */
static bool read_scan_options(struct hx_resp_call *call, struct scan *scan)
{
	for (size_t i = 2; i < call->argc; i += 2) {
		if (i + 1 == call->argc) {
			hx_resp_refuse_syntax(call);
			return false;
		}
		if (hx_resp_is_word(call->argv[i], "COUNT")) {
			if (!hx_resp_integer_arg(call, call->argv[i + 1], &scan->count))
				return false;
			if (scan->count < 1) {
				hx_resp_refuse_syntax(call);
				return false;
			}
		} else if (hx_resp_is_word(call->argv[i], "MATCH")) {
			scan->pattern = call->argv[i + 1];
			scan->has_pattern = true;
		} else if (hx_resp_is_word(call->argv[i], "TYPE")) {
			scan->wants_none = !hx_resp_is_word(call->argv[i + 1], "STRING");
		} else {
			hx_resp_refuse_syntax(call);
			return false;
		}
	}
	return true;
}

static bool read_cursor(struct hapax_bytes text, uint64_t *ret_id)
{
	const char *at = text.data;
	uint64_t id = 0;

	if (text.size == 0 || text.size > 20)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(id, UINT64_C(10), &id) ||
		    __builtin_add_overflow(id, (uint64_t)(at[i] - '0'), &id))
			return false;
	}
	*ret_id = id;
	return true;
}

static struct hapax_bytes part_or_default(struct hapax_bytes part)
{
	return part.size == 0 ? HX_BYTES_LIT("default") : part;
}

static void put_scan(
	struct hx_resp_call *call, const struct scan *scan, const struct hapax_cursor *cursor)
{
	uint64_t id = cursor->done ? 0 : hx_resp_service_keep_scan(call->service, cursor);
	char number[24];
	enum hapax_status status;

	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)id);
	status = hx_resp_put_array(call->text, 2);
	if (status == HAPAX_OK)
		status = hx_resp_put_text(call->text, number);
	if (status == HAPAX_OK)
		status = hx_resp_put_array(call->text, scan->found);
	if (status == HAPAX_OK)
		status = hx_buf_append(call->text, scan->out->data, scan->out->size);
	if (status != HAPAX_OK)
		call->session->is_closing = call->session->is_abrupt = true;
}

void hx_resp_plan_scan(struct hx_resp_call *call)
{
	struct hx_resp_session *session = call->session;
	struct hapax_scan what = HAPAX_SCAN_INIT;
	struct hapax_cursor cursor = {.size = 0};
	struct scan scan = {.count = SCAN_COUNT_DEFAULT, .out = &session->kept};
	uint64_t id;

	if (!read_cursor(call->argv[1], &id)) {
		hx_resp_refuse(call, "ERR invalid cursor");
		return;
	}
	if (!read_scan_options(call, &scan))
		return;
	if (id != 0 && !hx_resp_service_take_scan(call->service, id, &cursor)) {
		hx_resp_refuse(call, "ERR invalid cursor");
		return;
	}
	hx_buf_clear(&session->kept);
	what.tenant = part_or_default(session->tenant);
	what.group = part_or_default(session->group);
	what.count_max = (size_t)(scan.count < SCAN_COUNT_MAX ? scan.count : SCAN_COUNT_MAX);
	if (hapax_store_scan(call->service->options.store, &what, &cursor, see_key, &scan, NULL) !=
	            HAPAX_OK ||
	    scan.status != HAPAX_OK)
		hx_resp_refuse(call, "ERR the store could not be read");
	else
		put_scan(call, &scan, &cursor);
	hx_buf_done(&session->kept);
}

void hx_resp_plan_dbsize(struct hx_resp_call *call)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	uint64_t absent;

	if (hapax_store_stats(call->service->options.store, &stats, NULL, NULL, NULL) != HAPAX_OK) {
		hx_resp_refuse(call, "ERR the store could not be read");
		return;
	}
	/* Of those that failed some may have expired as well. */
	absent = stats.expired > stats.failed ? stats.expired : stats.failed;
	(void)hx_resp_put_integer(call->text, (int64_t)(stats.keys - absent));
}

/* ---------------------------------------------------------------- FLUSHALL */

static int gather_key(const struct hapax_record *record, void *context)
{
	struct hapax_buf *kept = context;

	if (record->origin != HAPAX_ORIGIN_SET)
		return 0;
	return hx_buf_append_u32(kept, (uint32_t)record->key.size) != HAPAX_OK ||
		hx_buf_append(kept, record->key.data, record->key.size) != HAPAX_OK;
}

/* The next keys into session->kept; false: the store could not be read. */
static bool gather_keys(struct hx_resp_session *session)
{
	struct hapax_scan what = HAPAX_SCAN_INIT;

	what.tenant = part_or_default(session->tenant);
	what.group = part_or_default(session->group);
	what.count_max = FLUSH_COUNT;
	hx_buf_clear(&session->kept);
	while (!session->cursor.done && session->kept.size == 0) {
		if (hapax_store_scan(
			    session->service->options.store, &what, &session->cursor, gather_key,
			    &session->kept, NULL) != HAPAX_OK)
			return false;
	}
	return true;
}

static bool next_key(const struct hapax_buf *kept, size_t *at, struct hapax_bytes *ret_key)
{
	uint32_t size;

	if (*at + sizeof(size) > kept->size)
		return false;
	memcpy(&size, kept->data + *at, sizeof(size));
	if (kept->size - *at - sizeof(size) < size)
		return false;
	*ret_key = hx_bytes(kept->data + *at + sizeof(size), size);
	*at += sizeof(size) + size;
	return true;
}

/* What was made by others than SET stays, as with DEL. */
static bool finish_flush(struct hx_resp_answer *answer)
{
	struct hx_resp_session *session = answer->session;
	struct hapax_bytes key;
	struct hapax_op *op;
	size_t at = 0;

	for (size_t i = 0; i < answer->count; i++) {
		if (hx_resp_put_failure(answer, &answer->ops[i]))
			return true;
	}
	if (!gather_keys(session)) {
		(void)hx_resp_put_error(answer->out, "ERR the store could not be read");
		return true;
	}
	hx_resp_begin_step(answer, finish_flush);
	while (next_key(&session->kept, &at, &key)) {
		op = hx_resp_add_step(answer, HAPAX_OP_FORGET, key, false);
		if (op == NULL)
			return true;
		op->flags = HAPAX_OP_SET_ONLY;
	}
	if (answer->entry->count > 0)
		return false;
	hx_buf_done(&session->kept);
	(void)hx_resp_put_simple(answer->out, "OK");
	return true;
}

void hx_resp_plan_flush(struct hx_resp_call *call)
{
	if (call->argc > 2 ||
	    (call->argc == 2 && !hx_resp_is_word(call->argv[1], "SYNC") &&
	     !hx_resp_is_word(call->argv[1], "ASYNC"))) {
		hx_resp_refuse_syntax(call);
		return;
	}
	if (!(call->service->options.flags & HX_RESP_ALLOW_FLUSH)) {
		hx_resp_refuse(call, "NOPERM this door does not flush; see resp.allow_flush");
		return;
	}
	memset(&call->session->cursor, 0, sizeof(call->session->cursor));
	call->entry->finish = finish_flush;
}
