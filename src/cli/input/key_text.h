/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_text.h - keys, prefixes and scopes as they come from a command line.
 *
 * In C a key is any bytes; here it is text that people paste into tickets and
 * terminals, so it is UTF-8 without control characters.
 */
#ifndef HX_CLI_INPUT_KEY_TEXT_H
#define HX_CLI_INPUT_KEY_TEXT_H

#include <hapax/bytes.h>

/*
 * Check text, which error messages call what, and point *ret at it. HX_EXIT_OK, or
 * HX_EXIT_USAGE after saying what was wrong and at which offset.
 */
int hx_key_text_read(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret);

/* TENANT/GROUP, or TENANT alone for the group "default". As above. */
int hx_key_text_scope(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group);

#endif
