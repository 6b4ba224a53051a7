/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - TLS with OpenSSL, over the network seam.
 *
 * A custom BIO reads and writes through the seam, so OpenSSL makes no system calls itself. A close
 * without close_notify is an error, because an attacker may have truncated a message.
 */
#include "net/tls/tls.h"

#if HX_HAVE_TLS

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "net/tls/tls_private.h"

struct hx_tls {
	SSL *ssl;
	/* For the BIO, during a call. */
	const struct hx_net *net;
	int fd;
	int seam_errno; /* the last permanent error of the seam */
	bool wants_out;
	bool is_server;
	bool has_looked; /* for a client's certificate */
	bool has_peer;
	struct hx_tls_peer peer;
	char error[160];
};

/* Reads of 4 KiB before a request without TLS is answered. */
enum { PLAIN_READS_MAX = 8 };

static BIO_METHOD *seam_method;
static struct hx_once seam_once = HX_ONCE_INIT;

static int seam_write(BIO *bio, const char *data, int size)
{
	struct hx_tls *tls = BIO_get_data(bio);
	ssize_t count = tls->net->ops->send(tls->net->context, tls->fd, data, (size_t)size);

	BIO_clear_retry_flags(bio);
	if (count == -EAGAIN)
		BIO_set_retry_write(bio);
	else if (count < 0)
		tls->seam_errno = (int)-count;
	return count < 0 ? -1 : (int)count;
}

static int seam_read(BIO *bio, char *data, int size)
{
	struct hx_tls *tls = BIO_get_data(bio);
	ssize_t count = tls->net->ops->recv(tls->net->context, tls->fd, data, (size_t)size);

	BIO_clear_retry_flags(bio);
	if (count == -EAGAIN)
		BIO_set_retry_read(bio);
	else if (count < 0)
		tls->seam_errno = (int)-count;
	return count < 0 ? -1 : (int)count;
}

static long seam_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void make_seam(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hapax");

	if (method == NULL)
		return;
	(void)BIO_meth_set_write(method, seam_write);
	(void)BIO_meth_set_read(method, seam_read);
	(void)BIO_meth_set_ctrl(method, seam_control);
	seam_method = method;
}

const BIO_METHOD *hx_tls_seam(void)
{
	hx_once_run(&seam_once, make_seam);
	return seam_method;
}

/* Set the name that the certificate must have. */
static bool expect(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
	char name[HX_HOST_SIZE_MAX + 1]; /* OpenSSL copies it, but does not accept const */

	X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* An address in digits has no name to announce. */
	if (X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1)
		return true;
	ERR_clear_error();
	(void)snprintf(name, sizeof(name), "%s", host);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

enum hapax_status hx_tls_new(
	struct hx_tls_context *context, const char *host, struct hx_tls **ret_tls,
	struct hapax_error *err)
{
	struct hx_tls *tls = hx_alloc_zero(1, sizeof(*tls));
	SSL_CTX *shared = hx_tls_context_take(context);
	BIO *bio = NULL;

	if (tls != NULL) {
		tls->ssl = SSL_new(shared);
		bio = BIO_new(seam_method);
	}
	SSL_CTX_free(shared);
	if (tls == NULL || tls->ssl == NULL || bio == NULL ||
	    (host != NULL && !expect(tls->ssl, host))) {
		(void)BIO_free(bio);
		hx_tls_free(tls);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for TLS");
	}
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	tls->is_server = context->is_server;
	if (tls->is_server)
		SSL_set_accept_state(tls->ssl);
	else
		SSL_set_connect_state(tls->ssl);
	*ret_tls = tls;
	return HAPAX_OK;
}

void hx_tls_free(struct hx_tls *tls)
{
	if (tls == NULL)
		return;
	SSL_free(tls->ssl);
	hx_free(tls);
}

/*
 * A client that sends HTTP without TLS would only see a reset. As nginx does, answer in its own
 * protocol. Best effort: the connection is closed next, and nothing is retried. The request is
 * read first, because closing a socket with unread bytes discards the answer.
 */
static void answer_plain_http(struct hx_tls *tls)
{
	static const char answer[] =
		"HTTP/1.1 400 Bad Request\r\n"
		"Content-Type: application/problem+json\r\n"
		"Content-Length: 143\r\n"
		"Connection: close\r\n"
		"\r\n"
		"{\"type\":\"urn:hapax:problem:tls-required\",\"title\":\"This listener requires "
		"TLS\",\"status\":400,\"detail\":\"this listener requires TLS; use https://\"}";
	char scratch[4096];

	for (int i = 0; i < PLAIN_READS_MAX; i++)
		if (tls->net->ops->recv(tls->net->context, tls->fd, scratch, sizeof(scratch)) <= 0)
			break;
	(void)tls->net->ops->send(tls->net->context, tls->fd, answer, sizeof(answer) - 1);
}

/* Describe the failure. Returns an errno: EKEYREJECTED if the certificate was rejected. */
static int explain(struct hx_tls *tls)
{
	long verdict = SSL_get_verify_result(tls->ssl);

	if (verdict != X509_V_OK) {
		(void)snprintf(
			tls->error, sizeof(tls->error),
			"could not verify the peer's certificate: %s",
			X509_verify_cert_error_string(verdict));
		ERR_clear_error();
		return EKEYREJECTED;
	}
	if (tls->is_server && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
		answer_plain_http(tls);
	if (!tls->is_server && ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER)
		(void)snprintf(
			tls->error, sizeof(tls->error), "the server does not use TLS on this port");
	else
		(void)snprintf(
			tls->error, sizeof(tls->error), "TLS failed: %s", hx_tls_take_reason());
	ERR_clear_error();
	return EPROTO;
}

/* Translate a failed call to an error of the seam. */
static ssize_t translate(struct hx_tls *tls, int code)
{
	switch (SSL_get_error(tls->ssl, code)) {
	case SSL_ERROR_WANT_READ: return -EAGAIN;
	case SSL_ERROR_WANT_WRITE: tls->wants_out = true; return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN: return 0;
	case SSL_ERROR_SYSCALL:
		ERR_clear_error();
		if (tls->seam_errno != 0)
			return -tls->seam_errno;
		return -ECONNRESET;
	default: return -explain(tls);
	}
}

static void enter(struct hx_tls *tls, const struct hx_net *net, int fd)
{
	tls->net = net;
	tls->fd = fd;
	tls->seam_errno = 0;
	tls->wants_out = false;
	ERR_clear_error();
}

/* In the form of RFC 4514, or nothing: part of a name would be a different name. */
static bool write_subject(const X509 *certificate, char subject[HX_TLS_SUBJECT_SIZE])
{
	BIO *text = BIO_new(BIO_s_mem());
	char *data = NULL;
	long size = -1;

	if (text != NULL &&
	    X509_NAME_print_ex(text, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0)
		size = BIO_get_mem_data(text, &data);
	if (size > 0 && size < HX_TLS_SUBJECT_SIZE && memchr(data, '\0', (size_t)size) == NULL)
		memcpy(subject, data, (size_t)size);
	(void)BIO_free(text);
	return size >= 0;
}

/*
 * After the handshake: identify the client. False: out of memory. The client must then not pass for
 * one without a certificate.
 */
static bool look_at_client(struct hx_tls *tls)
{
	X509 *certificate;
	bool is_done = true;

	if (tls->has_looked || !tls->is_server || !hx_tls_is_ready(tls))
		return true;
	certificate = SSL_get1_peer_certificate(tls->ssl);
	if (certificate != NULL && SSL_get_verify_result(tls->ssl) == X509_V_OK) {
		is_done = X509_digest(certificate, EVP_sha256(), tls->peer.sha256, NULL) == 1 &&
			write_subject(certificate, tls->peer.subject);
		tls->has_peer = is_done;
	}
	X509_free(certificate);
	ERR_clear_error();
	tls->has_looked = is_done;
	return is_done;
}

ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size)
{
	ssize_t count;
	int code;

	enter(tls, net, fd);
	code = SSL_read(tls->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	count = code > 0 ? code : translate(tls, code);
	return look_at_client(tls) ? count : -ENOMEM;
}

ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size)
{
	ssize_t count;
	int code;

	enter(tls, net, fd);
	code = SSL_write(tls->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	count = code > 0 ? code : translate(tls, code);
	if (!look_at_client(tls))
		return -ENOMEM;
	/* The peer has sent close_notify: nothing can be sent. */
	return count == 0 ? -EPIPE : count;
}

bool hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd)
{
	bool waits = false;

	enter(tls, net, fd);
	/* Before the end of the handshake there is no peer to notify. */
	if (SSL_is_init_finished(tls->ssl) == 1) {
		int code = SSL_shutdown(tls->ssl);

		waits = code < 0 && SSL_get_error(tls->ssl, code) == SSL_ERROR_WANT_WRITE;
	}
	ERR_clear_error();
	return !waits;
}

bool hx_tls_speaks_first(const struct hx_tls *tls)
{
	return !tls->is_server;
}

bool hx_tls_wants_out(const struct hx_tls *tls)
{
	return tls->wants_out;
}

bool hx_tls_is_ready(const struct hx_tls *tls)
{
	return SSL_is_init_finished(tls->ssl) == 1;
}

bool hx_tls_has_pending(const struct hx_tls *tls)
{
	/*
	 * Bytes of a decrypted record. SSL_has_pending() would also count an incomplete record, and
	 * a peer that sends no more would keep us asking forever. There is no third kind: OpenSSL
	 * does not read ahead by default.
	 */
	return SSL_pending(tls->ssl) > 0;
}

const char *hx_tls_error(const struct hx_tls *tls)
{
	return tls->error;
}

const struct hx_tls_peer *hx_tls_peer(const struct hx_tls *tls)
{
	return tls->has_peer ? &tls->peer : NULL;
}

#endif
