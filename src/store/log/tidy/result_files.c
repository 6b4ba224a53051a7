/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_files.c - class segments that hold results for records in memory.
 *
 *	FREE -> KEPT -> LEFT <-> UNUSED -> FREE
 *
 * A reader that was in the epoch when the last record went may still become a user of the file
 * before it leaves. So UNUSED is checked again when all such readers have left, and a file that
 * has users then is LEFT again.
 */
#include "store/log/tidy/result_files.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/io.h"
#include "store/log/format/segment.h"

enum { SLOTS_FIRST = 64 };

uint32_t hx_log_result_crc(const struct hapax_result *result)
{
	uint32_t crc = hx_crc32c(0, result->headers.data, result->headers.size);

	return hx_crc32c(crc, result->body.data, result->body.size);
}

struct hx_elsewhere hx_log_result_files_place(const struct hx_log_entry *put, uint16_t file)
{
	assert(put->kind == HX_LOG_PUT);
	assert(put->as.put.result_at < put->size);
	if (file == 0)
		return (struct hx_elsewhere){0};
	return (struct hx_elsewhere){
		.offset = put->offset + put->as.put.result_at,
		.crc = hx_log_result_crc(&put->as.put.record.result),
		.file = file,
	};
}

void hx_log_result_files_init(
	struct hx_log_result_files *result_files, struct hx_log_directory *directory)
{
	memset(result_files, 0, sizeof(*result_files));
	result_files->directory = directory;
	result_files->count = 1;
	hx_mutex_init(&result_files->mutex);
}

/* Locks: mutex, unless there are no other threads. */
static void files_assert(const struct hx_log_result_files *result_files)
{
	assert(result_files->directory != NULL);
	/* Number 0 is none. */
	assert(result_files->count >= 1);
	assert(result_files->count == 1 || result_files->count <= result_files->capacity);
	assert(result_files->capacity <= HX_ELSEWHERE_FILES);
	assert((result_files->capacity == 0) == (result_files->slots == NULL));
}

/* If another directory has our name, a file of that name is not ours. */
static void remove_file(
	const struct hx_log_result_files *result_files, const struct hx_log_result_file *slot)
{
	/* The manifest does not name it, and no reader can find it any more. */
	assert(slot->state == HX_LOG_RESULT_FILE_LEFT || slot->state == HX_LOG_RESULT_FILE_UNUSED);
	if (!hx_log_directory_is_gone(result_files->directory))
		(void)hx_log_segment_remove(result_files->directory, slot->kind, slot->id, "");
}

void hx_log_result_files_done(struct hx_log_result_files *result_files)
{
	if (result_files->directory == NULL)
		return;
	files_assert(result_files);
	for (uint32_t i = 1; i < result_files->count; i++) {
		const struct hx_log_result_file *slot = &result_files->slots[i];

		if (slot->state == HX_LOG_RESULT_FILE_LEFT ||
		    slot->state == HX_LOG_RESULT_FILE_UNUSED)
			remove_file(result_files, slot);
	}
	hx_free(result_files->slots);
	hx_mutex_done(&result_files->mutex);
	memset(result_files, 0, sizeof(*result_files));
}

/* A free slot, or 0. Locks: mutex. */
static uint32_t find_free(struct hx_log_result_files *result_files)
{
	struct hx_log_result_file *slots;
	uint32_t capacity = result_files->capacity != 0 ? 2 * result_files->capacity : SLOTS_FIRST;

	files_assert(result_files);
	for (uint32_t i = 1; i < result_files->count; i++) {
		if (result_files->slots[i].state == HX_LOG_RESULT_FILE_FREE)
			return i;
	}
	if (result_files->count < result_files->capacity)
		return result_files->count++;
	if (capacity > HX_ELSEWHERE_FILES)
		return 0;
	slots = hx_realloc(result_files->slots, capacity * sizeof(*slots));
	if (slots == NULL)
		return 0;
	assert(capacity > result_files->count);
	result_files->slots = slots;
	result_files->capacity = capacity;
	return result_files->count++;
}

uint16_t hx_log_result_files_add(
	struct hx_log_result_files *result_files, enum hx_log_kind kind, uint64_t id)
{
	uint32_t number;

	assert(kind != HX_LOG_KIND_LOG);
	hx_mutex_lock(&result_files->mutex);
	number = find_free(result_files);
	if (number != 0)
		result_files->slots[number] = (struct hx_log_result_file){
			.id = id, .kind = kind, .state = HX_LOG_RESULT_FILE_KEPT};
	files_assert(result_files);
	assert(number < HX_ELSEWHERE_FILES);
	/* No record points at the file that had the number before. */
	assert(number == 0 || !hx_elsewhere_is_used(&result_files->users, (uint16_t)number));
	hx_mutex_unlock(&result_files->mutex);
	return (uint16_t)number;
}

void hx_log_result_files_leave(
	struct hx_log_result_files *result_files, enum hx_log_kind kind, uint64_t id)
{
	bool is_on_disk = false;

	assert(kind != HX_LOG_KIND_LOG);
	hx_mutex_lock(&result_files->mutex);
	files_assert(result_files);
	for (uint32_t i = 1; i < result_files->count && !is_on_disk; i++) {
		struct hx_log_result_file *slot = &result_files->slots[i];

		is_on_disk = slot->state == HX_LOG_RESULT_FILE_KEPT && slot->id == id &&
			slot->kind == kind;
		if (is_on_disk)
			slot->state = HX_LOG_RESULT_FILE_LEFT;
	}
	hx_mutex_unlock(&result_files->mutex);
	if (!is_on_disk)
		(void)hx_log_segment_remove(result_files->directory, kind, id, "");
}

/* Locks: mutex. */
static void tidy_slot(
	struct hx_log_result_files *result_files, uint16_t number, struct hx_epoch *epoch)
{
	struct hx_log_result_file *slot = &result_files->slots[number];
	bool is_used = hx_elsewhere_is_used(&result_files->users, number);

	assert(number != 0);
	assert(number < result_files->count);
	/* A record takes its place away before a number is free. */
	assert(slot->state != HX_LOG_RESULT_FILE_FREE || !is_used);
	if (slot->state == HX_LOG_RESULT_FILE_LEFT && !is_used) {
		slot->stamp = hx_epoch_retire(epoch);
		slot->state = HX_LOG_RESULT_FILE_UNUSED;
	}
	if (slot->state != HX_LOG_RESULT_FILE_UNUSED || !hx_epoch_is_past(epoch, slot->stamp))
		return;
	/* Every reader that was inside has left, and has registered its use. */
	if (hx_elsewhere_is_used(&result_files->users, number)) {
		slot->state = HX_LOG_RESULT_FILE_LEFT;
		return;
	}
	/*
	 * Not asked again: a reader that read the epoch before the stamp was issued may take its
	 * seat now. It finds no record that points here.
	 */
	assert(slot->state == HX_LOG_RESULT_FILE_UNUSED);
	remove_file(result_files, slot);
	slot->state = HX_LOG_RESULT_FILE_FREE;
}

void hx_log_result_files_tidy(struct hx_log_result_files *result_files, struct hx_epoch *epoch)
{
	hx_mutex_lock(&result_files->mutex);
	files_assert(result_files);
	for (uint32_t i = 1; i < result_files->count; i++)
		tidy_slot(result_files, (uint16_t)i, epoch);
	hx_mutex_unlock(&result_files->mutex);
}

static enum hapax_status not_read(int os_errno)
{
	enum hapax_status status = hx_error_status_of(os_errno);

	assert(os_errno > 0);
	return status == HAPAX_ERR_LIMIT || status == HAPAX_ERR_NO_MEMORY ? status
									  : HAPAX_ERR_CORRUPT;
}

enum hapax_status hx_log_result_files_read(
	struct hx_log_result_files *result_files, const struct hx_elsewhere *elsewhere, void *data,
	size_t size, struct hapax_error *err)
{
	const struct hx_io *io = result_files->directory->io;
	char name[HX_LOG_NAME_SIZE], path[HX_LOG_PATH_SIZE];
	ssize_t got;
	int file;

	hx_mutex_lock(&result_files->mutex);
	files_assert(result_files);
	assert(elsewhere->file != 0);
	assert(elsewhere->file < result_files->count);
	/* The caller is a user of it, or in the epoch: it was not removed. */
	assert(result_files->slots[elsewhere->file].state != HX_LOG_RESULT_FILE_FREE);
	hx_log_name(
		name, result_files->slots[elsewhere->file].kind,
		result_files->slots[elsewhere->file].id, "");
	hx_mutex_unlock(&result_files->mutex);
	hx_log_path(result_files->directory, name, path);
	file = io->ops->open(io->context, path, HX_IO_READ, 0);
	got = file < 0 ? file : hx_io_read_full(io, file, data, size, elsewhere->offset);
	if (file >= 0)
		(void)io->ops->close(io->context, file);
	if (got < 0)
		return hx_error_set(
			err, not_read((int)-got), (int)-got,
			"%s at offset %llu: could not read a result of %zu bytes", name,
			(unsigned long long)elsewhere->offset, size);
	if ((size_t)got != size || hx_crc32c(0, data, size) != elsewhere->crc)
		return hx_error_set(
			err, HAPAX_ERR_CORRUPT, 0,
			"%s at offset %llu: a result of %zu bytes is damaged; run 'hapax fsck'",
			name, (unsigned long long)elsewhere->offset, size);
	return HAPAX_OK;
}
