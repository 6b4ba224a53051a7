/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the record codec (src/record/codec.c), record checks (src/record/record.c).
 *
 * The bytes are read twice: as an encoded record, which is refused or encodes to
 * the very same bytes again; and as the members of a record, which, if it is a
 * valid one, must come back from its encoding.
 */
#include <stdlib.h>
#include <string.h>

#include <hapax/record.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "record/codec.h"
#include "record/record.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void read_bytes(const unsigned char *data, size_t size)
{
	struct hapax_record record;
	struct hapax_error err = {HAPAX_OK, 0, ""};
	struct hapax_buf buf;
	size_t used = 0;

	if (hx_record_decode(hx_bytes(data, size), &record, &used, &err) != HAPAX_OK) {
		must(err.status == HAPAX_ERR_CORRUPT && err.message[0] != '\0');
		return;
	}
	must(used <= size && hx_record_is_valid(&record));
	must(hx_record_encoded_size(&record) == used);
	hx_buf_init(&buf, HX_RESULT_SIZE_LIMIT + 1024 * 1024);
	must(hx_record_encode(&record, &buf) == HAPAX_OK);
	must(buf.size == used && memcmp(buf.data, data, used) == 0);
	hx_buf_done(&buf);
}

struct reader {
	const unsigned char *data;
	size_t size;
};

static void take(struct reader *reader, void *out, size_t size)
{
	size_t part = size < reader->size ? size : reader->size;

	memset(out, 0, size);
	if (part)
		memcpy(out, reader->data, part);
	reader->data += part;
	reader->size -= part;
}

static unsigned take_byte(struct reader *reader)
{
	unsigned char byte;

	take(reader, &byte, 1);
	return byte;
}

static int64_t take_time(struct reader *reader)
{
	int64_t time_ms;

	take(reader, &time_ms, sizeof(time_ms));
	/* The small and the extreme ones meet more often than by chance. */
	return take_byte(reader) % 2 ? time_ms : (int64_t)((uint64_t)time_ms % 1000);
}

static struct hapax_bytes take_bytes(struct reader *reader, size_t size_max)
{
	size_t size = take_byte(reader) | take_byte(reader) % 8u << 8;

	if (size > reader->size)
		size = reader->size;
	if (size > size_max)
		size = size_max;
	struct hapax_bytes bytes = hx_bytes(reader->data, size);
	reader->data += size;
	reader->size -= size;
	return bytes;
}

static void read_members(struct reader *reader)
{
	static const uint32_t print_sizes[] = {0, 16, 32};
	struct hapax_record record;
	struct hapax_record decoded;
	struct hapax_buf buf;
	size_t used = 0;

	memset(&record, 0, sizeof(record));
	record.state = (enum hapax_state)(take_byte(reader) % 6);
	record.origin = (enum hapax_origin)(take_byte(reader) % 4);
	record.on_lapse = (enum hapax_on_lapse)(take_byte(reader) % 3);
	take(reader, &record.attempt, sizeof(record.attempt));
	record.token = (uint64_t)take_time(reader);
	record.first_seen_ms = take_time(reader);
	record.changed_ms = take_time(reader);
	record.lease_ends_ms = record.state == HAPAX_STATE_CLAIMED ? take_time(reader) : 0;
	record.expires_ms = take_byte(reader) % 2 ? HAPAX_TIME_NEVER : take_time(reader);
	record.ttl_ms = take_time(reader);
	record.fingerprint_size = print_sizes[take_byte(reader) % 3];
	take(reader, record.fingerprint, record.fingerprint_size);
	if (record.state == HAPAX_STATE_CLAIMED || record.state == HAPAX_STATE_PARKED)
		take(reader, record.attempt_id, sizeof(record.attempt_id));
	record.tenant = take_bytes(reader, HX_SCOPE_PART_SIZE_MAX);
	record.group = take_bytes(reader, HX_SCOPE_PART_SIZE_MAX);
	record.key = take_bytes(reader, HX_KEY_SIZE_MAX);
	if (record.state == HAPAX_STATE_DONE) {
		record.result.kind = (enum hapax_result_kind)(take_byte(reader) % 5);
		record.result.result_class = (enum hapax_result_class)(take_byte(reader) % 3);
		take(reader, &record.result.status, sizeof(record.result.status));
		record.result.omitted_bytes = (uint64_t)take_time(reader);
		record.result.headers = take_bytes(reader, HX_RESULT_HEADERS_SIZE_MAX);
		record.result.body = take_bytes(reader, HX_RESULT_SIZE_LIMIT);
	} else {
		record.owner = take_bytes(reader, HX_OWNER_SIZE_MAX);
		record.error = take_bytes(reader, HX_ERROR_TEXT_SIZE_MAX);
	}
	if (!hx_record_is_valid(&record))
		return;
	hx_buf_init(&buf, HX_RESULT_SIZE_LIMIT + 1024 * 1024);
	must(hx_record_encode(&record, &buf) == HAPAX_OK);
	must(hx_record_decode(hapax_buf_bytes(&buf), &decoded, &used, NULL) == HAPAX_OK);
	must(used == buf.size);
	must(decoded.state == record.state && decoded.origin == record.origin);
	must(decoded.on_lapse == record.on_lapse && decoded.attempt == record.attempt);
	must(decoded.token == record.token && decoded.ttl_ms == record.ttl_ms);
	must(decoded.first_seen_ms == record.first_seen_ms);
	must(decoded.changed_ms == record.changed_ms && decoded.expires_ms == record.expires_ms);
	must(decoded.lease_ends_ms == record.lease_ends_ms);
	must(decoded.fingerprint_size == record.fingerprint_size);
	must(memcmp(decoded.fingerprint, record.fingerprint, sizeof(record.fingerprint)) == 0);
	must(memcmp(decoded.attempt_id, record.attempt_id, sizeof(record.attempt_id)) == 0);
	must(hx_bytes_equal(decoded.tenant, record.tenant));
	must(hx_bytes_equal(decoded.group, record.group));
	must(hx_bytes_equal(decoded.key, record.key));
	must(hx_bytes_equal(decoded.owner, record.owner));
	must(hx_bytes_equal(decoded.error, record.error));
	must(decoded.result.kind == record.result.kind);
	must(decoded.result.result_class == record.result.result_class);
	must(decoded.result.status == record.result.status);
	must(decoded.result.omitted_bytes == record.result.omitted_bytes);
	must(hx_bytes_equal(decoded.result.headers, record.result.headers));
	must(hx_bytes_equal(decoded.result.body, record.result.body));
	hx_buf_done(&buf);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct reader reader = {data, size};

	read_bytes(data, size);
	read_members(&reader);
	return 0;
}
