/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - from a sink's URL to what publishes to it. A new sink adds a line here.
 */
#include "outbox/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static const struct {
	const char *scheme; /* with its colon */
	const struct hx_sink_ops *ops;
} schemes[] = {
#if HX_HAVE_RABBITMQ
	{"amqp:", &hx_sink_rabbitmq_ops}, {"amqps:", &hx_sink_rabbitmq_ops},
#endif
	{"http:", &hx_sink_http_ops},     {"https:", &hx_sink_http_ops},     {NULL, NULL},
};

#if HX_HAVE_RABBITMQ
#define KNOWN_RABBITMQ "amqp://HOST/VHOST, "
#else
#define KNOWN_RABBITMQ ""
#endif

enum hapax_status hx_sink_open(
	const char *url, const char *source, struct hx_sink **ret_sink, struct hapax_error *err)
{
	size_t size = strcspn(url, ":");

	for (size_t i = 0; schemes[i].scheme != NULL; i++)
		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) == 0 &&
		    strncmp(url + strlen(schemes[i].scheme), "//", 2) == 0)
			return schemes[i].ops->open(url, source, ret_sink, err);
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0,
		"nothing is published to '%.*s'; known sinks: " KNOWN_RABBITMQ "http://HOST/PATH",
		(int)(size < 32 ? size : 32), url);
}

void hx_sink_decide(
	struct hx_outbox_row *row, enum hx_outbox_outcome outcome, const char *format, ...)
{
	va_list arguments;

	row->outcome = outcome;
	va_start(arguments, format);
	(void)vsnprintf(row->error, sizeof(row->error), format, arguments);
	va_end(arguments);
}
