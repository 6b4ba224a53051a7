/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.c - the operating system's network. Only this unit calls it.
 */
#include "net/system.h"

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"

enum { EVENTS_AT_ONCE = 256, PORT_TEXT_SIZE = 8 };

static int result(int value)
{
	return value < 0 ? -errno : value;
}

static int64_t system_now_ns(void *context)
{
	(void)context;
	return hx_clock_mono_ns();
}

static int system_socket(void *context, int family)
{
	(void)context;
	return result(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int set(int fd, int level, int name, int value)
{
	return result(setsockopt(fd, level, name, &value, sizeof(value)));
}

static int set_keepalive(int fd, int seconds)
{
	int code = set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);

	if (code == 0)
		code = set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
	if (code == 0)
		code = set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
	return code;
}

/* New handshakes get no answer; handshakes in progress continue. */
static int shut(int fd)
{
	enum { FLAGS_AT = 13, SYN = 0x02, ACK = 0x10 };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = {.len = HX_COUNT(code), .filter = code};

	return result(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

static int set_reset(int fd, int value)
{
	const struct linger linger = {.l_onoff = value, .l_linger = 0};

	return result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

static int system_set_option(void *context, int fd, enum hx_net_option option, int value)
{
	(void)context;
	switch (option) {
	case HX_NET_NODELAY: return set(fd, IPPROTO_TCP, TCP_NODELAY, value);
	case HX_NET_REUSE_PORT: return set(fd, SOL_SOCKET, SO_REUSEPORT, value);
	case HX_NET_REUSE_ADDRESS: return set(fd, SOL_SOCKET, SO_REUSEADDR, value);
	case HX_NET_KEEPALIVE: return set_keepalive(fd, value);
	case HX_NET_IPV6_ONLY: return set(fd, IPPROTO_IPV6, IPV6_V6ONLY, value);
	case HX_NET_SHUT: return shut(fd);
	case HX_NET_RESET: return set_reset(fd, value);
	}
	return -EINVAL;
}

static int system_bind(void *context, int fd, const struct hx_address *address)
{
	(void)context;
	/* The name gets the socket's mode: it never exists with a wider one. */
	if (address->storage.ss_family == AF_UNIX && fchmod(fd, S_IRUSR | S_IWUSR) != 0)
		return -errno;
	return result(bind(fd, (const struct sockaddr *)&address->storage, address->size));
}

static int system_listen(void *context, int fd, int backlog)
{
	(void)context;
	return result(listen(fd, backlog));
}

static int system_accept(void *context, int fd, struct hx_address *ret_peer)
{
	int peer;

	(void)context;
	do {
		ret_peer->size = sizeof(ret_peer->storage);
		peer =
			accept4(fd, (struct sockaddr *)&ret_peer->storage, &ret_peer->size,
				SOCK_NONBLOCK | SOCK_CLOEXEC);
		/* The first three: that connection is gone, but another may wait. */
	} while (peer < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
	return result(peer);
}

static int system_connect(void *context, int fd, const struct hx_address *address)
{
	(void)context;
	if (connect(fd, (const struct sockaddr *)&address->storage, address->size) == 0)
		return 0;
	/* Interrupted: the connect continues in the background. */
	return errno == EINTR ? -EINPROGRESS : -errno;
}

static int system_connect_result(void *context, int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	(void)context;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		return -errno;
	return -error;
}

static int system_local_address(void *context, int fd, struct hx_address *ret_address)
{
	(void)context;
	ret_address->size = sizeof(ret_address->storage);
	return result(
		getsockname(fd, (struct sockaddr *)&ret_address->storage, &ret_address->size));
}

static ssize_t system_recv(void *context, int fd, void *data, size_t size)
{
	ssize_t count;

	(void)context;
	do
		count = recv(fd, data, size, 0);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

static ssize_t system_send(void *context, int fd, const void *data, size_t size)
{
	ssize_t count;

	(void)context;
	do
		count = send(fd, data, size, MSG_NOSIGNAL);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

static int system_untaken(void *context, int fd)
{
	int count = 0;

	(void)context;
	return ioctl(fd, SIOCOUTQ, &count) < 0 ? -errno : count;
}

static int system_unread(void *context, int fd)
{
	int count = 0;

	(void)context;
	return ioctl(fd, SIOCINQ, &count) < 0 ? -errno : count;
}

static int system_shutdown_send(void *context, int fd)
{
	(void)context;
	return result(shutdown(fd, SHUT_WR));
}

static void system_close(void *context, int fd)
{
	(void)context;
	/* Linux always closes it, whatever close returns; there is nothing to flush. */
	(void)close(fd);
}

static int system_unlink(void *context, const char *path)
{
	struct stat status;

	(void)context;
	if (lstat(path, &status) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -ENOTSOCK;
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

static uint32_t to_epoll(unsigned ready)
{
	uint32_t events = 0;

	if (ready & HX_READY_IN)
		events |= EPOLLIN | EPOLLRDHUP;
	if (ready & HX_READY_OUT)
		events |= EPOLLOUT;
	return events;
}

static unsigned from_epoll(uint32_t events)
{
	unsigned ready = 0;

	if (events & EPOLLIN)
		ready |= HX_READY_IN;
	if (events & EPOLLOUT)
		ready |= HX_READY_OUT;
	if (events & EPOLLRDHUP)
		ready |= HX_READY_END;
	if (events & (EPOLLERR | EPOLLHUP))
		ready |= HX_READY_ERROR;
	return ready;
}

static int system_poller_open(void *context)
{
	(void)context;
	return result(epoll_create1(EPOLL_CLOEXEC));
}

static int poller_control(int poller, int operation, int fd, unsigned ready, void *data)
{
	struct epoll_event event = {.events = to_epoll(ready), .data = {.ptr = data}};

	return result(epoll_ctl(poller, operation, fd, &event));
}

static int system_poller_add(void *context, int poller, int fd, unsigned ready, void *data)
{
	(void)context;
	return poller_control(poller, EPOLL_CTL_ADD, fd, ready, data);
}

static int system_poller_change(void *context, int poller, int fd, unsigned ready, void *data)
{
	(void)context;
	return poller_control(poller, EPOLL_CTL_MOD, fd, ready, data);
}

static int system_poller_remove(void *context, int poller, int fd)
{
	(void)context;
	return poller_control(poller, EPOLL_CTL_DEL, fd, 0, NULL);
}

/* Rounded up: otherwise the wait would end before a timer that is due in half a millisecond. */
static int timeout_ms(int64_t timeout_ns)
{
	if (timeout_ns < 0)
		return -1;
	if (timeout_ns >= INT32_MAX * HX_NS_PER_MS)
		return INT32_MAX;
	return (int)((timeout_ns + HX_NS_PER_MS - 1) / HX_NS_PER_MS);
}

static int system_poller_wait(
	void *context, int poller, struct hx_ready_event *events, int count_max, int64_t timeout_ns)
{
	struct epoll_event ready[EVENTS_AT_ONCE];
	int count;

	(void)context;
	if (count_max > EVENTS_AT_ONCE)
		count_max = EVENTS_AT_ONCE;
	count = epoll_wait(poller, ready, count_max, timeout_ms(timeout_ns));
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++)
		events[i] = (struct hx_ready_event){ready[i].data.ptr, from_epoll(ready[i].events)};
	return count;
}

static int system_waker_open(void *context)
{
	(void)context;
	return result(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

static void system_waker_set(void *context, int fd)
{
	uint64_t one = 1;

	(void)context;
	/* It fails only if 2^64 - 1 wake-ups are pending. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static void system_waker_clear(void *context, int fd)
{
	uint64_t count;

	(void)context;
	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		continue;
}

static int system_signals_open(void *context, const int *signals)
{
	sigset_t set;
	int fd;

	(void)context;
	(void)sigemptyset(&set);
	for (; *signals != 0; signals++)
		(void)sigaddset(&set, *signals);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	return fd;
}

static int system_signals_read(void *context, int fd)
{
	struct signalfd_siginfo info;
	ssize_t size;

	(void)context;
	do
		size = read(fd, &info, sizeof(info));
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	return size == (ssize_t)sizeof(info) ? (int)info.ssi_signo : -EAGAIN;
}

static int from_resolver(int code)
{
	switch (code) {
	case EAI_MEMORY: return -ENOMEM;
	case EAI_AGAIN: return -EAGAIN;
	case EAI_SYSTEM: return errno != 0 ? -errno : -EAGAIN;
	default: return -ENOENT;
	}
}

static int system_resolve(
	void *context, const char *host, uint16_t port, struct hx_address *ret_addresses,
	size_t count_max)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char text[PORT_TEXT_SIZE];
	size_t count = 0;
	int code;

	(void)context;
	(void)snprintf(text, sizeof(text), "%u", (unsigned)port);
	code = getaddrinfo(host, text, &hints, &list);
	if (code != 0)
		return from_resolver(code);
	for (struct addrinfo *item = list; item != NULL && count < count_max;
	     item = item->ai_next) {
		assert(item->ai_addrlen <= sizeof(ret_addresses->storage));
		memset(&ret_addresses[count], 0, sizeof(*ret_addresses));
		memcpy(&ret_addresses[count].storage, item->ai_addr, item->ai_addrlen);
		ret_addresses[count++].size = item->ai_addrlen;
	}
	freeaddrinfo(list);
	return count == 0 ? -ENOENT : (int)count;
}

static const struct hx_net_ops system_ops = {
	.now_ns = system_now_ns,
	.socket = system_socket,
	.set_option = system_set_option,
	.bind = system_bind,
	.listen = system_listen,
	.accept = system_accept,
	.connect = system_connect,
	.connect_result = system_connect_result,
	.local_address = system_local_address,
	.recv = system_recv,
	.send = system_send,
	.untaken = system_untaken,
	.unread = system_unread,
	.shutdown_send = system_shutdown_send,
	.close = system_close,
	.unlink = system_unlink,
	.poller_open = system_poller_open,
	.poller_add = system_poller_add,
	.poller_change = system_poller_change,
	.poller_remove = system_poller_remove,
	.poller_wait = system_poller_wait,
	.waker_open = system_waker_open,
	.waker_set = system_waker_set,
	.waker_clear = system_waker_clear,
	.signals_open = system_signals_open,
	.signals_read = system_signals_read,
	.resolve = system_resolve,
};

const struct hx_net *hx_net_system(void)
{
	static const struct hx_net system = {&system_ops, NULL};

	return &system;
}
