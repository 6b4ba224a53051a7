/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_private.h - what tls.c and tls_context.c share; for these only.
 */
#ifndef HX_NET_TLS_TLS_PRIVATE_H
#define HX_NET_TLS_TLS_PRIVATE_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/thread.h"

struct hx_tls_context {
	struct hx_lock lock;
	SSL_CTX *ssl; /* Locks: lock. Another one after hx_tls_context_exchange() */
	bool is_server;
};

/* The one in force, for the caller to free: connections of others keep theirs. */
SSL_CTX *hx_tls_context_take(struct hx_tls_context *context);

/* The first reason that OpenSSL noted; it clears the rest. Borrowed, lives for ever. */
const char *hx_tls_take_reason(void);

/* The way to the network seam; NULL: no memory. */
const BIO_METHOD *hx_tls_seam(void);

#endif
