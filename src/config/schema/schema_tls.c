/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_tls.c - the settings of TLS, for all doors and for each.
 */
#include "config/schema/schema_row.h"

/* In the order of enum hx_tls_client_auth. */
static const char *const client_auths[] = {"off", "optional", "required", NULL};
/* The same for a door, after "inherit". */
static const char *const door_client_auths[] = {"inherit", "off", "optional", "required", NULL};

static const struct hx_setting door_settings[] = {
	{"enabled", AT(tls_door, enabled), BOOLEAN("true"), RESTART,
	 "false: no TLS at this listener, even with a certificate"},
	{"certificate", AT(tls_door, certificate), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "certificate of this listener, with key; empty: as above"},
	{"key", AT(tls_door, key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "private key of that certificate"},
	{"client_ca", AT(tls_door, client_ca), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "authorities of client certificates; empty: as above"},
	{"client_auth", AT(tls_door, client_auth), CHOICE("inherit", door_client_auths), 0,
	 "whether clients need certificates; inherit: as above"},
	{.name = NULL},
};
static const struct hx_section door_section = {
	"TLS of a listener", .settings = door_settings, .size = sizeof(struct hx_config_tls_door)};

static const struct hx_setting tls_settings[] = {
	{"certificate", AT(tls, certificate), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: certificate, then intermediate certificates; empty: no TLS"},
	{"key", AT(tls, key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: private key, without a password"},
	{"client_ca", AT(tls, client_ca), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: authorities of client certificates"},
	{"client_auth", AT(tls, client_auth), CHOICE("off", client_auths), 0,
	 "whether clients need certificates"},
	{"handshake_timeout", AT(tls, handshake_timeout_ms), DURATION("10s", 1, HOUR), RESTART,
	 "maximum time for the TLS handshake"},
	{"gateway", AT(tls, doors[HX_CONFIG_TLS_GATEWAY]), SECTION(&door_section), 0,
	 "differences at the gateway listener"},
	{"proxy", AT(tls, doors[HX_CONFIG_TLS_PROXY]), SECTION(&door_section), 0,
	 "differences at the proxy listener"},
	{"resp", AT(tls, doors[HX_CONFIG_TLS_RESP]), SECTION(&door_section), 0,
	 "differences at the Redis listener"},
	{"admin", AT(tls, doors[HX_CONFIG_TLS_ADMIN]), SECTION(&door_section), 0,
	 "differences at the admin listener"},
	{.name = NULL},
};

const struct hx_section hx_config_tls_section = {
	"tls", .settings = tls_settings, .size = sizeof(struct hx_config_tls)};
