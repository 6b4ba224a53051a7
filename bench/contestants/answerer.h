/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answerer.h - an upstream that answers every request at once, in the thread of the load.
 *
 * Load and upstream are one process then, and leave the proxy more of a small machine.
 */
#ifndef BENCH_ANSWERER_H
#define BENCH_ANSWERER_H

#include <stdbool.h>
#include <stddef.h>

enum { WATCH_TEXT_MAX = 4096 };

/* A socket, and what is done when it can be read. */
struct watch {
	int fd;
	void (*on_readable)(struct watch *watch);
	/* What has come of a message. */
	size_t size;
	char text[WATCH_TEXT_MAX];
};

/* Readable from now on, as poller says so. */
void watch_add(int poller, struct watch *watch);

/*
 * Read what there is. True: all of a message is there, and the next one is to begin. It must start with
 * begin and say its length, or it is the end of the program. is_closed: there will be no more.
 */
bool watch_read(struct watch *watch, const char *begin, bool *is_closed);

/* Listen on that port of 127.0.0.1, take connections and answer what they ask. */
void answerer_open(int poller, unsigned port);

#endif
