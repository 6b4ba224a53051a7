/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_handler.h - an HTTP service as the handler of messages.
 *
 * Each message is a POST of a CloudEvent, binary or structured, with Hapax-Token and Hapax-Attempt;
 * a tagged duplicate has Hapax-Duplicate instead. Any other message becomes a CloudEvent: its key
 * is the id, the topic the source. A request that was sent and not answered is ambiguous.
 *
 * Threads: the reactor's.
 */
#ifndef HX_SOURCE_HANDLER_HTTP_HANDLER_H
#define HX_SOURCE_HANDLER_HTTP_HANDLER_H

#include <hapax/source.h>

#include "net/http/http_client.h"
#include "source/handler/handler.h"

enum { HX_HTTP_PATH_SIZE = 2048 };

struct hx_http_handler {
	struct hx_handler base;
	struct hx_reactor *reactor;
	struct hx_http_client client;
	struct hx_tls_context *tls;
	enum hapax_event_form form;
	int64_t max_run_ms;
	uint64_t result_size_max;
	char authority[HX_HOST_SIZE_MAX + 8];
	char path[HX_HTTP_PATH_SIZE];
};

/* INVALID: invalid url. resolver may be shared; calls: the number of connections. */
enum hapax_status hx_http_handler_init(
	struct hx_http_handler *handler, struct hx_reactor *reactor, struct hx_resolver *resolver,
	const char *url, size_t parallel, struct hapax_error *err);

/* Nothing runs, and the client is closed: the reactor has turned since. */
void hx_http_handler_done(struct hx_http_handler *handler);

#endif
