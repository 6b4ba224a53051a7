/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy_log.c - see toy_log.h.
 *
 * File "log-NNNN": a page with magic and number, then frames: magic, size in bytes,
 * bytes of entries, CRC (seeded by the file's number), LSN, token, clock mark, entries.
 * An entry is a kind and an encoded record. The largest number counts.
 */
#include "crash/toy_log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/ext/store_ops.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "record/codec.h"
#include "record/record.h"
#include "record/transition.h"
#include "store/clock_mark.h"
#include "store/core.h"

enum {
	TOY_SLOTS = 80,
	TOY_PAGE = 4096,
	TOY_FRAME_MAX = 512 * 1024,
	TOY_MAGIC = 0x52464f54,
	ENTRY_PUT = 1,
	ENTRY_REMOVE = 2,
};

struct toy_head {
	uint32_t magic;
	uint32_t size;
	uint32_t payload;
	uint32_t crc;
	uint64_t lsn;
	uint64_t token;
	struct hx_clock_mark clock;
};

struct toy_slot {
	bool is_used;
	struct hapax_record record;
	struct hapax_buf *buf;
};

struct toy_log {
	struct hapax_store base;
	const struct hx_io *io;
	char path[64];
	unsigned bugs;
	uint64_t number; /* of the file */
	int file;
	uint64_t end;
	uint64_t lsn;
	uint64_t token;
	struct hx_clock_mark clock;
	const struct hapax_clock *source;
	bool has_failed;
	struct toy_slot slots[TOY_SLOTS];
	struct hapax_buf *spare;
	struct hapax_buf *payload;
	unsigned char *frame; /* a page's alignment, TOY_FRAME_MAX bytes */
};

static hapax_store_submit_fn toy_submit;
static hapax_store_scan_fn toy_scan;
static hapax_store_stats_fn toy_stats;
static hapax_store_sweep_fn toy_sweep;
static hapax_store_close_fn toy_close;

static const struct hapax_store_ops toy_ops = {
	.version = HAPAX_STORE_OPS_VERSION,
	.name = "toy",
	.capabilities = HAPAX_STORE_DURABLE | HAPAX_STORE_TOKEN_GLOBAL | HAPAX_STORE_MULTI_KEY,
	.submit = toy_submit,
	.scan = toy_scan,
	.stats = toy_stats,
	.sweep = toy_sweep,
	.close = toy_close,
	.is_synchronous = 1,
};

static struct toy_log *toy_of(struct hapax_store *store)
{
	assert(store->ops == &toy_ops);
	return (struct toy_log *)store;
}

static bool has_bug(const struct toy_log *toy, enum toy_bug bug)
{
	return toy->bugs & bug;
}

static int64_t now_of(const struct toy_log *toy)
{
	return hx_clock_mark_now(&toy->clock, toy->source);
}

/* ------------------------------------------------------------------ records */

static bool is_same(struct hapax_bytes a, struct hapax_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static struct toy_slot *find(
	struct toy_log *toy, struct hapax_bytes tenant, struct hapax_bytes group,
	struct hapax_bytes key)
{
	for (size_t i = 0; i < TOY_SLOTS; i++) {
		struct toy_slot *slot = &toy->slots[i];

		if (slot->is_used && is_same(slot->record.tenant, tenant) &&
		    is_same(slot->record.group, group) && is_same(slot->record.key, key))
			return slot;
	}
	return NULL;
}

static struct toy_slot *find_free(struct toy_log *toy)
{
	for (size_t i = 0; i < TOY_SLOTS; i++)
		if (!toy->slots[i].is_used)
			return &toy->slots[i];
	abort();
}

/* record may borrow from the slot that it replaces. */
static void put(struct toy_log *toy, const struct hapax_record *record)
{
	struct toy_slot *slot = find(toy, record->tenant, record->group, record->key);
	struct hapax_record copy;
	struct hapax_buf *used;

	if (hx_record_copy(record, &copy, toy->spare) != HAPAX_OK)
		abort();
	if (!slot)
		slot = find_free(toy);
	used = slot->buf;
	*slot = (struct toy_slot){.is_used = true, .record = copy, .buf = toy->spare};
	toy->spare = used;
}

static void add_entry(struct toy_log *toy, int kind, const struct hapax_record *record)
{
	unsigned char head[8] = {(unsigned char)kind};

	if (hx_buf_append(toy->payload, head, sizeof(head)) != HAPAX_OK ||
	    hx_record_encode(record, toy->payload) != HAPAX_OK)
		abort();
}

static void apply(struct toy_log *toy, const struct hx_transition *t, struct toy_slot *old)
{
	if (t->effect == HX_EFFECT_PUT) {
		add_entry(toy, ENTRY_PUT, &t->next);
		put(toy, &t->next);
	} else if (t->effect == HX_EFFECT_REMOVE) {
		add_entry(toy, ENTRY_REMOVE, &old->record);
		old->is_used = false;
	}
}

/* ------------------------------------------------------------------ frames */

static uint32_t crc_of(const unsigned char *frame, const struct toy_head *head, uint64_t number)
{
	struct toy_head blank = *head;
	uint32_t crc = hx_crc32c(0, &number, sizeof(number));

	blank.crc = 0;
	crc = hx_crc32c(crc, &blank, sizeof(blank));
	return hx_crc32c(crc, frame + sizeof(blank), head->payload);
}

/* What a frame takes in the file. */
static uint64_t room_of(const struct toy_log *toy, uint32_t size)
{
	if (has_bug(toy, TOY_UNPADDED))
		return ((uint64_t)size + 511) / 512 * 512;
	return ((uint64_t)size + TOY_PAGE - 1) / TOY_PAGE * TOY_PAGE;
}

static int sync_file(const struct toy_log *toy, int file)
{
	int failed;

	if (has_bug(toy, TOY_ACK_BEFORE_SYNC))
		return 0;
	failed = toy->io->ops->fdatasync(toy->io->context, file);
	if (failed && has_bug(toy, TOY_RETRY_SYNC))
		failed = toy->io->ops->fdatasync(toy->io->context, file);
	return has_bug(toy, TOY_ACK_ON_ERROR) ? 0 : failed;
}

/* Write what add_entry() gathered, at the end of file; 0 or a negative errno. */
static int write_frame(struct toy_log *toy, int file, uint64_t number, uint64_t *end)
{
	struct toy_head head = {
		.magic = TOY_MAGIC,
		.payload = (uint32_t)toy->payload->size,
		.size = (uint32_t)(sizeof(head) + toy->payload->size),
		.lsn = toy->lsn,
		.token = toy->token,
		.clock = toy->clock,
	};
	uint64_t room = room_of(toy, head.size);
	int failed;

	assert(room <= TOY_FRAME_MAX);
	memset(toy->frame, 0, (size_t)room);
	if (toy->payload->size)
		memcpy(toy->frame + sizeof(head), toy->payload->data, toy->payload->size);
	head.crc = crc_of(toy->frame, &head, number);
	memcpy(toy->frame, &head, sizeof(head));
	if (has_bug(toy, TOY_SHORT_WRITE))
		failed = toy->io->ops->pwrite(
				 toy->io->context, file, toy->frame, (size_t)room, *end) < 0
			? -EIO
			: 0;
	else
		failed = hx_io_write_full(toy->io, file, toy->frame, (size_t)room, *end);
	if (!failed)
		failed = sync_file(toy, file);
	*end += room;
	toy->lsn++;
	toy->payload->size = 0;
	return failed;
}

/* Commit what was gathered. False: it failed. */
static bool commit(struct toy_log *toy)
{
	if (toy->payload->size == 0)
		return true;
	hx_clock_mark_advance(&toy->clock, toy->source);
	if (write_frame(toy, toy->file, toy->number, &toy->end) == 0)
		return true;
	toy->has_failed = !has_bug(toy, TOY_NO_LATCH);
	return false;
}

/* ------------------------------------------------------------------ submit */

static void decide(
	struct toy_log *toy, struct hapax_op *ops, size_t count, struct hx_transition *transitions)
{
	struct hx_transition_rules rules = {
		.now_ms = now_of(toy),
		.fresh_token = toy->token + 1,
		.result_size_max = hx_store_options(&toy->base)->result_size_max,
	};
	bool together = ops[0].flags & HAPAX_OP_ALL_OR_NOTHING;
	bool is_fresh = false;

	for (size_t i = 0; i < count; i++) {
		struct toy_slot *old = find(toy, ops[i].tenant, ops[i].group, ops[i].key);

		transitions[i] = (struct hx_transition){.effect = HX_EFFECT_NONE};
		if (ops[i].status != HAPAX_OK)
			continue;
		hx_transition(old ? &old->record : NULL, &ops[i], &rules, &transitions[i]);
		is_fresh |= transitions[i].takes_token;
		if (transitions[i].takes_token && !together)
			rules.fresh_token++;
	}
	/* Claims of an all-or-nothing group share their token, also repeated ones. */
	for (size_t i = 0; together && is_fresh && i < count; i++)
		if (ops[i].type == HAPAX_OP_CLAIM && ops[i].outcome == HAPAX_OUTCOME_ACQUIRED &&
		    transitions[i].effect == HX_EFFECT_PUT)
			ops[i].token = transitions[i].next.token = rules.fresh_token;
	toy->token = together ? toy->token + is_fresh : rules.fresh_token - 1;
}

static bool all_go(const struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!hx_transition_is_go(&ops[i]))
			return false;
	return true;
}

static void run_group(struct toy_log *toy, struct hapax_op *ops, size_t count)
{
	struct hx_transition *transitions = calloc(count, sizeof(*transitions));

	if (!transitions)
		abort();
	decide(toy, ops, count, transitions);
	if (ops[0].flags & HAPAX_OP_ALL_OR_NOTHING && !all_go(ops, count)) {
		hx_store_skip_group(ops, 0, count);
		for (size_t i = 0; i < count; i++) {
			const struct toy_slot *old =
				find(toy, ops[i].tenant, ops[i].group, ops[i].key);

			if (ops[i].outcome == HAPAX_OUTCOME_SKIPPED && !transitions[i].was_absent)
				hx_transition_describe(&old->record, now_of(toy), &ops[i]);
		}
		free(transitions);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		apply(toy, &transitions[i], find(toy, ops[i].tenant, ops[i].group, ops[i].key));
		if (has_bug(toy, TOY_SPLIT_SUBMIT))
			(void)commit(toy);
	}
	free(transitions);
}

static void fail(const struct toy_log *toy, struct hapax_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!has_bug(toy, TOY_KEEP_FENCED) || ops[i].status == HAPAX_OK)
			hx_store_fail(&ops[i], 1, HAPAX_ERR_UNCERTAIN);
}

static void toy_submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	struct toy_log *toy = toy_of(store);

	if (toy->has_failed) {
		hx_store_fail(ops, count, HAPAX_ERR_FAILED);
		hapax_store_complete(store, ops, count, completion);
		return;
	}
	for (size_t first = 0, end; first < count; first = end) {
		end = hx_store_group_end(ops, count, first);
		run_group(toy, ops + first, end - first);
	}
	if (!commit(toy))
		fail(toy, ops, count);
	hapax_store_complete(store, ops, count, completion);
}

/* ------------------------------------------------------------------ the rest of a store */

static enum hapax_status toy_scan(
	struct hapax_store *store, const struct hapax_scan *scan, struct hapax_cursor *cursor,
	hapax_scan_fn *each, void *context, struct hapax_error *err)
{
	struct toy_log *toy = toy_of(store);
	int64_t now_ms = now_of(toy);

	(void)scan;
	(void)err;
	for (size_t i = 0; i < TOY_SLOTS; i++)
		if (toy->slots[i].is_used && !hx_record_is_expired(&toy->slots[i].record, now_ms) &&
		    each(&toy->slots[i].record, context))
			break;
	cursor->done = 1;
	return HAPAX_OK;
}

static enum hapax_status toy_stats(
	struct hapax_store *store, struct hapax_stats *stats, hapax_counters_fn *each,
	void *context, struct hapax_error *err)
{
	struct toy_log *toy = toy_of(store);

	(void)each;
	(void)context;
	(void)err;
	stats->now_ms = now_of(toy);
	stats->token = toy->token;
	return HAPAX_OK;
}

static enum hapax_status toy_sweep(
	struct hapax_store *store, struct hapax_sweep *sweep, struct hapax_error *err)
{
	struct toy_log *toy = toy_of(store);
	struct hx_transition_rules rules = {.now_ms = now_of(toy)};

	sweep->done = 1;
	if (toy->has_failed)
		return hx_error_set(err, HAPAX_ERR_FAILED, 0, "the store has failed");
	for (size_t i = 0; i < TOY_SLOTS; i++) {
		struct toy_slot *slot = &toy->slots[i];
		struct hx_transition t;

		if (slot->is_used && hx_record_is_expired(&slot->record, rules.now_ms)) {
			slot->is_used = false;
			sweep->removed++;
		} else if (slot->is_used) {
			hx_transition_sweep(&slot->record, &rules, &t);
			sweep->lapsed += t.effect == HX_EFFECT_PUT;
			apply(toy, &t, slot);
		}
	}
	if (!commit(toy))
		return hx_error_set(err, HAPAX_ERR_UNCERTAIN, EIO, "the sweep was not written");
	return HAPAX_OK;
}

static void toy_close(struct hapax_store *store)
{
	struct toy_log *toy = toy_of(store);

	hapax_store_detach(store);
	if (toy->file >= 0)
		(void)toy->io->ops->close(toy->io->context, toy->file);
	for (size_t i = 0; i < TOY_SLOTS; i++)
		hapax_buf_free(toy->slots[i].buf);
	hapax_buf_free(toy->spare);
	hapax_buf_free(toy->payload);
	free(toy->frame);
	free(toy);
}

/* ------------------------------------------------------------------ opening */

static void path_of(const struct toy_log *toy, uint64_t number, const char *tail, char out[96])
{
	snprintf(out, 96, "%s/log-%08llx%s", toy->path, (unsigned long long)number, tail);
}

static int note_number(void *arg, const char *name)
{
	uint64_t *number = arg;
	unsigned long long found;
	char *end;

	if (strncmp(name, "log-", 4) != 0)
		return 0;
	found = strtoull(name + 4, &end, 16);
	if (end == name + 12 && *end == '\0' && found > *number)
		*number = found;
	return 0;
}

/* Apply the entries of a frame. False: not what this store writes. */
static bool replay(struct toy_log *toy, const unsigned char *at, size_t size)
{
	while (size > 0) {
		struct hapax_record record;
		struct hapax_bytes left = {at + 8, size - 8};
		struct toy_slot *slot;
		size_t taken;

		if (size < 8 || hx_record_decode(left, &record, &taken, NULL) != HAPAX_OK)
			return false;
		slot = find(toy, record.tenant, record.group, record.key);
		if (at[0] == ENTRY_PUT)
			put(toy, &record);
		else if (slot)
			slot->is_used = false;
		if (record.token > toy->token)
			toy->token = record.token;
		at += 8 + taken;
		size -= 8 + taken;
	}
	return true;
}

static bool is_frame(
	const struct toy_log *toy, const struct toy_head *head, const unsigned char *at)
{
	if (has_bug(toy, TOY_NO_CRC))
		return true;
	return head->crc == crc_of(at, head, toy->number) && head->lsn == toy->lsn;
}

/* Read frames from end on; *ret_torn: there is something behind the last one. */
static int read_frames(struct toy_log *toy, int file, uint64_t size, bool *ret_torn)
{
	for (;;) {
		struct toy_head head;
		ssize_t done = hx_io_read_full(toy->io, file, toy->frame, TOY_FRAME_MAX, toy->end);

		if (done < 0)
			return (int)done;
		*ret_torn = toy->end < size;
		if ((size_t)done < sizeof(head))
			return 0;
		memcpy(&head, toy->frame, sizeof(head));
		if (head.magic != TOY_MAGIC || head.payload > (size_t)done - sizeof(head) ||
		    head.size != head.payload + sizeof(head) || !is_frame(toy, &head, toy->frame))
			return 0;
		if (!replay(toy, toy->frame + sizeof(head), head.payload))
			return has_bug(toy, TOY_NO_CRC) ? 0 : -EILSEQ;
		toy->lsn++;
		if (!has_bug(toy, TOY_TOKEN_FROM_RECORDS))
			toy->token = head.token;
		toy->clock = head.clock;
		toy->end += room_of(toy, head.size);
	}
}

static int open_direct(const struct toy_log *toy, const char *path, unsigned flags)
{
	unsigned direct = has_bug(toy, TOY_CACHED_RECOVERY) ? 0 : HX_IO_DIRECT;

	return toy->io->ops->open(
		toy->io->context, path, HX_IO_READ | HX_IO_WRITE | direct | flags, 0600);
}

static int sync_names(const struct toy_log *toy)
{
	if (has_bug(toy, TOY_NO_DIR_SYNC))
		return 0;
	return toy->io->ops->fsync_dir(toy->io->context, toy->path);
}

/* A new file with all that is known, in place of the old one. */
static int begin_file(struct toy_log *toy, int old_file)
{
	const struct hx_io_ops *ops = toy->io->ops;
	char old_path[96], new_path[96], temporary[96];
	uint64_t end = TOY_PAGE;
	int file, failed;

	path_of(toy, toy->number, "", old_path);
	path_of(toy, toy->number + 1, "", new_path);
	path_of(toy, toy->number + 1, ".tmp", temporary);
	file = open_direct(toy, temporary, HX_IO_CREATE | HX_IO_TRUNCATE);
	if (file < 0)
		return file;
	if (old_file >= 0 && has_bug(toy, TOY_HALF_RECOVERY))
		(void)ops->unlink(toy->io->context, old_path);
	memset(toy->frame, 0, TOY_PAGE);
	memcpy(toy->frame, "TOYLOG", 6);
	failed = hx_io_write_full(toy->io, file, toy->frame, TOY_PAGE, 0);
	for (size_t i = 0; i < TOY_SLOTS; i++)
		if (toy->slots[i].is_used)
			add_entry(toy, ENTRY_PUT, &toy->slots[i].record);
	toy->lsn = 0;
	if (!failed)
		failed = write_frame(toy, file, toy->number + 1, &end);
	if (!failed)
		failed = ops->rename(toy->io->context, temporary, new_path);
	if (!failed)
		failed = sync_names(toy);
	if (failed) {
		(void)ops->close(toy->io->context, file);
		return failed;
	}
	if (old_file >= 0)
		(void)ops->unlink(toy->io->context, old_path);
	toy->number++;
	toy->end = end;
	toy->file = file;
	return 0;
}

static int recover(struct toy_log *toy, const struct hapax_store_options *options)
{
	const struct hx_io_ops *ops = toy->io->ops;
	struct hx_io_stat stat;
	bool is_torn = false;
	char path[96];
	int failed = ops->mkdir(toy->io->context, toy->path, 0700);
	int file;

	failed = failed == -EEXIST ? 0 : failed;
	if (!failed)
		failed = ops->fsync_dir(toy->io->context, "/");
	if (!failed)
		failed = ops->list(toy->io->context, toy->path, note_number, &toy->number);
	if (failed)
		return failed;
	hx_clock_mark_init(&toy->clock, toy->source);
	if (toy->number == 0)
		return begin_file(toy, -1);
	path_of(toy, toy->number, "", path);
	file = open_direct(toy, path, 0);
	if (file < 0)
		return file;
	toy->end = TOY_PAGE;
	/* What a process that died had written is read below; it must not be lost later. */
	failed = has_bug(toy, TOY_NO_SYNC_AT_OPEN) ? 0 : ops->fdatasync(toy->io->context, file);
	if (!failed)
		failed = ops->stat(toy->io->context, file, &stat);
	if (!failed)
		failed = read_frames(toy, file, stat.size, &is_torn);
	if (!failed && !hx_clock_mark_is_current(&toy->clock, toy->source))
		hx_clock_mark_reboot(
			&toy->clock, toy->source,
			options->clock_step_ms_max ? options->clock_step_ms_max : 604800000);
	if (!failed && !is_torn && !has_bug(toy, TOY_HALF_RECOVERY)) {
		toy->file = file;
		return 0;
	}
	if (!failed)
		failed = begin_file(toy, file);
	(void)ops->close(toy->io->context, file);
	return failed;
}

enum hapax_status toy_log_open(
	const struct hx_io *io, const char *path, unsigned bugs,
	const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err)
{
	struct toy_log *toy = calloc(1, sizeof(*toy));
	enum hapax_status status;
	int failed;

	if (!toy)
		abort();
	toy->io = io;
	toy->bugs = bugs;
	toy->file = -1;
	toy->source = options->clock;
	snprintf(toy->path, sizeof(toy->path), "%s", path);
	toy->frame = aligned_alloc(TOY_PAGE, TOY_FRAME_MAX);
	toy->spare = hapax_buf_new(1 << 20);
	toy->payload = hapax_buf_new(TOY_FRAME_MAX);
	for (size_t i = 0; i < TOY_SLOTS; i++)
		toy->slots[i].buf = hapax_buf_new(1 << 20);
	toy->base.ops = &toy_ops;
	failed = recover(toy, options);
	status = failed ? hx_error_set(
				  err, HAPAX_ERR_UNAVAILABLE, -failed,
				  "the toy was not opened: errno %d", -failed)
			: hapax_store_attach(&toy->base, &toy_ops, "toy:", options, err);
	if (status != HAPAX_OK) {
		toy_close(&toy->base);
		return status;
	}
	*ret_store = &toy->base;
	return HAPAX_OK;
}
