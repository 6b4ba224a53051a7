/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recovery.c - from the files to the index.
 *
 *  (1) Entries of the log are applied in their order, which is that of history.
 *  (2) Class segments are older than the log's entries for the same key. Their records only fill
 *      gaps, and only if no REMOVE with a higher LSN is known.
 *  (3) Nothing is written before the walk has succeeded, except copies of a torn tail. Repeated
 *      recovery gives the same result.
 */
#include "store/log/read/recovery.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "base/limits.h"
#include "store/log/read/kill_set.h"
#include "store/log/read/reader.h"
#include "store/log/format/listing.h"
#include "store/log/tidy/result_files.h"

enum {
	MODE_FILE = 0600,
	COPY_BYTES = HX_PAGES_STEP,
};

enum {
	AHEAD = 32,      /* entries whose buckets are fetched before they are needed */
	THREADS_MAX = 7, /* beside the opening thread */
	POPULATED_PUTS = 1 << 18,
};

struct waiting {
	struct hx_log_entry entry;
	struct hx_index_key key;
	struct hx_elsewhere elsewhere; /* where the result stays; file 0: in memory */
	bool is_log;
};

struct load {
	const struct hx_log_recovery *recovery;
	struct waiting waiting[AHEAD]; /* in their order */
	size_t waiting_count;
	struct hx_log_walk_result *walk;
	struct hx_log_kill_set *kills; /* shared; complete before there are threads */
	int64_t now_ms;                /* known after the log was read */
	struct load *threads;          /* the threads beside the first one */
	struct hx_thread populate;
	bool populates;
	uint64_t result_file_id; /* the class segment that has the number */
	uint16_t result_file;    /* among the result files; 0: none */
	uint64_t told_bytes;
};

/* The time at which the store's clock continues. */
static void set_clock(void *context)
{
	struct load *load = context;
	const struct hapax_store_options *options = load->recovery->options;
	struct hx_clock_mark *mark = load->recovery->mark;

	const struct hx_clock_mark *before =
		load->walk->has_clock ? &load->walk->clock : load->recovery->first_mark;

	if (before == NULL) {
		hx_clock_mark_init(mark, options->clock);
	} else {
		*mark = *before;
		if (!hx_clock_mark_is_current(mark, options->clock))
			hx_clock_mark_reboot(mark, options->clock, options->clock_step_ms_max);
	}
	load->now_ms = hx_clock_mark_now(mark, options->clock);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		load->threads[i].now_ms = load->now_ms;
}

static enum hapax_status no_memory(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for the records of the store");
}

static enum hapax_status find_scope(
	struct load *load, struct hx_log_walk_scope *scope, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;
	const struct hx_scope *found;

	if (scope->has_visitor_id)
		return HAPAX_OK;
	found = hx_scope_table_intern(
		load->recovery->index->scopes, scope->tenant, scope->group, &status);
	if (found == NULL)
		return hx_error_set(
			err, status, 0, "not enough memory for the scopes of the store");
	assert(found->id < HX_SCOPES_MAX);
	scope->visitor_id = found->id;
	scope->has_visitor_id = true;
	return HAPAX_OK;
}

static enum hapax_status load_log_entry(
	struct load *load, const struct hx_log_entry *entry, const struct hx_index_key *key,
	struct hapax_error *err)
{
	struct hx_index *index = load->recovery->index;
	const struct hapax_record *record = &entry->as.put.record;

	if (entry->kind == HX_LOG_REMOVE) {
		hx_index_unload(index, key);
		if (record->expires_ms > record->changed_ms &&
		    !hx_log_kill_set_add(load->kills, key, entry->lsn))
			return no_memory(err);
		return HAPAX_OK;
	}
	if (hx_index_load(index, key, record, NULL, false, record->changed_ms) != HAPAX_OK)
		return no_memory(err);
	return HAPAX_OK;
}

static enum hapax_status load_class_entry(
	struct load *load, const struct waiting *next, struct hapax_error *err)
{
	const struct hx_log_entry *entry = &next->entry;
	const struct hx_index_key *key = &next->key;
	const struct hapax_record *record = &entry->as.put.record;
	const struct hx_elsewhere *elsewhere = next->elsewhere.file != 0 ? &next->elsewhere : NULL;

	assert(!next->is_log);
	if (record->expires_ms <= load->now_ms)
		return HAPAX_OK;
	if (entry->kind == HX_LOG_REMOVE)
		return hx_log_kill_set_add(load->kills, key, entry->lsn) ? HAPAX_OK
									 : no_memory(err);
	if (hx_log_kill_set_has(load->kills, key, entry->lsn))
		return HAPAX_OK;
	if (hx_index_load(load->recovery->index, key, record, elsewhere, true, load->now_ms) !=
	    HAPAX_OK)
		return no_memory(err);
	return HAPAX_OK;
}

/*
 * Apply the entries from first on that lie in its shard, whose lock is taken once for all of
 * them.
 */
static enum hapax_status flush_shard(struct load *load, size_t first, struct hapax_error *err)
{
	struct hx_shard *shard = load->waiting[first].key.shard;
	enum hapax_status status = HAPAX_OK;

	assert(first < load->waiting_count);
	assert(atomic_load_explicit(&shard->lock.state, memory_order_relaxed) != HX_LOCK_FREE);
	for (size_t i = first; i < load->waiting_count && status == HAPAX_OK; i++) {
		struct waiting *next = &load->waiting[i];

		if (next->key.shard != shard)
			continue;
		status = next->is_log ? load_log_entry(load, &next->entry, &next->key, err)
				      : load_class_entry(load, next, err);
		next->key.shard = NULL;
	}
	hx_lock_release(&shard->lock);
	return status;
}

static enum hapax_status flush(void *context, struct hapax_error *err)
{
	struct load *load = context;
	enum hapax_status status = HAPAX_OK;

	assert(load->waiting_count <= AHEAD);
	for (size_t i = 0; i < load->waiting_count; i++)
		(void)hx_index_probe(&load->waiting[i].key);
	/* Versions of a key lie in one shard, where they keep their order. */
	for (size_t i = 0; i < load->waiting_count && status == HAPAX_OK; i++) {
		struct hx_shard *shard = load->waiting[i].key.shard;

		/* Another thread holds it: try the other shards first. */
		if (shard != NULL && hx_lock_try(&shard->lock))
			status = flush_shard(load, i, err);
	}
	for (size_t i = 0; i < load->waiting_count && status == HAPAX_OK; i++) {
		struct hx_shard *shard = load->waiting[i].key.shard;

		if (shard == NULL)
			continue;
		hx_lock_acquire(&shard->lock);
		status = flush_shard(load, i, err);
	}
	load->waiting_count = 0;
	return status;
}

/*
 * The threads beside the opening one; none if the store must have no threads. Twice as many as
 * cores: one reads while another works.
 */
static unsigned count_threads(const struct hapax_store_options *options)
{
	unsigned count = 2 * hx_thread_cpu_count() - 1;

	if (options->flags & HAPAX_STORE_NO_HOUSEKEEPING)
		return 0;
	return count < THREADS_MAX ? count : THREADS_MAX;
}

static void run_populate(void *arg)
{
	hx_index_populate(arg);
}

/* Fresh memory costs as much as everything else: prepare it while the files are read. */
static void expect(void *context, uint64_t puts)
{
	struct load *load = context;
	struct hx_index *index = load->recovery->index;

	assert(!load->populates);
	hx_index_expect(index, puts);
	load->populates = puts > POPULATED_PUTS && count_threads(load->recovery->options) != 0 &&
		hx_thread_start(&load->populate, run_populate, index, "hapax-memory", NULL) ==
			HAPAX_OK;
}

static void end_populate(struct load *load)
{
	if (load->populates)
		hx_thread_join(&load->populate);
	hx_index_settle(load->recovery->index);
}

/* A large result stays in its class segment, which was verified and does not change. */
static struct hx_elsewhere choose_place(
	struct load *load, const struct hx_log_header *segment, const struct hx_log_entry *entry)
{
	if (segment->kind == HX_LOG_KIND_LOG || entry->kind != HX_LOG_PUT ||
	    !hx_log_result_files_takes(&entry->as.put.record))
		return (struct hx_elsewhere){0};
	assert(entry->offset < segment->capacity);
	if (load->result_file_id != segment->id) {
		load->result_file = hx_log_result_files_add(
			load->recovery->result_files, segment->kind, segment->id);
		load->result_file_id = segment->id;
	}
	return hx_log_result_files_place(entry, load->result_file);
}

static enum hapax_status load_entry(
	void *context, const struct hx_log_header *segment, const struct hx_log_entry *entry,
	struct hx_log_walk_scope *scope, struct hapax_error *err)
{
	struct load *load = context;
	struct waiting *next;
	enum hapax_status status = find_scope(load, scope, err);

	if (status != HAPAX_OK)
		return status;
	if (entry->kind == HX_LOG_COUNTS) {
		if (hx_log_counts_load(
			    load->recovery->counts, scope->visitor_id, entry->as.counts.hour_ms,
			    entry->as.counts.counts, segment->id) != HAPAX_OK)
			return no_memory(err);
		return HAPAX_OK;
	}
	assert(entry->kind == HX_LOG_PUT || entry->kind == HX_LOG_REMOVE);
	/* A full list is flushed at once. */
	assert(load->waiting_count < AHEAD);
	next = &load->waiting[load->waiting_count++];
	next->entry = *entry;
	next->is_log = segment->kind == HX_LOG_KIND_LOG;
	next->elsewhere = choose_place(load, segment, entry);
	hx_log_entry_key(entry, scope->visitor_id, load->recovery->index, &next->key);
	hx_index_prefetch_bucket(&next->key);
	return load->waiting_count == AHEAD ? flush(load, err) : HAPAX_OK;
}

static void tell_progress(void *context, uint64_t bytes_done, uint64_t bytes_total)
{
	struct load *load = context;
	const struct hapax_store_options *options = load->recovery->options;

	/* Rare enough to cost nothing. */
	if (options->progress == NULL ||
	    (bytes_done != bytes_total && bytes_done < load->told_bytes + (1 << 20)))
		return;
	load->told_bytes = bytes_done;
	options->progress(bytes_done, bytes_total, options->progress_context);
}

/* A damaged store does not open: the walk ends there. */
static bool stop_at_damage(void *context, const struct hx_log_problem *problem)
{
	(void)context;
	return problem->kind != HX_LOG_DAMAGE;
}

/* Keep a torn tail for people. It was not acknowledged: failing to keep it loses nothing. */
static void copy_tail(
	const struct hx_io *io, int source, int target, uint64_t offset, uint64_t bytes)
{
	unsigned char block[HX_LOG_BLOCK_SIZE];

	assert(offset % HX_LOG_BLOCK_SIZE == 0);
	assert(bytes % HX_LOG_BLOCK_SIZE == 0);
	for (uint64_t done = 0; done < bytes; done += sizeof(block)) {
		ssize_t got = hx_io_read_full(io, source, block, sizeof(block), offset + done);

		if (got != (ssize_t)sizeof(block) ||
		    hx_io_write_full(io, target, block, sizeof(block), done) != 0)
			return;
	}
}

static void save_tail(struct hx_log_directory *directory, const struct hx_log_walk_result *walk)
{
	const struct hx_io *io = directory->io;
	char suffix[32];
	char path[HX_LOG_PATH_SIZE];
	int source, target;

	if (walk->cut_bytes == 0)
		return;
	/* The cut begins where the log ends, or in a segment behind it. */
	assert(walk->cut_id >= walk->log_last_id);
	assert(walk->cut_id != walk->log_last_id || walk->cut_offset == walk->log_end);
	hx_log_segment_path(directory, HX_LOG_KIND_LOG, walk->cut_id, "", path);
	source = io->ops->open(io->context, path, HX_IO_READ, 0);
	if (source < 0)
		return;
	snprintf(suffix, sizeof(suffix), ".cut-%" PRIu64, walk->next_lsn);
	hx_log_segment_path(directory, HX_LOG_KIND_LOG, walk->cut_id, suffix, path);
	target = io->ops->open(
		io->context, path, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE, MODE_FILE);
	if (target >= 0) {
		copy_tail(io, source, target, walk->cut_offset, walk->cut_bytes);
		(void)io->ops->close(io->context, target);
	}
	(void)io->ops->close(io->context, source);
}

static void ignore_lapse(const struct hapax_record *record, void *context)
{
	(void)record;
	(void)context;
}

/*
 * The log restores records that have expired since they were written. They were needed to
 * suppress older versions of their keys. Remove them now, so that they do not count.
 */
static void drop_expired(struct load *load)
{
	struct hx_index *index = load->recovery->index;
	hx_index_lapse_fn *lapse = index->lapse;
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;

	assert(load->waiting_count == 0);
	index->lapse = ignore_lapse;
	sweep.count_max = SIZE_MAX;
	while (!sweep.done)
		hx_index_sweep(index, &sweep, load->now_ms);
	index->lapse = lapse;
	atomic_store_explicit(&index->swept, 0, memory_order_relaxed);
}

static enum hapax_status settle_segment(
	const struct hx_log_directory *directory, const struct hx_log_listed *segment,
	struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char name[HX_LOG_NAME_SIZE];
	char path[HX_LOG_PATH_SIZE];
	int failed;
	int file;

	assert(segment->kind == HX_LOG_KIND_LOG);
	assert(directory->lock_file >= 0);
	hx_log_name(name, segment->kind, segment->id, "");
	hx_log_path(directory, name, path);
	file = io->ops->open(io->context, path, HX_IO_READ, 0);
	failed = file < 0 ? file : io->ops->fdatasync(io->context, file);
	if (file >= 0)
		(void)io->ops->close(io->context, file);
	if (failed == 0)
		return HAPAX_OK;
	return hx_error_set(err, hx_error_status_of(-failed), -failed, "could not sync '%s'", name);
}

/*
 * Writes of a process that died may not be durable yet: they can be read, even past the cache,
 * but a power cut takes them back. A caller answered from them would rely on something not
 * durable. So names and log are synced first.
 */
static enum hapax_status settle(struct hx_log_directory *directory, struct hapax_error *err)
{
	struct hx_log_listing listing;
	enum hapax_status status = hx_log_listing_read(&listing, directory, err);

	for (size_t i = 0; status == HAPAX_OK && i < listing.count; i++) {
		/* The others get their names only when they are synced. */
		if (listing.segments[i].kind == HX_LOG_KIND_LOG)
			status = settle_segment(directory, &listing.segments[i], err);
	}
	hx_log_listing_done(&listing);
	return status == HAPAX_OK ? hx_log_directory_sync(directory, err) : status;
}

enum hapax_status hx_log_recover(
	const struct hx_log_recovery *recovery, struct hx_log_walk_result *ret_walk,
	struct hapax_error *err)
{
	struct hx_log_kill_set kills;
	struct load threads[THREADS_MAX];
	void *contexts[THREADS_MAX];
	struct load load = {
		.recovery = recovery, .walk = ret_walk, .kills = &kills, .threads = threads};
	struct hx_log_visitor visitor = {
		.context = &load,
		.thread_contexts = contexts,
		.thread_count = count_threads(recovery->options),
		.log_end = set_clock,
		.entry = load_entry,
		.expect = expect,
		.flush = flush,
		.problem = stop_at_damage,
		.progress = tell_progress,
	};
	struct hx_index *index = recovery->index;
	enum hapax_status status = settle(recovery->directory, err);

	if (status != HAPAX_OK)
		return status;
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		threads[i] = load;
		contexts[i] = &threads[i];
	}
	hx_log_kill_set_init(&kills);
	status = hx_log_walk(
		recovery->directory->io, recovery->directory->path, &visitor, ret_walk, err);
	hx_log_kill_set_done(&kills);
	end_populate(&load);
	if (status != HAPAX_OK)
		return status;
	drop_expired(&load);
	if (ret_walk->token > atomic_load_explicit(&index->token, memory_order_relaxed))
		atomic_store_explicit(&index->token, ret_walk->token, memory_order_relaxed);
	/* No token that may have been issued is issued again. */
	assert(atomic_load_explicit(&index->token, memory_order_relaxed) >= ret_walk->token);
	assert(ret_walk->damages == 0);
	save_tail(recovery->directory, ret_walk);
	/*
	 * Scopes are numbered in the order of appearance. If the last segment numbers them
	 * differently, it is not continued: with one number for two scopes, records would change
	 * tenants once the frame between them is lost (I7).
	 */
	if (ret_walk->scopes_differ)
		ret_walk->is_closed = false;
	return HAPAX_OK;
}

static bool is_in_use(const struct hx_log_walk_result *walk, const struct hx_log_listed *segment)
{
	if (segment->kind == HX_LOG_KIND_LOG)
		return segment->id >= walk->log_first_id &&
			segment->id <= walk->log_last_id + (walk->is_sealed ? 1 : 0);
	return hx_log_listed_is_named(segment, walk->classes, walk->class_count);
}

/* A file of another store: do not remove it. */
static bool is_foreign(
	const struct hx_log_directory *directory, const struct hx_log_listed *segment)
{
	const struct hx_io *io = directory->io;
	unsigned char block[HX_LOG_BLOCK_SIZE];
	struct hx_log_header header;
	char path[HX_LOG_PATH_SIZE];
	ssize_t size;
	int file;

	hx_log_segment_path(directory, segment->kind, segment->id, "", path);
	file = io->ops->open(io->context, path, HX_IO_READ, 0);
	if (file < 0)
		return true;
	size = hx_io_read_full(io, file, block, sizeof(block), 0);
	(void)io->ops->close(io->context, file);
	return size != (ssize_t)sizeof(block) ||
		(hx_log_header_decode(block, &header, NULL) == HAPAX_OK &&
		 memcmp(header.uuid, directory->store.uuid, HX_LOG_UUID_SIZE) != 0);
}

void hx_log_recover_clean(
	struct hx_log_directory *directory, const struct hx_log_walk_result *walk,
	uint64_t *ret_reuse_id)
{
	struct hx_log_listing listing;

	assert(walk->damages == 0);
	assert(directory->lock_file >= 0);
	*ret_reuse_id = 0;
	if (hx_log_listing_read(&listing, directory, NULL) != HAPAX_OK) {
		hx_log_listing_done(&listing);
		return;
	}
	for (size_t i = 0; i < listing.count; i++) {
		const struct hx_log_listed *segment = &listing.segments[i];

		if (is_in_use(walk, segment) || is_foreign(directory, segment))
			continue;
		if (segment->kind == HX_LOG_KIND_LOG && *ret_reuse_id == 0)
			*ret_reuse_id = segment->id;
		else
			(void)hx_log_segment_remove(directory, segment->kind, segment->id, "");
	}
	hx_log_listing_done(&listing);
}
