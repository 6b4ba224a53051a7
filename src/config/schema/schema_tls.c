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
	 "false: it speaks no TLS, though there is a certificate"},
	{"certificate", AT(tls_door, certificate), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "a file of its own, with key; empty: as above"},
	{"key", AT(tls_door, key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "the private key of that certificate"},
	{"client_ca", AT(tls_door, client_ca), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "other authorities of clients; empty: as above"},
	{"client_auth", AT(tls_door, client_auth), CHOICE("inherit", door_client_auths), 0,
	 "whether its clients show certificates; inherit: as above"},
	{.name = NULL},
};
static const struct hx_section door_section = {
	"TLS of a door", .settings = door_settings, .size = sizeof(struct hx_config_tls_door)};

static const struct hx_setting tls_settings[] = {
	{"certificate", AT(tls, certificate), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: the certificate, then what links it to a root; empty: no TLS"},
	{"key", AT(tls, key), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: its private key, without a password"},
	{"client_ca", AT(tls, client_ca), TEXT("", 0, TEXT_MAX, NULL), 0,
	 "PEM file: the authorities that vouch for certificates of clients"},
	{"client_auth", AT(tls, client_auth), CHOICE("off", client_auths), 0,
	 "whether clients show certificates"},
	{"handshake_timeout", AT(tls, handshake_timeout_ms), DURATION("10s", 1, HOUR), RESTART,
	 "how long a client may take until the connection is secured"},
	{"gateway", AT(tls, doors[HX_CONFIG_TLS_GATEWAY]), SECTION(&door_section), 0,
	 "what is different at the gateway"},
	{"proxy", AT(tls, doors[HX_CONFIG_TLS_PROXY]), SECTION(&door_section), 0,
	 "what is different at the proxy"},
	{"resp", AT(tls, doors[HX_CONFIG_TLS_RESP]), SECTION(&door_section), 0,
	 "what is different at the Redis door"},
	{"admin", AT(tls, doors[HX_CONFIG_TLS_ADMIN]), SECTION(&door_section), 0,
	 "what is different at the admin door"},
	{.name = NULL},
};

const struct hx_section hx_config_tls_section = {
	"tls", .settings = tls_settings, .size = sizeof(struct hx_config_tls)};
