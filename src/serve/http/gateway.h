/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway.h - requests that are events: one, or a batch of them.
 *
 *	handle ──▶ take_up ──▶ read ──▶ claim ──▶ hx_delivery_ask() ──▶ ...
 *	               └──▶ open_batch ──▶ next ──▶ claim of each ──▶ answer_batch
 *
 * The events of a batch go one after the other. hx_gateway_next() claims the next one that is not
 * refused at once, or answers the batch; whoever learns that an event is over calls it: ended() of
 * delivery.c, large.c. What is said of an event (hx_delivery_answer(), hx_delivery_refuse()) is
 * noted only, so that no event is begun from within the answer of another one.
 *
 * Threads: the loop's, unless said otherwise.
 */
#ifndef HX_SERVE_HTTP_GATEWAY_H
#define HX_SERVE_HTTP_GATEWAY_H

#include "serve/http/delivery.h"

/* Take up a request that is an event, or several: at the end of the turn. */
void hx_gateway_handle(struct hx_http_exchange *exchange);

/* Read it, and claim it: hx_delivery_read_all(). */
void hx_gateway_take_up(struct hx_delivery *delivery);

/*
 * Claim the event that is in loop->event. False: it was refused, and the delivery is
 * gone unless it is a batch.
 */
bool hx_gateway_claim(struct hx_delivery *delivery);

/* The next event of a batch, or the reply to all of them. Gives the delivery back at the end. */
void hx_gateway_next(struct hx_delivery *delivery);

/* The reply to a batch. Gives the delivery back. */
void hx_gateway_answer_batch(struct hx_delivery *delivery);

/* It cannot be read: no event of it was looked at. */
void hx_gateway_refuse(
	struct hx_delivery *delivery, enum hapax_status status, const struct hapax_error *err);

/*
 * Read the body: one event, or a batch, of which every event is checked. What is decoded
 * lies in event_text, a body from a file in body_text. Threads: whoever has the delivery.
 */
enum hapax_status hx_gateway_read(
	struct hx_delivery *delivery, enum hx_cloudevents_mode mode, struct hx_cloudevent *event,
	struct hapax_buf *event_text, struct hapax_buf *body_text, struct hapax_error *err);
enum hapax_status hx_gateway_open_batch(
	struct hx_delivery *delivery, struct hapax_buf *event_text, struct hapax_error *err);

/* The route of an event, or NULL, and its key there. Threads: the same. */
const struct hx_config_route *hx_gateway_route(
	const struct hx_delivery *delivery, const struct hx_cloudevent *event);
enum hapax_status hx_gateway_key(
	const struct hx_delivery *delivery, const struct hx_config_route *route,
	const struct hx_cloudevent *event, struct hapax_buf *scratch, struct hapax_key *ret_key,
	struct hapax_error *err);

#endif
