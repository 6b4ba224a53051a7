/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_proxy.h - stands between a client and a server on 127.0.0.1, and cuts the line on demand.
 *
 * A thread of its own passes bytes on. Armed, it lets so many more bytes through in one direction,
 * then closes both sides of that connection; what comes the other way meanwhile is passed on.
 * Connections made later pass untouched.
 */
#ifndef TEST_SUPPORT_CUT_PROXY_H
#define TEST_SUPPORT_CUT_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum cut_way { CUT_TO_SERVER = 0, CUT_TO_CLIENT = 1 };

enum { CUT_LINES_MAX = 16 };

struct cut_proxy {
	int listener;
	int port;
	int server_port;
	int lines[CUT_LINES_MAX][2]; /* client and server side; -1: free */
	_Atomic int64_t left[2];     /* bytes that may pass; negative: all */
	_Atomic uint64_t passed[2];
	_Atomic int is_stopping;
	pthread_t thread;
};

void cut_proxy_start(struct cut_proxy *proxy, int server_port);
void cut_proxy_stop(struct cut_proxy *proxy);

/* Cut after bytes more of that way. */
void cut_proxy_arm(struct cut_proxy *proxy, enum cut_way way, int64_t bytes);
void cut_proxy_disarm(struct cut_proxy *proxy);

#endif
