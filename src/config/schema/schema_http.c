/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_http.c - every setting of `http`: the limits of the doors.
 */
#include "config/schema/schema_row.h"

#include "wire/http1/http1.h"

static const struct hx_setting http_settings[] = {
	{"max_connections", AT(http, max_connections), COUNT("20000", 0, MANY), NONE_IS_0,
	 "at the gateway, and as many at the proxy"},
	{"max_connections_per_address", AT(http, max_connections_per_address),
	 COUNT("2500", 0, MANY), NONE_IS_0, "from one address; the next one gets 429"},
	{"max_requests", AT(http, max_requests), COUNT("8192", 0, MANY), NONE_IS_0,
	 "in progress at a time, at either of the two; the next one gets 503"},
	{"max_requests_per_address", AT(http, max_requests_per_address), COUNT("1024", 0, MANY),
	 NONE_IS_0, "in progress at a time from one address; the next one gets 429"},
	{"max_requests_per_tenant", AT(http, max_requests_per_tenant), COUNT("none", 0, MANY),
	 NONE_IS_0, "in progress at a time; the next one gets 429"},
	{"max_line", AT(http, max_line), SIZE("8KiB", 256, HX_HTTP1_LINE_MAX), 0,
	 "the request line; above it 414"},
	{"max_head", AT(http, max_head), SIZE("16KiB", 1 * KIB, HX_HTTP1_HEAD_LIMIT), 0,
	 "request line and fields; above it 431"},
	{"max_fields", AT(http, max_fields), COUNT("100", 8, 100), 0,
	 "fields of a request; above it 431"},
	{"max_body", AT(http, max_body), SIZE("16MiB", 64 * KIB, 64 * MIB), 0,
	 "the body of a request; above it 413"},
	{"max_body_memory", AT(http, max_body_memory), SIZE("256KiB", 4 * KIB, 64 * MIB), 0,
	 "larger bodies go into a temporary file"},
	{"max_temp_bytes", AT(http, max_temp_bytes), SIZE("1GiB", 1 * MIB, INT64_MAX), NONE_IS_0,
	 "of temporary files, all together; above it 503"},
	{"max_batch", AT(http, max_batch), COUNT("1000", 1, 65536), 0,
	 "events in one batch; above it 413"},
	{"head_timeout", AT(http, head_timeout_ms), DURATION("10s", 1, HOUR), 0,
	 "from the first byte of a head to its last; above it 408"},
	{"body_timeout", AT(http, body_timeout_ms), DURATION("30s", 1, HOUR), 0,
	 "a body may pause for so long, and must bring 4 KiB a second otherwise; else 408"},
	{"send_timeout", AT(http, send_timeout_ms), DURATION("30s", 1, HOUR), 0,
	 "a client that takes less than 4 KiB a second over that long is dropped"},
	{"idle_timeout", AT(http, idle_timeout_ms), DURATION("75s", 1, DAY), 0,
	 "a connection without a request is closed"},
	{"trusted_proxies", LIST_AT(http, trusted_proxies, trusted_count),
	 TEXTS(LIST_MAX, hx_config_check_network), FILE_ONLY,
	 "addresses and networks whose X-Forwarded-For is believed"},
	{.name = NULL},
};
const struct hx_section hx_config_http_section = {
	"http", .settings = http_settings, .size = sizeof(struct hx_config_http)};
