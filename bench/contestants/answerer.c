/* SPDX-License-Identifier: Apache-2.0 */
#include "answerer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contest.h"

enum { CONNECTIONS_MAX = 1024 };

static struct {
	int poller;
	struct watch listener;
	struct watch connections[CONNECTIONS_MAX]; /* on_readable NULL: free */
} answerer;

void watch_add(int poller, struct watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = watch}};

	if (epoll_ctl(poller, EPOLL_CTL_ADD, watch->fd, &event) != 0)
		contest_fail("a socket cannot be watched: %m");
}

static bool is_whole(const struct watch *watch, const char *begin)
{
	const char *end = strstr(watch->text, "\r\n\r\n");
	const char *length = strcasestr(watch->text, "\r\ncontent-length:");

	if (end == NULL)
		return false;
	if (strncmp(watch->text, begin, strlen(begin)) != 0 || length == NULL || length > end)
		contest_fail("not what was expected: %.200s", watch->text);
	return watch->size >= (size_t)(end + 4 - watch->text) + strtoul(length + 17, NULL, 10);
}

bool watch_read(struct watch *watch, const char *begin, bool *is_closed)
{
	ssize_t count = recv(
		watch->fd, watch->text + watch->size, sizeof(watch->text) - 1 - watch->size, 0);

	*is_closed = count <= 0;
	if (*is_closed)
		return false;
	watch->size += (size_t)count;
	watch->text[watch->size] = '\0';
	if (!is_whole(watch, begin))
		return false;
	watch->size = 0;
	return true;
}

static void answer(struct watch *watch)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	bool is_closed;

	if (watch_read(watch, "POST ", &is_closed)) {
		if (send(watch->fd, reply, sizeof(reply) - 1, MSG_NOSIGNAL) != sizeof(reply) - 1)
			contest_fail("an answer was not taken: %m");
	} else if (is_closed) {
		close(watch->fd);
		watch->on_readable = NULL;
	}
}

static struct watch *find_free(void)
{
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		if (answerer.connections[i].on_readable == NULL)
			return &answerer.connections[i];
	}
	contest_fail("more than %d connections", CONNECTIONS_MAX);
}

static void take_connection(struct watch *listener)
{
	struct watch *watch = find_free();
	int one = 1;

	watch->on_readable = answer;
	watch->size = 0;
	watch->fd = accept(listener->fd, NULL, NULL);
	if (watch->fd < 0 ||
	    setsockopt(watch->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
		contest_fail("a connection was not taken: %m");
	watch_add(answerer.poller, watch);
}

void answerer_open(int poller, unsigned port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct watch *listener = &answerer.listener;
	int one = 1;

	answerer.poller = poller;
	listener->on_readable = take_connection;
	listener->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (listener->fd < 0 ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(listener->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listener->fd, CONNECTIONS_MAX) != 0)
		contest_fail("nothing listens on port %u: %m", port);
	watch_add(poller, listener);
}
