/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.c - this host and process as text, for readers of a record.
 */
#include "base/owner.h"

#include <stdio.h>
#include <unistd.h>

#include "base/process.h"

void hx_owner_text(char out[HX_OWNER_SIZE_MAX + 1])
{
	char host[65];

	if (gethostname(host, sizeof(host)) != 0)
		(void)snprintf(host, sizeof(host), "localhost");
	/* A name that was cut need not end with a NUL. */
	host[sizeof(host) - 1] = '\0';
	(void)snprintf(out, HX_OWNER_SIZE_MAX + 1, "%s pid %d", host, (int)hx_process_id());
}
