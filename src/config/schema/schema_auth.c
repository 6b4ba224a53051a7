/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_auth.c - the settings of access rights.
 */
#include "config/schema/schema_row.h"

/* In the order of enum hx_config_role. */
static const char *const roles[] = {"read", "write", "admin", NULL};

static const struct hx_setting token_settings[] = {
	{"name", AT(token, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name), REQUIRED,
	 "whose token it is, for logs and the audit; unique"},
	{"hash", AT(token, hash), TEXT(NULL, 1, TEXT_MAX, hx_config_check_digest), REQUIRED,
	 "sha256: and 64 digits, as hapax config token prints it"},
	{"role", AT(token, role), CHOICE(NULL, roles), REQUIRED,
	 "what it may do; each role may do what the one before it may"},
	{"tenant", AT(token, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "the only tenant whose keys it may see and change; empty: all"},
	{.name = NULL},
};
static const struct hx_section token_section = {
	"a token", .settings = token_settings, .size = sizeof(struct hx_config_token),
	.place_offset = offsetof(struct hx_config_token, place)};

static const struct hx_setting certificate_settings[] = {
	{"name", AT(certificate, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name),
	 REQUIRED, "whose certificate it is, for logs and the audit; unique, among tokens too"},
	{"fingerprint", AT(certificate, fingerprint), TEXT("", 0, TEXT_MAX, hx_config_check_digest),
	 0, "sha256: and 64 digits, of the certificate as DER"},
	{"subject", AT(certificate, subject),
	 TEXT("", 0, HX_TLS_SUBJECT_SIZE - 1, hx_config_check_name), 0,
	 "in place of the fingerprint: its whole subject, as in CN=billing,O=Acme"},
	{"role", AT(certificate, role), CHOICE(NULL, roles), REQUIRED,
	 "what it may do; each role may do what the one before it may"},
	{"tenant", AT(certificate, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "the only tenant whose keys it may see and change; empty: all"},
	{.name = NULL},
};
static const struct hx_section certificate_section = {
	"a certificate", .settings = certificate_settings,
	.size = sizeof(struct hx_config_certificate),
	.place_offset = offsetof(struct hx_config_certificate, place)};

static const struct hx_setting auth_settings[] = {
	{"open_metrics", AT(auth, open_metrics), BOOLEAN("false"), 0,
	 "whether GET /metrics needs no token, as probes never do"},
	{"max_failures", AT(auth, max_failures), COUNT("20", 0, INT64_C(1000000)), NONE_IS_0,
	 "different wrong tokens and passwords from one address in a minute; then it waits"},
	{"tokens", LIST_AT(auth, tokens, token_count), LIST(LIST_MAX, &token_section), 0,
	 "who may come in by Authorization: Bearer; none: anybody may read, nobody write"},
	{"certificates", LIST_AT(auth, certificates, certificate_count),
	 LIST(LIST_MAX, &certificate_section), 0,
	 "who may come in by a certificate, with tls.client_auth"},
	{.name = NULL},
};

const struct hx_section hx_config_auth_section = {
	"auth", .settings = auth_settings, .size = sizeof(struct hx_config_auth)};
