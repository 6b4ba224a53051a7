/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - CloudEvents by POST at a fixed rate, and how long their replies took.
 *
 *	pace --port P --upstream P --rate PER_SECOND --seconds S --connections N --prefix ID
 *
 * Each request has a moment at which it is due, whatever became of those before it, and its
 * time counts from there: a server that stands still for a while is seen by all that would
 * have come meanwhile, not by one request per connection.
 *
 * It is the upstream of the proxy at --port itself (answerer.h). Between the requests to the proxy, in
 * the middle of every eighth gap, one goes straight to that upstream: what the machine takes, at
 * that moment and under that load, is in both, and the difference is the proxy's. Prints one line of JSON.
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

#include "answerer.h"
#include "base/clock.h"
#include "contest.h"

#define SECOND_NS INT64_C(1000000000)

enum { CONNECTIONS_MAX = 1024, EVENTS_MAX = 64, STRAIGHT_EVERY = 8 };

struct way;

struct connection {
	struct watch watch; /* first, so that a watch is its connection */
	struct way *way;
	uint64_t index; /* of the request that is out */
	int64_t due_ns;
	struct connection *next_idle;
};

/* Through the proxy, or straight to the upstream. */
struct way {
	unsigned port;
	struct connection connections[CONNECTIONS_MAX];
	struct connection *idle;
	double period_ns;
	double first_ns; /* due after the beginning */
	uint64_t sent;
	uint64_t count; /* all there are to be sent */
	uint64_t answered;
	int64_t *times_ns; /* of each request, in the order in which they were due */
};

static struct {
	uint64_t rate;
	uint64_t seconds;
	uint64_t connection_count;
	const char *prefix;

	struct way through;
	struct way straight;
	int poller;
	int64_t begin_ns;
} pace;

/* When the next request is due; never, if there is none, or no connection for it. */
static int64_t due_ns(const struct way *way)
{
	if (way->idle == NULL || way->sent == way->count)
		return INT64_MAX;
	return pace.begin_ns + (int64_t)(way->first_ns + (double)way->sent * way->period_ns);
}

static void send_request(struct way *way)
{
	struct connection *connection = way->idle;
	static const char body[] = "{\"order\":17,\"customer\":\"c-4711\",\"total\":42}";
	char text[1024];
	int size = snprintf(
		text, sizeof(text),
		"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nce-specversion: 1.0\r\nce-type: order.paid\r\n"
		"ce-source: /shop\r\nce-id: %.100s-%llu\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		pace.prefix, (unsigned long long)way->sent, sizeof(body) - 1, body);

	connection->index = way->sent;
	connection->due_ns = due_ns(way);
	way->idle = connection->next_idle;
	way->sent++;
	if (send(connection->watch.fd, text, (size_t)size, MSG_NOSIGNAL) != size)
		contest_fail("a request was not taken: %m");
}

static struct way *next_way(void)
{
	return due_ns(&pace.straight) < due_ns(&pace.through) ? &pace.straight : &pace.through;
}

static void send_due(int64_t now_ns)
{
	while (due_ns(next_way()) <= now_ns)
		send_request(next_way());
}

static void take_reply(struct watch *watch)
{
	struct connection *connection = (struct connection *)(void *)watch;
	struct way *way = connection->way;
	bool is_closed;

	if (!watch_read(watch, "HTTP/1.1 200 ", &is_closed)) {
		if (is_closed)
			contest_fail("a connection was lost");
		return;
	}
	way->times_ns[connection->index] = hx_clock_mono_ns() - connection->due_ns;
	way->answered++;
	connection->next_idle = way->idle;
	way->idle = connection;
}

static void open_connection(struct way *way, struct connection *connection)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)way->port),
		.sin_addr = {htonl(INADDR_LOOPBACK)}};
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
		contest_fail("no connection to port %u: %m", way->port);
	connection->watch.fd = fd;
	connection->watch.on_readable = take_reply;
	watch_add(pace.poller, &connection->watch);
	connection->way = way;
	connection->next_idle = way->idle;
	way->idle = connection;
}

static void turn(void)
{
	struct epoll_event events[EVENTS_MAX];
	int64_t now_ns = hx_clock_mono_ns();
	int64_t next_ns = due_ns(next_way());
	int64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	struct timespec timeout;
	int count;

	if (wait_ns > SECOND_NS)
		wait_ns = SECOND_NS;
	timeout = (struct timespec){.tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS};
	count = epoll_pwait2(pace.poller, events, EVENTS_MAX, &timeout, NULL);
	for (int i = 0; i < count; i++) {
		struct watch *watch = events[i].data.ptr;

		watch->on_readable(watch);
	}
	send_due(hx_clock_mono_ns());
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts. */
static double quantile_us(int64_t *times_ns, uint64_t count, double quantile)
{
	qsort(times_ns, count, sizeof(*times_ns), compare);
	return (double)times_ns[(size_t)(quantile * (double)(count - 1))] / 1e3;
}

static void open_way(struct way *way, uint64_t count, double period_ns, double first_ns)
{
	way->count = count;
	way->period_ns = period_ns;
	way->first_ns = first_ns;
	way->times_ns = calloc(count, sizeof(*way->times_ns));
	if (way->times_ns == NULL)
		contest_fail("no memory");
	for (uint64_t i = 0; i < pace.connection_count; i++)
		open_connection(way, &way->connections[i]);
}

static void print_way(struct way *way, const char *name, const char *end)
{
	printf("\"%s\":{\"p50_us\":%.1f,\"p99_us\":%.1f}%s", name,
	       quantile_us(way->times_ns, way->count, 0.5),
	       quantile_us(way->times_ns, way->count, 0.99), end);
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--port") == 0)
			pace.through.port = (unsigned)contest_parse_count(argv[i + 1]);
		else if (strcmp(argv[i], "--upstream") == 0)
			pace.straight.port = (unsigned)contest_parse_count(argv[i + 1]);
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
	if (pace.through.port == 0 || pace.straight.port == 0 || pace.rate < 100 * STRAIGHT_EVERY ||
	    pace.seconds == 0 || pace.prefix == NULL || pace.connection_count == 0 ||
	    pace.connection_count > CONNECTIONS_MAX)
		contest_fail("port, upstream, rate, seconds, connections and prefix are needed");
}

int main(int argc, char **argv)
{
	double period_ns;
	uint64_t count;

	parse(argc, argv);
	/* Wake up when it is time, not when it suits the kernel. */
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	pace.poller = epoll_create1(0);
	if (pace.poller < 0)
		contest_fail("no poller: %m");
	answerer_open(pace.poller, pace.straight.port);
	period_ns = (double)SECOND_NS / (double)pace.rate;
	count = pace.rate * pace.seconds;
	open_way(&pace.through, count, period_ns, 0);
	open_way(&pace.straight, count / STRAIGHT_EVERY, period_ns * STRAIGHT_EVERY, period_ns / 2);
	pace.begin_ns = hx_clock_mono_ns();
	while (pace.through.answered < pace.through.count ||
	       pace.straight.answered < pace.straight.count)
		turn();
	putchar('{');
	print_way(&pace.through, "through", ",");
	print_way(&pace.straight, "straight", "}\n");
	return 0;
}
