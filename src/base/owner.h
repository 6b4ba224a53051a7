/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - who we are, for people who read a record or ask who relays.
 *
 * Threads: any.
 */
#ifndef HX_OWNER_H
#define HX_OWNER_H

#include "base/limits.h"

/* "host pid 4711"; decides nothing. */
void hx_owner_text(char out[HX_OWNER_SIZE_MAX + 1]);

#endif
