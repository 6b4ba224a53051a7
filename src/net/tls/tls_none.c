/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_none.c - stubs for a build without OpenSSL's libssl.
 */
#include "net/tls/tls.h"

#include <errno.h>

#include "base/error.h"

#if !HX_HAVE_TLS

/* A stub has no use for its parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static enum hapax_status unsupported(struct hapax_error *err)
{
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"TLS is not built in; build with OpenSSL's libssl and -Dtls=enabled");
}

enum hapax_status hx_tls_client_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	return unsupported(err);
}

enum hapax_status hx_tls_server_context_new(
	const struct hx_tls_options *options, struct hx_tls_context **ret_context,
	struct hapax_error *err)
{
	return unsupported(err);
}

void hx_tls_context_exchange(struct hx_tls_context *context, struct hx_tls_context *other)
{
}

int64_t hx_tls_context_expires_ms(struct hx_tls_context *context)
{
	return INT64_MAX;
}

void hx_tls_context_free(struct hx_tls_context *context)
{
}

enum hapax_status hx_tls_new(
	struct hx_tls_context *context, const char *host, struct hx_tls **ret_tls,
	struct hapax_error *err)
{
	return unsupported(err);
}

void hx_tls_free(struct hx_tls *tls)
{
}

ssize_t hx_tls_recv(struct hx_tls *tls, const struct hx_net *net, int fd, void *data, size_t size)
{
	return -ENOSYS;
}

ssize_t hx_tls_send(
	struct hx_tls *tls, const struct hx_net *net, int fd, const void *data, size_t size)
{
	return -ENOSYS;
}

bool hx_tls_shutdown(struct hx_tls *tls, const struct hx_net *net, int fd)
{
	return true;
}

bool hx_tls_speaks_first(const struct hx_tls *tls)
{
	return false;
}

bool hx_tls_wants_out(const struct hx_tls *tls)
{
	return false;
}

bool hx_tls_is_ready(const struct hx_tls *tls)
{
	return false;
}

bool hx_tls_has_pending(const struct hx_tls *tls)
{
	return false;
}

const struct hx_tls_peer *hx_tls_peer(const struct hx_tls *tls)
{
	return NULL;
}

const char *hx_tls_error(const struct hx_tls *tls)
{
	return "";
}

#endif
