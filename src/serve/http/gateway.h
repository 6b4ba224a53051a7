/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway.h - requests that carry events: one, or a batch.
 *
 *	take_up ──▶ read ──▶ claim ──▶ hx_delivery_ask() ──▶ ...
 *	    └──▶ open_batch ──▶ next ──▶ claim of each ──▶ answer_batch
 *
 * The events of a batch run one after the other. hx_gateway_next() claims the next event that is
 * not refused at once, or answers the batch. Its callers, ended() of delivery.c and large.c, call
 * it when an event is over. hx_delivery_answer() and hx_delivery_refuse() only note the result of
 * an event, so that no event begins within the answer of another one.
 *
 * Threads: the loop's, unless said otherwise.
 */
#ifndef HX_SERVE_HTTP_GATEWAY_H
#define HX_SERVE_HTTP_GATEWAY_H

#include "serve/http/delivery.h"

/* Reads the request and claims it: hx_delivery_read_all(). */
void hx_gateway_take_up(struct hx_delivery *delivery);

/* Claims the event in loop->event. False: refused; the delivery is freed unless it is a batch. */
bool hx_gateway_claim(struct hx_delivery *delivery);

/* Claims the next event of a batch, or answers the batch and frees the delivery. */
void hx_gateway_next(struct hx_delivery *delivery);

/* Answers a batch and frees the delivery. */
void hx_gateway_answer_batch(struct hx_delivery *delivery);

/* The request is unreadable: none of its events was processed. */
void hx_gateway_refuse(
	struct hx_delivery *delivery, enum hapax_status status, const struct hapax_error *err);

/*
 * Reads the body: one event, or a batch, of which every event is checked. Decoded text lies in
 * event_text, a body from a file in body_text. Threads: the delivery's owner.
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
