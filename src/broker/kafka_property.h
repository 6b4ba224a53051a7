/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_property.h - the properties of librdkafka that a kafka:// URL may set.
 *
 * One table, for sinks and sources, lists the allowed properties. librdkafka also has properties
 * that run a program (sasl.kerberos.kinit.cmd), load code (plugin.library.paths,
 * ssl.engine.location, ssl.providers), write files (offset.store.path) or break hapax's guarantees
 * (enable.auto.commit). Later versions will have more. To allow a property, add a row.
 *
 * Threads: any; nothing is kept.
 */
#ifndef HX_BROKER_KAFKA_PROPERTY_H
#define HX_BROKER_KAFKA_PROPERTY_H

#include <stddef.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

#include "wire/public_url.h"

struct hx_kafka_property {
	const char *name;
	const char *value;
};

enum hx_kafka_use {
	HX_KAFKA_USE_SINK,
	HX_KAFKA_USE_SOURCE, /* and its producer of dead letters */
};

/*
 * Whether a URL may set this property to this value. INVALID: the message has the name of the
 * property and the allowed values, never the value.
 */
enum hapax_status hx_kafka_property_check(
	const struct hx_kafka_property *property, enum hx_kafka_use use, struct hapax_error *err);

/*
 * Whether the properties of a URL, each already checked, are valid together. INVALID: SASL without
 * a mechanism; librdkafka would default to GSSAPI and run kinit.
 */
enum hapax_status hx_kafka_properties_check(
	const struct hx_kafka_property *properties, size_t count, struct hapax_error *err);

/* How much of a property may be shown: hx_public_url(). */
enum hx_option_view hx_kafka_property_view(struct hapax_bytes name);

#endif
