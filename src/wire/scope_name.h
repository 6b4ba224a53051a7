/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_name.h - what the name of a tenant or group must not be, for every door.
 *
 * Threads: any.
 */
#ifndef HX_WIRE_SCOPE_NAME_H
#define HX_WIRE_SCOPE_NAME_H

#include <hapax/bytes.h>

/*
 * NULL: the name can be used. Otherwise continues a sentence about it: "has a slash". A scope is
 * written TENANT/GROUP, and * stands for every tenant or group in settings: another name would be
 * shown as a scope that it is not.
 */
const char *hx_scope_name_fault(struct hapax_bytes name);

#endif
