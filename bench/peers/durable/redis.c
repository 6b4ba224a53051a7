/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis.c - Redis with appendfsync always, asked by hiredis over a socket: a connection for
 * each thread, SET NX as the check. A batch is a pipeline.
 *
 * The server is a process of its own, so the CPU time is that of the asking threads alone.
 */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "contest.h"
#include "durable.h"

#define NUMBER(value)      NUMBER_TEXT(value)
#define NUMBER_TEXT(value) #value

enum { START_TRIES = 500, START_PAUSE_NS = 20 * 1000 * 1000 };

/* What a thread asks by. */
static struct line {
	redisContext *context;
} * lines;
static uint64_t line_count;
static pid_t server;

static pid_t start(const char *folder, const char *path)
{
	pid_t pid;

	/* What is still to be written is ours, not the child's, who would write it once more. */
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		contest_fail("no process for redis-server: %m");
	if (pid > 0)
		return pid;
	/* What the contestant leaves behind when it is killed would go on writing. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (freopen("/dev/null", "w", stdout) != NULL)
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir",
		       folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		       "--auto-aof-rewrite-percentage", "0", (char *)NULL);
	_exit(127);
}

static redisContext *dial(const char *path)
{
	const struct timespec pause = {0, START_PAUSE_NS};

	for (unsigned i = 0; i < START_TRIES; i++) {
		redisContext *connection = redisConnectUnix(path);

		if (connection != NULL && connection->err == 0)
			return connection;
		if (connection != NULL)
			redisFree(connection);
		if (waitpid(server, NULL, WNOHANG) == server)
			contest_fail("redis-server did not start");
		nanosleep(&pause, NULL);
	}
	contest_fail("redis-server does not answer at '%s'", path);
}

static void engine_open(const char *folder, uint64_t threads)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/redis.sock", folder);
	line_count = threads;
	lines = calloc(threads, sizeof(*lines));
	if (lines == NULL)
		contest_fail("no memory");
	server = start(folder, path);
	for (uint64_t i = 0; i < threads; i++)
		lines[i].context = dial(path);
}

static uint64_t engine_mark(uint64_t thread, const char (*keys)[KEY_TEXT_SIZE], uint64_t count)
{
	redisContext *connection = lines[thread].context;
	uint64_t firsts = 0;

	for (uint64_t i = 0; i < count; i++)
		redisAppendCommand(
			connection, "SET %b 86400000 NX EX 86400", keys[i], (size_t)KEY_TEXT_SIZE);
	for (uint64_t i = 0; i < count; i++) {
		redisReply *reply;

		if (redisGetReply(connection, (void **)&reply) != REDIS_OK)
			contest_fail("redis-server: %s", connection->errstr);
		if (reply->type != REDIS_REPLY_STATUS && reply->type != REDIS_REPLY_NIL)
			contest_fail("redis-server answered '%s'", reply->str);
		firsts += reply->type == REDIS_REPLY_STATUS;
		freeReplyObject(reply);
	}
	return firsts;
}

static void engine_close(void)
{
	for (uint64_t i = 0; i < line_count; i++)
		redisFree(lines[i].context);
	free(lines);
	kill(server, SIGTERM);
	waitpid(server, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct durable_engine engine = {
		.name = "Redis, asked by hiredis",
		.version = "hiredis " NUMBER(HIREDIS_MAJOR) "." NUMBER(HIREDIS_MINOR),
		.open = engine_open,
		.mark = engine_mark,
		.close = engine_close,
	};

	return durable_main(argc, argv, &engine);
}
