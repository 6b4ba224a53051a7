/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/record/stats_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void write_stats(const struct hapax_stats *stats, unsigned flags, struct hapax_buf *out)
{
	struct hx_json_write json;

	hx_buf_clear(out);
	hx_json_write_init(&json, out);
	hx_json_write_begin(&json, NULL, '{');
	hx_stats_json_write(&json, stats, flags);
	hx_stats_json_write_decisions(&json, stats->counts);
	hx_json_write_end(&json, '}');
	assert_int_equal(json.status, HAPAX_OK);
	assert_int_equal(hx_buf_append_byte(out, '\0'), HAPAX_OK);
}

static void limits_and_rates_may_be_absent(void **state)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_buf out;
	const char *text;

	(void)state;
	hx_buf_init(&out, 4096);
	stats.keys = 3;
	stats.swept = 7;
	write_stats(&stats, 0, &out);
	text = (const char *)out.data;
	assert_non_null(strstr(text, "\"keys\":3,\"states\":{\"claimed\":0,"));
	assert_non_null(strstr(text, "\"bytes_max\":null,\"keys_max\":null,"));
	assert_non_null(strstr(text, "\"hit_rate\":null}"));
	assert_null(strstr(text, "swept"));

	stats.keys_max = 10;
	stats.counts[HAPAX_DECISION_ACQUIRED] = 2;
	stats.counts[HAPAX_DECISION_REPLAY] = 1;
	write_stats(&stats, HX_STATS_JSON_WITH_SWEPT, &out);
	text = (const char *)out.data;
	assert_non_null(strstr(text, "\"swept\":7,"));
	assert_non_null(strstr(text, "\"keys_max\":10,"));
	assert_non_null(strstr(text, "\"decisions\":{\"acquired\":2,\"replay\":1,"));
	assert_non_null(strstr(text, "\"hit_rate\":0.3333}"));
	hx_buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_and_rates_may_be_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
