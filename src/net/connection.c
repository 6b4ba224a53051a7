/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c - a stream socket on a reactor.
 *
 *	OPEN ──finish──▶ FINISHING ──all sent, peer ended or LINGER passed──▶ CLOSING
 *	  └───────────────────close, error, deadline, stall──────────────────▶ CLOSING
 *	CLOSING ──end of the turn──▶ on_close
 *
 *  (1) OUT is watched only after the kernel has refused bytes. IN is unwatched only when it arrives
 *      during a pause, so that a pause between two messages costs nothing.
 *  (2) An empty queue holds no memory.
 *  (3) Once CLOSING, the only callback is on_close, once.
 */
#include "net/connection.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/time.h"
#include "net/tls/tls.h"

enum {
	INPUT_SIZE_DEFAULT = 64 * 1024,
	OUTPUT_SIZE_DEFAULT = 1024 * 1024,
	STALL_MS_DEFAULT = 30 * 1000,

	/* Reads per turn, so that a peer that never stops sending does not starve others. */
	READS_PER_TURN = 8,

	/* Smaller reads would cost a system call for a few bytes. */
	READ_SIZE_MIN = 4 * 1024,

	/*
	 * How long to wait for the peer's end after our own. Closing with unread input resets the
	 * connection, and the reset may destroy data that the peer has not read.
	 */
	DRAIN_MS = 2000,
};

static bool is_live(const struct hx_connection *connection)
{
	return connection->state == HX_CONNECTION_OPEN ||
		connection->state == HX_CONNECTION_FINISHING;
}

static const struct hx_net *net_of(const struct hx_connection *connection)
{
	return connection->reactor->net;
}

static void fail(struct hx_connection *connection, int os_errno, const char *what)
{
	struct hapax_error err = {.status = HAPAX_OK};

	if ((os_errno == EPROTO || os_errno == EKEYREJECTED) && connection->tls != NULL) {
		(void)hx_error_set(
			&err, HAPAX_ERR_UNAVAILABLE, 0, "%s: %s", what,
			hx_tls_error(connection->tls));
		err.os_errno = os_errno; /* the cause, without the system's text for it */
	} else
		(void)hx_error_set(&err, HAPAX_ERR_UNAVAILABLE, os_errno, "%s", what);
	hx_connection_close(connection, &err);
}

static ssize_t receive(struct hx_connection *connection, void *data, size_t size)
{
	const struct hx_net *net = net_of(connection);

	if (connection->tls != NULL)
		return hx_tls_recv(connection->tls, net, connection->watch.fd, data, size);
	return net->ops->recv(net->context, connection->watch.fd, data, size);
}

static ssize_t transmit(struct hx_connection *connection, const void *data, size_t size)
{
	const struct hx_net *net = net_of(connection);

	if (connection->tls != NULL)
		return hx_tls_send(connection->tls, net, connection->watch.fd, data, size);
	return net->ops->send(net->context, connection->watch.fd, data, size);
}

/* Waiting to send handshake data, for a read or a write. */
static bool tls_wants_out(const struct hx_connection *connection)
{
	return connection->tls != NULL && hx_tls_wants_out(connection->tls);
}

static void update_watch(struct hx_connection *connection)
{
	bool reads = !connection->is_ended &&
		(!connection->is_held || connection->state == HX_CONNECTION_FINISHING);
	unsigned ready = 0;

	if (!is_live(connection))
		return;
	if (reads)
		ready |= HX_READY_IN;
	if (connection->wants_out || tls_wants_out(connection))
		ready |= HX_READY_OUT;
	hx_reactor_rewatch(connection->reactor, &connection->watch, ready);
}

static void announce_secured(struct hx_connection *connection)
{
	if (connection->tls == NULL || connection->is_secured || !is_live(connection) ||
	    !hx_tls_is_ready(connection->tls))
		return;
	connection->is_secured = true;
	if (connection->ops->on_secured != NULL)
		connection->ops->on_secured(connection);
}

static void set_stall(struct hx_connection *connection, int64_t span_ms)
{
	hx_timer_set(
		&connection->reactor->timers, &connection->stall,
		hx_reactor_now_ns(connection->reactor) + span_ms * HX_NS_PER_MS);
}

/* Bytes that the peer has received; the kernel buffers much for a slow peer. */
static int64_t taken(const struct hx_connection *connection)
{
	const struct hx_net *net = net_of(connection);
	int untaken = 0;

	if (connection->limits.rate_min > 0)
		untaken = net->ops->untaken(net->context, connection->watch.fd);
	return (int64_t)connection->sent_bytes - (untaken > 0 ? untaken : 0);
}

static void watch_rate(struct hx_connection *connection)
{
	connection->taken_before = taken(connection);
	set_stall(connection, connection->limits.stall_ms_max);
}

/* Tell the peer that no more data follows: without close_notify, TLS would report truncation. */
static void shut(struct hx_connection *connection)
{
	const struct hx_net *net = net_of(connection);

	connection->is_shut_due = connection->tls != NULL &&
		!hx_tls_shutdown(connection->tls, net, connection->watch.fd);
	if (connection->is_shut_due) {
		connection->wants_out = true;
		watch_rate(connection);
		return;
	}
	connection->is_shut = true;
	(void)net->ops->shutdown_send(net->context, connection->watch.fd);
	set_stall(connection, DRAIN_MS);
}

/* Everything is sent. */
static void output_is_empty(struct hx_connection *connection)
{
	connection->wants_out = false;
	hx_timer_clear(&connection->reactor->timers, &connection->stall);
	if (connection->state == HX_CONNECTION_FINISHING) {
		/* TLS answers an end with an end. */
		if (!connection->is_shut && (connection->tls != NULL || !connection->is_ended))
			shut(connection);
		else
			set_stall(connection, DRAIN_MS);
		if (connection->is_ended && !connection->is_shut_due)
			hx_connection_close(connection, NULL);
	} else if (connection->ops->on_drained != NULL) {
		connection->ops->on_drained(connection);
	}
}

static void read_input(struct hx_connection *connection);

/*
 * For hx_connection_read_first(), until a byte was sent: read waiting input again. False: nothing
 * may be sent yet, or ever.
 */
static bool has_read_first(struct hx_connection *connection)
{
	if (!connection->reads_first || connection->is_in_input)
		return true;
	/*
	 * Reading also advances a handshake; otherwise the first write would complete it and send
	 * at once.
	 */
	read_input(connection);
	if (!is_live(connection))
		return false;
	if (connection->tls != NULL && !hx_tls_is_ready(connection->tls)) {
		if (!hx_timer_is_set(&connection->stall))
			watch_rate(connection);
		connection->wants_out = tls_wants_out(connection);
		return false;
	}
	if (connection->ops->on_first != NULL)
		connection->ops->on_first(connection);
	return is_live(connection);
}

/* Send as much as the kernel accepts. */
static void send_output(struct hx_connection *connection)
{
	bool had_any = hx_byte_queue_size(&connection->output) > 0;
	bool may_send = !had_any || has_read_first(connection);

	while (may_send && is_live(connection) && hx_byte_queue_size(&connection->output) > 0) {
		struct hapax_bytes bytes = hx_byte_queue_bytes(&connection->output);
		ssize_t count = transmit(connection, bytes.data, bytes.size);

		if (count == -EAGAIN) {
			/*
			 * Progress restarts the timer, unless a rate is required; waiting does not.
			 */
			if (!hx_timer_is_set(&connection->stall))
				watch_rate(connection);
			connection->wants_out = !connection->tls || tls_wants_out(connection);
			break;
		}
		if (count < 0) {
			fail(connection, (int)-count, "the connection was lost while sending");
			return;
		}
		connection->reads_first = false;
		connection->sent_bytes += (uint64_t)count;
		hx_byte_queue_consume(&connection->output, (size_t)count);
		if (connection->limits.rate_min == 0)
			hx_timer_clear(&connection->reactor->timers, &connection->stall);
	}
	announce_secured(connection);
	if ((had_any || connection->is_shut_due) && is_live(connection) &&
	    hx_byte_queue_size(&connection->output) == 0)
		output_is_empty(connection);
	update_watch(connection);
}

/* Pass the input to the owner. */
static void deliver(struct hx_connection *connection)
{
	struct hapax_bytes input = hx_byte_queue_bytes(&connection->input);
	size_t consumed = input.size;

	connection->is_input_due = false;
	if (connection->state == HX_CONNECTION_OPEN && !connection->is_paused &&
	    (input.size > 0 || connection->is_ended)) {
		connection->is_in_input = true;
		consumed = connection->ops->on_input(connection, input, connection->is_ended);
		connection->is_in_input = false;
		assert(consumed <= input.size);
	} else if (connection->state == HX_CONNECTION_OPEN) {
		return;
	}
	if (!is_live(connection))
		return;
	hx_byte_queue_consume(&connection->input, consumed);
	/* Both sides have ended: there is nothing to wait for. */
	if (connection->is_ended && connection->is_shut)
		hx_connection_close(connection, NULL);
	else if (connection->is_ended && !connection->is_paused)
		hx_connection_finish(connection);
}

/* Make room for a read. False: the peer exceeded its limit, or memory ran out. */
static bool make_room(struct hx_connection *connection)
{
	size_t left = connection->input.size_max - hx_byte_queue_size(&connection->input);
	enum hapax_status status = HAPAX_ERR_LIMIT;
	struct hapax_error err = {.status = HAPAX_OK};

	if (left > 0)
		status = hx_byte_queue_reserve(
			&connection->input, left < READ_SIZE_MIN ? left : READ_SIZE_MIN);
	if (status == HAPAX_OK)
		return true;
	(void)hx_error_set(
		&err, status, 0,
		status == HAPAX_ERR_LIMIT ? "the peer sent a message of more than %zu bytes"
					  : "not enough memory to receive (%zu bytes held)",
		hx_byte_queue_size(&connection->input));
	hx_connection_close(connection, &err);
	return false;
}

/* One read. False: no more input now. */
static bool read_once(struct hx_connection *connection)
{
	size_t size;
	unsigned char *space;
	ssize_t count;

	if (!make_room(connection))
		return false;
	space = hx_byte_queue_space(&connection->input, &size);
	count = receive(connection, space, size);
	if (count > 0) {
		connection->received_bytes += (uint64_t)count;
		hx_byte_queue_grow(&connection->input, (size_t)count);
	}
	announce_secured(connection);
	if (!is_live(connection))
		return false;
	if (count == -EAGAIN) {
		/* Releases memory that was reserved but not used. */
		hx_byte_queue_consume(&connection->input, 0);
		return false;
	}
	if (count < 0) {
		fail(connection, (int)-count, "the connection was lost");
		return false;
	}
	connection->is_ended = count == 0;
	deliver(connection);
	if (!is_live(connection) || connection->is_ended)
		return false;
	/* Less than requested: the kernel has no more. TLS may have. */
	return connection->tls != NULL || (size_t)count == size;
}

static bool may_read(const struct hx_connection *connection)
{
	return is_live(connection) && !connection->is_ended &&
		(!connection->is_paused || connection->state == HX_CONNECTION_FINISHING);
}

static void read_input(struct hx_connection *connection)
{
	int reads = 0;

	while (may_read(connection) && reads < READS_PER_TURN && read_once(connection))
		reads++;
	/* The kernel does not report input that TLS has buffered. */
	if (may_read(connection) && connection->tls != NULL &&
	    hx_tls_has_pending(connection->tls)) {
		connection->is_input_due = true;
		hx_reactor_defer(connection->reactor, &connection->flush);
	}
}

static void hold(struct hx_connection *connection, unsigned ready)
{
	connection->is_held = true;
	if ((ready & HX_READY_END) && is_live(connection) && connection->ops->on_hangup != NULL)
		connection->ops->on_hangup(connection);
}

static void on_ready(struct hx_watch *watch, unsigned ready)
{
	struct hx_connection *connection = watch->context;
	bool shakes_hands = connection->tls != NULL && !connection->is_secured;

	if (ready & HX_READY_END)
		connection->is_hung_up = true;
	/* Otherwise the poller would report the unwanted input again and again. */
	if (connection->is_paused && (ready & (HX_READY_IN | HX_READY_END)))
		hold(connection, ready);
	/* A handshake may wait for either direction; reading advances it. */
	if ((ready & HX_READY_OUT) || shakes_hands)
		send_output(connection);
	if (is_live(connection) &&
	    (shakes_hands || (ready & (HX_READY_IN | HX_READY_END | HX_READY_ERROR))))
		read_input(connection);
	/* During a pause there are no reads, so only this detects a dead connection. */
	if (is_live(connection) && (ready & HX_READY_ERROR) && !may_read(connection))
		fail(connection,
		     -net_of(connection)
			      ->ops->connect_result(net_of(connection)->context, watch->fd),
		     "the connection was lost");
	if (is_live(connection) && hx_byte_queue_size(&connection->output) > 0)
		send_output(connection);
	update_watch(connection);
}

/* The end of a turn in which something was written or resumed. */
static void on_flush(struct hx_task *task)
{
	struct hx_connection *connection = task->context;

	if (connection->is_input_due && is_live(connection)) {
		deliver(connection);
		/* The kernel reports its input by itself; asking first would cost a call. */
		if (connection->tls != NULL)
			read_input(connection);
	}
	if (is_live(connection))
		send_output(connection);
}

static void on_deadline(struct hx_timer *timer)
{
	struct hx_connection *connection = timer->context;

	if (connection->deadline_ns == INT64_MAX)
		return;
	if (hx_reactor_now_ns(connection->reactor) < connection->deadline_ns)
		hx_timer_set(&connection->reactor->timers, timer, connection->deadline_ns);
	else
		fail(connection, 0, "the peer did not answer in time");
}

static void on_stall(struct hx_timer *timer)
{
	struct hx_connection *connection = timer->context;

	const struct hx_connection_limits *limits = &connection->limits;

	if (connection->is_shut && hx_byte_queue_size(&connection->output) == 0)
		hx_connection_close(connection, NULL);
	else if (
		limits->rate_min > 0 &&
		taken(connection) - connection->taken_before >=
			limits->rate_min * limits->stall_ms_max)
		watch_rate(connection);
	else
		fail(connection, ETIMEDOUT, "the peer did not read the data in time");
}

static void on_end(struct hx_task *task)
{
	struct hx_connection *connection = task->context;
	const struct hx_net *net = net_of(connection);
	struct hapax_error why = connection->why;

	net->ops->close(net->context, connection->watch.fd);
	connection->watch.fd = -1;
	hx_tls_free(connection->tls);
	connection->tls = NULL;
	hx_byte_queue_done(&connection->input);
	hx_byte_queue_done(&connection->output);
	hx_timer_retire(&connection->reactor->timers, &connection->deadline);
	hx_timer_retire(&connection->reactor->timers, &connection->stall);
	connection->state = HX_CONNECTION_NONE;
	connection->ops->on_close(connection, &why);
}

static struct hx_connection_limits complete_limits(const struct hx_connection_limits *limits)
{
	struct hx_connection_limits complete = {.input_size_max = 0};

	if (limits != NULL)
		complete = *limits;
	if (complete.input_size_max == 0)
		complete.input_size_max = INPUT_SIZE_DEFAULT;
	if (complete.output_size_max == 0)
		complete.output_size_max = OUTPUT_SIZE_DEFAULT;
	if (complete.stall_ms_max == 0)
		complete.stall_ms_max = STALL_MS_DEFAULT;
	return complete;
}

enum hapax_status hx_connection_open(
	struct hx_connection *connection, struct hx_reactor *reactor, int fd, struct hx_tls *tls,
	const struct hx_connection_ops *ops, const struct hx_connection_limits *limits,
	struct hapax_error *err)
{
	void *context = connection->context;
	enum hapax_status status;

	memset(connection, 0, sizeof(*connection));
	connection->context = context;
	connection->ops = ops;
	connection->reactor = reactor;
	connection->limits = complete_limits(limits);
	connection->deadline_ns = INT64_MAX;
	connection->watch = (struct hx_watch){.fd = fd, .fn = on_ready, .context = connection};
	connection->flush = (struct hx_task){.fn = on_flush, .context = connection};
	connection->end = (struct hx_task){.fn = on_end, .context = connection};
	hx_byte_queue_init(&connection->input, &reactor->blocks, connection->limits.input_size_max);
	hx_byte_queue_init(
		&connection->output, &reactor->blocks, connection->limits.output_size_max);
	status = hx_timer_introduce(
		&reactor->timers, &connection->deadline, on_deadline, connection);
	if (status == HAPAX_OK)
		status = hx_timer_introduce(
			&reactor->timers, &connection->stall, on_stall, connection);
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "not enough memory for a connection");
	else
		status = hx_reactor_watch(
			reactor, &connection->watch,
			HX_READY_IN | (tls != NULL && hx_tls_speaks_first(tls) ? HX_READY_OUT : 0u),
			err);
	if (status != HAPAX_OK) {
		hx_timer_retire(&reactor->timers, &connection->deadline);
		hx_timer_retire(&reactor->timers, &connection->stall);
		return status;
	}
	connection->tls = tls;
	connection->state = HX_CONNECTION_OPEN;
	return HAPAX_OK;
}

enum hapax_status hx_connection_reserve(
	struct hx_connection *connection, size_t size, unsigned char **ret_space)
{
	enum hapax_status status;
	size_t space_size;

	if (connection->state != HX_CONNECTION_OPEN)
		return HAPAX_ERR_FAILED;
	status = hx_byte_queue_reserve(&connection->output, size);
	if (status == HAPAX_OK)
		*ret_space = hx_byte_queue_space(&connection->output, &space_size);
	return status;
}

void hx_connection_wrote(struct hx_connection *connection, size_t size)
{
	hx_byte_queue_grow(&connection->output, size);
	connection->written_bytes += size;
	if (!connection->wants_out)
		hx_reactor_defer(connection->reactor, &connection->flush);
}

enum hapax_status hx_connection_write(
	struct hx_connection *connection, const void *data, size_t size)
{
	unsigned char *space;
	enum hapax_status status = hx_connection_reserve(connection, size, &space);

	if (status != HAPAX_OK)
		return status;
	if (size > 0) {
		memcpy(space, data, size);
		hx_connection_wrote(connection, size);
	}
	return HAPAX_OK;
}

void hx_connection_flush(struct hx_connection *connection)
{
	if (is_live(connection) && !connection->wants_out)
		send_output(connection);
}

bool hx_connection_is_seen(const struct hx_connection *connection)
{
	const struct hx_net *net = net_of(connection);

	return !connection->is_input_due &&
		(!is_live(connection) || connection->is_ended ||
		 net->ops->unread(net->context, connection->watch.fd) <= 0);
}

void hx_connection_pause(struct hx_connection *connection)
{
	connection->is_paused = true;
}

void hx_connection_resume(struct hx_connection *connection)
{
	if (!connection->is_paused)
		return;
	connection->is_paused = false;
	connection->is_held = false;
	connection->is_input_due = true;
	update_watch(connection);
	if (is_live(connection))
		hx_reactor_defer(connection->reactor, &connection->flush);
}

void hx_connection_set_deadline(struct hx_connection *connection, int64_t at_ns)
{
	if (!is_live(connection))
		return;
	/*
	 * Most deadlines are moved before they expire: the timer is set again only for an earlier
	 * one.
	 */
	connection->deadline_ns = at_ns;
	if (at_ns != INT64_MAX &&
	    (!hx_timer_is_set(&connection->deadline) || at_ns < connection->deadline.at))
		hx_timer_set(&connection->reactor->timers, &connection->deadline, at_ns);
}

void hx_connection_finish(struct hx_connection *connection)
{
	if (connection->state != HX_CONNECTION_OPEN)
		return;
	connection->state = HX_CONNECTION_FINISHING;
	if (hx_byte_queue_size(&connection->output) == 0)
		output_is_empty(connection);
	else if (!connection->wants_out)
		hx_reactor_defer(connection->reactor, &connection->flush);
	update_watch(connection);
}

void hx_connection_close(struct hx_connection *connection, const struct hapax_error *why)
{
	if (!is_live(connection))
		return;
	connection->state = HX_CONNECTION_CLOSING;
	if (why != NULL)
		connection->why = *why;
	hx_reactor_unwatch(connection->reactor, &connection->watch);
	hx_reactor_cancel(connection->reactor, &connection->flush);
	hx_timer_clear(&connection->reactor->timers, &connection->deadline);
	hx_timer_clear(&connection->reactor->timers, &connection->stall);
	hx_reactor_defer(connection->reactor, &connection->end);
}

void hx_connection_abort(struct hx_connection *connection, const struct hapax_error *why)
{
	const struct hx_net *net = net_of(connection);

	if (!is_live(connection))
		return;
	(void)net->ops->set_option(net->context, connection->watch.fd, HX_NET_RESET, 1);
	hx_connection_close(connection, why);
}
