/* SPDX-License-Identifier: Apache-2.0 */
#include "support/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/random.h"

enum {
	OPTIONS_MAX = 16,

	/* Below those that the kernel gives to outgoing connections. */
	PORT_FIRST = 10000,
	PORT_COUNT = 22000,

	/* On a busy machine a start may take its time. */
	START_TRIES = 3000,
};

static void give_up(const char *what)
{
	printf("# %s\n", what);
	fflush(stdout);
	abort();
}

bool redis_server_is_there(void)
{
	return system("command -v redis-server >/dev/null") == 0;
}

static struct sockaddr_in local_address(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int free_port(void)
{
	for (int tries = 0; tries < 1000; tries++) {
		uint32_t number = 0;
		struct sockaddr_in address;
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		int port;
		bool is_free;

		hx_random_bytes(&number, sizeof(number));
		port = PORT_FIRST + (int)(number % PORT_COUNT);
		address = local_address(port);
		is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
		close(fd);
		if (is_free)
			return port;
	}
	give_up("no port is free");
	return 0;
}

void redis_server_init(struct redis_server *server, const char *const *options)
{
	*server = (struct redis_server){.options = options, .port = free_port()};
	temp_dir_init(&server->dir);
}

void redis_server_done(struct redis_server *server)
{
	if (server->pid != 0)
		redis_server_end(server, SIGKILL);
	temp_dir_done(&server->dir);
}

static bool answers(const struct redis_server *server)
{
	struct sockaddr_in address = local_address(server->port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[8] = "";
	bool is_there = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		write(fd, "PING\r\n", 6) == 6 && read(fd, reply, sizeof(reply) - 1) > 0;

	if (fd >= 0)
		close(fd);
	/* With a password it answers that it wants one; while it loads, that it does. */
	return is_there && (reply[0] == '+' || strncmp(reply, "-NOAUTH", 7) == 0);
}

void redis_server_start(struct redis_server *server)
{
	char port[16];
	const char *argv[12 + OPTIONS_MAX] = {
		"redis-server",   "--port", port, "--bind",    "127.0.0.1", "--dir",
		server->dir.path, "--save", "",   "--logfile", "log"};
	size_t count = 11;
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct hx_process_plan plan = HX_PROCESS_PLAN_INIT;

	snprintf(port, sizeof(port), "%d", server->port);
	for (size_t i = 0; server->options[i] != NULL; i++) {
		if (i == OPTIONS_MAX)
			give_up("too many options");
		argv[count++] = server->options[i];
	}
	plan.argv = argv;
	plan.stdout_fd = plan.stderr_fd = nowhere;
	if (hx_process_start(&plan, &server->pid, NULL) != HAPAX_OK)
		give_up("redis-server does not start");
	close(nowhere);
	for (int tries = 0; tries < START_TRIES; tries++) {
		const struct timespec pause = {.tv_nsec = 20000000};

		if (answers(server))
			return;
		if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
			give_up("redis-server ended");
		nanosleep(&pause, NULL);
	}
	give_up("redis-server does not answer");
}

void redis_server_end(struct redis_server *server, int signal)
{
	if (kill(server->pid, signal) != 0 || waitpid(server->pid, NULL, 0) != server->pid)
		give_up("redis-server does not end");
	server->pid = 0;
}
