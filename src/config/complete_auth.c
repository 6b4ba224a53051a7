/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_auth.c - digests of tokens as bytes, and that nobody is there twice.
 */
#include <string.h>

#include "base/hex.h"
#include "config/complete.h"

/* The text was checked when it was read. */
static void decode(const char *text, unsigned char digest[HX_SHA256_SIZE])
{
	(void)hx_hex_decode(hapax_bytes_from_text(strchr(text, ':') + 1), digest);
}

static void check_token(
	struct hx_complete *complete, const struct hx_config_token *tokens, size_t index)
{
	const struct hx_config_token *token = &tokens[index];

	for (size_t i = 0; i < index; i++) {
		if (strcmp(tokens[i].name, token->name) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &token->place,
				"token '%.64s' occurs twice", token->name);
		else if (strcmp(tokens[i].hash, token->hash) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &token->place,
				"tokens '%.64s' and '%.64s' are the same", tokens[i].name,
				token->name);
	}
}

void hx_complete_auth(struct hx_complete *complete, struct hx_config_auth *auth)
{
	static const struct hx_place place = {.name = "auth.tokens"};
	struct hx_config_token *tokens =
		hx_config_arena_alloc(complete->arena, auth->token_count + 1, sizeof(*tokens));

	if (tokens == NULL) {
		hx_fault(
			complete->faults, HAPAX_ERR_NO_MEMORY, &place,
			"there was no memory for all of it");
		return;
	}
	for (size_t i = 0; i < auth->token_count; i++) {
		tokens[i] = auth->tokens[i];
		decode(tokens[i].hash, tokens[i].sha256);
		check_token(complete, tokens, i);
	}
	auth->tokens = tokens;
}
