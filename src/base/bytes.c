/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.c - the public side of struct hapax_bytes.
 */
#include "base/bytes.h"

#include <string.h>

struct hapax_bytes hapax_bytes_from_text(const char *text)
{
	return hx_bytes(text, text == NULL ? 0 : strlen(text));
}
