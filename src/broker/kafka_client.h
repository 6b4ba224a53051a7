/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_client.h - a librdkafka client: settings, start, and sending a message.
 *
 * Sinks and sources create their clients here. The log of librdkafka is therefore silent, a refused
 * property never shows its value, and every producer is idempotent and waits for all in-sync
 * replicas. kafka_property.h decides earlier which properties a URL may set.
 *
 *	const struct hx_kafka_property *lists[] = {defaults, url->properties, fixed, NULL};
 *	rd_kafka_conf_t *conf = hx_kafka_client_conf(url->servers, lists, &err);
 *
 *	if (conf == NULL)
 *		return HAPAX_ERR_INVALID;
 *	rd_kafka_conf_set_opaque(conf, source);                 // callbacks are the caller's
 *	client = hx_kafka_client_new(RD_KAFKA_CONSUMER, conf, &err);
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_BROKER_KAFKA_CLIENT_H
#define HX_BROKER_KAFKA_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <librdkafka/rdkafka.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "broker/kafka_property.h"

/*
 * The settings of a client. NULL ends lists; a property without a name ends each list. A later
 * property overrides an earlier one; a property without a value is skipped. NULL: INVALID.
 */
rd_kafka_conf_t *hx_kafka_client_conf(
	const char *servers, const struct hx_kafka_property *const *lists, struct hapax_error *err);

/* Start a client; does not wait for a broker. Takes conf, even on failure. NULL: INVALID. */
rd_kafka_t *hx_kafka_client_new(
	rd_kafka_type_t type, rd_kafka_conf_t *conf, struct hapax_error *err);

struct hx_kafka_record {
	rd_kafka_topic_t *topic; /* NULL: topic_name */
	const char *topic_name;
	struct hapax_bytes key; /* no data: no key */
	struct hapax_bytes value;
	bool is_tombstone; /* no value, as opposed to an empty one */
	int64_t time_ms;   /* 0: now */
	void *opaque;      /* _private of its report */
};

/*
 * Send a message. Copies bytes and takes headers, even on failure. A report follows, unless an
 * error is returned: librdkafka then took nothing.
 */
rd_kafka_resp_err_t hx_kafka_client_produce(
	rd_kafka_t *producer, const struct hx_kafka_record *record, rd_kafka_headers_t *headers);

#endif
