/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_manager.h - the daemon and its service manager: ready, reloading, stopping, alive.
 *
 * Alive is said only while every loop turns, by the heartbeats that /livez shows: a loop
 * that stands still has the daemon started again, a store that is away does not.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_SERVICE_MANAGER_H
#define HX_SERVE_DAEMON_SERVICE_MANAGER_H

#include <stdint.h>

#include "config/config.h"
#include "net/reactor.h"
#include "net/service.h"

struct hx_logger;
struct hx_serve;

struct hx_service {
	struct hx_serve *serve;
	const char *socket;  /* NULL: nobody wants to know. Borrowed from the environment */
	int64_t interval_ns; /* between two signs of life; 0: nobody waits for them */
	struct hx_timer timer;
	struct hx_service_sockets sockets; /* that were handed over */
};

/* Look into the environment. variable may be NULL. */
enum hapax_status hx_service_open(
	struct hx_service *service, struct hx_serve *serve, hx_service_variable_fn *variable,
	struct hapax_error *err);
void hx_service_done(struct hx_service *service);

/*
 * A socket for the listener of that loop of a door, if the manager has handed one over:
 * it counts for more than where the door would listen. 0: there is none.
 */
enum hapax_status hx_service_take_door(
	struct hx_service *service, const char *door, size_t loop, int *ret_fd,
	struct hapax_error *err);

/* Whether it has, and where it listens. */
bool hx_service_has_door(
	const struct hx_service *service, const char *door, struct hx_address *ret_address);

/* Whether it listens on anything but unix sockets, as far as it listens. */
bool hx_service_door_is_tcp(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index);

/*
 * hx_door_guard() for every socket that was handed over for a door; if there is none, for
 * address, where it listens.
 */
enum hapax_status hx_service_guard_door(
	struct hx_service *service, const struct hx_config *config, enum hx_config_tls_index index,
	const struct hx_address *address, struct hx_logger *log, struct hapax_error *err);

/* Every door is open: is there a socket that none has taken? */
enum hapax_status hx_service_check_doors(const struct hx_service *service, struct hapax_error *err);

/* Doors listen; status is for people. From now on there are signs of life. */
void hx_service_ready(struct hx_service *service, const char *status);

/* The configuration is about to be read again; and was, or was not. */
void hx_service_reloading(struct hx_service *service);

void hx_service_stopping(struct hx_service *service, const char *status);

/* Say that it is alive, if it is. */
void hx_service_beat(struct hx_service *service);

#endif
