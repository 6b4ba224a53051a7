/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_setup.h - from the configuration to the certificates of the doors, at the start and
 * at every reload.
 *
 * A door that speaks TLS has a context for as long as the daemon lives; a reload puts new
 * files into it. Connections that there are go on with what they began with.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_TLS_SETUP_H
#define HX_SERVE_DAEMON_TLS_SETUP_H

#include <hapax/error.h>

#include "config/config.h"

struct hx_logger;
struct hx_service;
struct hx_tls_context;

/* NULL: the door speaks no TLS. */
struct hx_tls_set {
	struct hx_tls_context *doors[HX_CONFIG_TLS_DOORS];
};

/*
 * Read the files of every door that config wants to speak TLS, on sockets that it opens and on
 * those that service was handed. INVALID: some cannot be used; nothing is left behind. What
 * is odd but can be used is logged, log may be NULL.
 */
enum hapax_status hx_tls_set_open(
	struct hx_tls_set *set, const struct hx_config *config, const struct hx_service *service,
	struct hx_logger *log, struct hapax_error *err);

/*
 * Let connections to come be made with what fresh has, which is closed. Doors that speak TLS
 * in one of both only stay as they are, which is logged.
 */
void hx_tls_set_renew(struct hx_tls_set *set, struct hx_tls_set *fresh, struct hx_logger *log);

/* Works on zeros. */
void hx_tls_set_close(struct hx_tls_set *set);

#endif
