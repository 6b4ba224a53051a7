/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_auth.c - the settings of access rights.
 */
#include "config/schema/schema_row.h"

/* In the order of enum hx_config_role. */
static const char *const roles[] = {"read", "write", "admin", NULL};

static const struct hx_setting token_settings[] = {
	{"name", AT(token, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name), REQUIRED,
	 "name of the client, for logs and the audit; unique"},
	{"hash", AT(token, hash), TEXT(NULL, 1, TEXT_MAX, hx_config_check_digest), REQUIRED,
	 "sha256: and 64 digits, as 'hapax config token' prints it"},
	{"role", AT(token, role), CHOICE(NULL, roles), REQUIRED,
	 "role; each role includes the previous one"},
	{"tenant", AT(token, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "only tenant whose keys it may read and change; empty: all"},
	{.name = NULL},
};
static const struct hx_section token_section = {
	"an API token", .settings = token_settings, .size = sizeof(struct hx_config_token),
	.place_offset = offsetof(struct hx_config_token, place)};

static const struct hx_setting certificate_settings[] = {
	{"name", AT(certificate, name), TEXT(NULL, 1, NAME_MAX_SIZE, hx_config_check_name),
	 REQUIRED, "name of the client, for logs and the audit; unique, also among API tokens"},
	{"fingerprint", AT(certificate, fingerprint), TEXT("", 0, TEXT_MAX, hx_config_check_digest),
	 0, "sha256: and 64 digits, of the certificate in DER form"},
	{"subject", AT(certificate, subject),
	 TEXT("", 0, HX_TLS_SUBJECT_SIZE - 1, hx_config_check_name), 0,
	 "instead of the fingerprint: the whole subject, as in CN=billing,O=Acme"},
	{"role", AT(certificate, role), CHOICE(NULL, roles), REQUIRED,
	 "role; each role includes the previous one"},
	{"tenant", AT(certificate, tenant),
	 TEXT("", 0, HX_SCOPE_PART_SIZE_MAX, hx_config_check_scope_part), 0,
	 "only tenant whose keys it may read and change; empty: all"},
	{.name = NULL},
};
static const struct hx_section certificate_section = {
	"a certificate", .settings = certificate_settings,
	.size = sizeof(struct hx_config_certificate),
	.place_offset = offsetof(struct hx_config_certificate, place)};

static const struct hx_setting auth_settings[] = {
	{"open_metrics", AT(auth, open_metrics), BOOLEAN("false"), 0,
	 "whether GET /metrics needs no API token"},
	{"max_failures", AT(auth, max_failures), COUNT("20", 0, INT64_C(1000000)), NONE_IS_0,
	 "maximum number of different invalid API tokens and passwords per address and minute"},
	{"tokens", LIST_AT(auth, tokens, token_count), LIST(LIST_MAX, &token_section), 0,
	 "API tokens (Authorization: Bearer TOKEN); none: this host may read, and no client may "
	 "write"},
	{"certificates", LIST_AT(auth, certificates, certificate_count),
	 LIST(LIST_MAX, &certificate_section), 0, "client certificates, with tls.client_auth"},
	{.name = NULL},
};

const struct hx_section hx_config_auth_section = {
	"auth", .settings = auth_settings, .size = sizeof(struct hx_config_auth)};
