/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_property.h - the properties of librdkafka that a kafka:// URL may set.
 *
 * One table, for sinks and sources. It names what is allowed: librdkafka also has properties that
 * run a program (sasl.kerberos.kinit.cmd), load code (plugin.library.paths, ssl.engine.location,
 * ssl.providers), write files (offset.store.path) or break what hapax promises
 * (enable.auto.commit), and later versions will have more of them. To allow one, add a row.
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
	HX_KAFKA_USE_SOURCE, /* its producer of dead letters, too */
};

/*
 * Whether a URL may set this property to this value. INVALID: the message has the name of the
 * property and what would be allowed, never the value.
 */
enum hapax_status hx_kafka_property_check(
	const struct hx_kafka_property *property, enum hx_kafka_use use, struct hapax_error *err);

/*
 * Whether all properties of a URL, each of which was checked, may stand together. INVALID: SASL
 * without a mechanism, for which librdkafka would take GSSAPI and run kinit.
 */
enum hapax_status hx_kafka_properties_check(
	const struct hx_kafka_property *properties, size_t count, struct hapax_error *err);

/* What may be shown of a property: hx_public_url(). */
enum hx_option_view hx_kafka_property_view(struct hapax_bytes name);

#endif
