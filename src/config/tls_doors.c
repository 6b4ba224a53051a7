/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_doors.c - which doors use TLS, and their files.
 */
#include <stddef.h>

#include "base/macros.h"
#include "config/complete/complete.h"

/* By enum hx_config_tls_index. */
static const struct {
	const char *name;
	bool is_http;
	size_t listen_offset;
	struct hx_place place;
} doors[] = {
#define LISTEN(member) offsetof(struct hx_config_listen, member)
	[HX_CONFIG_TLS_GATEWAY] = {"gateway", true, LISTEN(gateway), {.name = "tls.gateway"}},
	[HX_CONFIG_TLS_PROXY] = {"proxy", true, LISTEN(proxy), {.name = "tls.proxy"}},
	[HX_CONFIG_TLS_RESP] = {"resp", false, LISTEN(resp), {.name = "tls.resp"}},
	[HX_CONFIG_TLS_ADMIN] = {"admin", true, LISTEN(admin), {.name = "tls.admin"}},
#undef LISTEN
};

_Static_assert(HX_COUNT(doors) == HX_CONFIG_TLS_DOORS, "a row for every door");

const char *hx_config_tls_name(enum hx_config_tls_index index)
{
	return doors[index].name;
}

static enum hx_tls_client_auth client_auth_of(
	enum hx_config_client_auth own, enum hx_tls_client_auth common)
{
	switch (own) {
	case HX_CONFIG_CLIENT_AUTH_INHERIT: break;
	case HX_CONFIG_CLIENT_AUTH_OFF: return HX_TLS_CLIENT_OFF;
	case HX_CONFIG_CLIENT_AUTH_OPTIONAL: return HX_TLS_CLIENT_OPTIONAL;
	case HX_CONFIG_CLIENT_AUTH_REQUIRED: return HX_TLS_CLIENT_REQUIRED;
	}
	return common;
}

static const char *choose(const char *own, const char *common)
{
	const char *text = own[0] != '\0' ? own : common;

	return text[0] != '\0' ? text : NULL;
}

/* The settings for the door, whether it is open or not. False: none. */
static bool combine(
	const struct hx_config_tls *tls, const struct hx_config_tls_door *door,
	struct hx_tls_options *ret_options)
{
	/* A certificate and its key belong together. */
	bool has_own = door->certificate[0] != '\0' || door->key[0] != '\0';

	*ret_options = (struct hx_tls_options){
		.certificate_file = choose(door->certificate, has_own ? "" : tls->certificate),
		.key_file = choose(door->key, has_own ? "" : tls->key),
		.client_auth = client_auth_of(door->client_auth, tls->client_auth),
	};
	if (ret_options->client_auth != HX_TLS_CLIENT_OFF)
		ret_options->authority_file = choose(door->client_ca, tls->client_ca);
	return door->enabled &&
		(ret_options->certificate_file != NULL || ret_options->key_file != NULL);
}

bool hx_config_tls_options(
	const struct hx_config *config, enum hx_config_tls_index index,
	struct hx_tls_options *ret_options)
{
	if (!combine(&config->tls, &config->tls.doors[index], ret_options))
		return false;
	ret_options->is_http = doors[index].is_http;
	return true;
}

const struct hx_config_door *hx_config_door_of(
	const struct hx_config *config, enum hx_config_tls_index index)
{
	return (const void *)((const unsigned char *)&config->listen + doors[index].listen_offset);
}

bool hx_config_listens_by_tcp(const struct hx_config *config, enum hx_config_tls_index index)
{
	const struct hx_config_door *door = hx_config_door_of(config, index);

	return !door->is_off && !door->endpoint.is_unix;
}

static void check(
	struct hx_complete *complete, const struct hx_tls_options *options,
	const struct hx_place *place)
{
	if (!HX_HAVE_TLS)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place,
			"TLS is not built in; build with OpenSSL's libssl");
	if (options->certificate_file == NULL || options->key_file == NULL)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place,
			"%s is set, but %s is not; set both",
			options->key_file == NULL ? "certificate" : "key",
			options->key_file == NULL ? "key" : "certificate");
	if (options->client_auth != HX_TLS_CLIENT_OFF && options->authority_file == NULL)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, place,
			"client_auth needs client_ca, the authority of the client certificates");
}

void hx_tls_doors_complete(struct hx_complete *complete, const struct hx_config_tls *tls)
{
	/* Check the shared settings once, then those of each door. */
	static const struct hx_config_tls_door same = {
		.enabled = true, .certificate = "", .key = "", .client_ca = ""};
	static const struct hx_place place = {.name = "tls"};
	struct hx_tls_options options;
	unsigned before = complete->faults->count;

	if (combine(tls, &same, &options))
		check(complete, &options, &place);
	else if (options.client_auth != HX_TLS_CLIENT_OFF)
		hx_fault(
			complete->faults, HAPAX_ERR_INVALID, &place,
			"client_auth needs a certificate for the listener; set tls.certificate "
			"and tls.key");
	for (size_t i = 0; i < HX_CONFIG_TLS_DOORS && complete->faults->count == before; i++) {
		if (combine(tls, &tls->doors[i], &options))
			check(complete, &options, &doors[i].place);
	}
}
