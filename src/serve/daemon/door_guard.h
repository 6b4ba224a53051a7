/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door_guard.h - checks whether a door, as configured, may be open to other machines.
 *
 * A client of the admin or the Redis door can read or write the ledger. If such a door is reachable
 * from other machines, it must identify clients: by tokens, by users, or by certificates that TLS
 * requires. Without TLS the credentials could be read in transit, so there is a warning. Gateways
 * may accept events from any sender, with a warning.
 *
 * Threads: the control loop's.
 */
#ifndef HX_SERVE_DAEMON_DOOR_GUARD_H
#define HX_SERVE_DAEMON_DOOR_GUARD_H

#include <hapax/error.h>

#include "config/config.h"

struct hx_address;
struct hx_inspection;

/*
 * INVALID: it may not, with a hint. speaks_tls: as the door is open now; a reload does not change
 * it. inspection may be NULL: no warnings.
 */
enum hapax_status hx_door_guard(
	const struct hx_config *config, enum hx_config_tls_index index,
	const struct hx_address *address, bool speaks_tls, const struct hx_inspection *inspection,
	struct hapax_error *err);

#endif
