/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_redis.c - claim and complete on a Redis server of its own, beside what document B does.
 *
 *	--mode MODE     pipelined: hapax, one thread that keeps W keys under way, in four submits
 *	                blocking: hapax, one thread, one operation at a time
 *	                document: SET NX EX, then SET EX, one round trip each, over the bare socket
 *	--folder DIR    where the server has its socket and files
 *	--sync WHEN     no: no append only file; always: synced before each answer
 *	--width W
 *	--pairs N       keys that are claimed and completed
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "contest.h"
#include "folder.h"
#include "keys.h"

enum { FLIGHTS = 4, WAIT_TRIES = 500 };

struct redis_contest {
	const char *mode;
	const char *folder;
	const char *sync;
	uint64_t width;
	uint64_t pairs;
	uint64_t seed;
	struct hapax_store *store;
};

/* ------------------------------------------------------------------ server */

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		contest_fail("no socket for '%s'", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static pid_t server_start(const struct redis_contest *contest, const char *folder, const char *path)
{
	bool syncs = strcmp(contest->sync, "always") == 0;
	pid_t pid;

	/* What is not yet printed must not be printed twice. */
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		contest_fail("no process for redis-server");
	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(127);
		execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--dir",
		       folder, "--save", "", "--appendonly", syncs ? "yes" : "no", "--appendfsync",
		       "always", "--auto-aof-rewrite-percentage", "0", (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < WAIT_TRIES; i++) {
		const struct timespec pause = {.tv_nsec = 20000000};
		int fd = dial(path);

		if (fd >= 0) {
			close(fd);
			return pid;
		}
		if (waitpid(pid, NULL, WNOHANG) == pid)
			contest_fail("redis-server did not start");
		nanosleep(&pause, NULL);
	}
	contest_fail("redis-server does not answer");
}

static void server_stop(pid_t pid)
{
	(void)kill(pid, SIGTERM);
	(void)waitpid(pid, NULL, 0);
}

/* ------------------------------------------------------------------ hapax */

static void must_be(const struct hapax_op *op, enum hapax_outcome expected)
{
	if (op->status != HAPAX_OK || op->outcome != expected)
		contest_fail(
			"a %s answered %s, %s", hapax_op_type_name(op->type),
			hapax_status_name(op->status), hapax_outcome_name(op->outcome));
}

/* Keys that are claimed in one submit and, when all are, completed in another. */
struct flight {
	struct window *window;
	struct hapax_op *ops;
	char (*texts)[KEY_TEXT_SIZE];
	unsigned char (*attempts)[HAPAX_ATTEMPT_ID_SIZE];
	uint64_t count;
	struct flight *next;
};

struct window {
	struct hapax_store *store;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	struct flight *landed;
	struct flight flights[FLIGHTS];
};

static const struct hapax_result result = {.kind = HAPAX_RESULT_BYTES, .body = {"ok", 2}};

static void completed(struct hapax_op *ops, size_t count, void *context)
{
	struct flight *flight = context;
	struct window *window = flight->window;

	for (size_t i = 0; i < count; i++)
		must_be(&ops[i], HAPAX_OUTCOME_APPLIED);
	pthread_mutex_lock(&window->mutex);
	flight->next = window->landed;
	window->landed = flight;
	pthread_cond_signal(&window->wake);
	pthread_mutex_unlock(&window->mutex);
}

static void claimed(struct hapax_op *ops, size_t count, void *context)
{
	struct flight *flight = context;

	for (size_t i = 0; i < count; i++) {
		must_be(&ops[i], HAPAX_OUTCOME_ACQUIRED);
		ops[i] = (struct hapax_op){
			.type = HAPAX_OP_COMPLETE,
			.key = ops[i].key,
			.token = ops[i].token,
			.result = &result};
	}
	hapax_store_submit(
		flight->window->store, ops, count, (struct hapax_completion){completed, flight});
}

static struct flight *take_landed(struct window *window)
{
	struct flight *flight;

	pthread_mutex_lock(&window->mutex);
	while (window->landed == NULL)
		pthread_cond_wait(&window->wake, &window->mutex);
	flight = window->landed;
	window->landed = flight->next;
	pthread_mutex_unlock(&window->mutex);
	return flight;
}

static void flight_init(struct flight *flight, struct window *window, uint64_t width)
{
	flight->window = window;
	flight->ops = calloc(width, sizeof(*flight->ops));
	flight->texts = calloc(width, sizeof(*flight->texts));
	flight->attempts = calloc(width, sizeof(*flight->attempts));
	if (flight->ops == NULL || flight->texts == NULL || flight->attempts == NULL)
		contest_fail("no memory");
	flight->next = window->landed;
	window->landed = flight;
}

static struct hapax_op claim_of(
	const struct redis_contest *contest, uint64_t number, char *text, unsigned char *attempt)
{
	key_text(contest->seed, number, text);
	key_bytes(contest->seed, number, attempt, HAPAX_ATTEMPT_ID_SIZE);
	return (struct hapax_op){
		.type = HAPAX_OP_CLAIM, .key = {text, KEY_TEXT_SIZE}, .attempt_id = attempt};
}

static void run_pipelined(const struct redis_contest *contest)
{
	uint64_t width = contest->width / FLIGHTS > 0 ? contest->width / FLIGHTS : 1;
	struct window window = {
		.store = contest->store,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.wake = PTHREAD_COND_INITIALIZER};

	for (size_t i = 0; i < FLIGHTS; i++)
		flight_init(&window.flights[i], &window, width);
	for (uint64_t at = 0; at < contest->pairs;) {
		struct flight *flight = take_landed(&window);
		uint64_t left = contest->pairs - at;

		flight->count = left < width ? left : width;
		for (uint64_t i = 0; i < flight->count; i++, at++)
			flight->ops[i] =
				claim_of(contest, at, flight->texts[i], flight->attempts[i]);
		hapax_store_submit(
			contest->store, flight->ops, flight->count,
			(struct hapax_completion){claimed, flight});
	}
	for (size_t i = 0; i < FLIGHTS; i++) {
		struct flight *flight = take_landed(&window);

		free(flight->ops);
		free(flight->texts);
		free(flight->attempts);
	}
}

static void run_blocking(const struct redis_contest *contest)
{
	unsigned char attempt[HAPAX_ATTEMPT_ID_SIZE];
	char text[KEY_TEXT_SIZE];

	for (uint64_t i = 0; i < contest->pairs; i++) {
		struct hapax_op op = claim_of(contest, i, text, attempt);

		(void)hapax_store_run(contest->store, &op, 1, NULL);
		must_be(&op, HAPAX_OUTCOME_ACQUIRED);
		op = (struct hapax_op){
			.type = HAPAX_OP_COMPLETE,
			.key = op.key,
			.token = op.token,
			.result = &result};
		(void)hapax_store_run(contest->store, &op, 1, NULL);
		must_be(&op, HAPAX_OUTCOME_APPLIED);
	}
}

/* ------------------------------------------------------------------ document B */

static void ask(int fd, const char *command, size_t size)
{
	char reply[64];
	ssize_t got;

	if (write(fd, command, size) != (ssize_t)size)
		contest_fail("redis-server takes nothing more");
	got = read(fd, reply, sizeof(reply));
	if (got != 5 || memcmp(reply, "+OK\r\n", 5) != 0)
		contest_fail("redis-server did not answer OK");
}

/*
 * As document B does it: SET key processing NX EX 300 before the work, and after it
 * SET key result EX 604800.
 */
static void run_document(const struct redis_contest *contest, const char *path)
{
	int fd = dial(path);
	char text[KEY_TEXT_SIZE];
	char command[256];

	if (fd < 0)
		contest_fail("redis-server does not answer");
	for (uint64_t i = 0; i < contest->pairs; i++) {
		int size;

		key_text(contest->seed, i, text);
		size = snprintf(
			command, sizeof(command),
			"*6\r\n$3\r\nSET\r\n$63\r\nidempotent:default:default:%.*s\r\n"
			"$10\r\nprocessing\r\n$2\r\nNX\r\n$2\r\nEX\r\n$3\r\n300\r\n",
			KEY_TEXT_SIZE, text);
		ask(fd, command, (size_t)size);
		size = snprintf(
			command, sizeof(command),
			"*5\r\n$3\r\nSET\r\n$63\r\nidempotent:default:default:%.*s\r\n"
			"$2\r\nok\r\n$2\r\nEX\r\n$6\r\n604800\r\n",
			KEY_TEXT_SIZE, text);
		ask(fd, command, (size_t)size);
	}
	close(fd);
}

/* ------------------------------------------------------------------ rounds */

static void round_of(uint64_t seed, void *context)
{
	struct redis_contest *contest = context;
	bool is_document = strcmp(contest->mode, "document") == 0;
	struct contest_time time = {0, 0};
	struct hapax_error err;
	char folder[FOLDER_PATH_SIZE];
	char path[FOLDER_PATH_SIZE + 16];
	char url[FOLDER_PATH_SIZE + 32];
	pid_t server;

	/* No peer was built there. */
	(void)mkdir(contest->folder, 0777);
	folder_make(contest->folder, folder);
	(void)snprintf(path, sizeof(path), "%s/redis.sock", folder);
	(void)snprintf(url, sizeof(url), "redis+unix:%s", path);
	server = server_start(contest, folder, path);
	contest->seed = seed;
	if (!is_document)
		contest_expect_ok(hapax_store_open(url, NULL, &contest->store, &err), &err, url);
	contest_start(&time);
	if (is_document)
		run_document(contest, path);
	else if (strcmp(contest->mode, "blocking") == 0)
		run_blocking(contest);
	else
		run_pipelined(contest);
	contest_stop(&time);
	contest_print_time("pair", &time, contest->pairs);
	if (!is_document)
		hapax_store_close(contest->store);
	server_stop(server);
	folder_remove(folder);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"mode", required_argument, NULL, 'm'},  {"folder", required_argument, NULL, 'f'},
		{"sync", required_argument, NULL, 's'},  {"width", required_argument, NULL, 'w'},
		{"pairs", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0},
	};
	struct redis_contest contest = {
		.mode = "pipelined", .folder = ".", .sync = "no", .width = 256, .pairs = 1000};
	bool is_document;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'm': contest.mode = optarg; break;
		case 'f': contest.folder = optarg; break;
		case 's': contest.sync = optarg; break;
		case 'w': contest.width = contest_parse_count(optarg); break;
		case 'n': contest.pairs = contest_parse_count(optarg); break;
		default: return 64;
		}
	}
	is_document = strcmp(contest.mode, "document") == 0;
	contest_run(
		is_document ? "document B" : "hapax",
		is_document ? "SET NX + SET" : hapax_version(), round_of, &contest);
	return 0;
}
