/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door_guard.h - may a door be open to other machines, as it is configured?
 *
 * Whoever reaches the admin or the Redis door can read the ledger or write it. Such a door
 * on an address that others reach has to know them: by tokens, by users, or by
 * certificates that TLS requires. What it knows them by should not be read on the way:
 * without TLS there is a warning. Gateways take events from whom they may, and warn.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_DOOR_GUARD_H
#define HX_SERVE_DAEMON_DOOR_GUARD_H

#include <hapax/error.h>

#include "config/config.h"

struct hx_address;
struct hx_logger;

/*
 * INVALID: no, with what to do about it. speaks_tls: as it is open, which a reload does not
 * change. log may be NULL: nobody wants warnings.
 */
enum hapax_status hx_door_guard(
	const struct hx_config *config, enum hx_config_tls_index index,
	const struct hx_address *address, bool speaks_tls, struct hx_logger *log,
	struct hapax_error *err);

#endif
