/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_context.c - shared state of connections: certificates, authorities, allowed protocols.
 *
 * TLS 1.2 with forward secrecy and authenticated ciphers, and 1.3. Renegotiation and compression
 * are off. A server that requests certificates issues no tickets: with one, a client could
 * reconnect for hours although its certificate has expired since.
 */
#include "net/tls/tls.h"

#if HX_HAVE_TLS

#include <assert.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "base/error.h"
#include "net/tls/tls_private.h"

/* For TLS 1.2; 1.3 has nothing else. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"

const char *hx_tls_take_reason(void)
{
	unsigned long code = ERR_get_error();
	const char *reason = NULL;

	if (ERR_SYSTEM_ERROR(code))
		reason = strerrordesc_np(ERR_GET_REASON(code));
	else if (code != 0)
		reason = ERR_reason_error_string(code);
	ERR_clear_error();
	return reason == NULL ? "no reason given" : reason;
}

/* For a key with a password, OpenSSL would ask on the terminal. */
static int no_password(char *text, int size, int is_written, void *context)
{
	(void)text;
	(void)size;
	(void)is_written;
	(void)context;
	return 0;
}

static enum hapax_status load_key(SSL_CTX *ssl, const char *path, struct hapax_error *err)
{
	unsigned long code;

	if (SSL_CTX_use_PrivateKey_file(ssl, path, SSL_FILETYPE_PEM) == 1)
		return HAPAX_OK;
	code = ERR_peek_error();
	if (ERR_GET_LIB(code) == ERR_LIB_X509 &&
	    (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
	     ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the private key in '%s' does not belong to the certificate: %s", path,
			hx_tls_take_reason());
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "could not read a private key from '%s': %s", path,
		hx_tls_take_reason());
}

static enum hapax_status load(
	SSL_CTX *ssl, const struct hx_tls_options *options, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	SSL_CTX_set_default_passwd_cb(ssl, no_password);
	if (options->certificate_file != NULL &&
	    SSL_CTX_use_certificate_chain_file(ssl, options->certificate_file) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "could not read a certificate from '%s': %s",
			options->certificate_file, hx_tls_take_reason());
	if (options->key_file != NULL)
		status = load_key(ssl, options->key_file, err);
	if (status != HAPAX_OK)
		return status;
	if (options->authority_file != NULL &&
	    SSL_CTX_load_verify_file(ssl, options->authority_file) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"could not read certificate authorities from '%s': %s",
			options->authority_file, hx_tls_take_reason());
	return HAPAX_OK;
}

static enum hapax_status context_new(
	const SSL_METHOD *method, const struct hx_tls_options *options, bool is_server,
	struct hx_tls_context **ret_context, struct hapax_error *err)
{
	struct hx_tls_context *context = hx_alloc_zero(1, sizeof(*context));
	enum hapax_status status;

	if (context != NULL && hx_tls_seam() != NULL)
		context->ssl = SSL_CTX_new(method);
	if (context == NULL || context->ssl == NULL) {
		hx_free(context);
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for TLS");
	}
	hx_lock_init(&context->lock);
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

/* ------------------------------------------------------------------ servers */

/* A client that lists protocols without this one would not understand it. */
static int select_http(
	SSL *ssl, const unsigned char **ret_name, unsigned char *ret_size,
	const unsigned char *offered, unsigned offered_size, void *context)
{
	static const char name[] = "http/1.1";
	const size_t size = sizeof(name) - 1;

	(void)ssl;
	(void)context;
	for (unsigned at = 0; at < offered_size; at += 1U + offered[at]) {
		if (offered[at] == size && offered_size - at > size &&
		    memcmp(offered + at + 1, name, size) == 0) {
			*ret_name = offered + at + 1;
			*ret_size = (unsigned char)size;
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Tell clients which authorities are accepted, so that they choose the right certificate. */
static enum hapax_status ask_clients(
	SSL_CTX *ssl, const struct hx_tls_options *options, struct hapax_error *err)
{
	STACK_OF(X509_NAME) * names;
	int mode = SSL_VERIFY_PEER;

	if (options->client_auth == HX_TLS_CLIENT_OFF)
		return HAPAX_OK;
	if (options->authority_file == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"client certificates need a certificate authority; set the file of the "
			"authority");
	names = SSL_load_client_CA_file(options->authority_file);
	if (names == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"could not read certificate authorities from '%s': %s",
			options->authority_file, hx_tls_take_reason());
	SSL_CTX_set_client_CA_list(ssl, names);
	if (options->client_auth == HX_TLS_CLIENT_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ssl, mode, NULL);
	(void)SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(ssl, 0);
	return HAPAX_OK;
}

static enum hapax_status serve(
	SSL_CTX *ssl, const struct hx_tls_options *options, struct hapax_error *err)
{
	if (SSL_CTX_set_cipher_list(ssl, CIPHERS) != 1)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"this OpenSSL supports none of the ciphers '" CIPHERS "': %s",
			hx_tls_take_reason());
	(void)SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
	/* The ticket contains everything needed to resume: the server keeps no sessions. */
	(void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	if (options->is_http)
		SSL_CTX_set_alpn_select_cb(ssl, select_http, NULL);
	return ask_clients(ssl, options, err);
}

enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	struct hx_tls_context *context = NULL;
	enum hapax_status status;

	if (options->certificate_file == NULL || options->key_file == NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "TLS needs a certificate and its private key");
	status = context_new(TLS_server_method(), options, true, &context, err);
	if (status != HAPAX_OK)
		return status;
	assert(context != NULL);
	status = serve(context->ssl, options, err);
	if (status != HAPAX_OK) {
		hx_tls_context_free(context);
		return status;
	}
	*ret_context = context;
	return HAPAX_OK;
}

/* ------------------------------------------------------------------ life */

SSL_CTX *hx_tls_context_take(struct hx_tls_context *context)
{
	SSL_CTX *ssl;

	/* Under the lock, no other thread can free the last one between read and reference. */
	hx_lock_acquire(&context->lock);
	ssl = context->ssl;
	(void)SSL_CTX_up_ref(ssl);
	hx_lock_release(&context->lock);
	return ssl;
}

void hx_tls_context_exchange(struct hx_tls_context *context, struct hx_tls_context *other)
{
	SSL_CTX *ssl = other->ssl;

	hx_lock_acquire(&context->lock);
	other->ssl = context->ssl;
	context->ssl = ssl;
	hx_lock_release(&context->lock);
}

int64_t hx_tls_context_expires_ms(struct hx_tls_context *context)
{
	SSL_CTX *ssl = hx_tls_context_take(context);
	const X509 *certificate = SSL_CTX_get0_certificate(ssl);
	int64_t seconds = INT64_MAX / 1000;
	struct tm tm;

	if (certificate != NULL && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1)
		seconds = hx_calendar_day(
				  (struct hx_date){tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday}) *
				86400 +
			tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec;
	SSL_CTX_free(ssl);
	return seconds * 1000;
}

void hx_tls_context_free(struct hx_tls_context *context)
{
	if (context == NULL)
		return;
	SSL_CTX_free(context->ssl);
	hx_free(context);
}

#endif
