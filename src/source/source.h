/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the common part of all sources.
 */
#ifndef HX_SOURCE_SOURCE_H
#define HX_SOURCE_SOURCE_H

#include <stdbool.h>

#include <hapax/bytes.h>
#include <hapax/ext/source_ops.h>

/* Copies url, which has no password. NO_MEMORY: nothing was created. */
enum hapax_status hx_source_init(
	struct hapax_source *source, const struct hapax_source_ops *ops, const char *url);
void hx_source_done(struct hapax_source *source);

/* INVALID: invalid URL or option. A source connects later; a check opens nothing. */
typedef enum hapax_status hx_source_open_fn(
	const char *url, struct hapax_source **ret_source, struct hapax_error *err);
typedef enum hapax_status hx_source_check_fn(const char *url, struct hapax_error *err);

/*
 * Opens the dead letters of a consumer as a source: those of its topics in target, or if that is
 * empty, in each topic with .dead. At most count_max are held. An acknowledged one is removed.
 * ret_topics gets the consumer's own topics, each with its NUL. INVALID: they cannot be found.
 */
typedef enum hapax_status hx_source_letters_fn(
	const char *url, const char *target, size_t count_max, struct hapax_buf *ret_topics,
	struct hapax_source **ret_source, struct hapax_error *err);

hx_source_letters_fn hx_source_open_letters;
hx_source_letters_fn hx_kafka_open_letters;
hx_source_letters_fn hx_rabbit_open_letters;
hx_source_letters_fn hx_redis_open_letters;

typedef enum hapax_status hx_source_rewind_fn(
	const char *url, int64_t from_ms, struct hapax_error *err);
hx_source_rewind_fn hx_kafka_rewind;
hx_source_rewind_fn hx_redis_rewind;

/* Kafka topics (librdkafka), a RabbitMQ queue (librabbitmq), a Redis stream. */
hx_source_open_fn hx_kafka_open;
hx_source_open_fn hx_rabbit_source_open;
hx_source_open_fn hx_redis_source_open;
hx_source_check_fn hx_kafka_check;
hx_source_check_fn hx_rabbit_source_check;
hx_source_check_fn hx_redis_source_check;

/* The target of dead letters of a topic: asked, or topic and ".dead". False: it is too long. */
bool hx_source_letters_target(const char *asked, const char *topic, char *out, size_t size);

/* Whether a header of that name was added to a dead letter or a diverted duplicate (handover.c). */
bool hx_source_adds_header(struct hapax_bytes name);

#endif
