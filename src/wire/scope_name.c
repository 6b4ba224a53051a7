/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope_name.c - what the name of a tenant or group must not be.
 */
#include "wire/scope_name.h"

#include <string.h>

#include "base/bytes.h"

const char *hx_scope_name_fault(struct hapax_bytes name)
{
	if (name.size > 0 && memchr(name.data, '/', name.size) != NULL)
		return "has a slash, which separates tenant and group";
	if (hx_bytes_equal(name, HX_BYTES_LIT("*")))
		return "is *, which stands for all";
	return NULL;
}
