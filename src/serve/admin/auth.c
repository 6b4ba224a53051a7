/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/admin/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "net/http/http_server.h"
#include "net/tls/tls.h"
#include "wire/bearer.h"
#include "wire/http1/http1_text.h"

#define PROBLEM(name) "urn:hapax:problem:" name

const char *hx_role_name(enum hx_role role)
{
	static const char *const names[] = {"none", "read", "write", "admin"};

	return names[role];
}

static enum hx_role role_of(enum hx_config_role role)
{
	switch (role) {
	case HX_CONFIG_ROLE_READ: return HX_ROLE_READ;
	case HX_CONFIG_ROLE_WRITE: return HX_ROLE_WRITE;
	case HX_CONFIG_ROLE_ADMIN: return HX_ROLE_ADMIN;
	}
	return HX_ROLE_NONE;
}

/*
 * Whether authority names this machine: an address, localhost, or a name without a dot. A web page
 * in a browser on this machine can point its own name here, and would read our data.
 */
static bool is_own_name(struct hapax_bytes authority)
{
	static const struct hapax_bytes localhost = HX_BYTES_LIT("localhost");
	static const struct hapax_bytes local = HX_BYTES_LIT(".localhost");
	const char *at = authority.data;
	const char *colon = authority.size == 0 ? NULL : memchr(at, ':', authority.size);
	size_t size = colon == NULL ? authority.size : (size_t)(colon - at);
	bool is_address = true;

	/* HTTP/1.0 has no Host, and no browser uses it. */
	if (authority.size == 0 || at[0] == '[')
		return true;
	for (size_t i = 0; i < size; i++)
		is_address = is_address && (at[i] == '.' || (at[i] >= '0' && at[i] <= '9'));
	return is_address || memchr(at, '.', size) == NULL ||
		hx_http1_text_equal(hx_bytes(at, size), localhost) ||
		(size > local.size &&
		 hx_http1_text_equal(hx_bytes(at + size - local.size, local.size), local));
}

/*
 * Whether the peer is on this machine, and not redirected here. Only its address is trusted, and
 * that of a local proxy that names another client (origin).
 */
static bool is_from_here(const struct hx_http_exchange *exchange)
{
	if (exchange->origin[0] != '\0')
		return false;
	if (exchange->server->listener.address.storage.ss_family == AF_UNIX)
		return true;
	if (!is_own_name(exchange->head.authority))
		return false;
	return strncmp(exchange->client, "127.", 4) == 0 || strcmp(exchange->client, "::1") == 0 ||
		strncmp(exchange->client, "::ffff:127.", 11) == 0;
}

/*
 * The owner of the token. Every row is compared, to the last byte of its digest, so that the time
 * reveals nothing.
 */
static const struct hx_config_token *find_token(
	const struct hx_config_auth *auth, struct hapax_bytes token)
{
	const struct hx_config_token *found = NULL;
	unsigned char digest[HX_SHA256_SIZE];

	hx_sha256(token.data, token.size, digest);
	for (size_t i = 0; i < auth->token_count; i++) {
		if (hx_sha256_equal(digest, auth->tokens[i].sha256))
			found = &auth->tokens[i];
	}
	return found;
}

static void know(
	struct hx_auth_identity *identity, enum hx_config_role role, const char *name,
	const char *tenant)
{
	identity->said = HX_AUTH_KNOWN;
	identity->role = role_of(role);
	(void)snprintf(identity->name, sizeof(identity->name), "%s", name);
	(void)snprintf(identity->tenant, sizeof(identity->tenant), "%s", tenant);
}

/* The value of Authorization. Two of them are ambiguous. */
static void read_field(
	const struct hx_config_auth *auth, const struct hx_http1_head *head, size_t index,
	struct hx_auth_identity *identity)
{
	static const struct hapax_bytes name = HX_BYTES_LIT("Authorization");
	const struct hx_config_token *found;
	struct hapax_bytes token;

	if (hx_http1_find(head, name, index + 1) < head->field_count ||
	    !hx_bearer_read(head->fields[index].value, &token)) {
		identity->said = HX_AUTH_UNREADABLE;
		return;
	}
	found = find_token(auth, token);
	if (found != NULL)
		know(identity, found->role, found->name, found->tenant);
	else
		identity->said = HX_AUTH_UNKNOWN;
}

/* TLS has verified it: finds its owner. A row by fingerprint takes precedence over one by name. */
static void read_certificate(
	const struct hx_config_auth *auth, const struct hx_tls_peer *certificate,
	struct hx_auth_identity *identity)
{
	const struct hx_config_certificate *found = NULL;

	for (size_t i = 0; i < auth->certificate_count; i++) {
		const struct hx_config_certificate *row = &auth->certificates[i];

		if (row->fingerprint[0] != '\0' &&
		    hx_sha256_equal(row->sha256, certificate->sha256)) {
			found = row;
			break;
		}
		if (row->subject[0] != '\0' && strcmp(row->subject, certificate->subject) == 0)
			found = row;
	}
	if (found != NULL)
		know(identity, found->role, found->name, found->tenant);
	else
		identity->said = HX_AUTH_UNNAMED;
}

void hx_auth_judge(
	const struct hx_config_auth *auth, const struct hx_http1_head *head,
	const struct hx_tls_peer *certificate, bool is_local, struct hx_auth_identity *ret_identity)
{
	size_t index = hx_http1_find(head, HX_BYTES_LIT("Authorization"), 0);

	memset(ret_identity, 0, sizeof(*ret_identity));
	ret_identity->is_open = auth->token_count == 0 && auth->certificate_count == 0;
	if (ret_identity->is_open)
		ret_identity->role = is_local ? HX_ROLE_READ : HX_ROLE_NONE;
	else if (index < head->field_count)
		read_field(auth, head, index, ret_identity);
	else if (certificate != NULL)
		read_certificate(auth, certificate, ret_identity);
}

void hx_auth_identify(
	const struct hx_config_auth *auth, const struct hx_http_exchange *exchange,
	struct hx_auth_identity *ret_identity)
{
	hx_auth_judge(
		auth, &exchange->head, hx_http_exchange_certificate(exchange),
		is_from_here(exchange), ret_identity);
}

bool hx_auth_is_open(const struct hx_config_auth *auth, struct hapax_bytes path)
{
	static const struct hapax_bytes probes[] = {
		HX_BYTES_LIT("/livez"), HX_BYTES_LIT("/readyz"), HX_BYTES_LIT("/healthz"),
		HX_BYTES_LIT("/startupz")};

	for (size_t i = 0; i < HX_COUNT(probes); i++) {
		if (hx_bytes_equal(path, probes[i]))
			return true;
	}
	return auth->open_metrics && hx_bytes_equal(path, HX_BYTES_LIT("/metrics"));
}

static void refuse_role(
	struct hx_http_exchange *exchange, const struct hx_auth_identity *identity,
	const char *role)
{
	struct hx_http_problem problem = {.status = 403};
	struct hapax_field field = {HX_BYTES_LIT("WWW-Authenticate"), {NULL, 0}};
	char challenge[128], detail[256];
	bool is_read = strcmp(role, hx_role_name(HX_ROLE_READ)) == 0;

	(void)snprintf(
		challenge, sizeof(challenge),
		"Bearer realm=\"hapax\", error=\"insufficient_scope\", scope=\"%s\"", role);
	field.value = hapax_bytes_from_text(challenge);
	problem.detail = detail;
	if (identity->is_open) {
		problem.type = PROBLEM("read-only");
		problem.title = "The API is read-only";
		(void)snprintf(
			detail, sizeof(detail),
			"this request needs the role '%s', but no API token is configured; "
			"create one with 'hapax config token'%s",
			role, is_read ? "; until then only this host may read, as localhost" : "");
	} else {
		problem.type = PROBLEM("role-missing");
		problem.title = "The role is not sufficient";
		(void)snprintf(
			detail, sizeof(detail),
			"this request needs the role '%s'; '%.100s' has the role '%s'", role,
			identity->name, hx_role_name(identity->role));
	}
	hx_http_reply_problem(exchange, &problem, &field, 1);
}

static void refuse_stranger(
	struct hx_http_exchange *exchange, const struct hx_auth_identity *identity,
	const char *role)
{
	static const char *const challenges[] = {
		[HX_AUTH_NOTHING] = "Bearer realm=\"hapax\"",
		[HX_AUTH_UNREADABLE] = "Bearer realm=\"hapax\", error=\"invalid_request\"",
		[HX_AUTH_UNKNOWN] = "Bearer realm=\"hapax\", error=\"invalid_token\"",
		[HX_AUTH_UNNAMED] = "Bearer realm=\"hapax\"",
	};
	static const char *const details[] = {
		[HX_AUTH_NOTHING] = "the request has no 'Authorization: Bearer TOKEN' header",
		[HX_AUTH_UNREADABLE] = "the Authorization header must be one 'Bearer TOKEN'",
		[HX_AUTH_UNKNOWN] = "unknown API token",
		[HX_AUTH_UNNAMED] = "the client certificate is not in auth.certificates",
	};
	const struct hapax_field field = {
		HX_BYTES_LIT("WWW-Authenticate"),
		hapax_bytes_from_text(challenges[identity->said])};
	struct hx_http_problem problem = {
		.status = 401,
		.type = PROBLEM("unauthorized"),
		.title = "Authentication is required"};
	char detail[256];

	(void)snprintf(
		detail, sizeof(detail), "this request needs the role '%s': %s", role,
		details[identity->said]);
	problem.detail = detail;
	hx_http_reply_problem(exchange, &problem, &field, 1);
}

unsigned hx_auth_refuse(
	struct hx_http_exchange *exchange, const struct hx_auth_identity *identity,
	enum hx_role role)
{
	bool is_known = identity->said == HX_AUTH_KNOWN || identity->is_open;

	if (is_known)
		refuse_role(exchange, identity, hx_role_name(role));
	else
		refuse_stranger(exchange, identity, hx_role_name(role));
	return is_known ? 403 : 401;
}
