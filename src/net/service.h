/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - notifications to a service manager, and the sockets that it passes.
 *
 * It uses the protocol of systemd, which other managers share: a datagram of NAME=VALUE lines to
 * the socket $NOTIFY_SOCKET, and descriptors from 3 on, counted by $LISTEN_FDS and named by
 * $LISTEN_FDNAMES. This is a page of code; libsystemd is a large library for a process that faces
 * the network.
 *
 * Threads: any.
 */
#ifndef HX_NET_SERVICE_H
#define HX_NET_SERVICE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/error.h>

/* The value of a variable, or NULL. */
typedef const char *hx_service_variable_fn(const char *name);

/*
 * Send text to the socket of that name; a name that begins with '@' is abstract. Never blocks.
 * False: there is no receiver, or it does not accept; the caller can do nothing about it.
 */
bool hx_service_notify(const char *socket, const char *text);

enum {
	/* Four doors, and several sockets that share one port. */
	HX_SERVICE_SOCKETS_MAX = 64,
	HX_SERVICE_NAME_SIZE = 32,
};

/* The passed sockets and their names. */
struct hx_service_sockets {
	size_t count;
	int fds[HX_SERVICE_SOCKETS_MAX];
	char names[HX_SERVICE_SOCKETS_MAX][HX_SERVICE_NAME_SIZE];
	bool is_taken[HX_SERVICE_SOCKETS_MAX]; /* by hx_service_socket() */
};

/*
 * Take over the sockets passed to this process, if any, and make them nonblocking and
 * close-on-exec. INVALID: a descriptor is not a listening stream socket, or the variables are
 * malformed.
 */
enum hapax_status hx_service_take_sockets(
	hx_service_variable_fn *variable, struct hx_service_sockets *ret_sockets,
	struct hapax_error *err);

/*
 * A new descriptor for the index-th listener with this name. If there are fewer sockets, they are
 * assigned in turn. HX_SERVICE_NO_SOCKET: no socket has that name; other negative values: -errno.
 */
#define HX_SERVICE_NO_SOCKET INT_MIN
int hx_service_socket(struct hx_service_sockets *sockets, const char *name, size_t index);

#endif
