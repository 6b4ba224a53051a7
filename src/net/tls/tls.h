/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS 1.2 and later on a connection (OpenSSL; a feature of the build).
 *
 * A context holds what many connections share: trusted authorities, certificates.
 * struct hx_tls is one connection's. It reads and writes through the network seam of
 * the connection that owns it, so it is tested like everything else. Servers are
 * always verified, by name, against the authorities of the context; clients as the
 * context says.
 *
 * Without OpenSSL's libssl the functions are there and answer UNSUPPORTED.
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

/* Whether clients show who they are. */
enum hx_tls_client_auth {
	HX_TLS_CLIENT_OFF = 0,
	HX_TLS_CLIENT_OPTIONAL, /* those who do are verified */
	HX_TLS_CLIENT_REQUIRED,
};

/* NULL where there is none. Files are PEM. */
struct hx_tls_options {
	const char *authority_file;   /* trusted authorities; NULL: the system's */
	const char *certificate_file; /* who we are: leaf first, then what links it to a root */
	const char *key_file;
	/* Of servers. */
	enum hx_tls_client_auth client_auth; /* by authority_file */
	bool is_http;                        /* ALPN: http/1.1; else it is not spoken of */
};

/* Room for a name that people still read; longer ones are not told. */
enum { HX_TLS_SUBJECT_SIZE = 256 };

/* Who a client has shown to be. */
struct hx_tls_peer {
	unsigned char sha256[HX_SHA256_SIZE]; /* of the certificate (DER): its fingerprint */
	char subject[HX_TLS_SUBJECT_SIZE];    /* "CN=billing,O=Acme" (RFC 4514); "": none */
};

/* For connections that we make. Owned: *ret_context, by the caller. Reads files: blocks. */
enum hapax_status hx_tls_client_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err);

/* For connections that come. certificate_file and key_file are needed. */
enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err);

/*
 * Let both change places: connections to come are made with what other has, and those that
 * there are go on with what they have. Both are of one kind; other is nobody else's.
 */
void hx_tls_context_exchange(struct hx_tls_context *context, struct hx_tls_context *other);

/* When its certificate ends, by the wall clock; far away if it has none. */
int64_t hx_tls_context_expires_ms(struct hx_tls_context *context);

/* NULL is allowed. Connections made with it live on. */
void hx_tls_context_free(struct hx_tls_context *context);

/* host: whom we expect, a name or an address in digits; NULL on the server's side. */
enum hapax_status hx_tls_new(
	struct hx_tls_context *context, const char *host, struct hx_tls **ret_tls,
	struct hapax_error *err);
void hx_tls_free(struct hx_tls *tls);

/*
 * As recv and send of the seam. -EAGAIN: wait; hx_tls_wants_out() tells for what.
 * -EPROTO: see hx_tls_error(). They make the handshake first, as far as it goes.
 */
ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size);
ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size);

/* Tell the peer that no more comes. False: the kernel had no room; call it again when it has. */
bool hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd);

/* It begins: a client does. Until it is spoken to, a server costs a fifth of a handshake. */
bool hx_tls_speaks_first(const struct hx_tls *tls);

/* The last call could not go on because the kernel had no room for output. */
bool hx_tls_wants_out(const struct hx_tls *tls);

/* The handshake is done and the peer is who it should be. */
bool hx_tls_is_ready(const struct hx_tls *tls);

/* Decrypted bytes wait inside: reading goes on without the kernel. */
bool hx_tls_has_pending(const struct hx_tls *tls);

/*
 * On the server's side: the certificate that the client has shown, which was verified.
 * NULL: it has none, or the handshake is not done. Borrowed from tls.
 */
const struct hx_tls_peer *hx_tls_peer(const struct hx_tls *tls);

/* What went wrong, in a few words. Borrowed from tls. */
const char *hx_tls_error(const struct hx_tls *tls);

#endif
