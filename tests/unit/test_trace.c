/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans as OTLP has them in JSON.
 */
#include "observe/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

static char text[64 * 1024];

/* A note as a whole request, with a NUL. */
static const char *written(const struct hx_trace_note *note)
{
	struct hapax_buf out = {(unsigned char *)text, 0, sizeof(text) - 1, sizeof(text) - 1, NULL};
	struct hx_json_write json;

	hx_json_write_init(&json, &out);
	hx_trace_write_begin(&json, "shop");
	hx_trace_write_note(&json, note);
	hx_trace_write_end(&json);
	assert_int_equal(json.status, HAPAX_OK);
	text[out.size] = '\0';
	return text;
}

static struct hx_trace_note plain(void)
{
	struct hx_trace_note note = {
		.began_ns = 1700000000000000001, .ended_ns = 1700000000000000009};

	note.name = "process_cloud_event";
	(void)memcpy(note.method, "POST", 5);
	memset(note.context.trace_id, 0xab, HX_TRACE_ID_SIZE);
	memset(note.context.span_id, 0x01, HX_SPAN_ID_SIZE);
	memset(note.check_id, 0x02, HX_SPAN_ID_SIZE);
	memset(note.call_id, 0x03, HX_SPAN_ID_SIZE);
	memset(note.parent_id, 0x04, HX_SPAN_ID_SIZE);
	return note;
}

static void has(const char *whole, const char *part)
{
	if (strstr(whole, part) == NULL)
		fail_msg("'%s' is not in %s", part, whole);
}

static void lacks(const char *whole, const char *part)
{
	if (strstr(whole, part) != NULL)
		fail_msg("'%s' is in %s", part, whole);
}

static void the_least_that_is_told(void **state)
{
	struct hx_trace_note note = plain();
	const char *whole = written(&note);

	(void)state;
	assert_int_equal(hx_trace_note_spans(&note), 1);
	has(whole,
	    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
	    "\"value\":{\"stringValue\":\"shop\"}},");
	has(whole, "\"scopeSpans\":[{\"scope\":{\"name\":\"hapax\",");
	has(whole,
	    "\"spans\":[{\"traceId\":\"abababababababababababababababab\","
	    "\"spanId\":\"0101010101010101\",\"name\":\"process_cloud_event\",\"kind\":2,"
	    "\"startTimeUnixNano\":\"1700000000000000001\","
	    "\"endTimeUnixNano\":\"1700000000000000009\",\"attributes\":[");
	lacks(whole, "parentSpanId");
	lacks(whole, "links");
	lacks(whole, "status_code");
	lacks(whole, "\"status\"");
	lacks(whole, "idempotency_check");
}

static void all_that_is_told(void **state)
{
	struct hx_trace_note note = plain();
	const char *whole;

	(void)state;
	note.has_parent = note.has_check = note.has_call = note.has_original = true;
	memset(note.original.trace_id, 0xcd, HX_TRACE_ID_SIZE);
	memset(note.original.span_id, 0xef, HX_SPAN_ID_SIZE);
	note.asked_ns = 5;
	note.decided_ns = 3; /* the clock was set back */
	note.decision = "acquired";
	note.token = 9007199254740991;
	note.attempt = 2;
	note.upstream_status = 503;
	note.call_error = hx_trace_error_status;
	note.reply_status = 504;
	note.error = "timeout";
	note.upstream_port = 9000;
	(void)memcpy(note.upstream_host, "shop.example", 13);
	(void)memcpy(note.event_id, "a\"b", 4);
	(void)memcpy(note.scope, "acme/orders", 12);
	hx_trace_hash_key(HX_BYTES_LIT("abc"), note.key_hash);
	assert_int_equal(hx_trace_note_spans(&note), 3);
	whole = written(&note);
	has(whole, "\"parentSpanId\":\"0404040404040404\",\"name\":\"process_cloud_event\"");
	has(whole,
	    "\"parentSpanId\":\"0101010101010101\",\"name\":\"idempotency_check\",\"kind\":1");
	has(whole, "\"parentSpanId\":\"0101010101010101\",\"name\":\"POST\",\"kind\":3");
	has(whole,
	    "\"links\":[{\"traceId\":\"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd\","
	    "\"spanId\":\"efefefefefefefef\"}]");
	has(whole, "{\"key\":\"cloudevents.event_id\",\"value\":{\"stringValue\":\"a\\\"b\"}}");
	has(whole, "{\"key\":\"hapax.token\",\"value\":{\"intValue\":\"9007199254740991\"}}");
	has(whole,
	    "{\"key\":\"hapax.key_hash\",\"value\":{\"stringValue\":\"sha256:ba7816bf8f01cfea\"}}");
	has(whole, "{\"key\":\"error.type\",\"value\":{\"stringValue\":\"503\"}}");
	has(whole, "{\"key\":\"error.type\",\"value\":{\"stringValue\":\"timeout\"}}");
	has(whole, "\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"5\"");
	has(whole, "\"status\":{\"code\":2}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_that_is_told),
		cmocka_unit_test(all_that_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
