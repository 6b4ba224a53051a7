/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_log_older.c - I16: a file: store of an earlier version opens.
 *
 * The bytes are a store that the version before events were remembered wrote, without the zeros:
 *
 *	export HAPAX_STORE=file:store HAPAX_TTL=forever
 *	hapax claim done --owner w; printf 'a result' | hapax complete done --token ... --result -
 *	hapax claim failed --owner w; hapax release failed --token ... --error 'no luck'
 *	hapax claim parked --owner w --payload /dev/null
 *	hapax park parked --token ... --error 'who knows'
 *	hapax check mark; hapax claim held --owner w --lease 24h
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <hapax/fsck.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "store/log/format/endian.h"
#include "store/log/format/format.h"
#include "support/log_case.h"
#include "support/log_files.h"
#include "support/store_case.h"

enum file { STORE, SEGMENT };

static const struct {
	const char *name;
	off_t size;
} files[] = {
	[STORE] = {"STORE", 4096},
	[SEGMENT] = {"log-0000000000000001.seg", 1048576},
};

static const struct {
	enum file file;
	long offset;
	const char *hex;
} pieces[] = {
	{STORE, 0,
	 "484150415853544f0100000000000000000000000000000020c1f40794559f29787c7d86"
	 "8dcc62e803890beea1010000b8330fdd8960060001"},
	{STORE, 124, "4d251c16"},
	{SEGMENT, 0,
	 "48415041585345470100000000000000000000000000000020c1f40794559f29787c7d86"
	 "8dcc62e8010000000000000016c0b184c521fe370000100000000000000c"},
	{SEGMENT, 124, "8fcff078"},
	{SEGMENT, 4096,
	 "485846520000000000100000c80000000400000000000000010000000000000001000000"
	 "00000000ba330fdd8960060007890beea1010000256b1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0010"},
	{SEGMENT, 4220, "56198467040000002000000001"},
	{SEGMENT, 4256,
	 "050000002800000002000000000000000100000000000000010000000000000000000000"
	 "0000000003000000280000000300000000000000000000000700070064656661756c7464"
	 "656661756c74000001000400580000000400000000000000ba330fdd89600600ffffffff"
	 "ffffff7f07890beea1010000000000000100d400646f6e65ffffffffffffff7f37fe0bee"
	 "a1010000330bfb996fd492c49eeee2f0a89d265b0177"},
	{SEGMENT, 8192,
	 "485846520100000000100000780000000100000056198467050000000000000005000000"
	 "00000000ba330fdd8960060008890beea1010000266b1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0020"},
	{SEGMENT, 8316,
	 "74fff2d7060000007800000005000000000000008066e2eda10100000000000000000000"
	 "01"},
	{SEGMENT, 12288,
	 "485846520000000000100000900000000200000074fff2d7060000000000000006000000"
	 "00000000ba330fdd89600600cb8b0beea1010000e96d1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0030"},
	{SEGMENT, 12412,
	 "4d6af29703000000280000000600000000000000000000000700070064656661756c7464"
	 "656661756c74000001000400680000000700000000000000ba330fdd89600600ffffffff"
	 "ffffff7fcb8b0beea10100000000000002000c02646f6e65ffffffffffffff7f07890bee"
	 "a101000001"},
	{SEGMENT, 12544, "080000006120726573756c74"},
	{SEGMENT, 16384,
	 "48584652010000000010000078000000010000004d6af297080000000000000008000000"
	 "00000000ba330fdd89600600cc8b0beea1010000ea6d1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0040"},
	{SEGMENT, 16508,
	 "2e1e6a0b060000007800000008000000000000008066e2eda10100000000000000000000"
	 "01"},
	{SEGMENT, 16592, "01"},
	{SEGMENT, 20480,
	 "48584652000000000010000080000000020000002e1e6a0b090000000000000009000000"
	 "00000000bb330fdd896006005b8c0beea1010000796e1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0050"},
	{SEGMENT, 20604,
	 "6cc7e4ea03000000280000000900000000000000000000000700070064656661756c7464"
	 "656661756c74000001000600580000000a00000000000000bb330fdd89600600ffffffff"
	 "ffffff7f5b8c0beea1010000000000000100d4006661696c6564ffffffffffffff7f8b01"
	 "0ceea10100009237180cda8f170b796ab68b7e08b5270177"},
	{SEGMENT, 24576,
	 "48584652010000000010000078000000010000006cc7e4ea0b000000000000000b000000"
	 "00000000bb330fdd896006005b8c0beea1010000796e1303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0060"},
	{SEGMENT, 24700,
	 "9d440cb106000000780000000b000000000000008066e2eda10100000000000000000000"
	 "02"},
	{SEGMENT, 24784, "01"},
	{SEGMENT, 28672,
	 "48584652000000000010000080000000020000009d440cb10c000000000000000c000000"
	 "00000000bb330fdd89600600a18e0beea1010000bf701303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0070"},
	{SEGMENT, 28796,
	 "0b94ce0a03000000280000000c00000000000000000000000700070064656661756c7464"
	 "656661756c74000001000600580000000d00000000000000bb330fdd89600600ffffffff"
	 "ffffff7fa18e0beea10100000000000003008c016661696c6564ffffffffffffff7f5b8c"
	 "0beea1010000017707006e6f206c75636b"},
	{SEGMENT, 32768,
	 "48584652010000000010000078000000010000000b94ce0a0e000000000000000e000000"
	 "00000000bb330fdd89600600a18e0beea1010000bf701303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0080"},
	{SEGMENT, 32892,
	 "1104f9f506000000780000000e000000000000008066e2eda10100000000000000000000"
	 "02"},
	{SEGMENT, 32976, "010000000000000001"},
	{SEGMENT, 36864,
	 "485846520000000000100000a0000000020000001104f9f50f000000000000000f000000"
	 "00000000bc330fdd89600600dd8e0beea1010000fb701303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d0090"},
	{SEGMENT, 36988,
	 "45fa2ae003000000280000000f00000000000000000000000700070064656661756c7464"
	 "656661756c74000001000600780000001000000000000000bc330fdd89600600ffffffff"
	 "ffffff7fdd8e0beea1010000000000000100d6007061726b6564e3b0c44298fc1c149afb"
	 "f4c8996fb92427ae41e4649b934ca495991b7852b855ffffffffffffff7f0d040ceea101"
	 "0000efa19cd19e63bef385afdcb28e456c2e0177"},
	{SEGMENT, 40960,
	 "485846520100000000100000780000000100000045fa2ae0110000000000000011000000"
	 "00000000bc330fdd89600600df8e0beea1010000fd701303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00a0"},
	{SEGMENT, 41084,
	 "60e36e25060000007800000011000000000000008066e2eda10100000000000000000000"
	 "03"},
	{SEGMENT, 41168, "010000000000000001"},
	{SEGMENT, 45056,
	 "485846520000000000100000a00000000200000060e36e25120000000000000012000000"
	 "00000000bc330fdd8960060032910beea101000050731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00b0"},
	{SEGMENT, 45180,
	 "13835d0203000000280000001200000000000000000000000700070064656661756c7464"
	 "656661756c74000001000600780000001300000000000000bc330fdd89600600ffffffff"
	 "ffffff7f32910beea1010000000000000400cd017061726b6564e3b0c44298fc1c149afb"
	 "f4c8996fb924ffffffffffffff7fdd8e0beea1010000efa19cd19e63bef385afdcb28e45"
	 "6c2e0177090077686f206b6e6f7773"},
	{SEGMENT, 49152,
	 "485846520100000000100000000000000000000013835d02140000000000000014000000"
	 "00000000bc330fdd8960060032910beea101000050731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00c0"},
	{SEGMENT, 49276, "8bd53e"},
	{SEGMENT, 53248,
	 "48584652000000000010000068000000020000008bd53e00140000000000000014000000"
	 "00000000bd330fdd8960060065910beea101000083731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00d0"},
	{SEGMENT, 53372,
	 "665809bf03000000280000001400000000000000000000000700070064656661756c7464"
	 "656661756c74000001000400400000001500000000000000bd330fdd89600600ffffffff"
	 "ffffff7f65910beea1010000000000000a0004006d61726bffffffffffffff7f"},
	{SEGMENT, 57344,
	 "4858465201000000001000007800000001000000665809bf160000000000000016000000"
	 "00000000bd330fdd8960060066910beea101000084731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00e0"},
	{SEGMENT, 57468,
	 "cd621a14060000007800000016000000000000008066e2eda10100000000000000000000"
	 "04"},
	{SEGMENT, 57552, "010000000000000001"},
	{SEGMENT, 61440,
	 "4858465200000000001000008000000002000000cd621a14170000000000000017000000"
	 "00000000be330fdd8960060098910beea1010000b6731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d00f0"},
	{SEGMENT, 61565,
	 "9eeaab03000000280000001700000000000000000000000700070064656661756c746465"
	 "6661756c74000001000400580000001800000000000000be330fdd89600600ffffffffff"
	 "ffff7f98910beea1010000000000000100d40068656c64ffffffffffffff7f98ed31f3a1"
	 "01000075ef73e2ed75d95a1d9f25cfc4c9daaf0177"},
	{SEGMENT, 65536,
	 "4858465201000000001000007800000001000000009eeaab190000000000000019000000"
	 "00000000be330fdd8960060099910beea1010000b7731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d000001"},
	{SEGMENT, 65660,
	 "2fdbdede060000007800000019000000000000008066e2eda10100000000000000000000"
	 "05"},
	{SEGMENT, 65744, "010000000000000001"},
	{SEGMENT, 69632,
	 "48584652010000000010000000000000000000002fdbdede1a000000000000001a000000"
	 "00000000be330fdd89600600db910beea1010000f9731303000000000000000000000000"
	 "93546def18e64dea87795addf757c55d001001"},
	{SEGMENT, 69756, "e747b082"},
};

static void write_older_store(const char *directory)
{
	char path[1024];

	assert_int_equal(mkdir(directory, 0700), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		FILE *out;

		snprintf(path, sizeof(path), "%s/%s", directory, files[i].name);
		out = fopen(path, "wb");
		assert_non_null(out);
		assert_int_equal(ftruncate(fileno(out), files[i].size), 0);
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
			struct hapax_bytes hex = hapax_bytes_from_text(pieces[k].hex);
			unsigned char bytes[1024];

			if (pieces[k].file != i)
				continue;
			assert_true(hex.size <= 2 * sizeof(bytes));
			assert_true(hx_hex_decode(hex, bytes));
			assert_int_equal(fseek(out, pieces[k].offset, SEEK_SET), 0);
			assert_int_equal(fwrite(bytes, 1, hex.size / 2, out), hex.size / 2);
		}
		assert_int_equal(fclose(out), 0);
	}
}

/* The flags of STORE for features that a reader must know. */
static unsigned store_features(const struct store_case *c)
{
	struct hapax_bytes bytes;

	assert_int_equal(close(log_files_read(c, files[STORE].name, &bytes)), 0);
	return hx_get32((const unsigned char *)bytes.data + HX_LOG_HEADER_INCOMPAT);
}

/* A10, I16: its records are there, without an event; and new ones have theirs beside them. */
static void store_without_events_opens(void **state)
{
	const struct hapax_cause cause = {.id = HX_BYTES_LIT("evt_1")};
	unsigned char buffer[HAPAX_CAUSE_SIZE_MAX];
	struct store_case c;
	struct hapax_op op;

	(void)state;
	store_case_init(&c, "file:");
	write_older_store(c.url + strlen("file:"));
	assert_int_equal(store_features(&c), 0);
	store_case_open(&c);
	/* The log goes on in its own segment, but that version must no longer read it. */
	assert_int_equal(store_features(&c), HX_LOG_INCOMPAT_CAUSE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(case_stats(&c).keys, 5 + (uint64_t)i);
		assert_int_equal(case_state(&c, "done"), HAPAX_STATE_DONE);
		assert_true(case_bytes_are(c.record.result.body, "a result", 8));
		assert_int_equal(c.record.cause.size, 0);
		assert_int_equal(case_state(&c, "failed"), HAPAX_STATE_FAILED);
		assert_true(case_bytes_are(c.record.error, "no luck", 7));
		assert_int_equal(c.record.cause.size, 0);
		assert_int_equal(case_state(&c, "parked"), HAPAX_STATE_PARKED);
		assert_true(case_bytes_are(c.record.owner, "w", 1));
		assert_int_equal(c.record.fingerprint_size, HAPAX_FINGERPRINT_SHORT_SIZE);
		assert_int_equal(c.record.cause.size, 0);
		assert_int_equal(case_state(&c, "mark"), HAPAX_STATE_DONE);
		assert_int_equal(c.record.origin, HAPAX_ORIGIN_CHECK);
		assert_int_equal(case_state(&c, "held"), HAPAX_STATE_CLAIMED);
		assert_int_equal(c.record.cause.size, 0);
		if (i == 1)
			break;
		op = case_op(&c, HAPAX_OP_CLAIM, "new");
		op.cause = hapax_cause_write(&cause, buffer);
		assert_int_equal(case_run(&c, &op), HAPAX_OK);
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		/* I5: tokens go on from those of the earlier version. */
		assert_true(op.token > UINT64_C(1794995095811006));
		store_case_reopen(&c);
	}
	assert_int_equal(case_state(&c, "new"), HAPAX_STATE_CLAIMED);
	assert_true(case_bytes_are(c.record.cause, buffer, 11 + 5));
	store_case_done(&c);
}

/* I16: a version that does not know a feature says so, and repairs nothing. */
static void newer_store_is_left_alone(void **state)
{
	struct hapax_fsck fsck = HAPAX_FSCK_INIT;
	struct hapax_error err = {0};
	struct hapax_store *store = NULL;
	struct hapax_bytes bytes;
	unsigned char block[HX_LOG_BLOCK_SIZE];
	struct store_case c;
	int file;

	(void)state;
	store_case_init(&c, "file:");
	store_case_open(&c);
	log_case_close(&c);
	assert_int_equal(store_features(&c), HX_LOG_INCOMPAT_CAUSE);
	file = log_files_read(&c, files[STORE].name, &bytes);
	memcpy(block, bytes.data, sizeof(block));
	block[HX_LOG_HEADER_INCOMPAT] |= 0x80;
	hx_put32(block + HX_LOG_HEADER_CRC, hx_crc32c(0, block, HX_LOG_HEADER_CRC));
	assert_int_equal(pwrite(file, block, sizeof(block), 0), sizeof(block));
	assert_int_equal(close(file), 0);
	assert_int_equal(hapax_store_open(c.url, NULL, &store, &err), HAPAX_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "(0x81); use a newer hapax"));
	fsck.flags = HAPAX_FSCK_REPAIR_ACCEPT_LOSS;
	assert_int_equal(hapax_fsck(c.url + strlen("file:"), &fsck, &err), HAPAX_ERR_UNSUPPORTED);
	assert_string_equal(fsck.damaged_path, "");
	store_case_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_without_events_opens),
		cmocka_unit_test(newer_store_is_left_alone),
	};

	return cmocka_run_group_tests_name("log_older", tests, NULL, NULL);
}
