/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/api_token.h"

#include <stddef.h>
#include <string.h>

#include "base/hex.h"

static const size_t prefix_size = sizeof(HX_API_TOKEN_PREFIX) - 1;

void hx_api_token_write(
	const unsigned char secret[HX_API_TOKEN_SECRET_SIZE], char out[HX_API_TOKEN_SIZE])
{
	memcpy(out, HX_API_TOKEN_PREFIX, prefix_size);
	hx_hex_encode(secret, HX_API_TOKEN_SECRET_SIZE, out + prefix_size);
}

bool hx_api_token_has_form(struct hapax_bytes text)
{
	const unsigned char *data = text.data;

	if (text.size != HX_API_TOKEN_SIZE || memcmp(data, HX_API_TOKEN_PREFIX, prefix_size) != 0)
		return false;
	for (size_t i = prefix_size; i < text.size; i++) {
		if (hx_hex_digit(data[i]) < 0)
			return false;
	}
	return true;
}
