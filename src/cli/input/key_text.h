/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_text.h - read keys, prefixes, scopes and headers from a command line.
 *
 * In C a key is any bytes. Here people paste it into tickets and terminals, so it is UTF-8 without
 * control characters.
 */
#ifndef HX_CLI_INPUT_KEY_TEXT_H
#define HX_CLI_INPUT_KEY_TEXT_H

#include <hapax/key.h>

#include "cli/frame/command.h"

/*
 * Check text, which messages call what, and point *ret at it. HX_EXIT_OK, or HX_EXIT_USAGE after a
 * message with the offset.
 */
int hx_key_text_read(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret);

/* TENANT/GROUP, or TENANT alone for the group "default". Returns as above. */
int hx_key_text_scope(
	const char *command, const char *what, const char *text, struct hapax_bytes *ret_tenant,
	struct hapax_bytes *ret_group);

/*
 * Every --header NAME:VALUE, of which there may be max; blanks after the colon do not count. Returns
 * as above.
 */
int hx_key_text_headers(
	const struct hx_invocation *inv, int id, struct hapax_field *fields, size_t max,
	size_t *ret_count);

#endif
