/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_http.c - every setting of `http`: the limits of the doors.
 */
#include "config/schema/schema_row.h"

#include "wire/http1/http1.h"

static const struct hx_setting http_settings[] = {
	{"max_connections", AT(http, max_connections), COUNT("20000", 0, MANY), NONE_IS_0,
	 "maximum number of connections of the gateway, and of the proxy"},
	{"max_connections_per_address", AT(http, max_connections_per_address),
	 COUNT("2500", 0, MANY), NONE_IS_0,
	 "maximum number of connections per address; the next gets 429"},
	{"max_requests", AT(http, max_requests), COUNT("8192", 0, MANY), NONE_IS_0,
	 "maximum number of requests in progress per listener; the next gets 503"},
	{"max_requests_per_address", AT(http, max_requests_per_address), COUNT("1024", 0, MANY),
	 NONE_IS_0, "maximum number of requests in progress per address; the next gets 429"},
	{"max_requests_per_tenant", AT(http, max_requests_per_tenant), COUNT("none", 0, MANY),
	 NONE_IS_0, "maximum number of requests in progress per tenant; the next gets 429"},
	{"max_line", AT(http, max_line), SIZE("8KiB", 256, HX_HTTP1_LINE_MAX), 0,
	 "maximum size of the request line; larger: 414"},
	{"max_head", AT(http, max_head), SIZE("16KiB", 1 * KIB, HX_HTTP1_HEAD_LIMIT), 0,
	 "maximum size of request line and headers; larger: 431"},
	{"max_fields", AT(http, max_fields), COUNT("100", 8, 100), 0,
	 "maximum number of headers; more: 431"},
	{"max_body", AT(http, max_body), SIZE("16MiB", 64 * KIB, 64 * MIB), 0,
	 "maximum size of a request body; larger: 413"},
	{"max_body_memory", AT(http, max_body_memory), SIZE("256KiB", 4 * KIB, 64 * MIB), 0,
	 "larger bodies are stored in a temporary file"},
	{"max_temp_bytes", AT(http, max_temp_bytes), SIZE("1GiB", 1 * MIB, INT64_MAX), NONE_IS_0,
	 "maximum size of all temporary files; more: 503"},
	{"max_batch", AT(http, max_batch), COUNT("1000", 1, 65536), 0,
	 "maximum number of events in a batch; more: 413"},
	{"head_timeout", AT(http, head_timeout_ms), DURATION("10s", 1, HOUR), 0,
	 "maximum time from the first to the last byte of the head; longer: 408"},
	{"body_timeout", AT(http, body_timeout_ms), DURATION("30s", 1, HOUR), 0,
	 "maximum pause in a body, which must also bring 4 KiB per second; longer: 408"},
	{"send_timeout", AT(http, send_timeout_ms), DURATION("30s", 1, HOUR), 0,
	 "a client that reads less than 4 KiB per second for this long is disconnected"},
	{"idle_timeout", AT(http, idle_timeout_ms), DURATION("75s", 1, DAY), 0,
	 "idle connections are closed after this time"},
	{"trusted_proxies", LIST_AT(http, trusted_proxies, trusted_count),
	 TEXTS(LIST_MAX, hx_config_check_network), FILE_ONLY,
	 "addresses and networks whose X-Forwarded-For is trusted"},
	{.name = NULL},
};
const struct hx_section hx_config_http_section = {
	"http", .settings = http_settings, .size = sizeof(struct hx_config_http)};
