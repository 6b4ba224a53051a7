/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare.c - the segment behind the active one, made ahead, and the reserve for a full disk.
 */
#include <assert.h>
#include <errno.h>

#include "base/error.h"
#include "store/log/write/reserve.h"
#include "store/log/write/writer.h"

enum {
	/* A small store stays small, and a busy one soon has segments of full size. */
	SEGMENT_BYTES_FIRST = 1024 * 1024,
	SEGMENT_GROWTH = 4,
};

uint64_t hx_log_writer_next_size(const struct hx_log_writer *writer, uint64_t bytes)
{
	uint64_t next = bytes == 0 ? SEGMENT_BYTES_FIRST : bytes * SEGMENT_GROWTH;

	assert(bytes <= writer->segment_bytes);
	return next < writer->segment_bytes ? next : writer->segment_bytes;
}

static void note_space(struct hx_log_writer *writer, int os_errno)
{
	bool is_short = os_errno == ENOSPC || os_errno == EDQUOT;

	if (is_short || os_errno == 0)
		atomic_store_explicit(&writer->is_short, is_short, memory_order_relaxed);
}

/* reserve_path: the file that becomes the segment, or NULL. */
static enum hapax_status make(
	struct hx_log_writer *writer, const char *reserve_path, struct hapax_error *err)
{
	struct hx_log_segment_plan plan = {
		.kind = HX_LOG_KIND_LOG, .sync = writer->sync, .reserve_path = reserve_path};
	struct hx_log_segment made;
	enum hapax_status status;

	hx_mutex_lock(&writer->spare_mutex);
	/* Filling one takes a while. If it fails, the thread that waited for it tries itself. */
	while (writer->spare_is_made)
		hx_cond_wait(&writer->spare_ready, &writer->spare_mutex);
	if (hx_log_writer_has_spare(writer)) {
		hx_mutex_unlock(&writer->spare_mutex);
		return HAPAX_OK;
	}
	writer->spare_is_made = true;
	assert(writer->spare.file < 0);
	plan.id = (writer->active.file >= 0 ? writer->active.header.id : writer->last_id) + 1;
	plan.capacity = writer->spare_bytes;
	plan.reuse_id = reserve_path == NULL ? writer->reuse_id : 0;
	/* A segment that is still in use is not written over. */
	assert(plan.reuse_id == 0 || plan.reuse_id != writer->active.header.id ||
	       writer->active.file < 0);
	if (reserve_path == NULL)
		writer->reuse_id = 0;
	hx_mutex_unlock(&writer->spare_mutex);
	status = hx_log_segment_make(&made, writer->directory, &plan, err);
	hx_mutex_lock(&writer->spare_mutex);
	/* One thread at a time makes one, and the leader waits for it. */
	assert(writer->spare_is_made);
	assert(!hx_log_writer_has_spare(writer));
	writer->spare_is_made = false;
	hx_cond_broadcast(&writer->spare_ready);
	if (status == HAPAX_OK) {
		assert(made.header.id == plan.id);
		assert(made.offset == HX_LOG_BLOCK_SIZE);
		assert(writer->active.file < 0 || plan.id == writer->active.header.id + 1);
		writer->spare = made;
		atomic_store_explicit(&writer->has_spare, 1, memory_order_release);
		if (reserve_path == NULL)
			writer->spare_bytes = hx_log_writer_next_size(writer, writer->spare_bytes);
	}
	hx_mutex_unlock(&writer->spare_mutex);
	return status;
}

enum hapax_status hx_log_writer_make_spare(struct hx_log_writer *writer, struct hapax_error *err)
{
	struct hapax_error why = {0};
	enum hapax_status status = make(writer, NULL, &why);

	note_space(writer, status == HAPAX_OK ? 0 : why.os_errno);
	if (status != HAPAX_OK && err != NULL)
		*err = why;
	return status;
}

enum hapax_status hx_log_writer_keep_reserve(struct hx_log_writer *writer)
{
	uint64_t active_bytes = writer->active.file >= 0 ? writer->active.capacity : 0;
	uint64_t part = hx_log_reserve_part(writer->segment_bytes, active_bytes);
	int failed = hx_log_reserve_keep(writer->directory, part);

	note_space(writer, -failed);
	writer->reserve_part = failed == 0 ? part : 0;
	return failed == 0 ? HAPAX_OK : HAPAX_ERR_LIMIT;
}

enum hapax_status hx_log_writer_take_reserve(struct hx_log_writer *writer)
{
	char path[HX_LOG_PATH_SIZE];

	writer->reserve_part = 0;
	if (!hx_log_reserve_find(writer->directory, path))
		return HAPAX_ERR_LIMIT;
	return make(writer, path, NULL);
}

void hx_log_writer_look_for_space(struct hx_log_writer *writer)
{
	if (!hx_log_writer_is_short(writer))
		return;
	if (writer->reserve_part == 0)
		(void)hx_log_writer_keep_reserve(writer);
	else if (!hx_log_writer_has_spare(writer))
		atomic_store_explicit(&writer->wants_spare, 1, memory_order_release);
}

bool hx_log_writer_wants_spare(struct hx_log_writer *writer)
{
	const struct hx_log_segment *active = &writer->active;

	if (active->file < 0 || active->offset <= active->capacity / 2 ||
	    hx_log_writer_has_spare(writer) ||
	    atomic_load_explicit(&writer->wants_spare, memory_order_relaxed) != 0)
		return false;
	atomic_store_explicit(&writer->wants_spare, 1, memory_order_release);
	return true;
}

enum hapax_status hx_log_writer_make_spare_if_wanted(struct hx_log_writer *writer)
{
	if (atomic_exchange_explicit(&writer->wants_spare, 0, memory_order_acquire) == 0)
		return HAPAX_OK;
	return hx_log_writer_make_spare(writer, NULL);
}

void hx_log_writer_give_up(struct hx_log_writer *writer, uint64_t id)
{
	bool is_kept = false;

	hx_mutex_lock(&writer->spare_mutex);
	/* A manifest without it is durable, and the log goes on behind it. */
	assert(id < writer->manifest.log_first_id);
	assert(writer->active.file < 0 || id < writer->active.header.id);
	assert(id != writer->reuse_id);
	if (writer->reuse_id == 0) {
		writer->reuse_id = id;
		is_kept = true;
	}
	hx_mutex_unlock(&writer->spare_mutex);
	/* The next recovery finds and removes a file that stays. */
	if (!is_kept)
		(void)hx_log_segment_remove(writer->directory, HX_LOG_KIND_LOG, id, "");
}
