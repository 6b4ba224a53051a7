/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - what a service manager is told, and the sockets that it hands over.
 *
 * The protocol of systemd, which others speak, too: a datagram of NAME=VALUE lines to the
 * socket that $NOTIFY_SOCKET names, and descriptors from 3 on, which $LISTEN_FDS counts
 * and $LISTEN_FDNAMES names. It is a page of code, and libsystemd is a large library to
 * have in a process that faces the network.
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
 * Send text to the socket of that name; one that begins with '@' is abstract. It never
 * blocks. False: nobody is there, or takes it; there is nothing to be done about it.
 */
bool hx_service_notify(const char *socket, const char *text);

enum {
	/* Four doors, and several sockets that share the port of one. */
	HX_SERVICE_SOCKETS_MAX = 64,
	HX_SERVICE_NAME_SIZE = 32,
};

/* Sockets that were handed over, and what they are called. */
struct hx_service_sockets {
	size_t count;
	int fds[HX_SERVICE_SOCKETS_MAX];
	char names[HX_SERVICE_SOCKETS_MAX][HX_SERVICE_NAME_SIZE];
	bool is_taken[HX_SERVICE_SOCKETS_MAX]; /* by hx_service_socket() */
};

/*
 * Take over what is meant for this process, if anything: none is not inherited further,
 * and none blocks. INVALID: what was handed over is no socket that listens for streams, or
 * the variables are not what they should be.
 */
enum hapax_status hx_service_take_sockets(
	hx_service_variable_fn *variable, struct hx_service_sockets *ret_sockets,
	struct hapax_error *err);

/*
 * A descriptor of its own for the index-th listener that asks for sockets of this name, of
 * which there may be fewer: they are given in turn. HX_SERVICE_NO_SOCKET: there is none of
 * that name; else negative: -errno.
 */
#define HX_SERVICE_NO_SOCKET INT_MIN
int hx_service_socket(struct hx_service_sockets *sockets, const char *name, size_t index);

#endif
