/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_client.h - a client of librdkafka: its settings, its start, and a message that goes out.
 *
 * Sinks and sources make their clients here, so that the log of librdkafka is silent, a refused
 * property never shows its value, and every producer is idempotent and waits for all replicas in
 * sync. Which properties a URL may set is decided in kafka_property.h, before they come here.
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
 * The settings of a client. The last of lists is NULL, and the last property of each has no name;
 * a later property overrides an earlier one, and one without a value is skipped. NULL: INVALID.
 */
rd_kafka_conf_t *hx_kafka_client_conf(
	const char *servers, const struct hx_kafka_property *const *lists, struct hapax_error *err);

/* Start a client. conf is taken, also when it fails. NULL: INVALID. No broker is waited for. */
rd_kafka_t *hx_kafka_client_new(
	rd_kafka_type_t type, rd_kafka_conf_t *conf, struct hapax_error *err);

struct hx_kafka_record {
	rd_kafka_topic_t *topic; /* NULL: topic_name */
	const char *topic_name;
	struct hapax_bytes key; /* without data there is none */
	struct hapax_bytes value;
	bool is_tombstone; /* no value at all, which is not an empty one */
	int64_t time_ms;   /* 0: now */
	void *opaque;      /* _private of its report */
};

/*
 * Hand a message over; bytes are copied, and headers are taken, also when it fails. Its report
 * follows unless librdkafka took nothing, and says why.
 */
rd_kafka_resp_err_t hx_kafka_client_produce(
	rd_kafka_t *producer, const struct hx_kafka_record *record, rd_kafka_headers_t *headers);

#endif
