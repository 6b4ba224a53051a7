/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rabbit.c - one connection to a RabbitMQ broker, with one channel.
 */
#include "broker/rabbit.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>

#include "base/bytes.h"
#include "base/error.h"

#if HX_HAVE_TLS
#include <openssl/ssl.h>
#endif

enum { REPLY_ACCESS_REFUSED = 403, REPLY_NOT_FOUND = 404, REPLY_NOT_ALLOWED = 530 };

static struct timeval time_of_ms(int64_t ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static amqp_bytes_t bytes_of(struct hapax_bytes bytes)
{
	union {
		const void *constant;
		void *plain;
	} data = {.constant = bytes.data};

	/* librabbitmq's type lacks const; data to send is only read. */
	return (amqp_bytes_t){.len = bytes.size, .bytes = data.plain};
}

static void copy_text(char out[HX_RABBIT_NAME_SIZE], amqp_bytes_t text)
{
	size_t size = text.len < HX_RABBIT_NAME_SIZE ? text.len : HX_RABBIT_NAME_SIZE - 1;

	if (size > 0)
		memcpy(out, text.bytes, size);
	out[size] = '\0';
}

enum hapax_status hx_rabbit_code_error(int code, const char *what, struct hapax_error *err)
{
	const char *hint = "";

	switch (code) {
	case AMQP_STATUS_NO_MEMORY:
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "%s: not enough memory", what);
	case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
	case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
		hint = "; use the host name in the broker's certificate, and set its authority "
		       "with ca=FILE";
		break;
	case AMQP_STATUS_SSL_CONNECTION_FAILED:
	case AMQP_STATUS_SSL_ERROR: hint = "; check that this is the TLS port"; break;
	case AMQP_STATUS_SOCKET_ERROR:
	case AMQP_STATUS_TCP_ERROR:
	case AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED:
		hint = "; check that the broker is running, and its host and port";
		break;
	case AMQP_STATUS_TIMEOUT: hint = "; the broker did not answer in time"; break;
	default: break;
	}
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "%s: %s%s", what, amqp_error_string2(code), hint);
}

/* Report the broker's error, with a hint. */
static enum hapax_status server_error(
	int code, amqp_bytes_t text, const char *what, struct hapax_error *err)
{
	const char *hint = "";

	if (code == REPLY_ACCESS_REFUSED)
		hint = "; check user, password and permissions";
	else if (code == REPLY_NOT_ALLOWED)
		hint = "; check the vhost in the URL";
	else if (code == REPLY_NOT_FOUND)
		hint = "; declare it first";
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "%s: %.*s (%d)%s", what,
		(int)(text.len < 160 ? text.len : 160), text.len == 0 ? "" : (char *)text.bytes,
		code, hint);
}

enum hapax_status hx_rabbit_reply_error(
	amqp_rpc_reply_t reply, const char *what, struct hapax_error *err)
{
	if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
		return hx_rabbit_code_error(reply.library_error, what, err);
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
	    reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
		const amqp_connection_close_t *method = reply.reply.decoded;

		return server_error(method->reply_code, method->reply_text, what, err);
	}
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
	    reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
		const amqp_channel_close_t *method = reply.reply.decoded;

		return server_error(method->reply_code, method->reply_text, what, err);
	}
	return hx_error_set(
		err, HAPAX_ERR_UNAVAILABLE, 0, "%s: the broker closed the connection", what);
}

/* ------------------------------------------------------------------ open */

static enum hapax_status prepare_tls(
	amqp_socket_t *socket, const struct hx_rabbit_place *place, struct hapax_error *err)
{
	static const char what[] = "could not set up TLS to RabbitMQ";
	int code = AMQP_STATUS_OK;

	amqp_ssl_socket_set_verify_peer(socket, 1);
	amqp_ssl_socket_set_verify_hostname(socket, 1);
	code = amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
	if (code == AMQP_STATUS_OK && place->authority_file[0] != '\0')
		code = amqp_ssl_socket_set_cacert(socket, place->authority_file);
#if HX_HAVE_TLS
	else if (code == AMQP_STATUS_OK)
		(void)SSL_CTX_set_default_verify_paths(amqp_ssl_socket_get_context(socket));
#endif
	if (code != AMQP_STATUS_OK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "%s: '%s' has no certificate", what,
			place->authority_file);
	if (place->certificate_file[0] != '\0')
		code = amqp_ssl_socket_set_key(socket, place->certificate_file, place->key_file);
	if (code != AMQP_STATUS_OK)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"%s: cert=FILE and key=FILE must be a certificate and its key, as PEM",
			what);
	return HAPAX_OK;
}

static enum hapax_status connect_socket(
	struct hx_rabbit *rabbit, const struct hx_rabbit_place *place, struct timeval *timeout,
	struct hapax_error *err)
{
	char what[HX_RABBIT_NAME_SIZE];
	amqp_socket_t *socket = place->has_tls ? amqp_ssl_socket_new(rabbit->conn)
					       : amqp_tcp_socket_new(rabbit->conn);
	enum hapax_status status;
	int code;

	(void)snprintf(
		what, sizeof(what), "could not connect to RabbitMQ at '%.100s:%u'", place->host,
		(unsigned)place->port);
	if (socket == NULL)
		return hx_rabbit_code_error(AMQP_STATUS_NO_MEMORY, what, err);
	if (place->has_tls) {
		status = prepare_tls(socket, place, err);
		if (status != HAPAX_OK)
			return status;
	}
	code = amqp_socket_open_noblock(socket, place->host, place->port, timeout);
	return code == AMQP_STATUS_OK ? HAPAX_OK : hx_rabbit_code_error(code, what, err);
}

static enum hapax_status log_in(
	struct hx_rabbit *rabbit, const struct hx_rabbit_place *place, struct hapax_error *err)
{
	/*
	 * Without these capabilities, the broker does not report that our queue was deleted, or
	 * that it lacks memory or disk for our messages.
	 */
	amqp_table_entry_t told[] = {
		{.key = amqp_cstring_bytes("consumer_cancel_notify"),
		 .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}},
		{.key = amqp_cstring_bytes("connection.blocked"),
		 .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}}};
	amqp_table_entry_t known = {
		.key = amqp_cstring_bytes("capabilities"),
		.value = {
			.kind = AMQP_FIELD_KIND_TABLE,
			.value = {.table = {.num_entries = HX_COUNT(told), .entries = told}}}};
	amqp_table_t properties = {.num_entries = 1, .entries = &known};
	amqp_rpc_reply_t reply = amqp_login_with_properties(
		rabbit->conn, place->vhost, 0, HX_RABBIT_FRAME_SIZE_MAX, HX_RABBIT_HEARTBEAT_S,
		&properties, AMQP_SASL_METHOD_PLAIN, place->user, place->password);

	if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
		(void)amqp_channel_open(rabbit->conn, HX_RABBIT_CHANNEL);
		reply = amqp_get_rpc_reply(rabbit->conn);
	}
	if (reply.reply_type == AMQP_RESPONSE_NORMAL)
		return HAPAX_OK;
	return hx_rabbit_reply_error(reply, "RabbitMQ rejected the connection", err);
}

enum hapax_status hx_rabbit_open(
	struct hx_rabbit *rabbit, const struct hx_rabbit_place *place, int64_t timeout_ms,
	struct hapax_error *err)
{
	struct timeval timeout = time_of_ms(timeout_ms);
	enum hapax_status status;

	assert(rabbit->conn == NULL);
	memset(rabbit, 0, sizeof(*rabbit));
	rabbit->sent_end = &rabbit->sent;
	rabbit->conn = amqp_new_connection();
	if (rabbit->conn == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0,
			"not enough memory to connect to RabbitMQ at '%.100s:%u'", place->host,
			(unsigned)place->port);
	(void)amqp_set_handshake_timeout(rabbit->conn, &timeout);
	(void)amqp_set_rpc_timeout(rabbit->conn, &timeout);
	status = connect_socket(rabbit, place, &timeout, err);
	if (status == HAPAX_OK)
		status = log_in(rabbit, place, err);
	if (status != HAPAX_OK)
		hx_rabbit_close(rabbit);
	return status;
}

void hx_rabbit_close(struct hx_rabbit *rabbit)
{
	amqp_connection_close_t method = {
		.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_cstring_bytes("bye")};

	if (rabbit->conn == NULL)
		return;
	/* Send the close, but do not wait: a broker that is down would use up the timeout. */
	if (amqp_get_sockfd(rabbit->conn) >= 0)
		(void)amqp_send_method(rabbit->conn, 0, AMQP_CONNECTION_CLOSE_METHOD, &method);
	(void)amqp_destroy_connection(rabbit->conn);
	rabbit->conn = NULL;
	/* The block applied to that connection only; the next one finds out for itself. */
	rabbit->is_blocked = false;
}

/* ------------------------------------------------------------------ topology */

enum hapax_status hx_rabbit_confirm(struct hx_rabbit *rabbit, struct hapax_error *err)
{
	amqp_rpc_reply_t reply;

	(void)amqp_confirm_select(rabbit->conn, HX_RABBIT_CHANNEL);
	reply = amqp_get_rpc_reply(rabbit->conn);
	if (reply.reply_type == AMQP_RESPONSE_NORMAL)
		return HAPAX_OK;
	return hx_rabbit_reply_error(reply, "RabbitMQ did not enable publisher confirms", err);
}

void hx_rabbit_remember_queue(struct hx_rabbit *rabbit, struct hapax_bytes name)
{
	assert(name.size < HX_RABBIT_NAME_SIZE);
	/* If the list is full, replace the oldest; it is declared again when needed. */
	rabbit->declared_count %= HX_RABBIT_DECLARED_MAX;
	(void)snprintf(
		rabbit->declared[rabbit->declared_count++], HX_RABBIT_NAME_SIZE, "%.*s",
		(int)name.size, (const char *)name.data);
}

enum hapax_status hx_rabbit_declare_queue(
	struct hx_rabbit *rabbit, struct hapax_bytes name, struct hapax_error *err)
{
	amqp_table_entry_t entry = {
		.key = amqp_cstring_bytes("x-queue-type"),
		.value = {
			.kind = AMQP_FIELD_KIND_UTF8,
			.value = {.bytes = amqp_cstring_bytes("quorum")}}};
	amqp_table_t arguments = {.num_entries = 1, .entries = &entry};
	char what[HX_RABBIT_NAME_SIZE];
	amqp_rpc_reply_t reply;

	if (name.size == 0 || name.size > UINT8_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "the name of a queue must be 1 to %d bytes long",
			UINT8_MAX);
	for (size_t i = 0; i < rabbit->declared_count; i++)
		if (hx_bytes_equal(hapax_bytes_from_text(rabbit->declared[i]), name))
			return HAPAX_OK;
	(void)amqp_queue_declare(
		rabbit->conn, HX_RABBIT_CHANNEL, bytes_of(name), 0, 1, 0, 0, arguments);
	reply = amqp_get_rpc_reply(rabbit->conn);
	if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
		amqp_maybe_release_buffers(rabbit->conn);
		hx_rabbit_remember_queue(rabbit, name);
		return HAPAX_OK;
	}
	(void)snprintf(
		what, sizeof(what), "could not declare the quorum queue '%.*s'",
		(int)(name.size < 100 ? name.size : 100), (const char *)name.data);
	(void)hx_rabbit_reply_error(reply, what, err);
	/* The broker is up and refuses: a retry would not help. */
	if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION &&
	    reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
		if (err != NULL)
			err->status = HAPAX_ERR_INVALID;
		return HAPAX_ERR_INVALID;
	}
	return HAPAX_ERR_UNAVAILABLE;
}

/* ------------------------------------------------------------------ publish */

static enum hapax_status check_message(
	const struct hx_rabbit_message *message, struct hapax_error *err)
{
	size_t size = 0;

	if (message->routing_key.size > UINT8_MAX || message->message_id.size > UINT8_MAX ||
	    message->content_type.size > UINT8_MAX || message->type.size > UINT8_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"routing key, message id, content type or type is too long for AMQP: "
			"limit %d bytes",
			UINT8_MAX);
	if (message->header_count > HX_RABBIT_HEADERS_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the message has too many headers: %zu, limit %d", message->header_count,
			HX_RABBIT_HEADERS_MAX);
	for (size_t i = 0; i < message->header_count; i++) {
		const struct hapax_field *header = &message->headers[i];

		if (header->name.size > UINT8_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"header name '%.64s...' is too long for AMQP: %zu bytes, limit %d",
				(const char *)header->name.data, header->name.size, UINT8_MAX);
		if (header->value.size > HX_RABBIT_HEADERS_SIZE_MAX)
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"the value of header '%.*s' is too long: %zu bytes, limit %d",
				(int)(header->name.size < 64 ? header->name.size : 64),
				(const char *)header->name.data, header->value.size,
				HX_RABBIT_HEADERS_SIZE_MAX);
		size += header->name.size + header->value.size + 8;
	}
	if (size > HX_RABBIT_HEADERS_SIZE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "headers are too long: limit %d bytes in total",
			HX_RABBIT_HEADERS_SIZE_MAX);
	return HAPAX_OK;
}

static void set_property(
	amqp_basic_properties_t *properties, amqp_flags_t flag, amqp_bytes_t *property,
	struct hapax_bytes value)
{
	if (value.size == 0)
		return;
	properties->_flags |= flag;
	*property = bytes_of(value);
}

enum hapax_status hx_rabbit_publish_as(
	struct hx_rabbit *rabbit, const char *exchange, struct hapax_bytes routing_key,
	const amqp_basic_properties_t *properties, struct hapax_bytes body,
	struct hx_rabbit_sent *sent, struct hapax_error *err)
{
	int code = amqp_basic_publish(
		rabbit->conn, HX_RABBIT_CHANNEL, amqp_cstring_bytes(exchange),
		bytes_of(routing_key), 1, 0, properties, bytes_of(body));

	if (code != AMQP_STATUS_OK)
		return hx_rabbit_code_error(code, "could not send a message to RabbitMQ", err);
	rabbit->published++;
	if (sent != NULL) {
		sent->tag = rabbit->published;
		sent->next = NULL;
		*rabbit->sent_end = sent;
		rabbit->sent_end = &sent->next;
	}
	return HAPAX_OK;
}

struct hx_rabbit_sent *hx_rabbit_take_sent(struct hx_rabbit *rabbit, uint64_t tag, bool is_multiple)
{
	struct hx_rabbit_sent **at = &rabbit->sent, *sent;

	while (!is_multiple && *at != NULL && (*at)->tag < tag)
		at = &(*at)->next;
	sent = *at;
	if (sent == NULL || sent->tag > tag)
		return NULL;
	*at = sent->next;
	if (*at == NULL)
		rabbit->sent_end = at;
	return sent;
}

enum hapax_status hx_rabbit_publish(
	struct hx_rabbit *rabbit, const struct hx_rabbit_message *message,
	struct hx_rabbit_sent *sent, struct hapax_error *err)
{
	amqp_table_entry_t entries[HX_RABBIT_HEADERS_MAX];
	amqp_basic_properties_t properties = {
		._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = AMQP_DELIVERY_PERSISTENT};
	enum hapax_status status = check_message(message, err);

	if (status != HAPAX_OK)
		return status;
	for (size_t i = 0; i < message->header_count; i++)
		entries[i] = (amqp_table_entry_t){
			.key = bytes_of(message->headers[i].name),
			.value = {
				.kind = AMQP_FIELD_KIND_UTF8,
				.value = {.bytes = bytes_of(message->headers[i].value)}}};
	if (message->header_count > 0) {
		properties._flags |= AMQP_BASIC_HEADERS_FLAG;
		properties.headers = (amqp_table_t){
			.num_entries = (int)message->header_count, .entries = entries};
	}
	set_property(
		&properties, AMQP_BASIC_CONTENT_TYPE_FLAG, &properties.content_type,
		message->content_type);
	set_property(
		&properties, AMQP_BASIC_MESSAGE_ID_FLAG, &properties.message_id,
		message->message_id);
	set_property(&properties, AMQP_BASIC_TYPE_FLAG, &properties.type, message->type);
	if (message->time_ms > 0) {
		properties._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
		properties.timestamp = (uint64_t)(message->time_ms / 1000);
	}
	return hx_rabbit_publish_as(
		rabbit, message->exchange, message->routing_key, &properties, message->body, sent,
		err);
}

/* ------------------------------------------------------------------ next */

static enum hapax_status closed_error(
	const amqp_connection_close_t *method, struct hapax_error *err)
{
	return server_error(
		method->reply_code, method->reply_text, "RabbitMQ closed the connection", err);
}

/* False: this method does not concern us. */
static bool read_method(
	struct hx_rabbit *rabbit, const amqp_method_t *method, struct hx_rabbit_event *event)
{
	const amqp_basic_ack_t *ack = method->decoded;
	const amqp_basic_nack_t *nack = method->decoded;
	const amqp_basic_return_t *returned = method->decoded;
	const amqp_channel_close_t *closed = method->decoded;

	switch (method->id) {
	case AMQP_BASIC_ACK_METHOD:
		event->happening = HX_RABBIT_ACK;
		event->tag = ack->delivery_tag;
		event->is_multiple = ack->multiple;
		return true;
	case AMQP_BASIC_NACK_METHOD:
		event->happening = HX_RABBIT_NACK;
		event->tag = nack->delivery_tag;
		event->is_multiple = nack->multiple;
		return true;
	case AMQP_BASIC_RETURN_METHOD:
		/* Its header and body follow in separate frames. */
		rabbit->is_returning = true;
		rabbit->returning_bytes = 0;
		rabbit->returning_code = returned->reply_code;
		rabbit->returning_id[0] = '\0';
		copy_text(rabbit->returning_text, returned->reply_text);
		return false;
	case AMQP_CHANNEL_CLOSE_METHOD:
		event->happening = HX_RABBIT_REFUSED;
		event->code = closed->reply_code;
		copy_text(rabbit->returning_text, closed->reply_text);
		event->text = rabbit->returning_text;
		return true;
	case AMQP_CONNECTION_BLOCKED_METHOD:
		rabbit->is_blocked = true;
		event->happening = HX_RABBIT_BLOCKED;
		return true;
	case AMQP_CONNECTION_UNBLOCKED_METHOD:
		rabbit->is_blocked = false;
		event->happening = HX_RABBIT_UNBLOCKED;
		return true;
	default: return false;
	}
}

/* Read the rest of a returned message. True: it is complete. */
static bool read_returning(
	struct hx_rabbit *rabbit, const amqp_frame_t *frame, struct hx_rabbit_event *event)
{
	if (!rabbit->is_returning)
		return false;
	if (frame->frame_type == AMQP_FRAME_HEADER) {
		const amqp_basic_properties_t *properties = frame->payload.properties.decoded;

		rabbit->returning_bytes = frame->payload.properties.body_size;
		if (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
			copy_text(rabbit->returning_id, properties->message_id);
	} else if (frame->payload.body_fragment.len <= rabbit->returning_bytes) {
		rabbit->returning_bytes -= frame->payload.body_fragment.len;
	}
	if (rabbit->returning_bytes > 0)
		return false;
	rabbit->is_returning = false;
	event->happening = HX_RABBIT_RETURNED;
	event->code = rabbit->returning_code;
	event->text = rabbit->returning_text;
	event->message_id = rabbit->returning_id;
	return true;
}

enum hapax_status hx_rabbit_next(
	struct hx_rabbit *rabbit, int64_t timeout_ms, struct hx_rabbit_event *ret_event,
	struct hapax_error *err)
{
	struct timeval timeout = time_of_ms(timeout_ms);

	for (;;) {
		struct hx_rabbit_event event = {.happening = HX_RABBIT_NOTHING};
		amqp_frame_t frame;
		bool is_told;
		int code;

		amqp_maybe_release_buffers(rabbit->conn);
		code = amqp_simple_wait_frame_noblock(rabbit->conn, &frame, &timeout);
		if (code == AMQP_STATUS_TIMEOUT) {
			*ret_event = event;
			return HAPAX_OK;
		}
		if (code != AMQP_STATUS_OK)
			return hx_rabbit_code_error(
				code, "the connection to RabbitMQ was lost", err);
		if (frame.frame_type == AMQP_FRAME_METHOD &&
		    frame.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD)
			return closed_error(frame.payload.method.decoded, err);
		if (frame.frame_type == AMQP_FRAME_METHOD)
			is_told = read_method(rabbit, &frame.payload.method, &event);
		else if (
			frame.frame_type == AMQP_FRAME_HEADER ||
			frame.frame_type == AMQP_FRAME_BODY)
			is_told = read_returning(rabbit, &frame, &event);
		else
			is_told = false;
		if (is_told) {
			*ret_event = event;
			return HAPAX_OK;
		}
	}
}
