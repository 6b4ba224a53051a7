/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_check.c - can a URL be a source, as far as Kafka need not be asked?
 */
#include "source/kafka/kafka_check.h"

#include "base/alloc.h"
#include "base/error.h"
#include "source/kafka/kafka_private.h"

enum hapax_status hx_kafka_check(const char *url, struct hapax_error *err)
{
	struct hx_kafka_source *source = hx_alloc_zero(1, sizeof(*source));
	enum hapax_status status;
	rd_kafka_conf_t *conf;

	if (source == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "out of memory");
	status = hx_kafka_place_parse(url, &source->place, err);
	if (status == HAPAX_OK) {
		/* librdkafka looks at each property by itself as it is set. */
		conf = hx_kafka_conf(source, HX_KAFKA_MEMBER, err);
		if (conf == NULL)
			status = HAPAX_ERR_INVALID;
		else
			rd_kafka_conf_destroy(conf);
	}
	hx_free(source);
	return status;
}
