/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/daemon/door_guard.h"

#include "base/error.h"
#include "net/address.h"
#include "serve/daemon/inspection.h"

/* Whether the door distinguishes any clients. */
static bool knows_clients(
	const struct hx_config *config, enum hx_config_tls_index index, bool speaks_tls)
{
	struct hx_tls_options options;

	if (speaks_tls && hx_config_tls_options(config, index, &options) &&
	    options.client_auth == HX_TLS_CLIENT_REQUIRED)
		return true;
	switch (index) {
	case HX_CONFIG_TLS_RESP: return config->resp.user_count > 0;
	case HX_CONFIG_TLS_ADMIN:
		return config->auth.token_count > 0 || config->auth.certificate_count > 0;
	case HX_CONFIG_TLS_GATEWAY:
	case HX_CONFIG_TLS_PROXY:
	case HX_CONFIG_TLS_DOORS: break;
	}
	return true;
}

enum hapax_status hx_door_guard(
	const struct hx_config *config, enum hx_config_tls_index index,
	const struct hx_address *address, bool speaks_tls, const struct hx_inspection *inspection,
	struct hapax_error *err)
{
	char text[HX_ADDRESS_TEXT_SIZE];

	if (!hx_address_is_public(address))
		return HAPAX_OK;
	hx_address_format(address, text);
	if (!knows_clients(config, index, speaks_tls))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"listen.%s: refusing public address %s without authentication; set %s "
			"or tls.client_auth: required, or use 127.0.0.1 or unix:PATH",
			hx_config_tls_name(index), text,
			index == HX_CONFIG_TLS_RESP ? "resp.users" : "auth.tokens");
	if (!speaks_tls) {
		const struct hx_logger_field fields[] = {
			HX_LOGGER_TEXT("door", hx_config_tls_name(index)),
			HX_LOGGER_TEXT("listen", text)};

		hx_inspection_note(
			inspection, HX_LOGGER_WARN, "listener is public and has no TLS", fields,
			HX_COUNT(fields));
	}
	return HAPAX_OK;
}
