/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspection.h - every check of a configuration that its files alone do not decide.
 *
 * `hapax serve` inspects before it opens anything, a reload before it changes anything, and `hapax
 * config check` does nothing else: what one refuses or warns of, the others do as well. Only what
 * needs the store or a free port is found out at the start alone.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_INSPECTION_H
#define HX_SERVE_DAEMON_INSPECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "observe/logger/logger.h"
#include "serve/daemon/tls_setup.h"

struct hx_address;
struct hx_service;

/* text: a refusal, or a finding with its details. is_error: an operator must mend it. */
typedef void hx_inspection_say_fn(void *context, bool is_error, const char *text);

struct hx_inspection {
	const struct hx_config *config;
	const struct hx_service *service; /* has the sockets that a service manager passed */

	/*
	 * At a reload listeners stay as they are: their addresses (NULL: closed) and their TLS.
	 * Without current they are as configured.
	 */
	const struct hx_address *addresses[HX_CONFIG_TLS_DOORS];
	const struct hx_tls_set *current;

	/* Both may be NULL. log gets findings; say gets refusals, too. */
	struct hx_logger *log;
	hx_inspection_say_fn *say;
	void *context;
};

/*
 * INVALID: the daemon must not run like this; err has the first reason, say gets all of them. fresh
 * has the certificates of the listeners; the caller closes it, after a failure as well.
 */
enum hapax_status hx_inspection_run(
	const struct hx_inspection *inspection, struct hx_tls_set *fresh, struct hapax_error *err);

/* For the checks: report something odd that is allowed. inspection may be NULL. */
void hx_inspection_note(
	const struct hx_inspection *inspection, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t count);

#endif
