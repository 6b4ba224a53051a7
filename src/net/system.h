/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - the network seam: sockets, readiness, wake-ups and their time.
 *
 * Everything in net/ reaches the kernel through a struct hx_net. hx_net_system() is the operating
 * system; a simulator or a fault-injecting test has its own table. Time is part of it, because a
 * simulator must move time and readiness together: now_ns is hx_clock_mono_ns() in production.
 *
 * Operations return 0, a count or a descriptor, or a negative errno; they never use errno as a
 * result. They retry after EINTR. Nothing blocks except wait and resolve. Descriptors are
 * non-blocking and close-on-exec from the start.
 *
 * Threads: any; a descriptor belongs to one thread at a time, a waker excepted.
 */
#ifndef HX_NET_SYSTEM_H
#define HX_NET_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/address.h"

/* Events of a descriptor. ERROR and END are always reported. */
enum hx_ready {
	HX_READY_IN = 1 << 0,
	HX_READY_OUT = 1 << 1,
	HX_READY_END = 1 << 2,   /* the peer has shut down its writing side */
	HX_READY_ERROR = 1 << 3, /* the next call on the descriptor returns the error */
};

struct hx_ready_event {
	void *data;     /* as given to poller_set */
	unsigned ready; /* enum hx_ready */
};

enum hx_net_option {
	HX_NET_NODELAY,    /* TCP: send at once */
	HX_NET_REUSE_PORT, /* before bind: several listeners share the port */
	HX_NET_REUSE_ADDRESS,
	HX_NET_KEEPALIVE, /* TCP: find dead peers; the value is seconds between probes */
	HX_NET_IPV6_ONLY,
	HX_NET_SHUT,  /* a TCP listener: new connection requests get no answer */
	HX_NET_RESET, /* closing it tells the peer that data was cut off */
};

struct hx_net_ops {
	/* Nanoseconds of a clock that never goes back. */
	int64_t (*now_ns)(void *context);

	int (*socket)(void *context, int family);
	int (*set_option)(void *context, int fd, enum hx_net_option option, int value);
	/* A unix socket is created for its owner only (mode 0600). */
	int (*bind)(void *context, int fd, const struct hx_address *address);
	int (*listen)(void *context, int fd, int backlog);
	/* -EAGAIN: no connection waits. */
	int (*accept)(void *context, int fd, struct hx_address *ret_peer);
	/* -EINPROGRESS: wait for OUT, then ask connect_result. */
	int (*connect)(void *context, int fd, const struct hx_address *address);
	int (*connect_result)(void *context, int fd);
	int (*local_address)(void *context, int fd, struct hx_address *ret_address);
	/* 0: the peer has ended. -EAGAIN: nothing now. */
	ssize_t (*recv)(void *context, int fd, void *data, size_t size);
	/* Never raises SIGPIPE. -EAGAIN: no room now. */
	ssize_t (*send)(void *context, int fd, const void *data, size_t size);
	/* Bytes sent and not yet received by the peer; -errno: unknown. */
	int (*untaken)(void *context, int fd);
	/* Bytes that arrived and were not yet received; -errno: unknown. */
	int (*unread)(void *context, int fd);
	int (*shutdown_send)(void *context, int fd);
	void (*close)(void *context, int fd);
	/* Remove the name of a unix socket. Absent is fine; -ENOTSOCK: not a socket. */
	int (*unlink)(void *context, const char *path);

	/* A poller watches descriptors, level-triggered. ready 0: only ERROR is reported. */
	int (*poller_open)(void *context);
	int (*poller_add)(void *context, int poller, int fd, unsigned ready, void *data);
	int (*poller_change)(void *context, int poller, int fd, unsigned ready, void *data);
	int (*poller_remove)(void *context, int poller, int fd);
	/* Blocks until a descriptor is ready or timeout_ns has passed (negative: no limit). */
	int (*poller_wait)(
		void *context, int poller, struct hx_ready_event *events, int count_max,
		int64_t timeout_ns);

	/* A descriptor that becomes ready for IN when any thread sets it. */
	int (*waker_open)(void *context);
	void (*waker_set)(void *context, int fd);
	void (*waker_clear)(void *context, int fd);

	/*
	 * A descriptor that becomes ready for IN when the process gets one of signals (ended by 0).
	 * They are blocked in the calling thread, and in every thread that it starts later: call it
	 * first.
	 */
	int (*signals_open)(void *context, const int *signals);
	/* The number of a signal, or -EAGAIN. */
	int (*signals_read)(void *context, int fd);

	/*
	 * Blocks: for worker threads only. Returns the number of addresses of host, best first, at
	 * most count_max. -ENOENT: no such host; -EAGAIN: the name servers did not answer.
	 */
	int (*resolve)(
		void *context, const char *host, uint16_t port, struct hx_address *ret_addresses,
		size_t count_max);
};

struct hx_net {
	const struct hx_net_ops *ops;
	void *context; /* first argument of each operation */
};

/* The operating system's network. Borrowed, valid forever. */
const struct hx_net *hx_net_system(void);

#endif
