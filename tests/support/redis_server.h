/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis_server.h - a redis-server of a test's own, which it may kill and start again.
 *
 * It listens on 127.0.0.1 at a free port, and keeps its files in a folder that stays as long as
 * this does. Whatever goes wrong in the preparation ends the program with a message.
 */
#ifndef TEST_SUPPORT_REDIS_SERVER_H
#define TEST_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/temp_dir.h"

struct redis_server {
	struct temp_dir dir;
	int port;
	pid_t pid; /* 0: it does not run */
	const char *const *options;
};

/* Is there a redis-server on this machine? */
bool redis_server_is_there(void);

/* options: as on its command line, ended by NULL; for every start. It does not run yet. */
void redis_server_init(struct redis_server *server, const char *const *options);
void redis_server_done(struct redis_server *server);

/* Until it answers. */
void redis_server_start(struct redis_server *server);

/* End it by a signal, and wait for it. */
void redis_server_end(struct redis_server *server, int signal);

#endif
