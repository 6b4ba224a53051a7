/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_auth.c - the settings of who may ask for what.
 */
#include "config/schema/schema_auth.h"

#include "base/limits.h"
#include "config/config_check.h"
#include "config/config.h"
#include "config/schema/schema_unit.h"

/* In the order of enum hx_config_role. */
static const char *const roles[] = {"read", "write", "admin", NULL};

#define AT(member) .offset = offsetof(struct hx_config_token, member)
static const struct hx_setting token_settings[] = {
	{.name = "name",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(name),
         .min = 1,
         .max = NAME_MAX_SIZE,
         .check = hx_check_name,
         .doc = "whose token it is, for logs and the audit; unique"},
	{.name = "hash",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(hash),
         .min = 1,
         .max = TEXT_MAX,
         .check = hx_check_digest,
         .doc = "sha256: and 64 digits, as hapax config token prints it"},
	{.name = "role",
         .type = HX_SETTING_CHOICE,
         .flags = HX_SETTING_REQUIRED,
         AT(role),
         .choices = roles,
         .doc = "what it may do; each role may do what the one before it may"},
	{.name = "tenant",
         .type = HX_SETTING_TEXT,
         AT(tenant),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "the only tenant whose keys it may see and change; empty: all"},
	{.name = NULL},
};
#undef AT
static const struct hx_section token_section = {
	.name = "a token",
	.settings = token_settings,
	.size = sizeof(struct hx_config_token),
	.place_offset = offsetof(struct hx_config_token, place)};

#define AT(member) .offset = offsetof(struct hx_config_certificate, member)
static const struct hx_setting certificate_settings[] = {
	{.name = "name",
         .type = HX_SETTING_TEXT,
         .flags = HX_SETTING_REQUIRED,
         AT(name),
         .min = 1,
         .max = NAME_MAX_SIZE,
         .check = hx_check_name,
         .doc = "whose certificate it is, for logs and the audit; unique, among tokens too"},
	{.name = "fingerprint",
         .type = HX_SETTING_TEXT,
         AT(fingerprint),
         .fallback = "",
         .max = TEXT_MAX,
         .check = hx_check_digest,
         .doc = "sha256: and 64 digits, of the certificate as DER"},
	{.name = "subject",
         .type = HX_SETTING_TEXT,
         AT(subject),
         .fallback = "",
         .max = HX_TLS_SUBJECT_SIZE - 1,
         .check = hx_check_name,
         .doc = "in place of the fingerprint: its whole subject, as in CN=billing,O=Acme"},
	{.name = "role",
         .type = HX_SETTING_CHOICE,
         .flags = HX_SETTING_REQUIRED,
         AT(role),
         .choices = roles,
         .doc = "what it may do; each role may do what the one before it may"},
	{.name = "tenant",
         .type = HX_SETTING_TEXT,
         AT(tenant),
         .fallback = "",
         .max = HX_SCOPE_PART_SIZE_MAX,
         .check = hx_check_scope_part,
         .doc = "the only tenant whose keys it may see and change; empty: all"},
	{.name = NULL},
};
#undef AT
static const struct hx_section certificate_section = {
	.name = "a certificate",
	.settings = certificate_settings,
	.size = sizeof(struct hx_config_certificate),
	.place_offset = offsetof(struct hx_config_certificate, place)};

#define AT(member) .offset = offsetof(struct hx_config_auth, member)
static const struct hx_setting auth_settings[] = {
	{.name = "open_metrics",
         .type = HX_SETTING_BOOLEAN,
         AT(open_metrics),
         .fallback = "false",
         .doc = "whether GET /metrics needs no token, as probes never do"},
	{.name = "max_failures",
         .type = HX_SETTING_COUNT,
         .flags = HX_SETTING_NONE_IS_0,
         AT(max_failures),
         .fallback = "20",
         .max = INT64_C(1000000),
         .doc = "wrong tokens and passwords from one address in a minute; then it waits"},
	{.name = "tokens",
         .type = HX_SETTING_LIST,
         AT(tokens),
         .count_offset = offsetof(struct hx_config_auth, token_count),
         .max = LIST_MAX,
         .section = &token_section,
         .doc = "who may come in by Authorization: Bearer; none: anybody may read, nobody write"},
	{.name = "certificates",
         .type = HX_SETTING_LIST,
         AT(certificates),
         .count_offset = offsetof(struct hx_config_auth, certificate_count),
         .max = LIST_MAX,
         .section = &certificate_section,
         .doc = "who may come in by a certificate, with tls.client_auth"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_auth_section = {
	.name = "auth", .settings = auth_settings, .size = sizeof(struct hx_config_auth)};
