/* SPDX-License-Identifier: Apache-2.0 */
#include "store/log/format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "record/record.h"
#include "store/index/packed_key.h"
#include "store/index/packed_mark.h"
#include "store/log/format/directory.h"
#include "store/log/format/endian.h"
#include "support/random_record.h"
#include "support/scale.h"

enum { SPACE = 1 << 20 };

static struct hx_log_header some_header(void)
{
	struct hx_log_header header = {
		.incompat = HX_LOG_INCOMPAT_CAUSE,
		.compat = 5,
		.kind = HX_LOG_KIND_WEEK,
		.id = 0x1234,
		.salt = 99,
		.capacity = 65536};

	memset(header.uuid, 'u', sizeof(header.uuid));
	return header;
}

static void header_comes_back(void **state)
{
	struct hx_log_header header = some_header(), read;
	unsigned char block[HX_LOG_BLOCK_SIZE];

	(void)state;
	hx_log_header_encode(&header, block);
	assert_int_equal(hx_log_header_decode(block, &read, NULL), HAPAX_OK);
	assert_int_equal(read.id, 0x1234);
	assert_int_equal(read.salt, 99);
	assert_int_equal(read.capacity, 65536);
	assert_int_equal(read.kind, HX_LOG_KIND_WEEK);
	assert_int_equal(read.compat, 5);
	assert_int_equal(read.incompat, HX_LOG_INCOMPAT_CAUSE);
	assert_memory_equal(read.uuid, header.uuid, sizeof(header.uuid));
}

/* I10: each bit of what is used is checked. */
static void flipped_bit_of_a_header_is_found(void **state)
{
	struct hx_log_header header = some_header(), read;
	struct hx_log_store_file file = {.created_ms = 1, .token_floor = 2}, file_read;
	unsigned char block[HX_LOG_BLOCK_SIZE];

	(void)state;
	for (unsigned bit = 0; bit < HX_LOG_HEADER_SIZE * 8; bit++) {
		hx_log_header_encode(&header, block);
		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(hx_log_header_decode(block, &read, NULL), HAPAX_ERR_CORRUPT);
		hx_log_store_encode(&file, block);
		block[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(hx_log_store_decode(block, &file_read, NULL), HAPAX_ERR_CORRUPT);
	}
}

static void reseal(unsigned char *block)
{
	uint32_t crc = hx_crc32c(0, block, HX_LOG_HEADER_CRC);

	for (unsigned i = 0; i < 4; i++)
		block[HX_LOG_HEADER_CRC + i] = (unsigned char)(crc >> 8 * i);
}

/* I16: what a newer hapax wrote is refused by name, not taken for damage. */
static void newer_format_is_refused(void **state)
{
	static const unsigned offsets[] = {
		HX_LOG_HEADER_MAJOR, HX_LOG_HEADER_INCOMPAT, HX_LOG_HEADER_RO_COMPAT};
	struct hx_log_header header = some_header(), read;
	struct hx_log_store_file file = {.incompat = HX_LOG_INCOMPAT_CAUSE}, file_read;
	unsigned char block[HX_LOG_BLOCK_SIZE];
	struct hapax_error err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		memset(&err, 0, sizeof(err));
		hx_log_header_encode(&header, block);
		block[offsets[i]] ^= 2;
		reseal(block);
		assert_int_equal(hx_log_header_decode(block, &read, &err), HAPAX_ERR_UNSUPPORTED);
		assert_non_null(strstr(err.message, "use a newer hapax"));
		memset(&err, 0, sizeof(err));
		hx_log_store_encode(&file, block);
		block[offsets[i]] ^= 2;
		reseal(block);
		assert_int_equal(
			hx_log_store_decode(block, &file_read, &err), HAPAX_ERR_UNSUPPORTED);
		assert_non_null(strstr(err.message, "use a newer hapax"));
	}
	/* A minor version and a compatible feature are none of our business. */
	hx_log_header_encode(&header, block);
	block[HX_LOG_HEADER_MINOR]++;
	block[HX_LOG_HEADER_COMPAT]++;
	reseal(block);
	assert_int_equal(hx_log_header_decode(block, &read, NULL), HAPAX_OK);
}

static void frame_comes_back_and_knows_its_place(void **state)
{
	struct hx_log_header header = some_header(), other = some_header();
	unsigned char *at = calloc(1, 3 * HX_LOG_BLOCK_SIZE);
	struct hx_log_frame frame = {
		.flags = HX_LOG_FRAME_CLOSE,
		.payload = 5000,
		.size = hx_log_frame_size(5000),
		.entries = 3,
		.chain = 7,
		.lsn = 100,
		.durable_lsn = 90,
		.token = 11,
		.offset = 4096,
		.clock = {.store_ms = 1, .boot_ms = 2, .owed_ms = 3},
	};
	struct hx_log_frame read;

	(void)state;
	assert_non_null(at);
	memset(at + HX_LOG_FRAME_HEADER_SIZE, 'e', 5000);
	hx_log_frame_encode(&frame, hx_log_seed(&header), at);
	assert_true(hx_log_frame_peek(at, 4096, &read));
	assert_true(hx_log_frame_is_whole(&read, hx_log_seed(&header), at));
	assert_int_equal(read.size, 8192);
	assert_int_equal(read.lsn, 100);
	assert_int_equal(read.durable_lsn, 90);
	assert_int_equal(read.token, 11);
	assert_int_equal(read.clock.owed_ms, 3);
	assert_int_equal(read.crc, frame.crc);
	/* Elsewhere in the file, in a file that was used again, in another file. */
	assert_false(hx_log_frame_peek(at, 8192, &read));
	assert_true(hx_log_frame_peek(at, 4096, &read));
	other.salt++;
	assert_false(hx_log_frame_is_whole(&read, hx_log_seed(&other), at));
	other = header;
	other.id++;
	assert_false(hx_log_frame_is_whole(&read, hx_log_seed(&other), at));
	other = header;
	other.uuid[3] ^= 1;
	assert_false(hx_log_frame_is_whole(&read, hx_log_seed(&other), at));
	/* Every bit of header and entries; padding has no meaning. */
	for (unsigned bit = 0; bit < (HX_LOG_FRAME_HEADER_SIZE + 5000) * 8; bit++) {
		at[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(
			hx_log_frame_peek(at, 4096, &read) &&
			hx_log_frame_is_whole(&read, hx_log_seed(&header), at));
		at[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	free(at);
}

static bool equal_bytes(struct hapax_bytes a, struct hapax_bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static void assert_same(const struct hapax_record *a, const struct hapax_record *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->origin, b->origin);
	assert_int_equal(a->on_lapse, b->on_lapse);
	assert_int_equal(a->attempt, b->attempt);
	assert_int_equal(a->token, b->token);
	assert_int_equal(a->first_seen_ms, b->first_seen_ms);
	assert_int_equal(a->changed_ms, b->changed_ms);
	assert_int_equal(a->lease_ends_ms, b->lease_ends_ms);
	assert_int_equal(a->expires_ms, b->expires_ms);
	assert_int_equal(a->ttl_ms, b->ttl_ms);
	assert_int_equal(a->fingerprint_size, b->fingerprint_size);
	assert_memory_equal(a->fingerprint, b->fingerprint, sizeof(a->fingerprint));
	assert_memory_equal(a->attempt_id, b->attempt_id, sizeof(a->attempt_id));
	assert_true(equal_bytes(a->owner, b->owner));
	assert_true(equal_bytes(a->error, b->error));
	assert_int_equal(a->result.kind, b->result.kind);
	assert_int_equal(a->result.result_class, b->result.result_class);
	assert_int_equal(a->result.status, b->result.status);
	assert_int_equal(a->result.omitted_bytes, b->result.omitted_bytes);
	assert_true(equal_bytes(a->result.headers, b->result.headers));
	assert_true(equal_bytes(a->result.body, b->result.body));
}

/* What is put is what is read, in as many bytes as were announced, and cut anywhere it is refused. */
static void random_records_come_back(void **state)
{
	unsigned char *at = malloc(SPACE);
	struct hx_prng prng;
	uint64_t seed = 1;
	uint64_t count = scale_count(1000000, 20000);
	double begun = scale_seconds();

	(void)state;
	assert_non_null(at);
	(void)scale_seed(&seed);
	printf("# seed %llu\n", (unsigned long long)seed);
	hx_prng_seed(&prng, seed);
	for (uint64_t i = 0; i < count; i++) {
		struct random_record random;
		struct hx_packed_key key;
		struct hx_log_entry entry;

		random_record_make(&random, &prng, 1767225600000);
		hx_packed_key_init(&key, 17, random.record.key);
		size_t size = hx_log_put_size(&random.record, &key);
		assert_true(size <= SPACE && size % HX_LOG_ENTRY_ALIGN == 0);
		memset(at, 0xee, size);
		hx_log_put_encode(at, &random.record, &key, 42, i % 2, i);
		assert_int_equal(
			hx_log_entry_decode((struct hapax_bytes){at, size}, &entry, NULL),
			HAPAX_OK);
		assert_int_equal(entry.kind, HX_LOG_PUT);
		assert_int_equal(entry.flags, i % 2);
		assert_int_equal(entry.size, size);
		assert_int_equal(entry.lsn, i);
		assert_int_equal(entry.as.put.scope, 42);
		assert_int_equal(entry.as.put.encoding, key.encoding);
		assert_true(equal_bytes(
			entry.as.put.record.key, (struct hapax_bytes){key.data, key.size}));
		assert_same(&entry.as.put.record, &random.record);
		size_t cut = hx_prng_below(&prng, size);
		assert_int_equal(
			hx_log_entry_decode((struct hapax_bytes){at, cut}, &entry, NULL),
			HAPAX_ERR_CORRUPT);
		/* Garbled, it is refused, or it is another valid entry; never a crash. */
		at[hx_prng_below(&prng, size)] ^= (unsigned char)(1 + hx_prng_below(&prng, 255));
		(void)hx_log_entry_decode((struct hapax_bytes){at, size}, &entry, NULL);
	}
	scale_report("log entries written and read", count, scale_seconds() - begun, true);
	free(at);
}

/* The short way in writes what the long one would. */
static void mark_is_the_put_of_its_record(void **state)
{
	static const unsigned char print[HAPAX_FINGERPRINT_SIZE] =
		"thirty-two bytes of fingerprint";
	unsigned char short_way[512], long_way[512];

	(void)state;
	for (int with_print = 0; with_print < 2; with_print++) {
		struct hx_packed_key key;
		struct hx_packed_mark mark = {
			.fingerprint = with_print ? print : NULL,
			.expires_ms = 5000,
			.token = 77,
		};
		struct hapax_record record = {
			.state = HAPAX_STATE_DONE,
			.origin = HAPAX_ORIGIN_CHECK,
			.attempt = 1,
			.token = 77,
			.first_seen_ms = 1000,
			.changed_ms = 1000,
			.expires_ms = 5000,
			.ttl_ms = 4000,
			.fingerprint_size = with_print ? 32 : 0,
		};

		if (with_print)
			memcpy(record.fingerprint, print, sizeof(print));
		hx_packed_key_init(
			&key, 3, hapax_bytes_from_text("0198c1a2-7b3c-7def-8123-456789abcdef"));
		size_t size = hx_log_put_size(&record, &key);
		assert_int_equal(hx_log_mark_size(&mark, &key), size);
		hx_log_mark_encode(short_way, &mark, &key, 1000, 9);
		hx_log_put_encode(long_way, &record, &key, 3, 0, 9);
		assert_memory_equal(short_way, long_way, size);
	}
}

static void other_entries_come_back(void **state)
{
	unsigned char at[512];
	struct hx_log_entry entry;
	struct hx_log_manifest_item items[2] = {
		{.id = 5, .bytes = 8192, .kind = HX_LOG_KIND_DAY, .crc = 1},
		{.id = 6, .bytes = 12288, .kind = HX_LOG_KIND_EVER, .crc = 2}};
	struct hx_log_seal seal = {1, 2, 4096, 3, 4, 5, 6};
	struct hapax_bytes tenant = hapax_bytes_from_text("acme");
	struct hapax_bytes group = hapax_bytes_from_text("orders");

	(void)state;
	hx_log_scope_encode(at, 8, tenant, group, 1);
	assert_int_equal(
		hx_log_entry_decode(
			(struct hapax_bytes){at, hx_log_scope_size(tenant, group)}, &entry, NULL),
		HAPAX_OK);
	assert_int_equal(entry.as.scope.number, 8);
	assert_true(equal_bytes(entry.as.scope.tenant, tenant));
	assert_true(equal_bytes(entry.as.scope.group, group));
	hx_log_manifest_encode(at, 3, 7, items, 2, 2);
	assert_int_equal(
		hx_log_entry_decode(
			(struct hapax_bytes){at, hx_log_manifest_size(2)}, &entry, NULL),
		HAPAX_OK);
	assert_int_equal(entry.as.manifest.log_first_id, 3);
	assert_int_equal(entry.as.manifest.next_class_id, 7);
	assert_int_equal(hx_log_manifest_item(&entry, 1).id, 6);
	assert_int_equal(hx_log_manifest_item(&entry, 1).kind, HX_LOG_KIND_EVER);
	hx_log_seal_encode(at, &seal, 3);
	assert_int_equal(
		hx_log_entry_decode((struct hapax_bytes){at, HX_LOG_SEAL_SIZE}, &entry, NULL),
		HAPAX_OK);
	assert_int_equal(entry.as.seal.expires_ms_max, 5);
	/* An unknown entry is skipped if it says so, and refused if not. */
	at[HX_LOG_ENTRY_KIND] = HX_LOG_ENTRY_SKIPPABLE | 44;
	assert_int_equal(
		hx_log_entry_decode((struct hapax_bytes){at, HX_LOG_SEAL_SIZE}, &entry, NULL),
		HAPAX_OK);
	at[HX_LOG_ENTRY_KIND] = 44;
	assert_int_equal(
		hx_log_entry_decode((struct hapax_bytes){at, HX_LOG_SEAL_SIZE}, &entry, NULL),
		HAPAX_ERR_UNSUPPORTED);
	at[HX_LOG_ENTRY_KIND] = HX_LOG_ENTRY_NONE;
	assert_true(
		hx_log_entry_decode((struct hapax_bytes){at, HX_LOG_SEAL_SIZE}, &entry, NULL) !=
		HAPAX_OK);
}

/* Its next pass would write over a segment, or give up the whole log. */
static void impossible_manifest_is_refused(void **state)
{
	unsigned char at[128];
	struct hx_log_entry entry;
	struct hx_log_manifest_item item = {.id = 6, .bytes = 8192, .kind = HX_LOG_KIND_DAY};
	struct hapax_bytes bytes = {at, hx_log_manifest_size(1)};

	(void)state;
	hx_log_manifest_encode(at, 3, 7, &item, 1, 2);
	hx_put64(at + 24, 6);
	assert_int_equal(hx_log_entry_decode(bytes, &entry, NULL), HAPAX_ERR_CORRUPT);
	hx_log_manifest_encode(at, 3, 7, &item, 1, 2);
	hx_put64(at + 16, 0);
	assert_int_equal(hx_log_entry_decode(bytes, &entry, NULL), HAPAX_ERR_CORRUPT);
	hx_put64(at + 16, 3);
	assert_int_equal(hx_log_entry_decode(bytes, &entry, NULL), HAPAX_OK);
	/* Passes count on from the next id. */
	hx_put64(at + 24, UINT64_MAX);
	assert_int_equal(hx_log_entry_decode(bytes, &entry, NULL), HAPAX_ERR_CORRUPT);
	hx_log_manifest_encode(at, 3, 7, NULL, 0, 2);
	bytes.size = hx_log_manifest_size(0);
	hx_put64(at + 24, 0);
	assert_int_equal(hx_log_entry_decode(bytes, &entry, NULL), HAPAX_ERR_CORRUPT);
}

/* Numbers that follow these would wrap around. */
static void impossible_frame_is_none(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
	} faults[] = {
		{HX_LOG_FRAME_LSN, UINT64_MAX},
		{HX_LOG_FRAME_TOKEN, HX_TOKEN_MAX + 1},
		{HX_LOG_FRAME_STORE_MS, INT64_MAX},
		{HX_LOG_FRAME_OWED_MS, UINT64_MAX},
	};
	struct hx_log_header header = some_header();
	struct hx_log_frame frame = {
		.size = hx_log_frame_size(0), .lsn = 1, .token = HX_TOKEN_MAX, .offset = 4096};
	unsigned char at[HX_LOG_BLOCK_SIZE];
	struct hx_log_frame read;

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		hx_log_frame_encode(&frame, hx_log_seed(&header), at);
		assert_true(hx_log_frame_peek(at, 4096, &read));
		hx_put64(at + faults[i].at, faults[i].value);
		assert_false(hx_log_frame_peek(at, 4096, &read));
	}
}

/* Each kind, each size: what is too short is refused before it is read (ASan watches). */
static void short_entries_are_refused(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 256; kind++) {
		for (size_t size = 16; size < 128; size += 8) {
			unsigned char *at = calloc(1, size);
			struct hx_log_entry entry;

			assert_non_null(at);
			at[HX_LOG_ENTRY_KIND] = (unsigned char)kind;
			at[HX_LOG_ENTRY_SIZE] = (unsigned char)size;
			at[HX_LOG_ENTRY_KEY_SIZE] = 1;
			(void)hx_log_entry_decode((struct hapax_bytes){at, size}, &entry, NULL);
			if (kind == HX_LOG_PUT && size < HX_LOG_RECORD_HEAD_SIZE)
				assert_int_equal(
					hx_log_entry_decode(
						(struct hapax_bytes){at, size}, &entry, NULL),
					HAPAX_ERR_CORRUPT);
			free(at);
		}
	}
}

static void names_come_back(void **state)
{
	static const char *const foreign[] = {
		"",
		"log",
		"log-",
		"log-0000000000000001",
		"log-000000000000001.seg",
		"log-0000000000000001.seg.tmp",
		"log-000000000000000G.seg",
		"log-000000000000000A.seg",
		"year-0000000000000001.seg",
		"LOCK",
		"day-.seg"};
	char name[HX_LOG_NAME_SIZE];
	enum hx_log_kind kind;
	uint64_t id;

	(void)state;
	for (unsigned i = 0; i < HX_LOG_KIND_COUNT; i++) {
		hx_log_name(name, (enum hx_log_kind)i, UINT64_C(0xfedcba9876543210), "");
		assert_true(hx_log_name_parse(name, &kind, &id));
		assert_int_equal(kind, i);
		assert_true(id == UINT64_C(0xfedcba9876543210));
	}
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_false(hx_log_name_parse(foreign[i], &kind, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_comes_back),
		cmocka_unit_test(flipped_bit_of_a_header_is_found),
		cmocka_unit_test(newer_format_is_refused),
		cmocka_unit_test(frame_comes_back_and_knows_its_place),
		cmocka_unit_test(random_records_come_back),
		cmocka_unit_test(mark_is_the_put_of_its_record),
		cmocka_unit_test(other_entries_come_back),
		cmocka_unit_test(impossible_manifest_is_refused),
		cmocka_unit_test(impossible_frame_is_none),
		cmocka_unit_test(short_entries_are_refused),
		cmocka_unit_test(names_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
