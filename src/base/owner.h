/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - this host and process as text, for readers of records and relays.
 *
 * Threads: any.
 */
#ifndef HX_OWNER_H
#define HX_OWNER_H

#include "base/limits.h"

/* "host pid 4711"; decides nothing. */
void hx_owner_text(char out[HX_OWNER_SIZE_MAX + 1]);

#endif
