/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_peer.h - a test's own way to a Redis server: a command, its reply, one after the other.
 * Whatever fails fails the test.
 */
#ifndef TEST_OUTBOX_REDIS_PEER_H
#define TEST_OUTBOX_REDIS_PEER_H

#include "outbox/sink_case.h"

struct redis_peer {
	int fd;
	unsigned char *data;
	size_t size;
};

/* place: a port of 127.0.0.1, or the path of a socket. */
void redis_peer_open(struct redis_peer *peer, const char *place);
void redis_peer_close(struct redis_peer *peer);

/* A command of words without quotes, as people type it. The whole reply, borrowed until the next. */
struct hapax_bytes redis_peer_ask(struct redis_peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* All entries of a stream as messages: the field "data" is the body. */
void redis_peer_read(
	struct redis_peer *peer, const char *stream, sink_message_fn *each, void *context);

#endif
