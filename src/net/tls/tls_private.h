/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_private.h - shared by tls.c and tls_context.c only.
 */
#ifndef HX_NET_TLS_TLS_PRIVATE_H
#define HX_NET_TLS_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/thread.h"

struct hx_tls_context {
	struct hx_lock lock;
	SSL_CTX *ssl; /* Locks: lock. Replaced by hx_tls_context_exchange() */
	bool is_server;
};

/* The current one, which the caller must free: existing connections keep theirs. */
SSL_CTX *hx_tls_context_take(struct hx_tls_context *context);

/* The first reason that OpenSSL recorded; clears the rest. Borrowed, valid forever. */
const char *hx_tls_take_reason(void);

/* The BIO method for the network seam; NULL: out of memory. */
const BIO_METHOD *hx_tls_seam(void);

#endif
