/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_redis.c - claim and complete on a Redis server of its own, beside what document B does.
 *
 *	--mode MODE     pipelined: hapax, one thread that keeps W keys under way, in four submits
 *	                blocking: hapax, one thread, one operation at a time
 *	                document: SET NX EX, then SET EX, over the bare socket; W keys under way:
 *	                with 1, as document B does it, a round trip each
 *	--folder DIR    where the server has its files; it listens on 127.0.0.1
 *	--sync WHEN     no: no append only file; always: synced before each answer
 *	--width W
 *	--pairs N       keys that are claimed and completed
 *
 * "pair" is the time of this process, "server" the CPU time of the server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static struct sockaddr_in local_address(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int free_port(void)
{
	struct sockaddr_in address = local_address(0);
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, size) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		contest_fail("no port for redis-server");
	close(fd);
	return ntohs(address.sin_port);
}

/* Without delay, as every client of Redis has it. */
static int dial(int port)
{
	struct sockaddr_in address = local_address(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	if (fd < 0)
		contest_fail("no socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0)
		return fd;
	close(fd);
	return -1;
}

static pid_t server_start(const struct redis_contest *contest, const char *folder, int port)
{
	bool syncs = strcmp(contest->sync, "always") == 0;
	char number[16];
	pid_t pid;

	(void)snprintf(number, sizeof(number), "%d", port);

	/* What is not yet printed must not be printed twice. */
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		contest_fail("no process for redis-server");
	if (pid == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL)
			_exit(127);
		execlp("redis-server", "redis-server", "--port", number, "--bind", "127.0.0.1",
		       "--dir", folder, "--save", "", "--appendonly", syncs ? "yes" : "no",
		       "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0",
		       (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < WAIT_TRIES; i++) {
		const struct timespec pause = {.tv_nsec = 20000000};
		int fd = dial(port);

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

/* CPU time that the server took so far, all its threads together. */
static int64_t server_cpu_ns(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		contest_fail("no CPU time of redis-server");
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
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

/* Send commands in one piece, and read as many replies, each of them OK. */
static void ask(int fd, const char *commands, size_t size, uint64_t count)
{
	char replies[4096];
	uint64_t left = 5 * count;
	uint64_t at = 0;

	if (write(fd, commands, size) != (ssize_t)size)
		contest_fail("redis-server takes nothing more");
	while (left > 0) {
		ssize_t got = read(fd, replies, left < sizeof(replies) ? left : sizeof(replies));

		if (got <= 0)
			contest_fail("redis-server does not answer");
		for (ssize_t i = 0; i < got; i++, at++) {
			if (replies[i] != "+OK\r\n"[at % 5])
				contest_fail("redis-server did not answer OK");
		}
		left -= (uint64_t)got;
	}
}

enum { COMMAND_SIZE = 256 };

/* Before the work: SET key processing NX EX 300. */
static size_t put_begin(char *command, const char *text)
{
	return (size_t)snprintf(
		command, COMMAND_SIZE,
		"*6\r\n$3\r\nSET\r\n$63\r\nidempotent:default:default:%.*s\r\n"
		"$10\r\nprocessing\r\n$2\r\nNX\r\n$2\r\nEX\r\n$3\r\n300\r\n",
		KEY_TEXT_SIZE, text);
}

/* After it: SET key result EX 604800. */
static size_t put_end(char *command, const char *text)
{
	return (size_t)snprintf(
		command, COMMAND_SIZE,
		"*5\r\n$3\r\nSET\r\n$63\r\nidempotent:default:default:%.*s\r\n"
		"$2\r\nok\r\n$2\r\nEX\r\n$6\r\n604800\r\n",
		KEY_TEXT_SIZE, text);
}

static void run_document(const struct redis_contest *contest, int port)
{
	size_t (*const steps[])(char *, const char *) = {put_begin, put_end};
	char *commands = malloc(contest->width * COMMAND_SIZE);
	int fd = dial(port);

	if (fd < 0 || commands == NULL)
		contest_fail("redis-server does not answer");
	for (uint64_t first = 0; first < contest->pairs; first += contest->width) {
		uint64_t left = contest->pairs - first;
		uint64_t count = left < contest->width ? left : contest->width;

		for (size_t step = 0; step < 2; step++) {
			size_t size = 0;

			for (uint64_t i = 0; i < count; i++) {
				char text[KEY_TEXT_SIZE];

				key_text(contest->seed, first + i, text);
				size += steps[step](commands + size, text);
			}
			ask(fd, commands, size, count);
		}
	}
	free(commands);
	close(fd);
}

/* ------------------------------------------------------------------ rounds */

static void round_of(uint64_t seed, void *context)
{
	struct redis_contest *contest = context;
	bool is_document = strcmp(contest->mode, "document") == 0;
	struct contest_time time = {0, 0};
	struct hapax_error err;
	struct contest_time server_time = {0, 0};
	char folder[FOLDER_PATH_SIZE];
	char url[64];
	int port = free_port();
	pid_t server;

	/* No peer was built there. */
	(void)mkdir(contest->folder, 0777);
	folder_make(contest->folder, folder);
	(void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
	server = server_start(contest, folder, port);
	contest->seed = seed;
	if (!is_document)
		contest_expect_ok(hapax_store_open(url, NULL, &contest->store, &err), &err, url);
	server_time.cpu_ns = -server_cpu_ns(server);
	contest_start(&time);
	if (is_document)
		run_document(contest, port);
	else if (strcmp(contest->mode, "blocking") == 0)
		run_blocking(contest);
	else
		run_pipelined(contest);
	contest_stop(&time);
	server_time.cpu_ns += server_cpu_ns(server);
	server_time.wall_ns = time.wall_ns;
	contest_print_time("pair", &time, contest->pairs);
	contest_print_time("server", &server_time, contest->pairs);
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
		.mode = "pipelined", .folder = ".", .sync = "no", .width = 1, .pairs = 1000};
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
