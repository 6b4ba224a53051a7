/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_setup.h - loads the certificates of the doors, at the start and at every reload.
 *
 * A door with TLS has a context for as long as the daemon lives; a reload puts new files into it.
 * Existing connections keep the files they began with.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_TLS_SETUP_H
#define HX_SERVE_DAEMON_TLS_SETUP_H

#include <hapax/error.h>

#include "config/config.h"

struct hx_conditions;
struct hx_inspection;
struct hx_logger;
struct hx_service;
struct hx_tls_context;

/* NULL: the door does not use TLS. */
struct hx_tls_set {
	struct hx_tls_context *doors[HX_CONFIG_TLS_DOORS];
};

/*
 * Reads the files of every door with TLS, on its own sockets and on those passed to the service.
 * INVALID: a file is unusable; nothing is left behind. Odd but usable files are noted.
 */
enum hapax_status hx_tls_set_open(
	struct hx_tls_set *set, const struct hx_inspection *inspection, struct hapax_error *err);

/*
 * New connections use the files of fresh, which is closed. A door with TLS in only one of the two
 * stays as it is, which is logged.
 */
void hx_tls_set_renew(struct hx_tls_set *set, struct hx_tls_set *fresh, struct hx_logger *log);

/* Begins and ends the conditions of certificates that have expired, or expire soon. */
void hx_tls_set_watch(
	struct hx_tls_set *set, const struct hx_config *config, const struct hx_service *service,
	struct hx_conditions *conditions);

/* Works on zeros. */
void hx_tls_set_close(struct hx_tls_set *set);

#endif
