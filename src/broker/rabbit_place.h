/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit_place.h - parses the URL of a RabbitMQ broker.
 *
 *	amqp://[user[:password]@]host[:port][/vhost][?option=value&...]
 *	amqps://...                        the same over TLS
 *
 * As in the broker's documentation, the default vhost is "/", and "/%2f" names it, too. User,
 * password, vhost and values are percent-decoded. Options: exchange=NAME to publish to (default:
 * the default exchange, whose routing keys are queues), queue=NAME to consume from, declare=quorum
 * (create the named queues), and for TLS ca=FILE, cert=FILE, key=FILE.
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_BROKER_RABBIT_PLACE_H
#define HX_BROKER_RABBIT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "wire/url.h"

enum {
	HX_RABBIT_NAME_SIZE = 256, /* a short string of AMQP, and its NUL */
	HX_RABBIT_PORT = 5672,
	HX_RABBIT_PORT_TLS = 5671,
};

struct hx_rabbit_place {
	char host[HX_RABBIT_NAME_SIZE];
	uint16_t port;
	bool has_tls;
	bool declares; /* create missing queues, as quorum queues */
	char user[HX_RABBIT_NAME_SIZE];
	char password[HX_RABBIT_NAME_SIZE];
	char vhost[HX_RABBIT_NAME_SIZE];
	char exchange[HX_RABBIT_NAME_SIZE]; /* empty: the default exchange */
	char queue[HX_RABBIT_NAME_SIZE];    /* empty: not named */
	char authority_file[HX_RABBIT_NAME_SIZE];
	char certificate_file[HX_RABBIT_NAME_SIZE];
	char key_file[HX_RABBIT_NAME_SIZE];
};

/* INVALID says what is wrong; the message never contains the password. */
enum hapax_status hx_rabbit_place_parse(
	const char *text, struct hx_rabbit_place *ret_place, struct hapax_error *err);

/*
 * The steps of the parser, for URLs with more parts. First user, host and port of text; *ret_url
 * gets the other parts. Then the vhost, a path with its slash. Then options, which end with these
 * rows.
 */
enum hapax_status hx_rabbit_place_begin(
	const char *text, struct hx_url *ret_url, struct hx_rabbit_place *place,
	struct hapax_error *err);
enum hapax_status hx_rabbit_place_set_vhost(
	struct hx_rabbit_place *place, struct hapax_bytes path, struct hapax_error *err);
extern const struct hx_url_option hx_rabbit_options[];

#endif
