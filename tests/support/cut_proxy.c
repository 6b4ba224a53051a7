/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cut_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void give_up(const char *what)
{
	perror(what);
	abort();
}

static struct sockaddr_in local_address(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static void cut(struct cut_proxy *proxy, int line)
{
	for (int side = 0; side < 2; side++) {
		close(proxy->lines[line][side]);
		proxy->lines[line][side] = -1;
	}
}

static void take_line(struct cut_proxy *proxy)
{
	struct sockaddr_in address = local_address(proxy->server_port);
	int client = accept(proxy->listener, NULL, NULL);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	int line = 0;

	while (line < CUT_LINES_MAX && proxy->lines[line][0] >= 0)
		line++;
	if (client < 0 || server < 0 || line == CUT_LINES_MAX)
		give_up("a line");
	if (connect(server, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(client);
		close(server);
		return;
	}
	proxy->lines[line][0] = client;
	proxy->lines[line][1] = server;
}

/* False: the line is no more. */
static int pass(struct cut_proxy *proxy, int line, int side)
{
	char bytes[8192];
	int64_t left = atomic_load(&proxy->left[side]);
	size_t size = left >= 0 && left < (int64_t)sizeof(bytes) ? (size_t)left : sizeof(bytes);
	ssize_t got = 0;

	if (size > 0)
		got = recv(proxy->lines[line][side], bytes, size, 0);
	if (got > 0) {
		atomic_fetch_add(&proxy->passed[side], (uint64_t)got);
		if (send(proxy->lines[line][1 - side], bytes, (size_t)got, MSG_NOSIGNAL) != got)
			got = 0;
	}
	if (left >= 0 && got > 0)
		atomic_store(&proxy->left[side], left - got);
	if (got > 0 && left != got)
		return 1;
	/* Once: the next connection passes. */
	if (left >= 0)
		cut_proxy_disarm(proxy);
	cut(proxy, line);
	return 0;
}

static void *run(void *context)
{
	struct cut_proxy *proxy = context;

	while (!atomic_load(&proxy->is_stopping)) {
		struct pollfd polls[1 + 2 * CUT_LINES_MAX] = {{proxy->listener, POLLIN, 0}};

		for (int i = 0; i < 2 * CUT_LINES_MAX; i++)
			polls[1 + i] = (struct pollfd){proxy->lines[i / 2][i % 2], POLLIN, 0};
		if (poll(polls, 1 + 2 * CUT_LINES_MAX, 20) <= 0)
			continue;
		if (polls[0].revents)
			take_line(proxy);
		for (int i = 0; i < 2 * CUT_LINES_MAX; i++)
			if (polls[1 + i].revents && proxy->lines[i / 2][0] >= 0)
				pass(proxy, i / 2, i % 2);
	}
	return NULL;
}

void cut_proxy_start(struct cut_proxy *proxy, int server_port)
{
	struct sockaddr_in address = local_address(0);
	socklen_t size = sizeof(address);

	memset(proxy, 0, sizeof(*proxy));
	memset(proxy->lines, -1, sizeof(proxy->lines));
	cut_proxy_disarm(proxy);
	proxy->server_port = server_port;
	proxy->listener = socket(AF_INET, SOCK_STREAM, 0);
	if (proxy->listener < 0 ||
	    bind(proxy->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(proxy->listener, 16) != 0 ||
	    getsockname(proxy->listener, (struct sockaddr *)&address, &size) != 0)
		give_up("a proxy");
	proxy->port = ntohs(address.sin_port);
	if (pthread_create(&proxy->thread, NULL, run, proxy) != 0)
		give_up("a thread");
}

void cut_proxy_stop(struct cut_proxy *proxy)
{
	atomic_store(&proxy->is_stopping, 1);
	pthread_join(proxy->thread, NULL);
	for (int i = 0; i < CUT_LINES_MAX; i++)
		if (proxy->lines[i][0] >= 0)
			cut(proxy, i);
	close(proxy->listener);
}

void cut_proxy_arm(struct cut_proxy *proxy, enum cut_way way, int64_t bytes)
{
	atomic_store(&proxy->left[way], bytes);
}

void cut_proxy_disarm(struct cut_proxy *proxy)
{
	atomic_store(&proxy->left[CUT_TO_SERVER], -1);
	atomic_store(&proxy->left[CUT_TO_CLIENT], -1);
}
