/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_tls.c - the settings of TLS, for all doors and for each.
 */
#include "config/schema/schema_tls.h"

#include "config/config.h"
#include "config/schema/schema_unit.h"

/* In the order of enum hx_tls_client_auth. */
static const char *const client_auths[] = {"off", "optional", "required", NULL};
/* And of a door: first, what all have. */
static const char *const door_client_auths[] = {"inherit", "off", "optional", "required", NULL};

#define AT(member) .offset = offsetof(struct hx_config_tls_door, member)
static const struct hx_setting door_settings[] = {
	{.name = "enabled",
         .type = HX_SETTING_BOOLEAN,
         .flags = HX_SETTING_RESTART,
         AT(enabled),
         .fallback = "true",
         .doc = "false: it speaks no TLS, though there is a certificate"},
	{.name = "certificate",
         .type = HX_SETTING_TEXT,
         AT(certificate),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "a file of its own, with key; empty: as above"},
	{.name = "key",
         .type = HX_SETTING_TEXT,
         AT(key),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "the private key of that certificate"},
	{.name = "client_ca",
         .type = HX_SETTING_TEXT,
         AT(client_ca),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "other authorities of clients; empty: as above"},
	{.name = "client_auth",
         .type = HX_SETTING_CHOICE,
         AT(client_auth),
         .fallback = "inherit",
         .choices = door_client_auths,
         .doc = "whether its clients show certificates; inherit: as above"},
	{.name = NULL},
};
#undef AT
static const struct hx_section door_section = {
	.name = "TLS of a door",
	.settings = door_settings,
	.size = sizeof(struct hx_config_tls_door)};

#define AT(member) .offset = offsetof(struct hx_config_tls, member)
static const struct hx_setting tls_settings[] = {
	{.name = "certificate",
         .type = HX_SETTING_TEXT,
         AT(certificate),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "PEM file: the certificate, then what links it to a root; empty: no TLS"},
	{.name = "key",
         .type = HX_SETTING_TEXT,
         AT(key),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "PEM file: its private key, without a password"},
	{.name = "client_ca",
         .type = HX_SETTING_TEXT,
         AT(client_ca),
         .fallback = "",
         .max = TEXT_MAX,
         .doc = "PEM file: the authorities that vouch for certificates of clients"},
	{.name = "client_auth",
         .type = HX_SETTING_CHOICE,
         AT(client_auth),
         .fallback = "off",
         .choices = client_auths,
         .doc = "whether clients show certificates"},
	{.name = "handshake_timeout",
         .type = HX_SETTING_DURATION,
         .flags = HX_SETTING_RESTART,
         AT(handshake_timeout_ms),
         .fallback = "10s",
         .min = 1,
         .max = HOUR,
         .doc = "how long a client may take until the connection is secured"},
	{.name = "gateway",
         .type = HX_SETTING_SECTION,
         AT(doors[HX_CONFIG_TLS_GATEWAY]),
         .section = &door_section,
         .doc = "what is different at the gateway"},
	{.name = "proxy",
         .type = HX_SETTING_SECTION,
         AT(doors[HX_CONFIG_TLS_PROXY]),
         .section = &door_section,
         .doc = "what is different at the proxy"},
	{.name = "resp",
         .type = HX_SETTING_SECTION,
         AT(doors[HX_CONFIG_TLS_RESP]),
         .section = &door_section,
         .doc = "what is different at the Redis door"},
	{.name = "admin",
         .type = HX_SETTING_SECTION,
         AT(doors[HX_CONFIG_TLS_ADMIN]),
         .section = &door_section,
         .doc = "what is different at the admin door"},
	{.name = NULL},
};
#undef AT

const struct hx_section hx_config_tls_section = {
	.name = "tls", .settings = tls_settings, .size = sizeof(struct hx_config_tls)};
