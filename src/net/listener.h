/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - accepts connections on one reactor.
 *
 * With SO_REUSEPORT each reactor has a listener of its own on the same port and the
 * kernel spreads connections. A listener stops accepting at its limit, and for a
 * moment when the process is out of descriptors, instead of spinning.
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
 * A connection has come. fd is the callee's from now on: it opens a connection on it
 * or closes it. Whoever keeps it calls hx_listener_ended() when it ends.
 */
typedef void hx_accept_fn(struct hx_listener *listener, int fd, const struct hx_address *peer);

struct hx_listener {
	struct hx_reactor *reactor;
	struct hx_watch watch;
	struct hx_timer retry;
	struct hx_address address; /* as bound: port 0 has become a real one */
	char path[HX_UNIX_PATH_SIZE_MAX + 1];
	hx_accept_fn *fn;
	void *context;
	size_t open_count;
	size_t open_max; /* 0: no limit */
	/*
	 * Set before open: a socket that listens already and that others have as well; 0: none.
	 * It is ours from then on. Its end leaves who waits to the others.
	 */
	int inherited_fd;
	bool is_shut;
	uint64_t accepted;
	uint64_t refused; /* accept failed for want of descriptors or memory */
};

/*
 * Bind and listen, or take over inherited_fd, whatever address says. shares_port: others may listen on the same port (give port 0 only
 * to the first, and its address to the rest). A unix socket that nobody listens on is
 * replaced; one that is in use is LIMIT, as is a port.
 */
enum hapax_status hx_listener_open(
	struct hx_listener *listener, struct hx_reactor *reactor, const struct hx_address *address,
	bool shares_port, hx_accept_fn *fn, void *context, struct hapax_error *err);

/*
 * Is nobody else listening there? LIMIT if somebody is. Ask before the first of several
 * that share a port: the kernel lets another process of the same user share it, too.
 */
enum hapax_status hx_listener_check_free(
	const struct hx_net *net, const struct hx_address *address, struct hapax_error *err);

/* Stop listening, remove a unix socket. Accepted connections live on. Does nothing for zeros. */
void hx_listener_close(struct hx_listener *listener);

/*
 * The end without loss: let nobody new in, which takes effect at once; those whom the
 * kernel has let in, or is about to, are accepted as before. Then, a moment later,
 * accept all who wait, beyond the limit, and stop listening.
 */
void hx_listener_shut(struct hx_listener *listener);
void hx_listener_finish(struct hx_listener *listener);

static inline bool hx_listener_is_open(const struct hx_listener *listener)
{
	return listener->reactor != NULL && listener->watch.fd >= 0;
}

/* Another limit; those above it stay. */
void hx_listener_limit(struct hx_listener *listener, size_t open_max);

/* A connection that was accepted here has ended. */
void hx_listener_ended(struct hx_listener *listener);

#endif
