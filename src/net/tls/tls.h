/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS 1.2 and later on a connection (OpenSSL; a feature of the build).
 *
 * A context is shared by many connections: trusted authorities, certificates. struct hx_tls belongs
 * to one connection. It reads and writes through the network seam of the connection that owns it,
 * so it is tested like everything else. Servers are always verified, by name, against the
 * authorities of the context; clients as the context says.
 *
 * Without OpenSSL's libssl the functions exist and return UNSUPPORTED.
 *
 * Threads: a context any; a struct hx_tls the reactor's thread.
 */
#ifndef HX_NET_TLS_TLS_H
#define HX_NET_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hapax/error.h>

#include "base/sha256.h"
#include "net/system.h"

struct hx_tls;
struct hx_tls_context;

/* Must clients show a certificate? */
enum hx_tls_client_auth {
	HX_TLS_CLIENT_OFF = 0,
	HX_TLS_CLIENT_OPTIONAL, /* verify the certificates of clients that show one */
	HX_TLS_CLIENT_REQUIRED,
};

/* NULL: none. Files are PEM. */
struct hx_tls_options {
	const char *authority_file;   /* trusted authorities; NULL: the system's */
	const char *certificate_file; /* our own certificate: leaf first, then its chain to a
	                                 root */
	const char *key_file;
	/* For servers. */
	enum hx_tls_client_auth client_auth; /* by authority_file */
	bool is_http;                        /* ALPN: http/1.1; else no ALPN */
};

/* Room for a name that people can read; longer ones are left out. */
enum { HX_TLS_SUBJECT_SIZE = 256 };

/* The verified identity of a client. */
struct hx_tls_peer {
	unsigned char sha256[HX_SHA256_SIZE]; /* of the certificate (DER): its fingerprint */
	char subject[HX_TLS_SUBJECT_SIZE];    /* "CN=billing,O=Acme" (RFC 4514); "": none */
};

/* For outgoing connections. Owned: *ret_context, by the caller. Reads files: blocks. */
enum hapax_status hx_tls_client_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err);

/* For incoming connections. certificate_file and key_file are required. */
enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err);

/*
 * Exchange the contents of both: new connections use those of other, existing ones keep theirs.
 * Both must be of one kind, and the caller must be the only user of other.
 */
void hx_tls_context_exchange(struct hx_tls_context *context, struct hx_tls_context *other);

/* When its certificate expires, by the wall clock; far in the future if it has none. */
int64_t hx_tls_context_expires_ms(struct hx_tls_context *context);

/* NULL is allowed. Its connections continue. */
void hx_tls_context_free(struct hx_tls_context *context);

/* host: the expected peer, a name or an address in digits; NULL on the server's side. */
enum hapax_status hx_tls_new(
	struct hx_tls_context *context, const char *host, struct hx_tls **ret_tls,
	struct hapax_error *err);
void hx_tls_free(struct hx_tls *tls);

/*
 * Like recv and send of the seam. -EAGAIN: wait, for what hx_tls_wants_out() says. -EPROTO: see
 * hx_tls_error(). They complete the handshake first, as far as possible.
 */
ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size);
ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size);

/* Send close_notify. False: the kernel had no room; call it again when it has. */
bool hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd);

/*
 * Does this side begin? A client does. Until the client speaks, a server costs a fifth of a
 * handshake.
 */
bool hx_tls_speaks_first(const struct hx_tls *tls);

/* The last call stopped because the kernel had no room for output. */
bool hx_tls_wants_out(const struct hx_tls *tls);

/* The handshake is done and the peer is verified. */
bool hx_tls_is_ready(const struct hx_tls *tls);

/* Decrypted bytes are buffered: reading can continue without the kernel. */
bool hx_tls_has_pending(const struct hx_tls *tls);

/*
 * On the server's side: the verified certificate of the client. NULL: it has none, or the handshake
 * is not done. Borrowed from tls.
 */
const struct hx_tls_peer *hx_tls_peer(const struct hx_tls *tls);

/* The error, in a few words. Borrowed from tls. */
const char *hx_tls_error(const struct hx_tls *tls);

#endif
