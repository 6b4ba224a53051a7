/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_client.c - a librdkafka client: settings, start, and sending a message.
 */
#include "broker/kafka_client.h"

#include "base/error.h"

/* Without a callback, librdkafka writes to standard error. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

static enum hapax_status set_property(
	rd_kafka_conf_t *conf, const char *name, const char *value, struct hapax_error *err)
{
	char why[160];

	if (value == NULL ||
	    rd_kafka_conf_set(conf, name, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
		return HAPAX_OK;
	/* librdkafka's message may contain the value, which may be a secret. */
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0, "librdkafka rejected property '%.100s'", name);
}

rd_kafka_conf_t *hx_kafka_client_conf(
	const char *servers, const struct hx_kafka_property *const *lists, struct hapax_error *err)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	enum hapax_status status = set_property(conf, "bootstrap.servers", servers, err);

	for (; *lists != NULL; lists++)
		for (const struct hx_kafka_property *property = *lists;
		     property->name != NULL && status == HAPAX_OK; property++)
			status = set_property(conf, property->name, property->value, err);
	rd_kafka_conf_set_log_cb(conf, on_log);
	if (status == HAPAX_OK)
		return conf;
	rd_kafka_conf_destroy(conf);
	return NULL;
}

rd_kafka_t *hx_kafka_client_new(
	rd_kafka_type_t type, rd_kafka_conf_t *conf, struct hapax_error *err)
{
	rd_kafka_t *client = NULL;
	char why[160];

	if (type == RD_KAFKA_PRODUCER &&
	    (set_property(conf, "enable.idempotence", "true", err) != HAPAX_OK ||
	     set_property(conf, "acks", "all", err) != HAPAX_OK)) {
		rd_kafka_conf_destroy(conf);
		return NULL;
	}
	client = rd_kafka_new(type, conf, why, sizeof(why));
	if (client == NULL) {
		rd_kafka_conf_destroy(conf);
		(void)hx_error_set(err, HAPAX_ERR_INVALID, 0, "librdkafka failed: %s", why);
	}
	return client;
}

/* librdkafka takes non-const pointers, but only reads. */
static void *unconst(const void *data)
{
	return (void *)(uintptr_t)data;
}

rd_kafka_resp_err_t hx_kafka_client_produce(
	rd_kafka_t *producer, const struct hx_kafka_record *record, rd_kafka_headers_t *headers)
{
	const void *value = record->value.data == NULL ? "" : record->value.data;
	rd_kafka_vu_t parts[] = {
		{.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = record->topic_name},
		{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
		{.vtype = RD_KAFKA_VTYPE_VALUE,
		 .u.mem = {record->is_tombstone ? NULL : unconst(value), record->value.size}},
		{.vtype = RD_KAFKA_VTYPE_KEY,
		 .u.mem = {unconst(record->key.data), record->key.size}},
		{.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers},
		{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = record->opaque},
		{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = record->time_ms},
	};
	rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
	rd_kafka_error_t *error;

	if (record->topic != NULL)
		parts[0] = (rd_kafka_vu_t){.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = record->topic};
	error = rd_kafka_produceva(producer, parts, HX_COUNT(parts));
	if (error != NULL) {
		code = rd_kafka_error_code(error);
		rd_kafka_error_destroy(error);
		/* On an error, librdkafka did not take the headers either. */
		rd_kafka_headers_destroy(headers);
	}
	return code;
}
