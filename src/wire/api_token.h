/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_token.h - the form of a token that `hapax config token` makes: hapax_ and 64 digits.
 *
 * The digits are 256 random bits, so such a token cannot be guessed, however many are tried. The
 * prefix is for people and for secret scanners.
 *
 * Threads: any.
 */
#ifndef HX_WIRE_API_TOKEN_H
#define HX_WIRE_API_TOKEN_H

#include <stdbool.h>

#include <hapax/bytes.h>

#define HX_API_TOKEN_PREFIX "hapax_"

enum {
	HX_API_TOKEN_SECRET_SIZE = 32,
	HX_API_TOKEN_SIZE = sizeof(HX_API_TOKEN_PREFIX) - 1 + 2 * HX_API_TOKEN_SECRET_SIZE,
};

/* Writes the token of secret, and no NUL. */
void hx_api_token_write(
	const unsigned char secret[HX_API_TOKEN_SECRET_SIZE], char out[HX_API_TOKEN_SIZE]);

/* Whether text has this form. Its time depends on the size and the form alone. */
bool hx_api_token_has_form(struct hapax_bytes text);

#endif
