/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: everything that reads the files of file: (src/store/log: format, entry,
 * reader, walk, recovery), as hostile input.
 *
 * A small store is made once, on a simulated disk. The bytes of the input are changes to
 * its files: which file, where, which bits. An even first byte lets every CRC be
 * computed again, so that what lies behind it is reached. The store then opens or refuses
 * with a message; if it opens, it can be read, written and closed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "store/log/format/endian.h"
#include "store/log/format/format.h"
#include "store/log/log_store.h"
#include "support/sim_disk.h"
#include "support/store_case.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum {
	CHANGE_SIZE = 4,
	CHANGES_MAX = 64,
	FILE_BYTES_MAX = 1 << 20,
	FILES_MAX = 16,
	KEYS = 12,
	KEYS_MAX = 1000, /* an index of few buckets: a scan visits all of them */
};

static struct hx_virtual_clock clock_of_store;

/* The files of the whole store. */
static struct {
	const char *path;
	unsigned char *bytes;
	size_t size;
	uint32_t chain; /* behind its last frame */
} files[FILES_MAX];
static size_t file_count;

static struct hapax_store *open_store(struct sim_disk *disk)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {0};

	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.clock = hx_virtual_clock_clock(&clock_of_store);
	options.segment_bytes = 16 * 1024;
	options.keys_max = KEYS_MAX;
	if (hx_log_open_on(sim_disk_io(disk), "file:/s", "/s", &options, &store, &err) !=
	    HAPAX_OK) {
		if (err.message[0] == '\0')
			abort();
		return NULL;
	}
	return store;
}

/* How the claim of key number i ends. */
static enum hapax_op_type end_of(int i)
{
	if (i % 5 == 1)
		return HAPAX_OP_RELEASE;
	return i % 5 == 2 ? HAPAX_OP_PARK : HAPAX_OP_COMPLETE;
}

/*
 * Records in all states and of both kinds of keys, log and class segments. Many operations share a
 * frame: the time of an input goes with the number of files and frames.
 */
static void fill(struct hapax_store *store, int from, int to)
{
	static const char uuid[] = "0198c1a2-7b3c-7def-8123-45678900000";
	struct hapax_result result = {
		.kind = HAPAX_RESULT_HTTP,
		.status = 201,
		.headers = {"a: b", 4},
		.body = {"created", 7}};
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_op claims[KEYS];
	struct hapax_op ends[KEYS];
	char keys[KEYS][64];
	size_t end_count = 0;

	for (int i = from; i < to; i++) {
		snprintf(keys[i], 64, i % 2 ? "%s%x" : "key-%s%x", i % 2 ? uuid : "", i);
		claims[i] = (struct hapax_op){
			.type = HAPAX_OP_CLAIM,
			.key = hapax_bytes_from_text(keys[i]),
			.tenant = hapax_bytes_from_text(i % 4 == 3 ? "acme" : ""),
			.attempt_id = case_attempt_id((uint64_t)i),
			.fingerprint = case_fingerprint('A'),
			.owner = {"me", 2},
			.ttl_ms = i % 3 ? 86400000 : 3600000};
	}
	if (hapax_store_run(store, claims + from, (size_t)(to - from), NULL) != HAPAX_OK)
		abort();
	for (int i = from; i < to; i++) {
		if (i % 5 == 3)
			continue;
		ends[end_count++] = (struct hapax_op){
			.type = end_of(i),
			.tenant = claims[i].tenant,
			.key = claims[i].key,
			.token = claims[i].token,
			.result = &result};
	}
	if (hapax_store_run(store, ends, end_count, NULL) != HAPAX_OK ||
	    hapax_store_sweep(store, &sweep, NULL) != HAPAX_OK)
		abort();
}

static struct sim_disk *make_store(void)
{
	struct sim_disk *disk = sim_disk_new(1);
	struct hapax_store *store;
	struct sim_fates fates;
	struct hx_prng prng;

	hx_virtual_clock_init(&clock_of_store, CASE_EPOCH_MS);
	store = open_store(disk);
	if (!store)
		abort();
	fill(store, 0, KEYS / 2);
	fill(store, KEYS / 2, KEYS);
	hapax_store_close(store);
	sim_fates_keep_all(&fates);
	hx_prng_seed(&prng, 1);
	sim_disk_crash(disk, &fates, &prng);
	return disk;
}

/* Headers and frames get the CRCs that fit them, and frames of the log their chain. */
static void seal(unsigned char *file, size_t size, uint32_t *chain)
{
	struct hx_log_header header;

	if (size < HX_LOG_BLOCK_SIZE)
		return;
	hx_put32(file + HX_LOG_HEADER_CRC, hx_crc32c(0, file, HX_LOG_HEADER_CRC));
	if (hx_log_header_decode(file, &header, NULL) != HAPAX_OK)
		return;
	for (size_t at = HX_LOG_BLOCK_SIZE; at + HX_LOG_BLOCK_SIZE <= size;
	     at += HX_LOG_BLOCK_SIZE) {
		struct hx_log_frame frame;
		uint32_t crc;

		if (!hx_log_frame_peek(file + at, at, &frame) ||
		    frame.payload > size - at - HX_LOG_FRAME_HEADER_SIZE)
			continue;
		if (header.kind == HX_LOG_KIND_LOG)
			hx_put32(file + at + HX_LOG_FRAME_CHAIN, *chain);
		crc = hx_crc32c(hx_log_seed(&header), file + at, HX_LOG_FRAME_CRC);
		crc = hx_crc32c(crc, file + at + HX_LOG_FRAME_HEADER_SIZE, frame.payload);
		hx_put32(file + at + HX_LOG_FRAME_CRC, crc);
		if (header.kind == HX_LOG_KIND_LOG)
			*chain = crc;
	}
}

/* Reads the files of the whole store, and which chain each leaves to the next. */
static void keep_files(struct sim_disk *disk)
{
	const struct hx_io *io = sim_disk_io(disk);
	uint32_t chain = 0;
	uint64_t size;

	while ((files[file_count].path = sim_disk_path(disk, file_count, &size)) != NULL) {
		int handle = io->ops->open(io->context, files[file_count].path, HX_IO_READ, 0);
		unsigned char *bytes = malloc(size + 1);

		if (handle < 0 || bytes == NULL || size > FILE_BYTES_MAX ||
		    hx_io_read_full(io, handle, bytes, (size_t)size, 0) != (ssize_t)size ||
		    io->ops->close(io->context, handle) != 0)
			abort();
		seal(bytes, (size_t)size, &chain);
		files[file_count].bytes = bytes;
		files[file_count].size = (size_t)size;
		files[file_count].chain = chain;
		if (++file_count == FILES_MAX)
			abort();
	}
}

static void write_file(struct sim_disk *disk, const char *path, const void *bytes, size_t size)
{
	const struct hx_io *io = sim_disk_io(disk);
	int handle = io->ops->open(io->context, path, HX_IO_READ | HX_IO_WRITE, 0);

	if (handle < 0 || hx_io_write_full(io, handle, bytes, size, 0) != 0 ||
	    io->ops->fdatasync(io->context, handle) != 0 ||
	    io->ops->close(io->context, handle) != 0)
		abort();
}

/* Apply the changes to file number index. A file that stays as it is is not written. */
static void change_file(
	struct sim_disk *disk, size_t index, const unsigned char *data, size_t size, bool is_sealed,
	uint32_t *chain)
{
	static unsigned char file[FILE_BYTES_MAX];
	size_t bytes = files[index].size;
	bool is_changed = is_sealed && index > 0 && *chain != files[index - 1].chain;

	for (size_t i = 0; i + CHANGE_SIZE <= size && !is_changed; i += CHANGE_SIZE)
		is_changed = data[i] / 2 % 16 == index && bytes > 0 && data[i + 3] != 0;
	if (!is_changed) {
		*chain = files[index].chain;
		return;
	}
	memcpy(file, files[index].bytes, bytes);
	for (size_t i = 0; i + CHANGE_SIZE <= size; i += CHANGE_SIZE) {
		size_t at = (size_t)data[i + 1] << 8 | data[i + 2];

		/* Mostly the first bytes of a block, where everything is. */
		if (at & 0x8000)
			at = (at & 0x7000) | (at & 0x1ff);
		if (data[i] / 2 % 16 == index && bytes > 0)
			file[at % bytes] ^= data[i + 3];
	}
	if (is_sealed)
		seal(file, bytes, chain);
	write_file(disk, files[index].path, file, bytes);
}

static int look(const struct hapax_record *record, void *context)
{
	size_t *bytes = context;

	*bytes += record->key.size + record->result.body.size;
	return 0;
}

/* A sweep takes longer than all the rest: one input in eight does it. */
static void use(struct hapax_store *store, bool sweeps)
{
	struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = {"new", 3}};
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_cursor cursor = {0};
	size_t bytes = 0;

	while (!cursor.done)
		if (hapax_store_scan(store, NULL, &cursor, look, &bytes, NULL) != HAPAX_OK)
			abort();
	(void)hapax_store_run(store, &op, 1, NULL);
	if (sweeps)
		(void)hapax_store_sweep(store, &sweep, NULL);
	hapax_store_close(store);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct sim_disk *whole;
	struct sim_disk *disk;
	struct hapax_store *store;
	uint32_t chain = 0;

	hx_random_seed_for_tests(1);
	if (!whole) {
		whole = make_store();
		keep_files(whole);
	}
	disk = sim_disk_clone(whole);
	if (size > CHANGES_MAX * CHANGE_SIZE)
		size = CHANGES_MAX * CHANGE_SIZE;
	for (size_t i = 0; i < file_count; i++)
		change_file(disk, i, data, size, size > 0 && data[0] % 2 == 0, &chain);
	store = open_store(disk);
	if (store)
		use(store, size == 0 || data[size - 1] % 8 == 0);
	sim_disk_free(disk);
	return 0;
}
