/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_manager.h - reports to the service manager: ready, reloading, stopping, alive.
 *
 * The daemon reports alive only while every loop turns, by the heartbeats that /livez shows. A
 * stuck loop gets the daemon restarted; an unavailable store does not.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_SERVICE_MANAGER_H
#define HX_SERVE_DAEMON_SERVICE_MANAGER_H

#include <stdint.h>

#include "config/config.h"
#include "net/reactor.h"
#include "net/service.h"

struct hx_inspection;
struct hx_serve;

struct hx_service {
	struct hx_serve *serve;
	const char *socket;  /* NULL: no manager. Borrowed from the environment */
	int64_t interval_ns; /* between two heartbeats; 0: no watchdog */
	struct hx_timer timer;
	struct hx_service_sockets sockets; /* passed by the manager */
};

/* Reads the environment. variable may be NULL. */
enum hapax_status hx_service_open(
	struct hx_service *service, struct hx_serve *serve, hx_service_variable_fn *variable,
	struct hapax_error *err);
void hx_service_done(struct hx_service *service);

/*
 * A socket for the listener of that loop of a door, if the manager passed one: it overrides the
 * door's address. 0: none.
 */
enum hapax_status hx_service_take_door(
	struct hx_service *service, const char *door, size_t loop, int *ret_fd,
	struct hapax_error *err);

/* Whether the manager passed a socket for the door, and its address. */
bool hx_service_has_door(
	const struct hx_service *service, const char *door, struct hx_address *ret_address);

/* Whether the door, if it listens at all, listens on anything but unix sockets. */
bool hx_service_door_is_tcp(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index);

/* The address of a door: of a passed socket, or as configured. INVALID: the name has none. */
enum hapax_status hx_service_door_address(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index, struct hx_address *ret_address, struct hapax_error *err);

/* hx_door_guard() for every socket passed for a door; if there is none, for address. */
enum hapax_status hx_service_guard_door(
	const struct hx_service *service, const struct hx_config *config,
	enum hx_config_tls_index index, const struct hx_address *address, bool speaks_tls,
	const struct hx_inspection *inspection, struct hapax_error *err);

/* Where a door listens. */
struct hx_service_door {
	size_t loop_count; /* that listen there; 0: it is off */
	struct hx_address address;
};

/*
 * Finds where a door listens: on a passed socket, or at its configured address, which must be free
 * if several processes could share it. The guard has allowed it.
 */
enum hapax_status hx_service_find_door(
	struct hx_service *service, enum hx_config_tls_index index,
	struct hx_service_door *ret_door, struct hapax_error *err);

/* Every door is open: checks for passed sockets that no door has taken. */
enum hapax_status hx_service_check_doors(const struct hx_service *service, struct hapax_error *err);

/* Doors listen; status is for people. Heartbeats begin. */
void hx_service_ready(struct hx_service *service, const char *status);

/* The configuration is about to be read again; and the reload is over, successful or not. */
void hx_service_reloading(struct hx_service *service);

void hx_service_stopping(struct hx_service *service, const char *status);

/* Reports that the daemon is alive, if it is. */
void hx_service_beat(struct hx_service *service);

#endif
