/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_auth.c - decode digests of tokens and certificates, and refuse duplicates.
 */
#include <string.h>

#include "base/hex.h"
#include "config/complete/complete.h"

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
				"API token '%.64s' occurs twice", token->name);
		else if (strcmp(tokens[i].hash, token->hash) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &token->place,
				"API tokens '%.64s' and '%.64s' are the same", tokens[i].name,
				token->name);
	}
}

/* It has a fingerprint or a subject, not both. Its name is unique, also among tokens. */
static void check_certificate(
	struct hx_complete *complete, const struct hx_config_auth *auth,
	const struct hx_config_certificate *certificates, size_t index)
{
	const struct hx_config_certificate *certificate = &certificates[index];
	bool occurs = false;

	for (size_t i = 0; i < auth->token_count && !occurs; i++)
		occurs = strcmp(auth->tokens[i].name, certificate->name) == 0;
	for (size_t i = 0; i < index; i++) {
		occurs = occurs || strcmp(certificates[i].name, certificate->name) == 0;
		if (strcmp(certificates[i].fingerprint, certificate->fingerprint) == 0 &&
		    strcmp(certificates[i].subject, certificate->subject) == 0)
			hx_fault(
				complete->faults, HAPAX_ERR_INVALID, &certificate->place,
				"certificates '%.64s' and '%.64s' are the same",
				certificates[i].name, certificate->name);
	}
	if (occurs)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &certificate->place,
			"the name '%.64s' occurs twice", certificate->name);
	if ((certificate->fingerprint[0] == '\0') == (certificate->subject[0] == '\0'))
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &certificate->place,
			"a certificate needs either a fingerprint or a subject");
}

static void complete_certificates(struct hx_complete *complete, struct hx_config_auth *auth)
{
	static const struct hx_place place = {.name = "auth.certificates"};
	struct hx_config_certificate *certificates = hx_complete_alloc(
		complete, &place, auth->certificate_count + 1, sizeof(*certificates));

	if (certificates == NULL)
		return;
	for (size_t i = 0; i < auth->certificate_count; i++) {
		certificates[i] = auth->certificates[i];
		if (certificates[i].fingerprint[0] != '\0')
			decode(certificates[i].fingerprint, certificates[i].sha256);
		check_certificate(complete, auth, certificates, i);
	}
	auth->certificates = certificates;
}

static void complete_tokens(struct hx_complete *complete, struct hx_config_auth *auth)
{
	static const struct hx_place place = {.name = "auth.tokens"};
	struct hx_config_token *tokens =
		hx_complete_alloc(complete, &place, auth->token_count + 1, sizeof(*tokens));

	if (tokens == NULL)
		return;
	for (size_t i = 0; i < auth->token_count; i++) {
		tokens[i] = auth->tokens[i];
		decode(tokens[i].hash, tokens[i].sha256);
		check_token(complete, tokens, i);
	}
	auth->tokens = tokens;
}

void hx_complete_auth(struct hx_complete *complete, struct hx_config_auth *auth)
{
	complete_tokens(complete, auth);
	complete_certificates(complete, auth);
}
