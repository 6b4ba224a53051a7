/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.h - who sent a request to the admin door, and may it.
 *
 *	hx_auth_identify(&config->auth, exchange, &identity);
 *	if (identity.role < HX_ROLE_WRITE) {
 *		status = hx_auth_refuse(exchange, &identity, HX_ROLE_WRITE);
 *		return;                                      the reply was given
 *	}
 *
 * While nobody is named under `auth`, whoever is on this machine may read, and nobody may
 * change anything. As soon as somebody is, only those who are named may do either. Probes
 * are answered to everybody: a supervisor has no token, and learns nothing but yes or no.
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

/* Each may do what the one before it may. */
enum hx_role {
	HX_ROLE_NONE = 0, /* asks whether it is well */
	HX_ROLE_READ,     /* sees keys, results, figures, settings */
	HX_ROLE_WRITE,    /* claims, completes, releases, resolves, forgets what is done */
	HX_ROLE_ADMIN,    /* changes settings, forgets by force, resets figures */
};

/* What was said of who it is. */
enum hx_auth_said {
	HX_AUTH_NOTHING = 0, /* no credential came */
	HX_AUTH_UNREADABLE,  /* one that is no bearer token, or two of them */
	HX_AUTH_UNKNOWN,     /* a token that nobody has */
	HX_AUTH_UNNAMED,     /* a good certificate that stands nowhere */
	HX_AUTH_KNOWN,
};

enum { HX_IDENTITY_NAME_SIZE = 128 + 1 };

/* A copy: it outlives the request and the configuration. */
struct hx_auth_identity {
	enum hx_role role;
	enum hx_auth_said said;
	bool is_open;                            /* nobody is named, so that none can be known */
	char name[HX_IDENTITY_NAME_SIZE];        /* of whom the credential is; "": not KNOWN */
	char tenant[HX_SCOPE_PART_SIZE_MAX + 1]; /* the only one it may see and change; "": all */
};

/* Who sent it. Ask when the request is handed over, while its client is there. */
void hx_auth_identify(
	const struct hx_config_auth *auth, const struct hx_http_exchange *exchange,
	struct hx_auth_identity *ret_identity);

/*
 * The same from its parts: a token in Authorization counts before a certificate, which may
 * be NULL. is_local: it came from this machine.
 */
void hx_auth_judge(
	const struct hx_config_auth *auth, const struct hx_http1_head *head,
	const struct hx_tls_peer *certificate, bool is_local,
	struct hx_auth_identity *ret_identity);

/* May it see and, with the role for it, change keys of this tenant? */
bool hx_auth_has_tenant(const struct hx_auth_identity *identity, struct hapax_bytes tenant);

/* Is that path, without its query, answered to everybody: probes, perhaps /metrics? */
bool hx_auth_is_open(const struct hx_config_auth *auth, struct hapax_bytes path);

/*
 * Tell who lacks the role that it does: 401 where another credential would help, else 403,
 * as a problem document. Returns the status, for whoever counts. The exchange is gone.
 */
unsigned hx_auth_refuse(
	struct hx_http_exchange *exchange, const struct hx_auth_identity *identity,
	enum hx_role role);

/* "none", "read", "write", "admin". */
const char *hx_role_name(enum hx_role role);

#endif
