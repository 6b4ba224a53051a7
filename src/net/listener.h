/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - accepts connections on one reactor.
 *
 * With SO_REUSEPORT each reactor has its own listener on the same port, and the kernel distributes
 * connections. A listener stops accepting at its limit, and for a moment when the process is out of
 * descriptors, instead of spinning.
 *
 * Threads: the reactor's thread.
 */
#ifndef HX_NET_LISTENER_H
#define HX_NET_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include <hapax/error.h>

#include "net/address.h"
#include "net/reactor.h"

struct hx_listener;

/*
 * A connection was accepted. The callee owns fd: it opens a connection on it or closes it. If it
 * keeps fd, it calls hx_listener_ended() at the end.
 */
typedef void hx_accept_fn(struct hx_listener *listener, int fd, const struct hx_address *peer);

struct hx_listener {
	struct hx_reactor *reactor;
	struct hx_watch watch;
	struct hx_timer retry;
	struct hx_address address; /* as bound: port 0 is replaced by the real one */
	char path[HX_UNIX_PATH_SIZE_MAX + 1];
	hx_accept_fn *fn;
	void *context;
	size_t open_count;
	size_t open_max; /* 0: no limit */
	/*
	 * Set before open: a listening socket that is shared with other processes; 0: none. The
	 * listener owns it from then on. Its end leaves waiting connections to the other processes.
	 */
	int inherited_fd;
	bool is_shut;
	uint64_t accepted;
	uint64_t refused; /* accept failed: no descriptors or memory */
};

/*
 * Bind and listen, or take over inherited_fd, regardless of address. shares_port: other listeners
 * may use the same port (pass port 0 only to the first, and its address to the rest). An unused
 * unix socket is replaced. LIMIT: the socket or port is in use.
 */
enum hapax_status hx_listener_open(
	struct hx_listener *listener, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, hx_accept_fn *fn, void *context, struct hapax_error *err);

/*
 * Is the address free? LIMIT: it is in use. Call it before the first of several listeners that
 * share a port: the kernel also lets another process of the same user share it.
 */
enum hapax_status hx_listener_check_free(
	const struct hx_net *net, const struct hx_address *address, struct hapax_error *err);

/* Stop listening, remove a unix socket. Accepted connections continue. Does nothing for zeros. */
void hx_listener_close(struct hx_listener *listener);

/*
 * End without loss. shut stops new connections at once; those already in the kernel's queue are
 * accepted as before. A moment later, finish accepts all that wait, beyond the limit, and stops
 * listening.
 */
void hx_listener_shut(struct hx_listener *listener);
void hx_listener_finish(struct hx_listener *listener);

static inline bool hx_listener_is_open(const struct hx_listener *listener)
{
	return listener->reactor != NULL && listener->watch.fd >= 0;
}

/* Change the limit; connections above it stay. */
void hx_listener_limit(struct hx_listener *listener, size_t open_max);

/* A connection that was accepted here has ended. */
void hx_listener_ended(struct hx_listener *listener);

#endif
