/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets: properties and header tables of RabbitMQ as messages
 * (src/source/rabbit/rabbit_delivery.c), and these as events (src/source/consume/envelope.c).
 *
 * The input is a content header as it arrives in a frame, without class and body size. The library
 * decodes it, or refuses. Each header lies in the delivery, and none is lost but tables and arrays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "source/consume/envelope.h"
#include "source/rabbit/rabbit_private.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { POOL_PAGE = 4096 };

static void must(int condition)
{
	if (!condition)
		abort();
}

/* Every byte is read: a sanitizer sees one that is not there. */
static volatile unsigned sum;

static void touch(struct hapax_bytes bytes)
{
	const unsigned char *at = bytes.data;

	for (size_t i = 0; i < bytes.size; i++)
		sum += at[i];
}

static void check_message(const struct hapax_message *message)
{
	static struct hx_envelope envelope;
	struct hapax_error err = {0};

	for (size_t i = 0; i < message->header_count; i++) {
		touch(message->headers[i].name);
		touch(message->headers[i].value);
	}
	hx_envelope_init(&envelope);
	must((hx_envelope_read(&envelope, message, &err) == HAPAX_OK) == (err.message[0] == '\0'));
	hx_envelope_done(&envelope);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct hx_rabbit_source source;
	struct hx_rabbit_delivery *delivery;
	amqp_frame_t frame = {.frame_type = AMQP_FRAME_HEADER};
	amqp_pool_t pool;
	void *decoded;
	unsigned char *copy = malloc(size == 0 ? 1 : size);

	must(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	init_amqp_pool(&pool, POOL_PAGE);
	frame.payload.properties.class_id = AMQP_BASIC_CLASS;
	frame.payload.properties.raw = (amqp_bytes_t){size, copy};
	if (amqp_decode_properties(
		    AMQP_BASIC_CLASS, &pool, frame.payload.properties.raw, &decoded) == 0) {
		frame.payload.properties.decoded = decoded;
		delivery = hx_rabbit_delivery_take(&source);
		must(delivery != NULL && hx_rabbit_delivery_begin(&source, delivery, &frame));
		/* The frame is gone when the message is read. */
		memset(copy, 0xaa, size);
		hx_rabbit_delivery_finish(&source, delivery);
		check_message(&delivery->message_.message);
		hx_rabbit_delivery_free(&source, delivery);
		hx_rabbit_delivery_free_spares(&source);
	}
	empty_amqp_pool(&pool);
	free(copy);
	return 0;
}
