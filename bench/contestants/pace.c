/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - CloudEvents by POST at a fixed rate, and how long their replies took.
 *
 *	pace --port P --rate PER_SECOND --seconds S --connections N --prefix ID
 *
 * Each request has a moment at which it is due, whatever became of those before it, and its
 * time counts from there: a server that stands still for a while is seen by all that would
 * have come meanwhile, not by one request per connection. Prints one line of JSON.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "contest.h"

#define SECOND_NS INT64_C(1000000000)

enum { CONNECTIONS_MAX = 1024, REPLY_MAX = 4096, EVENTS_MAX = 64 };

struct connection {
	int fd;
	int64_t due_ns; /* of the request that is out; 0: none is */
	size_t size;
	char reply[REPLY_MAX];
	struct connection *next_idle;
};

static struct {
	unsigned port;
	uint64_t rate;
	uint64_t seconds;
	uint64_t connection_count;
	const char *prefix;

	struct connection connections[CONNECTIONS_MAX];
	struct connection *idle;
	int poller;
	int64_t begin_ns;
	uint64_t sent;
	uint64_t count; /* all there are to be sent */
	uint64_t answered;
	int64_t *times_ns;
} pace;

static void open_connection(struct connection *connection)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)pace.port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = connection}};
	int one = 1;

	connection->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connection->fd < 0 ||
	    connect(connection->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0 ||
	    epoll_ctl(pace.poller, EPOLL_CTL_ADD, connection->fd, &event) != 0)
		contest_fail("no connection to port %u: %m", pace.port);
	connection->next_idle = pace.idle;
	pace.idle = connection;
}

static int64_t due_ns(uint64_t index)
{
	return pace.begin_ns + (int64_t)((double)index * (double)SECOND_NS / (double)pace.rate);
}

static void send_request(struct connection *connection)
{
	static const char body[] = "{\"order\":17,\"customer\":\"c-4711\",\"total\":42}";
	char text[1024];
	int size = snprintf(
		text, sizeof(text),
		"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nce-specversion: 1.0\r\nce-type: order.paid\r\n"
		"ce-source: /shop\r\nce-id: %.100s-%llu\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		pace.prefix, (unsigned long long)pace.sent, sizeof(body) - 1, body);

	connection->due_ns = due_ns(pace.sent++);
	connection->size = 0;
	if (send(connection->fd, text, (size_t)size, MSG_NOSIGNAL) != size)
		contest_fail("a request was not taken: %m");
}

static void send_due(int64_t now_ns)
{
	while (pace.idle != NULL && pace.sent < pace.count && due_ns(pace.sent) <= now_ns) {
		struct connection *connection = pace.idle;

		pace.idle = connection->next_idle;
		send_request(connection);
	}
}

/* Whether the whole reply is there. */
static bool is_whole(const struct connection *connection)
{
	const char *end = strstr(connection->reply, "\r\n\r\n");
	const char *length = strcasestr(connection->reply, "\r\ncontent-length:");

	if (end == NULL)
		return false;
	if (strncmp(connection->reply, "HTTP/1.1 200 ", 13) != 0 || length == NULL || length > end)
		contest_fail("not what was expected: %.200s", connection->reply);
	return connection->size >=
		(size_t)(end + 4 - connection->reply) + strtoul(length + 17, NULL, 10);
}

static void take_reply(struct connection *connection)
{
	ssize_t count =
		recv(connection->fd, connection->reply + connection->size,
	             sizeof(connection->reply) - 1 - connection->size, 0);

	if (count <= 0)
		contest_fail("a connection was lost");
	connection->size += (size_t)count;
	connection->reply[connection->size] = '\0';
	if (!is_whole(connection))
		return;
	pace.times_ns[pace.answered++] = hx_clock_mono_ns() - connection->due_ns;
	connection->next_idle = pace.idle;
	pace.idle = connection;
}

static void turn(void)
{
	struct epoll_event events[EVENTS_MAX];
	int64_t now_ns = hx_clock_mono_ns();
	int64_t wait_ns = SECOND_NS;
	struct timespec timeout;
	int count;

	if (pace.idle != NULL && pace.sent < pace.count)
		wait_ns = due_ns(pace.sent) > now_ns ? due_ns(pace.sent) - now_ns : 0;
	timeout = (struct timespec){.tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS};
	count = epoll_pwait2(pace.poller, events, EVENTS_MAX, &timeout, NULL);
	for (int i = 0; i < count; i++)
		take_reply(events[i].data.ptr);
	send_due(hx_clock_mono_ns());
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static double quantile_us(double quantile)
{
	size_t index = (size_t)(quantile * (double)(pace.answered - 1));

	return (double)pace.times_ns[index] / 1e3;
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--port") == 0)
			pace.port = (unsigned)contest_parse_count(argv[i + 1]);
		else if (strcmp(argv[i], "--rate") == 0)
			pace.rate = contest_parse_count(argv[i + 1]);
		else if (strcmp(argv[i], "--seconds") == 0)
			pace.seconds = contest_parse_count(argv[i + 1]);
		else if (strcmp(argv[i], "--connections") == 0)
			pace.connection_count = contest_parse_count(argv[i + 1]);
		else if (strcmp(argv[i], "--prefix") == 0)
			pace.prefix = argv[i + 1];
		else
			contest_fail("unknown option '%s'", argv[i]);
	}
	if (pace.port == 0 || pace.rate == 0 || pace.seconds == 0 || pace.prefix == NULL ||
	    pace.connection_count == 0 || pace.connection_count > CONNECTIONS_MAX)
		contest_fail("port, rate, seconds, connections and prefix are needed");
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	/* Wake up when it is time, not when it suits the kernel. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	pace.count = pace.rate * pace.seconds;
	pace.times_ns = calloc(pace.count, sizeof(*pace.times_ns));
	pace.poller = epoll_create1(0);
	if (pace.times_ns == NULL || pace.poller < 0)
		contest_fail("no memory");
	for (uint64_t i = 0; i < pace.connection_count; i++)
		open_connection(&pace.connections[i]);
	pace.begin_ns = hx_clock_mono_ns();
	while (pace.answered < pace.count)
		turn();
	qsort(pace.times_ns, pace.answered, sizeof(*pace.times_ns), compare);
	printf("{\"requests\":%llu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n",
	       (unsigned long long)pace.answered, quantile_us(0.5), quantile_us(0.99),
	       quantile_us(1));
	return 0;
}
