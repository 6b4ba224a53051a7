/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_url.c - opens the source of a URL. A new broker adds a line here.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <hapax/source.h>

#include "base/error.h"
#include "source/source.h"

struct scheme {
	const char *scheme; /* with its colon */
	hx_source_open_fn *open;
	hx_source_check_fn *check;
	hx_source_letters_fn *letters;
	hx_source_rewind_fn *rewind; /* NULL: it cannot */
};

static const struct scheme schemes[] = {
#if HX_HAVE_KAFKA
	{"kafka:", hx_kafka_open, hx_kafka_check, hx_kafka_open_letters, hx_kafka_rewind},
#endif
#if HX_HAVE_RABBITMQ
	{"amqp:", hx_rabbit_source_open, hx_rabbit_source_check, hx_rabbit_open_letters, NULL},
	{"amqps:", hx_rabbit_source_open, hx_rabbit_source_check, hx_rabbit_open_letters, NULL},
#endif
	{"redis:", hx_redis_source_open, hx_redis_source_check, hx_redis_open_letters,
	 hx_redis_rewind},
	{"rediss:", hx_redis_source_open, hx_redis_source_check, hx_redis_open_letters,
	 hx_redis_rewind},
	{"redis+unix:", hx_redis_source_open, hx_redis_source_check, hx_redis_open_letters,
	 hx_redis_rewind},
	{NULL, NULL, NULL, NULL, NULL},
};

/* Sources that a build may lack, and the build option of each. */
static const struct {
	const char *scheme;
	const char *option;
} features[] = {
	{"kafka:", "kafka"},
	{"amqp:", "rabbitmq"},
	{"amqps:", "rabbitmq"},
};

static bool has_scheme(const char *url, const char *scheme)
{
	return strncmp(url, scheme, strlen(scheme)) == 0;
}

/* NULL: unknown, or not built in. */
static const struct scheme *find(const char *url)
{
	for (const struct scheme *at = schemes; at->scheme != NULL; at++) {
		if (has_scheme(url, at->scheme))
			return at;
	}
	return NULL;
}

const char *hapax_source_scheme(size_t index)
{
	return index < HX_COUNT(schemes) ? schemes[index].scheme : NULL;
}

/* Show only the scheme of the URL: the rest may contain a password. */
static enum hapax_status source_url_refuse(const char *url, struct hapax_error *err)
{
	char known[128] = "";
	size_t used = 0;

	for (size_t i = 0; i < HX_COUNT(features); i++) {
		if (has_scheme(url, features[i].scheme))
			return hx_error_set(
				err, HAPAX_ERR_UNSUPPORTED, 0,
				"sources '%s//' are not built in; build with -D%s=enabled",
				features[i].scheme, features[i].option);
	}
	for (size_t i = 0; schemes[i].scheme != NULL && used < sizeof(known); i++)
		used += (size_t)snprintf(
			known + used, sizeof(known) - used, "%s %s//", used > 0 ? "," : "",
			schemes[i].scheme);
	return hx_error_set(
		err, HAPAX_ERR_UNSUPPORTED, 0, "unknown source '%.*s'; use%s",
		(int)(strcspn(url, ":") < 40 ? strcspn(url, ":") : 40), url,
		used > 0 ? known : " none");
}

enum hapax_status hapax_source_open(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err)
{
	const struct scheme *scheme;

	if (url == NULL || ret_source == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "missing URL of a source");
	scheme = find(url);
	return scheme != NULL ? scheme->open(url, ret_source, err) : source_url_refuse(url, err);
}

enum hapax_status hx_source_open_letters(
	const char *url, const char *target, size_t count_max, struct hapax_buf *ret_topics,
	struct hapax_source **ret_source, struct hapax_error *err)
{
	const struct scheme *scheme = find(url);

	if (scheme == NULL)
		return source_url_refuse(url, err);
	if (strcmp(target, "off") == 0)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"this consumer has no dead letters: they are off");
	return scheme->letters(url, target, count_max, ret_topics, ret_source, err);
}

enum hapax_status hapax_source_rewind(const char *url, int64_t from_ms, struct hapax_error *err)
{
	const struct scheme *scheme = find(url);

	if (scheme == NULL)
		return source_url_refuse(url, err);
	if (scheme->rewind == NULL)
		return hx_error_set(
			err, HAPAX_ERR_UNSUPPORTED, 0,
			"a queue of RabbitMQ keeps no message that was acknowledged, so it cannot be "
			"read again; publish the messages again");
	return scheme->rewind(url, from_ms, err);
}

enum hapax_status hapax_source_check(const char *url, struct hapax_error *err)
{
	const struct scheme *scheme;

	if (url == NULL)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "missing URL of a source");
	scheme = find(url);
	return scheme != NULL ? scheme->check(url, err) : source_url_refuse(url, err);
}
