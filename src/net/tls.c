/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - TLS by OpenSSL, over the network seam.
 *
 * A BIO of our own reads and writes through the seam, so OpenSSL makes no system
 * call of its own. Renegotiation and compression are off; a close without
 * close_notify is an error, because it may be somebody cutting a message short.
 */
#include "net/tls.h"

#include <errno.h>

#include "base/error.h"

#if HX_HAVE_TLS

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

struct hx_tls_context {
	SSL_CTX *ssl;
	bool is_server;
};

struct hx_tls {
	SSL *ssl;
	/* For the BIO, during a call. */
	const struct hx_net *net;
	int fd;
	int seam_errno; /* what the seam said last, if it failed for good */
	bool wants_out;
	char error[160];
};

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

/* The first reason that OpenSSL noted; it clears the rest. */
static const char *take_reason(void)
{
	unsigned long code = ERR_get_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	ERR_clear_error();
	return reason == NULL ? "no reason given" : reason;
}

static enum hapax_status load(
	SSL_CTX *ssl, const struct hx_tls_options *options, struct hapax_error *err)
{
	if (options->certificate_file != NULL &&
	    SSL_CTX_use_certificate_chain_file(ssl, options->certificate_file) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "no certificate was read from '%s': %s",
			options->certificate_file, take_reason());
	if (options->key_file != NULL &&
	    SSL_CTX_use_PrivateKey_file(ssl, options->key_file, SSL_FILETYPE_PEM) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"no private key that fits the certificate was read from '%s': %s",
			options->key_file, take_reason());
	if (options->authority_file != NULL &&
	    SSL_CTX_load_verify_file(ssl, options->authority_file) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "no authorities were read from '%s': %s",
			options->authority_file, take_reason());
	return HAPAX_OK;
}

static enum hapax_status context_new(
	const SSL_METHOD *method, const struct hx_tls_options *options, bool is_server,
	struct hx_tls_context **ret_context, struct hapax_error *err)
{
	struct hx_tls_context *context = hx_alloc_zero(1, sizeof(*context));
	enum hapax_status status;

	hx_once_run(&seam_once, make_seam);
	if (context != NULL && seam_method != NULL)
		context->ssl = SSL_CTX_new(method);
	if (context == NULL || context->ssl == NULL) {
		hx_free(context);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory for TLS");
	}
	context->is_server = is_server;
	(void)SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(context->ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	(void)SSL_CTX_set_mode(
		context->ssl,
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			SSL_MODE_RELEASE_BUFFERS);
	status = load(context->ssl, options, err);
	if (status != HAPAX_OK) {
		hx_tls_context_free(context);
		return status;
	}
	*ret_context = context;
	return HAPAX_OK;
}

enum hapax_status hx_tls_client_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	enum hapax_status status =
		context_new(TLS_client_method(), options, false, ret_context, err);

	if (status != HAPAX_OK)
		return status;
	SSL_CTX_set_verify((*ret_context)->ssl, SSL_VERIFY_PEER, NULL);
	if (options->authority_file == NULL)
		(void)SSL_CTX_set_default_verify_paths((*ret_context)->ssl);
	return HAPAX_OK;
}

enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	enum hapax_status status;

	if (options->certificate_file == NULL || options->key_file == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "TLS needs a certificate and its key");
	status = context_new(TLS_server_method(), options, true, ret_context, err);
	if (status == HAPAX_OK && options->authority_file != NULL)
		SSL_CTX_set_verify(
			(*ret_context)->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
			NULL);
	return status;
}

void hx_tls_context_free(struct hx_tls_context *context)
{
	if (context == NULL)
		return;
	SSL_CTX_free(context->ssl);
	hx_free(context);
}

/* Whom the certificate must name. */
static bool expect(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
	char name[HX_HOST_SIZE_MAX + 1]; /* OpenSSL copies it, but will not have it const */

	X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* Digits: an address, which has no name to announce. */
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
	BIO *bio = NULL;

	if (tls != NULL) {
		tls->ssl = SSL_new(context->ssl);
		bio = BIO_new(seam_method);
	}
	if (tls == NULL || tls->ssl == NULL || bio == NULL ||
	    (host != NULL && !expect(tls->ssl, host))) {
		(void)BIO_free(bio);
		hx_tls_free(tls);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory for TLS");
	}
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	if (context->is_server)
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

static void explain(struct hx_tls *tls)
{
	long verdict = SSL_get_verify_result(tls->ssl);

	if (verdict != X509_V_OK)
		(void)snprintf(
			tls->error, sizeof(tls->error),
			"the peer's certificate was not accepted: %s",
			X509_verify_cert_error_string(verdict));
	else
		(void)snprintf(tls->error, sizeof(tls->error), "TLS failed: %s", take_reason());
	ERR_clear_error();
}

/* What a call that did not succeed means, as the seam would say it. */
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
	default: explain(tls); return -EPROTO;
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

ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size)
{
	int code;

	enter(tls, net, fd);
	code = SSL_read(tls->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	return code > 0 ? code : translate(tls, code);
}

ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size)
{
	int code;

	enter(tls, net, fd);
	code = SSL_write(tls->ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	if (code > 0)
		return code;
	code = (int)translate(tls, code);
	/* The peer has said goodbye: nothing can be sent any more. */
	return code == 0 ? -EPIPE : code;
}

void hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd)
{
	enter(tls, net, fd);
	(void)SSL_shutdown(tls->ssl);
	ERR_clear_error();
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
	return SSL_has_pending(tls->ssl) == 1;
}

const char *hx_tls_error(const struct hx_tls *tls)
{
	return tls->error;
}

#else

static enum hapax_status unsupported(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"this build has no TLS: build it with OpenSSL's libssl and -Dtls=enabled");
}

enum hapax_status hx_tls_client_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	(void)options;
	(void)ret_context;
	return unsupported(err);
}

enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	(void)options;
	(void)ret_context;
	return unsupported(err);
}

void hx_tls_context_free(struct hx_tls_context *context)
{
	(void)context;
}

enum hapax_status hx_tls_new(
	struct hx_tls_context *context, const char *host, struct hx_tls **ret_tls,
	struct hapax_error *err)
{
	(void)context;
	(void)host;
	(void)ret_tls;
	return unsupported(err);
}

void hx_tls_free(struct hx_tls *tls)
{
	(void)tls;
}

ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size)
{
	(void)tls;
	(void)net;
	(void)fd;
	(void)data;
	(void)size;
	return -ENOSYS;
}

ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size)
{
	(void)tls;
	(void)net;
	(void)fd;
	(void)data;
	(void)size;
	return -ENOSYS;
}

void hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd)
{
	(void)tls;
	(void)net;
	(void)fd;
}

bool hx_tls_wants_out(const struct hx_tls *tls)
{
	(void)tls;
	return false;
}

bool hx_tls_is_ready(const struct hx_tls *tls)
{
	(void)tls;
	return false;
}

bool hx_tls_has_pending(const struct hx_tls *tls)
{
	(void)tls;
	return false;
}

const char *hx_tls_error(const struct hx_tls *tls)
{
	(void)tls;
	return "";
}

#endif
