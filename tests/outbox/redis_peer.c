/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/redis_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "wire/resp/resp_reply.h"

enum { REPLY_SIZE_MAX = 64 * 1024 * 1024, PAGE = 500 };

void redis_peer_open(struct redis_peer *peer, const char *place)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	bool is_path = place[0] == '/';
	int code;

	peer->data = malloc(REPLY_SIZE_MAX);
	assert_non_null(peer->data);
	peer->fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_port = htons((uint16_t)strtol(place, NULL, 10));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)snprintf(path.sun_path, sizeof(path.sun_path), "%s", place);
	code = is_path ? connect(peer->fd, (struct sockaddr *)&path, sizeof(path))
		       : connect(peer->fd, (struct sockaddr *)&at, sizeof(at));
	assert_int_equal(code, 0);
}

void redis_peer_close(struct redis_peer *peer)
{
	(void)close(peer->fd);
	free(peer->data);
}

struct hapax_bytes redis_peer_ask(struct redis_peer *peer, const char *format, ...)
{
	struct hx_resp_scan scan = {0};
	char line[1024];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line) - 2, format, arguments);
	va_end(arguments);
	assert_true(size > 0 && (size_t)size < sizeof(line) - 2);
	memcpy(line + size, "\r\n", 2);
	assert_int_equal(write(peer->fd, line, (size_t)size + 2), size + 2);
	for (peer->size = 0;;) {
		ssize_t got = read(peer->fd, peer->data + peer->size, REPLY_SIZE_MAX - peer->size);

		assert_true(got > 0);
		peer->size += (size_t)got;
		if (hx_resp_scan(&scan, hx_bytes(peer->data, peer->size), REPLY_SIZE_MAX) ==
		    HX_RESP_DONE)
			return hx_bytes(peer->data, scan.size);
	}
}

/* [id, [name, value, ...]] */
static void take_entry(struct hapax_bytes *rest, char id[64], sink_message_fn *each, void *context)
{
	struct sink_message message = {.count = 0};
	struct hx_resp_value value, fields;

	assert_true(hx_resp_next(rest, &value) && value.type == HX_RESP_ARRAY);
	assert_true(hx_resp_next(rest, &value) && value.type == HX_RESP_BULK);
	(void)snprintf(id, 64, "%.*s", (int)value.text.size, (const char *)value.text.data);
	assert_true(hx_resp_next(rest, &fields) && fields.type == HX_RESP_ARRAY);
	for (int64_t i = 0; i < fields.integer; i += 2) {
		struct hapax_field field;

		assert_true(hx_resp_next(rest, &value) && hx_resp_text(&value, &field.name));
		assert_true(hx_resp_next(rest, &value) && hx_resp_text(&value, &field.value));
		if (hx_bytes_equal(field.name, HX_BYTES_LIT("data")))
			message.body = field.value;
		else if (message.count < HAPAX_OUTBOX_HEADERS_MAX)
			message.fields[message.count++] = field;
	}
	each(context, &message);
}

void redis_peer_read(
	struct redis_peer *peer, const char *stream, sink_message_fn *each, void *context)
{
	char id[64] = "0";
	int64_t count;

	do {
		struct hapax_bytes rest =
			redis_peer_ask(peer, "XRANGE %s (%s + COUNT %d", stream, id, PAGE);
		struct hx_resp_value value;

		assert_true(hx_resp_next(&rest, &value) && value.type == HX_RESP_ARRAY);
		count = value.integer;
		for (int64_t i = 0; i < count; i++)
			take_entry(&rest, id, each, context);
	} while (count > 0);
}
