/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publisher.c - publishes dead letters and diverted duplicates to another queue.
 *
 * A message is acknowledged only after its letter is published and confirmed. The queue's own
 * dead-letter exchange is not used: a rejected message has no room for a reason, is dropped if
 * there is no such exchange, and by default goes there unconfirmed. If the connection is lost
 * before the confirmation, the letter is sent again: there may be two.
 *
 * A letter keeps its properties and typed headers, except any that would act again: expiration
 * (it would vanish), user id (the broker checks it), CC and BCC (other queues would get it),
 * x-delivery-count (of the old queue).
 */
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "source/rabbit/rabbit_private.h"
#include "source/source.h"

enum {
	CONNECT_MS = 5000,
	POOL_PAGE_SIZE = 4096,
	OWN_HEADERS_MAX = 16,
	/* A second each. A queue without a majority never confirms. */
	SILENT_PULSES_MAX = 30,
	/* Room in the header frame for all other properties. */
	PROPERTIES_SIZE = 4096,
};

void hx_rabbit_publisher_init(struct hx_rabbit_publisher *publisher)
{
	init_amqp_pool(&publisher->pool, POOL_PAGE_SIZE);
	hx_buf_init(&publisher->scratch, HX_RABBIT_FRAME_SIZE_MAX);
}

/* Report the letters up to tag, or tag alone. */
static void settle_sent(
	struct hx_rabbit_source *source, uint64_t tag, bool is_multiple, enum hapax_status status,
	const char *why)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;
	struct hx_rabbit_sent *sent;

	while ((sent = hx_rabbit_take_sent(&publisher->rabbit, tag, is_multiple)) != NULL) {
		publisher->silent_pulses = 0;
		/* After the report, the consumer owns it again. */
		hx_io_thread_published(&source->io_thread, sent->owner, status, why);
	}
}

static void close_publisher(struct hx_rabbit_source *source, const char *why)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;

	if (hx_rabbit_is_open(&publisher->rabbit)) {
		hx_reactor_unwatch(&source->io_thread.reactor, &publisher->watch);
		hx_rabbit_close(&publisher->rabbit);
	}
	settle_sent(source, UINT64_MAX, true, HAPAX_ERR_UNAVAILABLE, why);
	hx_io_thread_refuse(&source->io_thread, &publisher->waiting, why);
}

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	(void)ready;
	hx_rabbit_publisher_read(watch->context);
}

static enum hapax_status open_publisher(struct hx_rabbit_source *source, struct hapax_error *err)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;
	enum hapax_status status;

	if (hx_rabbit_is_open(&publisher->rabbit))
		return HAPAX_OK;
	status = hx_rabbit_open(&publisher->rabbit, &source->place.rabbit, CONNECT_MS, err);
	if (status == HAPAX_OK)
		status = hx_rabbit_confirm(&publisher->rabbit, err);
	if (status == HAPAX_OK) {
		publisher->watch = (struct hx_watch){
			.fd = amqp_get_sockfd(publisher->rabbit.conn),
			.fn = on_ready,
			.context = source};
		status = hx_reactor_watch(
			&source->io_thread.reactor, &publisher->watch, HX_READY_IN, err);
	}
	if (status != HAPAX_OK)
		hx_rabbit_close(&publisher->rabbit);
	return status;
}

/*
 * Create a missing queue, as a quorum queue. A queue of another type, or one that we may not
 * create, is left unchanged: sending a letter shows whether it accepts any.
 */
static enum hapax_status make_target(
	struct hx_rabbit_source *source, const char *target, struct hapax_error *err)
{
	struct hx_rabbit *rabbit = &source->publisher.rabbit;
	struct hapax_bytes name = hapax_bytes_from_text(target);
	enum hapax_status status;

	if (source->place.rabbit.exchange[0] != '\0')
		return HAPAX_OK;
	status = hx_rabbit_declare_queue(rabbit, name, err);
	if (status == HAPAX_ERR_INVALID) {
		/* The refusal closed the channel, and lost the letters in progress. */
		close_publisher(source, err->message);
		status = open_publisher(source, err);
		if (status == HAPAX_OK)
			hx_rabbit_remember_queue(rabbit, name);
	}
	return status;
}

/* ------------------------------------------------------------------ letters */

static bool has_name(amqp_bytes_t key, const char *name)
{
	return key.len == strlen(name) && strncasecmp(key.bytes, name, key.len) == 0;
}

static bool is_kept(amqp_bytes_t key)
{
	return !hx_source_adds_header(hx_bytes(key.bytes, key.len)) && !has_name(key, "CC") &&
		!has_name(key, "BCC") && !has_name(key, "x-delivery-count");
}

static void add_text(amqp_table_t *table, struct hapax_bytes name, struct hapax_bytes text)
{
	union {
		const void *constant;
		void *plain;
	} key = {.constant = name.data}, value = {.constant = text.data};

	/* librabbitmq's types lack const; data to send is only read. */
	table->entries[table->num_entries++] = (amqp_table_entry_t){
		.key = {.len = name.size, .bytes = key.plain},
		.value = {
			.kind = AMQP_FIELD_KIND_UTF8,
			.value = {.bytes = {.len = text.size, .bytes = value.plain}}}};
}

static bool has_header(const amqp_table_t *table, const char *name)
{
	for (int i = 0; i < table->num_entries; i++) {
		if (has_name(table->entries[i].key, name))
			return true;
	}
	return false;
}

/* Add the consumer's headers, and the message's origin. A letter that is sent again has it. */
static void add_own(amqp_table_t *table, const struct hx_rabbit_delivery *delivery)
{
	const struct hapax_publication *publication = delivery->publication;

	for (size_t i = 0; i < publication->header_count; i++) {
		const struct hapax_field *field = &publication->headers[i];

		if (hx_source_adds_header(field->name) && table->num_entries < OWN_HEADERS_MAX - 3)
			add_text(table, field->name, field->value);
	}
	if (has_header(table, "hapax-dead-exchange"))
		return;
	add_text(
		table, HX_BYTES_LIT("hapax-dead-exchange"),
		hapax_bytes_from_text(delivery->exchange));
	add_text(
		table, HX_BYTES_LIT("hapax-dead-routing-key"),
		hapax_bytes_from_text(delivery->routing_key));
}

static bool table_fits(struct hx_rabbit_publisher *publisher, amqp_table_t *table)
{
	int frame_size = amqp_get_frame_max(publisher->rabbit.conn);
	size_t room = (frame_size > 0 && frame_size < HX_RABBIT_FRAME_SIZE_MAX
			       ? (size_t)frame_size
			       : HX_RABBIT_FRAME_SIZE_MAX) -
		PROPERTIES_SIZE;
	size_t offset = 0;

	if (hx_buf_reserve(&publisher->scratch, room) != HAPAX_OK)
		return false;
	return amqp_encode_table(
		       (amqp_bytes_t){.len = room, .bytes = publisher->scratch.data}, table,
		       &offset) == AMQP_STATUS_OK;
}

/* False: no memory. */
static bool make_headers(
	struct hx_rabbit_publisher *publisher, const struct hx_rabbit_delivery *delivery,
	const amqp_table_t *old, amqp_table_t *ret_table)
{
	size_t count = (size_t)old->num_entries + OWN_HEADERS_MAX;

	ret_table->num_entries = 0;
	ret_table->entries =
		amqp_pool_alloc(&publisher->pool, count * sizeof(ret_table->entries[0]));
	if (ret_table->entries == NULL)
		return false;
	add_own(ret_table, delivery);
	for (int i = 0; i < old->num_entries; i++) {
		if (is_kept(old->entries[i].key))
			ret_table->entries[ret_table->num_entries++] = old->entries[i];
	}
	if (table_fits(publisher, ret_table))
		return true;
	/* The old headers alone fill a frame: the body and the reason matter more. */
	ret_table->num_entries = 0;
	add_own(ret_table, delivery);
	add_text(
		ret_table, HX_BYTES_LIT("hapax-dead-headers"),
		HX_BYTES_LIT("omitted: they filled a frame"));
	return table_fits(publisher, ret_table);
}

static enum hapax_status send_letter(
	struct hx_rabbit_source *source, struct hx_rabbit_delivery *delivery,
	struct hapax_error *err)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;
	const struct hapax_publication *publication = delivery->publication;
	amqp_bytes_t raw = {.len = delivery->raw_size, .bytes = delivery->bytes.data};
	amqp_table_t old = {.num_entries = 0};
	amqp_basic_properties_t properties;
	void *decoded = NULL;

	recycle_amqp_pool(&publisher->pool);
	if (amqp_decode_properties(AMQP_BASIC_CLASS, &publisher->pool, raw, &decoded) !=
	    AMQP_STATUS_OK)
		return hx_rabbit_code_error(
			AMQP_STATUS_NO_MEMORY, "could not build a message", err);
	properties = *(amqp_basic_properties_t *)decoded;
	if (properties._flags & AMQP_BASIC_HEADERS_FLAG)
		old = properties.headers;
	if (!make_headers(publisher, delivery, &old, &properties.headers))
		return hx_rabbit_code_error(
			AMQP_STATUS_NO_MEMORY, "could not build a message", err);
	properties._flags |= AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG;
	properties._flags &= ~(amqp_flags_t)(AMQP_BASIC_EXPIRATION_FLAG | AMQP_BASIC_USER_ID_FLAG);
	properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
	return hx_rabbit_publish_as(
		&publisher->rabbit, source->place.rabbit.exchange,
		hapax_bytes_from_text(publication->target), &properties, publication->message->data,
		&delivery->sent, err);
}

static void publish(struct hx_rabbit_source *source, struct hapax_publication *publication)
{
	union {
		const struct hapax_message *constant;
		struct hx_rabbit_delivery *delivery;
	} message = {.constant = publication->message};
	struct hx_rabbit_delivery *delivery = message.delivery;
	struct hapax_error err = {.message = ""};
	enum hapax_status status;

	delivery->publication = publication;
	delivery->sent.owner = publication;
	if (strlen(publication->target) >= HX_RABBIT_NAME_SIZE) {
		hx_io_thread_published(
			&source->io_thread, publication, HAPAX_ERR_UNAVAILABLE,
			"the name of its queue is too long for AMQP");
		return;
	}
	status = open_publisher(source, &err);
	if (status == HAPAX_OK)
		status = make_target(source, publication->target, &err);
	if (status == HAPAX_OK)
		status = send_letter(source, delivery, &err);
	if (status == HAPAX_OK)
		return;
	hx_io_thread_published(&source->io_thread, publication, HAPAX_ERR_UNAVAILABLE, err.message);
	if (status != HAPAX_ERR_NO_MEMORY)
		close_publisher(source, err.message);
}

static void work(struct hx_rabbit_source *source, struct hx_publications *list)
{
	struct hapax_publication *publication;

	while ((publication = hx_publications_take(list)) != NULL) {
		if (source->publisher.rabbit.is_blocked)
			HX_LIST_ADD(&source->publisher.waiting, publication, private_next);
		else
			publish(source, publication);
	}
}

void hx_rabbit_publisher_work(struct hx_rabbit_source *source)
{
	struct hx_publications asked = hx_io_thread_take_asked(&source->io_thread);
	struct hx_publications waiting = source->publisher.waiting;

	source->publisher.waiting = (struct hx_publications){NULL, NULL};
	if (source->io_thread.is_hurried) {
		static const char why[] = "the consumer is stopping";

		hx_io_thread_refuse(&source->io_thread, &waiting, why);
		hx_io_thread_refuse(&source->io_thread, &asked, why);
		close_publisher(source, why);
		return;
	}
	work(source, &waiting);
	work(source, &asked);
}

/* ------------------------------------------------------------------ answers */

/* Repeated while it lasts, so that later health checks see it. */
static void tell_blocked(struct hx_rabbit_source *source)
{
	source->publisher.silent_pulses = 0;
	hx_io_thread_say(
		&source->io_thread,
		"RabbitMQ accepts no dead letters: it is low on memory or disk");
}

/* False: the connection is unusable. */
static bool take_event(struct hx_rabbit_source *source, const struct hx_rabbit_event *event)
{
	switch (event->happening) {
	case HX_RABBIT_ACK:
		settle_sent(source, event->tag, event->is_multiple, HAPAX_OK, "");
		return true;
	case HX_RABBIT_NACK:
		settle_sent(
			source, event->tag, event->is_multiple, HAPAX_ERR_UNAVAILABLE,
			"RabbitMQ rejected the message (nack)");
		return true;
	case HX_RABBIT_RETURNED:
	case HX_RABBIT_REFUSED:
		/* It is uncertain which letter it was: send all again. */
		close_publisher(source, event->text);
		return false;
	case HX_RABBIT_UNBLOCKED:
		source->publisher.silent_pulses = 0;
		hx_reactor_post(&source->io_thread.reactor, &source->io_thread.work);
		return true;
	case HX_RABBIT_BLOCKED: tell_blocked(source); return true;
	case HX_RABBIT_NOTHING: return false;
	}
	return false;
}

void hx_rabbit_publisher_read(struct hx_rabbit_source *source)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;
	struct hx_rabbit_event event;
	struct hapax_error err;
	bool goes_on = hx_rabbit_is_open(&publisher->rabbit);

	while (goes_on) {
		if (hx_rabbit_next(&publisher->rabbit, 0, &event, &err) == HAPAX_OK) {
			goes_on = take_event(source, &event);
		} else {
			close_publisher(source, err.message);
			goes_on = false;
		}
	}
}

void hx_rabbit_publisher_pulse(struct hx_rabbit_source *source)
{
	struct hx_rabbit_publisher *publisher = &source->publisher;

	hx_rabbit_publisher_read(source);
	if (publisher->rabbit.sent == NULL && publisher->waiting.first == NULL)
		publisher->silent_pulses = 0;
	else if (++publisher->silent_pulses <= SILENT_PULSES_MAX)
		return;
	/* A blocked broker announced its silence: not a failure. */
	else if (publisher->rabbit.is_blocked)
		tell_blocked(source);
	else
		close_publisher(source, "RabbitMQ did not confirm in time");
}

void hx_rabbit_publisher_done(struct hx_rabbit_source *source)
{
	close_publisher(source, "the source was closed");
	empty_amqp_pool(&source->publisher.pool);
	hx_buf_done(&source->publisher.scratch);
}
