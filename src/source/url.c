/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - from a source's URL to its broker. A new one adds a line here.
 */
#include <stdio.h>
#include <string.h>

#include <hapax/source.h>

#include "base/error.h"
#include "source/kafka/kafka_source.h"
#include "source/rabbit/rabbit_source.h"
#include "source/redis/redis_source.h"

typedef enum hapax_status open_fn(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);

static const struct {
	const char *scheme; /* with its colon */
	open_fn *open;
} schemes[] = {
#if HX_HAVE_KAFKA
	{"kafka:", hx_kafka_open},
#endif
#if HX_HAVE_RABBITMQ
	{"amqp:", hx_rabbit_source_open},
	{"amqps:", hx_rabbit_source_open},
#endif
	{"redis:", hx_redis_source_open},
	{"rediss:", hx_redis_source_open},
	{"redis+unix:", hx_redis_source_open},
	{NULL, NULL},
};

const char *hapax_source_scheme(size_t index)
{
	return index < sizeof(schemes) / sizeof(schemes[0]) ? schemes[index].scheme : NULL;
}

enum hapax_status hapax_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	char known[128] = "";
	size_t used = 0;

	if (url == NULL || ret_source == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "a source needs a URL");
	for (size_t i = 0; schemes[i].scheme != NULL; i++) {
		if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) == 0)
			return schemes[i].open(url, ret_source, err);
		used += (size_t)snprintf(
			known + used, sizeof(known) - used, "%s %s//", used > 0 ? "," : "",
			schemes[i].scheme);
	}
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0, "'%.40s' is no source that is known here; known:%s",
		url, used > 0 ? known : " none");
}
