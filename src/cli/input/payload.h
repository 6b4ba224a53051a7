/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - the fingerprint of a payload.
 */
#ifndef HX_CLI_INPUT_PAYLOAD_H
#define HX_CLI_INPUT_PAYLOAD_H

#include <hapax/record.h>

/*
 * SHA-256 of the file at path, or of standard input if path is "-", of any size. HX_EXIT_OK, or
 * another code after a message.
 */
int hx_payload_fingerprint(
	const char *command, const char *path, unsigned char out[HAPAX_FINGERPRINT_SIZE]);

#endif
