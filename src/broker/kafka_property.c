/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_property.c - the properties of librdkafka that a kafka:// URL may set.
 */
#include "broker/kafka_property.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/suggest.h"

/* False: librdkafka would accept the value, but with effects that we do not want. */
typedef bool value_fn(const char *value);

enum {
	SECRET = 1 << 0,     /* the value is never shown */
	FOR_SOURCE = 1 << 1, /* for a consumer; a sink has none */
};

struct row {
	const char *name;
	unsigned flags;
	value_fn *is_good; /* NULL: any value; librdkafka checks it */
	const char *allowed;
};

static bool is_one_of(const char *value, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(value, *words) == 0)
			return true;
	return false;
}

/*
 * Exact, although librdkafka is lenient: a value that it would read as a different one is refused
 * here. GSSAPI is missing because librdkafka runs kinit for it, through sh -c.
 */
static bool is_mechanism(const char *value)
{
	static const char *const words[] = {
		"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", NULL};

	return is_one_of(value, words);
}

static bool is_protocol(const char *value)
{
	static const char *const words[] = {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"};

	for (size_t i = 0; i < HX_COUNT(words); i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false;
}

static bool is_oauth_method(const char *value)
{
	static const char *const words[] = {"default", "oidc", NULL};

	return is_one_of(value, words);
}

/* libcurl opens this URL, and supports file:// and many other schemes. */
static bool is_http_url(const char *value)
{
	return strncasecmp(value, "https://", 8) == 0 || strncasecmp(value, "http://", 7) == 0;
}

#define MECHANISMS "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"

/* clang-format off */
static const struct row table[] = {
	/* Identity of the client, and discovery of the brokers. */
	{.name = "client.id"},
	{.name = "client.rack"},
	{.name = "security.protocol", .is_good = is_protocol,
	 .allowed = "plaintext, ssl, sasl_plaintext or sasl_ssl"},
	{.name = "sasl.mechanism", .is_good = is_mechanism, .allowed = MECHANISMS},
	{.name = "sasl.mechanisms", .is_good = is_mechanism, .allowed = MECHANISMS},
	{.name = "sasl.username"},
	{.name = "sasl.password", .flags = SECRET},
	{.name = "sasl.oauthbearer.method", .is_good = is_oauth_method, .allowed = "default or oidc"},
	{.name = "sasl.oauthbearer.config", .flags = SECRET},
	{.name = "sasl.oauthbearer.client.id"},
	{.name = "sasl.oauthbearer.client.secret", .flags = SECRET},
	{.name = "sasl.oauthbearer.scope"},
	{.name = "sasl.oauthbearer.extensions", .flags = SECRET},
	/* Secret, because the URL may contain a password. */
	{.name = "sasl.oauthbearer.token.endpoint.url", .flags = SECRET, .is_good = is_http_url,
	 .allowed = "an https:// or http:// URL"},
	{.name = "enable.sasl.oauthbearer.unsecure.jwt"},
	/* Paths on the daemon's host, from its configuration file or command line. */
	{.name = "ssl.ca.location"},
	{.name = "ssl.ca.pem"},
	{.name = "ssl.certificate.location"},
	{.name = "ssl.certificate.pem"},
	{.name = "ssl.key.location"},
	{.name = "ssl.key.password", .flags = SECRET},
	{.name = "ssl.key.pem", .flags = SECRET},
	{.name = "ssl.keystore.location"},
	{.name = "ssl.keystore.password", .flags = SECRET},
	{.name = "ssl.crl.location"},
	{.name = "ssl.cipher.suites"},
	{.name = "ssl.curves.list"},
	{.name = "ssl.sigalgs.list"},
	{.name = "ssl.endpoint.identification.algorithm"},
	{.name = "enable.ssl.certificate.verification"},
	/* Connections. */
	{.name = "socket.timeout.ms"},
	{.name = "socket.connection.setup.timeout.ms"},
	{.name = "socket.send.buffer.bytes"},
	{.name = "socket.receive.buffer.bytes"},
	{.name = "socket.keepalive.enable"},
	{.name = "socket.nagle.disable"},
	{.name = "socket.max.fails"},
	{.name = "broker.address.ttl"},
	{.name = "broker.address.family"},
	{.name = "client.dns.lookup"},
	{.name = "connections.max.idle.ms"},
	{.name = "reconnect.backoff.ms"},
	{.name = "reconnect.backoff.max.ms"},
	{.name = "retry.backoff.ms"},
	{.name = "retry.backoff.max.ms"},
	{.name = "max.in.flight"},
	{.name = "max.in.flight.requests.per.connection"},
	{.name = "api.version.request"},
	{.name = "api.version.request.timeout.ms"},
	{.name = "api.version.fallback.ms"},
	{.name = "broker.version.fallback"},
	/* Topics. */
	{.name = "allow.auto.create.topics"},
	{.name = "metadata.max.age.ms"},
	{.name = "topic.metadata.refresh.interval.ms"},
	{.name = "topic.metadata.refresh.fast.interval.ms"},
	{.name = "topic.metadata.refresh.sparse"},
	{.name = "topic.metadata.propagation.max.ms"},
	{.name = "topic.blacklist", .flags = FOR_SOURCE},
	/* Outgoing messages. */
	{.name = "message.max.bytes"},
	{.name = "message.copy.max.bytes"},
	{.name = "message.timeout.ms"},
	{.name = "delivery.timeout.ms"},
	{.name = "message.send.max.retries"},
	{.name = "retries"},
	{.name = "request.timeout.ms"},
	{.name = "queue.buffering.max.messages"},
	{.name = "queue.buffering.max.kbytes"},
	{.name = "queue.buffering.max.ms"},
	{.name = "queue.buffering.backpressure.threshold"},
	{.name = "linger.ms"},
	{.name = "sticky.partitioning.linger.ms"},
	{.name = "batch.num.messages"},
	{.name = "batch.size"},
	{.name = "compression.codec"},
	{.name = "compression.type"},
	{.name = "compression.level"},
	{.name = "partitioner"},
	/* Incoming messages. */
	{.name = "receive.message.max.bytes"},
	{.name = "partition.assignment.strategy", .flags = FOR_SOURCE},
	{.name = "session.timeout.ms", .flags = FOR_SOURCE},
	{.name = "heartbeat.interval.ms", .flags = FOR_SOURCE},
	{.name = "max.poll.interval.ms", .flags = FOR_SOURCE},
	{.name = "coordinator.query.interval.ms", .flags = FOR_SOURCE},
	{.name = "auto.commit.interval.ms", .flags = FOR_SOURCE},
	{.name = "isolation.level", .flags = FOR_SOURCE},
	{.name = "check.crcs", .flags = FOR_SOURCE},
	{.name = "queued.min.messages", .flags = FOR_SOURCE},
	{.name = "queued.max.messages.kbytes", .flags = FOR_SOURCE},
	{.name = "fetch.wait.max.ms", .flags = FOR_SOURCE},
	{.name = "fetch.min.bytes", .flags = FOR_SOURCE},
	{.name = "fetch.max.bytes", .flags = FOR_SOURCE},
	{.name = "fetch.message.max.bytes", .flags = FOR_SOURCE},
	{.name = "max.partition.fetch.bytes", .flags = FOR_SOURCE},
	{.name = "fetch.error.backoff.ms", .flags = FOR_SOURCE},
	{.name = "fetch.queue.backoff.ms", .flags = FOR_SOURCE},
};

/* Common properties that are not in the table; a prefix ends with a dot. */
static const struct {
	const char *name;
	const char *why;
} refusals[] = {
	{"sasl.kerberos.", "Kerberos runs kinit; use " MECHANISMS},
	{"plugin.", "it loads code"},
	{"ssl.engine.", "it loads code"},
	{"ssl.providers", "it loads code"},
	{"offset.store.", "hapax stores the offsets"},
	{"debug", "hapax does not show librdkafka's log"},
	{"log.", "hapax does not show librdkafka's log"},
	{"bootstrap.servers", "name the servers before the topic, as in kafka://HOST:PORT"},
	{"metadata.broker.list", "name the servers before the topic, as in kafka://HOST:PORT"},
	{"group.id", "use group=NAME"},
	{"group.instance.id", "use instance=NAME"},
	{"auto.offset.reset", "use start=earliest or start=latest"},
	{"enable.auto.commit", "hapax commits offsets of finished messages"},
	{"auto.commit.enable", "hapax commits offsets of finished messages"},
	{"enable.auto.offset.store", "hapax commits offsets of finished messages"},
	{"enable.idempotence", "hapax always sets it"},
	{"acks", "hapax always waits for all replicas"},
	{"request.required.acks", "hapax always waits for all replicas"},
};
/* clang-format on */

static const struct row *find(struct hapax_bytes name)
{
	for (size_t i = 0; i < HX_COUNT(table); i++)
		if (hx_bytes_equal(name, hapax_bytes_from_text(table[i].name)))
			return &table[i];
	return NULL;
}

static const char *reason_of(const char *name)
{
	for (size_t i = 0; i < HX_COUNT(refusals); i++) {
		const char *refused = refusals[i].name;
		size_t size = strlen(refused);

		if (refused[size - 1] == '.' ? strncmp(name, refused, size) == 0
					     : strcmp(name, refused) == 0)
			return refusals[i].why;
	}
	return NULL;
}

static enum hapax_status kafka_property_refuse(
	const char *name, enum hx_kafka_use use, struct hapax_error *err)
{
	const char *why = reason_of(name);
	struct hx_suggest suggest;

	if (why != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "cannot set property '%.64s': %s", name, why);
	hx_suggest_init(&suggest, name);
	for (size_t i = 0; i < HX_COUNT(table); i++)
		if (use == HX_KAFKA_USE_SOURCE || !(table[i].flags & FOR_SOURCE))
			hx_suggest_consider(&suggest, table[i].name);
	if (suggest.best != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot set property '%.64s' (did you mean '%s'?)", name, suggest.best);
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot set property '%.64s'; 'man hapax' lists the supported properties", name);
}

enum hapax_status hx_kafka_property_check(
	const struct hx_kafka_property *property, enum hx_kafka_use use, struct hapax_error *err)
{
	const struct row *row = find(hapax_bytes_from_text(property->name));

	if (row == NULL)
		return kafka_property_refuse(property->name, use, err);
	if ((row->flags & FOR_SOURCE) && use == HX_KAFKA_USE_SINK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot set property '%s' for a sink; it is for sources only", row->name);
	if (row->is_good != NULL && !row->is_good(property->value))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "property '%s' must be %s", row->name,
			row->allowed);
	return HAPAX_OK;
}

enum hapax_status hx_kafka_properties_check(
	const struct hx_kafka_property *properties, size_t count, struct hapax_error *err)
{
	bool has_mechanism = false, has_sasl = false;

	for (size_t i = 0; i < count; i++) {
		const char *name = properties[i].name;

		if (strcmp(name, "sasl.mechanism") == 0 || strcmp(name, "sasl.mechanisms") == 0)
			has_mechanism = true;
		else if (strcmp(name, "security.protocol") == 0)
			has_sasl |= strncasecmp(properties[i].value, "sasl", 4) == 0;
	}
	if (has_sasl && !has_mechanism)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"security.protocol needs sasl.mechanisms: " MECHANISMS);
	return HAPAX_OK;
}

enum hx_option_view hx_kafka_property_view(struct hapax_bytes name)
{
	static const char *const own[] = {"group", "instance", "start", "warm_up", "held_max"};
	const struct row *row = find(name);

	for (size_t i = 0; i < HX_COUNT(own); i++)
		if (hx_bytes_equal(name, hapax_bytes_from_text(own[i])))
			return HX_OPTION_SHOWN;
	if (row == NULL)
		return HX_OPTION_HIDDEN;
	return row->flags & SECRET ? HX_OPTION_SECRET : HX_OPTION_SHOWN;
}
