/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: the readers of URLs of stores, sources and sinks (redis_place.c, rabbit_place.c,
 * queue_place.c, stream_place.c, redis_target.c, kafka_place.c, kafka_target.c, postgres_place.c,
 * http_url.c, address.c).
 *
 * All of them read the same text. A URL is accepted, or refused with a message. No message and no
 * shown form has the password of its authority.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "broker/rabbit_place.h"
#include "net/address.h"
#include "net/http/http_url.h"
#include "net/redis_place.h"
#include "outbox/sink/redis_target.h"
#include "source/redis/stream_place.h"
#if HX_HAVE_KAFKA
#include "outbox/sink/kafka_target.h"
#include "source/kafka/kafka_place.h"
#endif
#if HX_HAVE_RABBITMQ
#include "source/rabbit/queue_place.h"
#endif
#if HX_HAVE_POSTGRES
#include "store/postgres/postgres_place.h"
#endif

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { TEXT_SIZE_MAX = 600 };

/* What no host, option or message of ours has. */
static const char secret[] = "SSSSSSSS";

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check(enum hapax_status status, const struct hapax_error *err)
{
	must((status == HAPAX_OK) == (err->message[0] == '\0'));
	must(strstr(err->message, secret) == NULL);
}

/* The type and the reader of a kind of place. */
#define READ(type, parse, text)                               \
	do {                                                  \
		static struct type place;                     \
		struct hapax_error fault = {0};               \
                                                              \
		check(parse((text), &place, &fault), &fault); \
	} while (0)

static void read_all(const char *text)
{
	static struct hx_stream_place stream;
	struct hapax_error err = {0};
	struct hx_endpoint endpoint;
	struct hx_http_url http;
	char why[HX_HTTP_URL_WHY_SIZE] = "";

	READ(hx_redis_place, hx_redis_place_parse, text);
	READ(hx_redis_target, hx_redis_target_parse, text);
	check(hx_stream_place_parse(text, &stream, &err), &err);
	if (err.message[0] == '\0')
		must(strstr(stream.shown, secret) == NULL && strstr(stream.origin, secret) == NULL);
#if HX_HAVE_RABBITMQ
	READ(hx_rabbit_place, hx_rabbit_place_parse, text);
	READ(hx_queue_place, hx_queue_place_parse, text);
#endif
#if HX_HAVE_KAFKA
	READ(hx_kafka_place, hx_kafka_place_parse, text);
	READ(hx_kafka_target, hx_kafka_target_parse, text);
#endif
#if HX_HAVE_POSTGRES
	READ(hx_postgres_place, hx_postgres_place_parse, text);
#endif
	must(hx_http_url_parse(text, &http, why) || why[0] != '\0');
	/* An address has no secret: the message shows it. */
	err = (struct hapax_error){0};
	must((hx_endpoint_parse(hapax_bytes_from_text(text), 6379, &endpoint, &err) == HAPAX_OK) ==
	     (err.message[0] == '\0'));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static char text[TEXT_SIZE_MAX + sizeof(secret)];
	const char *host;
	const char *at;

	if (size >= TEXT_SIZE_MAX || (size > 0 && memchr(data, '\0', size) != NULL))
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (strstr(text, secret) != NULL)
		return 0;
	read_all(text);
	/* The same with a secret, where a password is. */
	host = strchr(text, ':');
	if (host != NULL && strncmp(host, "://", 3) != 0)
		host = NULL;
	at = host == NULL ? NULL : strstr(host + 3, ":PASSWORD@");
	if (at != NULL && memchr(host + 3, '/', (size_t)(at - host - 3)) == NULL) {
		memcpy(text + (at + 1 - text), secret, sizeof(secret) - 1);
		read_all(text);
	}
	return 0;
}
