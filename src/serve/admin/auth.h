/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - identifies the sender of a request to the admin door, and checks its role.
 *
 *	hx_auth_identify(&config->auth, exchange, &identity);
 *	if (identity.role < HX_ROLE_WRITE) {
 *		status = hx_auth_refuse(exchange, &identity, HX_ROLE_WRITE);
 *		return;                                      the reply was given
 *	}
 *
 * While `auth` names no client, clients on this machine may read, and no client may change
 * anything. Once it names one, only named clients may do either. Every client may probe: a
 * supervisor has no token, and learns only yes or no.
 *
 * Threads: any.
 */
#ifndef HX_SERVE_ADMIN_AUTH_H
#define HX_SERVE_ADMIN_AUTH_H

#include <stdbool.h>

#include <hapax/bytes.h>

#include "base/limits.h"
#include "config/config.h"

struct hx_http1_head;
struct hx_http_exchange;
struct hx_tls_peer;

/* Each role includes the one before it. */
enum hx_role {
	HX_ROLE_NONE = 0, /* may probe */
	HX_ROLE_READ,     /* sees keys, results, figures, settings */
	HX_ROLE_WRITE,    /* claims, completes, releases, resolves, forgets completed keys */
	HX_ROLE_ADMIN,    /* changes settings, forgets by force, resets figures */
};

/* The credential of a request. */
enum hx_auth_said {
	HX_AUTH_NOTHING = 0, /* no credential */
	HX_AUTH_UNREADABLE,  /* not a bearer token, or two of them */
	HX_AUTH_UNKNOWN,     /* an unknown token */
	HX_AUTH_UNNAMED,     /* a valid certificate that is not configured */
	HX_AUTH_KNOWN,
};

enum { HX_IDENTITY_NAME_SIZE = 128 + 1 };

/* A copy: it outlives the request and the configuration. */
struct hx_auth_identity {
	enum hx_role role;
	enum hx_auth_said said;
	bool is_open;                            /* no client is named, so none can be known */
	char name[HX_IDENTITY_NAME_SIZE];        /* owner of the credential; "": not KNOWN */
	char tenant[HX_SCOPE_PART_SIZE_MAX + 1]; /* the only one it may see and change; "": all */
};

/* Identifies the sender. Call it when the request is handed over, while its client is connected. */
void hx_auth_identify(
	const struct hx_config_auth *auth, const struct hx_http_exchange *exchange,
	struct hx_auth_identity *ret_identity);

/*
 * The same from its parts: a token in Authorization takes precedence over a certificate, which may
 * be NULL. is_local: it came from this machine.
 */
void hx_auth_judge(
	const struct hx_config_auth *auth, const struct hx_http1_head *head,
	const struct hx_tls_peer *certificate, bool is_local,
	struct hx_auth_identity *ret_identity);

/* Whether every client may read that path, without its query: probes, perhaps /metrics. */
bool hx_auth_is_open(const struct hx_config_auth *auth, struct hapax_bytes path);

/*
 * Refuses a client that lacks the role: 401 if another credential would help, else 403, as a
 * problem document. Returns the status, for counters. The exchange is gone.
 */
unsigned hx_auth_refuse(
	struct hx_http_exchange *exchange, const struct hx_auth_identity *identity,
	enum hx_role role);

/* "none", "read", "write", "admin". */
const char *hx_role_name(enum hx_role role);

#endif
