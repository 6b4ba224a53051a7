/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - one segment file, while it is made or written.
 *
 * A log segment is filled with zeros before it is used: overwriting costs half as much as
 * appending, since the file system's journal has nothing to do. A reused segment is as good: its
 * old frames do not match the new salt.
 */
#include "store/log/format/segment.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "base/random.h"

enum { FILL_BYTES = 16 * HX_PAGES_STEP, MODE_FILE = 0600 };

void hx_log_segment_assert(const struct hx_log_segment *segment)
{
	assert(segment->file >= 0);
	assert(segment->io != NULL);
	assert((unsigned)segment->header.kind < HX_LOG_KIND_COUNT);
	assert(segment->header.id != 0);
	/* Frames fill whole blocks, behind the header's. */
	assert(segment->offset >= HX_LOG_BLOCK_SIZE);
	assert(segment->offset % HX_LOG_BLOCK_SIZE == 0);
	assert(segment->capacity % HX_LOG_BLOCK_SIZE == 0);
	/* Extending a file does not change its header. */
	assert(segment->header.capacity <= segment->capacity);
	/* A class segment is synced once, when it is finished. */
	assert(segment->header.kind == HX_LOG_KIND_LOG || segment->sync == HX_LOG_SYNC_LATER);
}

static void plan_assert(const struct hx_log_segment_plan *plan)
{
	assert((unsigned)plan->kind < HX_LOG_KIND_COUNT);
	assert(plan->id != 0);
	assert(plan->capacity >= 2 * HX_LOG_BLOCK_SIZE);
	assert(plan->capacity % HX_LOG_BLOCK_SIZE == 0);
	/* A log segment has its name from the beginning, a class segment when it is complete. */
	assert(plan->is_hidden == (plan->kind != HX_LOG_KIND_LOG));
	assert(plan->reuse_id == 0 || plan->kind == HX_LOG_KIND_LOG);
	assert(plan->reserve_path == NULL || plan->kind == HX_LOG_KIND_LOG);
	assert(plan->reserve_path == NULL || plan->reuse_id == 0);
}

void hx_log_segment_init(struct hx_log_segment *segment)
{
	memset(segment, 0, sizeof(*segment));
	segment->file = -1;
}

/* With direct I/O if the file system can, otherwise through the cache. */
static int open_for_writing(const struct hx_io *io, const char *path, unsigned flags)
{
	int file = io->ops->open(
		io->context, path, HX_IO_READ | HX_IO_WRITE | HX_IO_DIRECT | flags, MODE_FILE);

	assert((flags & ~(unsigned)(HX_IO_CREATE | HX_IO_EXCLUSIVE | HX_IO_DSYNC)) == 0);
	/* A file system that refuses direct I/O has created the file anyway. */
	if (file == -EINVAL)
		file = io->ops->open(
			io->context, path,
			HX_IO_READ | HX_IO_WRITE | (flags & ~(unsigned)HX_IO_EXCLUSIVE), MODE_FILE);
	return file;
}

/* Zeros from the second block to the end; memory is FILL_BYTES of zeros. */
static int fill(const struct hx_io *io, int file, const unsigned char *memory, uint64_t capacity)
{
	uint64_t offset = HX_LOG_BLOCK_SIZE;
	int failed = io->ops->fallocate(io->context, file, 0, capacity);

	assert(file >= 0);
	assert(capacity % HX_LOG_BLOCK_SIZE == 0);
	/* Only a hint, and not every file system has it; but lack of space is an error. */
	if (failed == -ENOSPC || failed == -EDQUOT)
		return failed;
	while (offset < capacity) {
		uint64_t left = capacity - offset;
		size_t size = left < FILL_BYTES ? (size_t)left : FILL_BYTES;

		failed = hx_io_write_full(io, file, memory, size, offset);
		if (failed != 0)
			return failed;
		offset += size;
		assert(offset <= capacity);
	}
	return 0;
}

static int write_header(
	const struct hx_io *io, int file, unsigned char *block,
	const struct hx_log_segment_plan *plan, struct hx_log_header *header)
{
	assert(file >= 0);
	/* Direct I/O needs aligned memory. */
	assert((uintptr_t)block % HX_LOG_BLOCK_SIZE == 0);
	header->kind = plan->kind;
	header->id = plan->id;
	header->capacity = plan->capacity;
	hx_random_bytes(&header->salt, sizeof(header->salt));
	hx_log_header_encode(header, block);
	return hx_io_write_full(io, file, block, HX_LOG_BLOCK_SIZE, 0);
}

/*
 * Take the file of a segment that is no longer needed. Its name must be gone permanently before
 * its header is: a crash would otherwise leave a log segment that does not match its name.
 */
static int take_used(struct hx_log_directory *directory, const char *path, const char *tmp)
{
	const struct hx_io *io = directory->io;
	int failed = io->ops->rename(io->context, path, tmp);

	if (failed == 0)
		failed = io->ops->fsync_dir(io->context, directory->path);
	return failed;
}

/* Fill in the file at tmp: the header, and zeros if it is new. */
static int prepare(
	struct hx_log_directory *directory, int file, const struct hx_log_segment_plan *plan,
	bool is_new, struct hx_log_header *header)
{
	const struct hx_io *io = directory->io;
	unsigned char *memory = hx_alloc_pages_reserve(FILL_BYTES);
	int failed = 0;

	if (memory == NULL)
		return -ENOMEM;
	if (hx_alloc_pages_commit(memory, FILL_BYTES, 0) != 0) {
		hx_alloc_pages_release(memory, FILL_BYTES);
		return -ENOMEM;
	}
	if (is_new && !plan->is_hidden)
		failed = fill(io, file, memory, plan->capacity);
	if (failed == 0)
		failed = write_header(io, file, memory, plan, header);
	if (failed == 0 && !plan->is_hidden)
		failed = io->ops->fdatasync(io->context, file);
	hx_alloc_pages_release(memory, FILL_BYTES);
	return failed;
}

/* The file is ready at tmp: give it its name. */
static int name_it(
	struct hx_log_directory *directory, const struct hx_log_segment_plan *plan, const char *tmp)
{
	const struct hx_io *io = directory->io;
	char path[HX_LOG_PATH_SIZE];
	int failed;

	assert(!plan->is_hidden);
	hx_log_segment_path(directory, plan->kind, plan->id, "", path);
	failed = io->ops->rename(io->context, tmp, path);
	if (failed == 0)
		failed = io->ops->fsync_dir(io->context, directory->path);
	return failed;
}

static uint64_t size_of_file(const struct hx_io *io, int file)
{
	struct hx_io_stat st;

	return io->ops->stat(io->context, file, &st) == 0 ? st.size : 0;
}

/* Returns a file at tmp, empty or reused; *ret_is_new says which. */
static int open_tmp(
	struct hx_log_directory *directory, const struct hx_log_segment_plan *plan, const char *tmp,
	uint64_t *ret_capacity, bool *ret_is_new)
{
	const struct hx_io *io = directory->io;
	char used[HX_LOG_PATH_SIZE];
	int file;

	plan_assert(plan);
	hx_log_segment_path(directory, HX_LOG_KIND_LOG, plan->reuse_id, "", used);
	*ret_is_new = false;
	if (plan->reserve_path == NULL) {
		*ret_is_new = plan->reuse_id == 0 || take_used(directory, used, tmp) != 0;
	} else {
		int failed = take_used(directory, plan->reserve_path, tmp);

		if (failed != 0)
			return failed;
	}
	/*
	 * A new file, never an existing one. If a power cut restores its old name, two names
	 * lead to it, and data written under one is lost under the other.
	 */
	if (*ret_is_new)
		(void)io->ops->unlink(io->context, tmp);
	file = open_for_writing(io, tmp, *ret_is_new ? HX_IO_CREATE | HX_IO_EXCLUSIVE : 0);
	*ret_capacity = plan->capacity;
	if (file >= 0 && !*ret_is_new)
		*ret_capacity = size_of_file(io, file) / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
	/* The rest of a truncated file is useless. */
	if (*ret_capacity < 2 * HX_LOG_BLOCK_SIZE && file >= 0) {
		(void)io->ops->close(io->context, file);
		return -EIO;
	}
	return file;
}

/* Make the file. Returns it, open with the flags for writing, or a negative errno. */
static int make(
	struct hx_log_directory *directory, struct hx_log_segment_plan *plan,
	struct hx_log_header *header)
{
	const struct hx_io *io = directory->io;
	unsigned sync_flag = plan->sync == HX_LOG_SYNC_ALWAYS ? HX_IO_DSYNC : 0;
	char tmp[HX_LOG_PATH_SIZE], path[HX_LOG_PATH_SIZE];
	bool is_new = true;
	int file, failed;

	plan_assert(plan);
	hx_log_segment_path(directory, plan->kind, plan->id, ".tmp", tmp);
	hx_log_segment_path(directory, plan->kind, plan->id, "", path);
	file = open_tmp(directory, plan, tmp, &plan->capacity, &is_new);
	if (file < 0) {
		(void)io->ops->unlink(io->context, tmp);
		return file;
	}
	/* A reused file brought its own size. */
	plan_assert(plan);
	failed = prepare(directory, file, plan, is_new, header);
	if (failed == 0 && plan->is_hidden)
		return file;
	(void)io->ops->close(io->context, file);
	if (failed == 0)
		failed = name_it(directory, plan, tmp);
	if (failed == 0) {
		file = open_for_writing(io, path, sync_flag);
		failed = file < 0 ? file : 0;
	}
	if (failed != 0)
		(void)io->ops->unlink(io->context, tmp);
	return failed != 0 ? failed : file;
}

enum hapax_status hx_log_segment_make(
	struct hx_log_segment *segment, struct hx_log_directory *directory,
	const struct hx_log_segment_plan *plan, struct hapax_error *err)
{
	struct hx_log_segment_plan own = *plan;
	struct hx_log_header header = {0};
	int file;

	/* A segment without a lock could be another process's. */
	assert(directory->lock_file >= 0);
	/* The log of an earlier version may go on in its own segment, so STORE has this flag first. */
	assert(directory->store.incompat & HX_LOG_INCOMPAT_CAUSE);
	header.incompat = HX_LOG_INCOMPAT_CAUSE;
	memcpy(header.uuid, directory->store.uuid, HX_LOG_UUID_SIZE);
	file = make(directory, &own, &header);
	if (file < 0)
		return hx_error_set(
			err, hx_error_status_of(-file), -file,
			"could not create a segment in '%.128s'", directory->path);
	*segment = (struct hx_log_segment){
		.io = directory->io,
		.file = file,
		.sync = plan->is_hidden ? HX_LOG_SYNC_LATER : plan->sync,
		.header = header,
		.capacity = own.capacity,
		.offset = HX_LOG_BLOCK_SIZE,
		.seed = hx_log_seed(&header),
	};
	hx_log_segment_assert(segment);
	assert(segment->header.capacity == segment->capacity);
	assert(segment->header.id == plan->id);
	assert(plan->reuse_id != 0 || plan->reserve_path != NULL ||
	       segment->capacity == plan->capacity);
	return HAPAX_OK;
}

/*
 * A block for O_DIRECT on the stack, aligned by hand: AddressSanitizer does not place locals as
 * alignas() asks.
 */
enum { ALIGNED_SPACE = 2 * HX_LOG_BLOCK_SIZE };

static unsigned char *align(unsigned char space[ALIGNED_SPACE])
{
	return space + -(uintptr_t)space % HX_LOG_BLOCK_SIZE;
}

enum hapax_status hx_log_segment_open(
	struct hx_log_segment *segment, struct hx_log_directory *directory, uint64_t id,
	enum hx_log_sync sync, uint64_t offset, struct hapax_error *err)
{
	const struct hx_io *io = directory->io;
	char path[HX_LOG_PATH_SIZE];
	unsigned char space[ALIGNED_SPACE];
	unsigned char *block = align(space);
	struct hx_log_header header;
	struct hapax_error why;
	enum hapax_status status;
	ssize_t got;
	int file;

	assert(directory->lock_file >= 0);
	assert(offset % HX_LOG_BLOCK_SIZE == 0);
	assert(((uintptr_t)block) % HX_LOG_BLOCK_SIZE == 0);
	hx_log_segment_path(directory, HX_LOG_KIND_LOG, id, "", path);
	file = open_for_writing(io, path, sync == HX_LOG_SYNC_ALWAYS ? HX_IO_DSYNC : 0);
	if (file < 0)
		return hx_error_set(
			err, hx_error_status_of(-file), -file, "could not open '%s'", path);
	got = hx_io_read_full(io, file, block, HX_LOG_BLOCK_SIZE, 0);
	status = got == HX_LOG_BLOCK_SIZE
		? hx_log_header_decode(block, &header, &why)
		: hx_error_set(&why, HAPAX_ERR_UNAVAILABLE, 0, "could not read the header");
	if (status != HAPAX_OK) {
		(void)hx_error_set(err, status, 0, "'%s': %s", path, why.message);
		(void)io->ops->close(io->context, file);
		return status;
	}
	*segment = (struct hx_log_segment){
		.io = io,
		.file = file,
		.sync = sync,
		.header = header,
		.capacity = header.capacity,
		.offset = offset,
		.seed = hx_log_seed(&header),
	};
	return HAPAX_OK;
}

void hx_log_segment_close(struct hx_log_segment *segment)
{
	assert(segment->file == -1 || segment->io != NULL);
	if (segment->file >= 0)
		(void)segment->io->ops->close(segment->io->context, segment->file);
	segment->file = -1;
}

enum hapax_status hx_log_segment_extend(
	struct hx_log_segment *segment, uint64_t end, struct hapax_error *err)
{
	const struct hx_io *io = segment->io;
	uint64_t capacity = (end + HX_LOG_BLOCK_SIZE - 1) / HX_LOG_BLOCK_SIZE * HX_LOG_BLOCK_SIZE;
	int failed;

	hx_log_segment_assert(segment);
	assert(segment->header.kind == HX_LOG_KIND_LOG);
	assert(segment->offset < end);
	assert(capacity > segment->capacity);
	failed = io->ops->fallocate(
		io->context, segment->file, segment->capacity, capacity - segment->capacity);
	if (failed != 0 && failed != -EOPNOTSUPP)
		return hx_error_set(
			err, hx_error_status_of(-failed), -failed, "could not extend a segment");
	segment->capacity = capacity;
	assert(segment->capacity >= end);
	return HAPAX_OK;
}

int hx_log_segment_write(struct hx_log_segment *segment, const void *data, size_t size)
{
	int failed;

	assert(segment->file >= 0);
	assert(segment->offset % HX_LOG_BLOCK_SIZE == 0);
	assert(size % HX_LOG_BLOCK_SIZE == 0);
	/* Direct I/O needs aligned memory. */
	assert((uintptr_t)data % HX_LOG_BLOCK_SIZE == 0);
	/* A frame lies whole in the room that a log segment has; a class segment grows. */
	assert(segment->header.kind != HX_LOG_KIND_LOG ||
	       segment->offset + size <= segment->capacity);
	failed = hx_io_write_full(segment->io, segment->file, data, size, segment->offset);
	if (failed == 0)
		segment->offset += size;
	return failed;
}

int hx_log_segment_sync(struct hx_log_segment *segment)
{
	assert(segment->file >= 0);
	/* Otherwise every write was synced already. */
	assert(segment->sync == HX_LOG_SYNC_LATER);
	return segment->io->ops->fdatasync(segment->io->context, segment->file);
}

int hx_log_segment_finish(struct hx_log_segment *segment, struct hx_log_directory *directory)
{
	const struct hx_io *io = segment->io;
	unsigned char space[ALIGNED_SPACE];
	unsigned char *block = align(space);
	char tmp[HX_LOG_PATH_SIZE], path[HX_LOG_PATH_SIZE];
	int failed;

	hx_log_segment_assert(segment);
	assert(segment->header.kind != HX_LOG_KIND_LOG);
	/* The seal is a frame. */
	assert(segment->offset >= 2 * HX_LOG_BLOCK_SIZE);
	hx_log_segment_path(directory, segment->header.kind, segment->header.id, ".tmp", tmp);
	hx_log_segment_path(directory, segment->header.kind, segment->header.id, "", path);
	/* Its size is known only now. */
	segment->header.capacity = segment->offset;
	hx_log_header_encode(&segment->header, block);
	failed = hx_io_write_full(io, segment->file, block, HX_LOG_BLOCK_SIZE, 0);
	if (failed == 0)
		failed = hx_log_segment_sync(segment);
	return failed != 0 ? failed : io->ops->rename(io->context, tmp, path);
}

int hx_log_segment_remove(
	struct hx_log_directory *directory, enum hx_log_kind kind, uint64_t id, const char *suffix)
{
	char path[HX_LOG_PATH_SIZE];
	int failed;

	/* Only the owner removes files. */
	assert(directory->lock_file >= 0);
	hx_log_segment_path(directory, kind, id, suffix, path);
	failed = directory->io->ops->unlink(directory->io->context, path);
	return failed == -ENOENT ? 0 : failed;
}
