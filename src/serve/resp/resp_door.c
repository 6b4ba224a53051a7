/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/resp/resp_door.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "net/connection.h"
#include "net/tls/tls.h"
#include "observe/logger/logger.h"
#include "observe/metrics/metrics.h"
#include "resp/resp_command.h"
#include "resp/resp_job.h"
#include "resp/resp_session.h"
#include "serve/daemon/daemon.h"
#include "serve/daemon/loop.h"
#include "serve/daemon/origin.h"
#include "serve/resp/resp_tally.h"

enum {
	/* Input of a client beyond the largest value with its command. */
	INPUT_AHEAD_MAX = 8 * 1024 * 1024,

	/* A client with this much unread output gets no more replies until it reads. */
	UNREAD_MAX = 256 * 1024,
	UNREAD_MAX_STRANGER = 4 * 1024,
	OUTPUT_SIZE_MAX = 256 * 1024 * 1024,
	OUT_KEPT_MAX = 1024 * 1024,

	/* Enough operations for one round: later commands wait for the next. */
	ROUND_OPS_MAX = 16 * 1024,

	/*
	 * Draining: the time for pending connects, then the interval between checks of connected
	 * clients.
	 */
	DRAIN_MS = 50,
};

/* The time to authenticate. */
#define STRANGER_NS (5 * HX_NS_PER_S)

/* For a round in progress: the first of two events sets its bit, the second continues. */
enum phase {
	PHASE_SUBMITTED = 1 << 0, /* submit has returned */
	PHASE_ANSWERED = 1 << 1,
};

struct hx_resp_peer {
	struct hx_connection connection; /* first: same address */
	struct hx_resp_door *door;
	struct hx_resp_session session;
	struct hx_resp_peer *next; /* in the list of all */
	struct hx_resp_peer *back;
	struct hx_resp_peer *round_next;
	struct hx_job job_job;   /* runs the pieces of session.job */
	struct hx_task job_done; /* posted after the last piece */
	uint64_t heard_bytes;    /* draining: bytes received at the last check */
	bool is_busy;            /* in a round, or on a job */
	bool is_waiting;         /* for room in a round */
	bool is_unread;          /* waits for the client to read its output */
	bool is_gone;            /* the connection has ended: free it after the round */
	bool was_stranger;       /* has a deadline to authenticate */
	bool is_counted;         /* by its address */
	int64_t idle_ns;         /* since its last commands; 0: no limit */
	char client[HX_ADDRESS_HOST_SIZE];
};

static bool is_stranger(const struct hx_resp_peer *peer)
{
	return !peer->session.is_authenticated;
}

/* ---------------------------------------------------------------- replies */

static void write_out(struct hx_resp_peer *peer)
{
	struct hapax_buf *out = &peer->door->out;
	struct hapax_error err;

	if (peer->session.is_abrupt ||
	    (out->size > 0 &&
	     hx_connection_write(&peer->connection, out->data, out->size) != HAPAX_OK)) {
		(void)hx_error_set(&err, HAPAX_ERR_LIMIT, 0, "could not write the replies");
		hx_connection_close(&peer->connection, &err);
	}
	hx_buf_clear(out);
	if (out->capacity > OUT_KEPT_MAX)
		hx_buf_done(out);
}

/* A whole command has arrived, or the client has just authenticated. */
static void set_idle_deadline(struct hx_resp_peer *peer)
{
	hx_connection_set_deadline(
		&peer->connection,
		peer->idle_ns == 0 ? INT64_MAX
				   : hx_reactor_now_ns(peer->connection.reactor) + peer->idle_ns);
}

/* Replies were written: continues, or closes. */
static void settle(struct hx_resp_peer *peer)
{
	bool is_known = !is_stranger(peer);
	size_t unread_max = is_known ? UNREAD_MAX : UNREAD_MAX_STRANGER;

	if (is_known) {
		peer->was_stranger = false;
		set_idle_deadline(peer);
	}
	if (peer->session.is_closing) {
		hx_connection_finish(&peer->connection);
		return;
	}
	if (hx_connection_unsent(&peer->connection) > unread_max) {
		peer->is_unread = true;
		hx_connection_pause(&peer->connection);
	}
}

/*
 * Draining: closes it unless some of its input is not answered yet. A partial command is not a
 * reason to wait if no more of it arrives.
 */
static void drain_peer(struct hx_resp_peer *peer, bool is_silent)
{
	bool has_part = hx_byte_queue_size(&peer->connection.input) > 0;

	if (peer->is_busy || peer->is_waiting || hx_resp_session_wants_plan(&peer->session) ||
	    !hx_connection_is_seen(&peer->connection))
		return;
	if (!has_part || (is_silent && !peer->is_unread))
		hx_connection_finish(&peer->connection);
}

/* ---------------------------------------------------------------- rounds */

static void join_round(struct hx_resp_round *round, struct hx_resp_peer *peer)
{
	peer->is_busy = true;
	HX_LIST_ADD(round, peer, round_next);
}

/*
 * Runs one piece, then queues behind other clients, so that a walk through many keys delays no
 * other job for long. Threads: that of serve->jobs.
 */
static void run_job(struct hx_job *job)
{
	struct hx_resp_peer *peer = HX_CONTAINER(job, struct hx_resp_peer, job_job);
	struct hx_loop *loop = peer->door->loop;

	if (hx_resp_job_run(peer->session.job))
		(void)hx_worker_post(&loop->serve->jobs, job, NULL);
	else
		hx_reactor_post(&loop->reactor, &peer->job_done);
}

static void send_job(struct hx_resp_peer *peer)
{
	peer->is_busy = true;
	hx_connection_pause(&peer->connection);
	/* Its thread runs while there are loops: this cannot fail. */
	(void)hx_worker_post(&peer->door->loop->serve->jobs, &peer->job_job, NULL);
}

/* Whether the gathering round is full: then the peer waits for the next one. */
static bool must_wait(struct hx_resp_peer *peer)
{
	struct hx_resp_door *door = peer->door;

	if (door->gathering->batch.count < ROUND_OPS_MAX)
		return false;
	if (!peer->is_waiting) {
		peer->is_waiting = true;
		peer->round_next = door->waiting;
		door->waiting = peer;
		hx_connection_pause(&peer->connection);
	}
	return true;
}

/* Whether the planned commands need the store: then they join the round, or start the job. */
static bool set_out(struct hx_resp_peer *peer)
{
	struct hx_resp_door *door = peer->door;

	if (hx_resp_session_has_job(&peer->session)) {
		send_job(peer);
		return true;
	}
	if (!hx_resp_session_needs_round(&peer->session))
		return false;
	join_round(door->gathering, peer);
	hx_connection_pause(&peer->connection);
	hx_reactor_defer(&door->loop->reactor, &door->submit_task);
	return true;
}

/* The address that wrong passwords count for. */
static const char *guesser(const struct hx_resp_peer *peer)
{
	return hx_origin_of_failure(peer->client, peer->is_counted ? peer->client : "");
}

/* The limit of wrong passwords. */
static uint64_t failures_max(const struct hx_resp_peer *peer)
{
	struct hx_loop *loop = peer->door->loop;
	struct hx_loop_config *config = hx_loop_config_use(loop);
	uint64_t max;

	/* Without memory for the configuration in force, use the initial one. */
	if (config == NULL)
		return loop->serve->resp_config->auth.max_failures;
	max = config->config->auth.max_failures;
	hx_loop_config_give(loop, config);
	return max;
}

/* A client may be guessing passwords. */
static void tell_refused(struct hx_resp_peer *peer)
{
	const struct hx_loop *loop = peer->door->loop;
	const struct hx_logger_field fields[] = {
		HX_LOGGER_TEXT("door", "resp"), HX_LOGGER_UNSIGNED("count", peer->session.refused),
		HX_LOGGER_TEXT("client", peer->client)};

	hx_metrics_add(
		loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_CREDENTIAL, peer->session.refused);
	hx_metrics_add(loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_LOCKED, peer->session.locked);
	if (peer->session.refused > 0)
		hx_logger(
			loop->serve->log, HX_LOGGER_WARN, "Redis authentication failed", fields,
			peer->client[0] != '\0' ? 3 : 2);
	peer->session.refused = 0;
	peer->session.locked = 0;
}

static bool is_locked(
	void *context, struct hapax_bytes name, struct hapax_bytes password, bool is_right)
{
	struct hx_resp_peer *peer = context;
	const struct hx_peers_credential credential = {HX_PEERS_PASSWORD, name, password, is_right};

	return hx_peers_judge(
		       &peer->door->loop->serve->peers, guesser(peer), failures_max(peer),
		       hx_clock_mono_ns(), &credential) > 0;
}

static void tell_starved(struct hx_resp_peer *peer)
{
	hx_metrics_add(
		peer->door->loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_MEMORY,
		peer->session.starved);
	peer->session.starved = 0;
}

/*
 * Plans the commands in input and replies to those that need no store. Returns the number of bytes
 * used. Afterward the peer is busy, or must wait, or has nothing to do.
 */
static size_t work(struct hx_resp_peer *peer, struct hapax_bytes input)
{
	struct hx_resp_door *door = peer->door;
	const unsigned char *data = input.data;
	size_t used = 0;

	while (peer->connection.state == HX_CONNECTION_OPEN && !peer->is_unread &&
	       !must_wait(peer)) {
		size_t step;

		step = hx_resp_session_plan(
			&peer->session, &door->gathering->batch,
			used == input.size ? hx_bytes(NULL, 0)
					   : hx_bytes(data + used, input.size - used));

		used += step;
		if (peer->session.refused > 0 || peer->session.locked > 0)
			tell_refused(peer);
		if (peer->session.starved > 0)
			tell_starved(peer);
		if (set_out(peer))
			break;
		if (!hx_resp_session_is_busy(&peer->session) && step == 0 &&
		    !peer->session.is_closing)
			break;
		(void)hx_resp_session_finish(
			&peer->session, &door->gathering->batch, &door->gathering->batch,
			&door->out);
		write_out(peer);
		settle(peer);
	}
	return used;
}

static void free_peer(struct hx_resp_peer *peer)
{
	hx_resp_session_done(&peer->session);
	hx_free(peer);
}

/* Frees a connection that is in no round. */
static void leave(struct hx_resp_peer *peer)
{
	struct hx_resp_door *door = peer->door;

	if (peer->back != NULL)
		peer->back->next = peer->next;
	else
		door->peers = peer->next;
	if (peer->next != NULL)
		peer->next->back = peer->back;
	door->peer_count--;
	if (peer->is_counted)
		hx_peers_give(&door->loop->serve->peers, peer->client, HX_PEERS_RESP_CONNECTIONS);
	atomic_fetch_sub_explicit(&door->service->clients, 1, memory_order_relaxed);
	hx_listener_ended(&door->listener);
	free_peer(peer);
	hx_loop_check_idle(door->loop);
}

/*
 * Its client is gone. A transaction that has begun still completes: no client asked for half of
 * one.
 */
static void end_peer(struct hx_resp_peer *peer)
{
	struct hx_resp_batch *batch = &peer->door->gathering->batch;

	while (hx_resp_session_wants_plan(&peer->session)) {
		if (must_wait(peer))
			return;
		(void)hx_resp_session_plan(&peer->session, batch, hx_bytes(NULL, 0));
		if (set_out(peer))
			return;
		(void)hx_resp_session_finish(&peer->session, batch, batch, &peer->door->out);
		hx_buf_clear(&peer->door->out);
	}
	leave(peer);
}

/* The peer is free to continue with its remaining work. */
static void go_on(struct hx_resp_peer *peer)
{
	if (peer->is_gone) {
		end_peer(peer);
		return;
	}
	/* A transaction may have commands left, which need no input. */
	if (hx_resp_session_wants_plan(&peer->session) && !peer->is_unread)
		(void)work(peer, hx_bytes(NULL, 0));
	if (peer->door->is_draining)
		drain_peer(peer, false);
	if (!peer->is_busy && !peer->is_unread && !peer->is_waiting)
		hx_connection_resume(&peer->connection);
}

static void answer_peer(struct hx_resp_peer *peer, const struct hx_resp_batch *batch)
{
	struct hx_resp_door *door = peer->door;
	bool is_done =
		hx_resp_session_finish(&peer->session, batch, &door->gathering->batch, &door->out);

	peer->is_busy = false;
	if (peer->is_gone)
		hx_buf_clear(&door->out);
	else
		write_out(peer);
	if (!is_done) {
		join_round(door->gathering, peer);
		return;
	}
	if (!peer->is_gone)
		settle(peer);
	go_on(peer);
}

/* A job has ended. */
static void on_job_done(struct hx_task *task)
{
	struct hx_resp_peer *peer = task->context;

	answer_peer(peer, &peer->door->gathering->batch);
}

/* The round is answered. */
static void answer(struct hx_resp_door *door)
{
	struct hx_resp_round *round = door->on_its_way;
	struct hx_resp_peer *peer = round->first;
	struct hx_resp_peer *waiting;

	hx_resp_tally(door->loop, &round->batch);
	round->first = round->last = NULL;
	while (peer != NULL) {
		struct hx_resp_peer *next = peer->round_next;

		answer_peer(peer, &round->batch);
		peer = next;
	}
	hx_resp_batch_clear(&round->batch);
	door->on_its_way = NULL;
	/* Only now: answered peers may have begun to wait. */
	waiting = door->waiting;
	door->waiting = NULL;
	while (waiting != NULL) {
		peer = waiting;
		waiting = peer->round_next;
		peer->is_waiting = false;
		go_on(peer);
	}
	if (door->gathering->first != NULL)
		hx_reactor_defer(&door->loop->reactor, &door->submit_task);
	hx_loop_check_idle(door->loop);
}

/* Called by the store on any thread, perhaps before submit returns. */
static void on_answered(struct hapax_op *ops, size_t count, void *context)
{
	struct hx_resp_door *door = context;

	(void)ops;
	(void)count;
	if (atomic_fetch_or(&door->phase, PHASE_ANSWERED) & PHASE_SUBMITTED)
		hx_reactor_post(&door->loop->reactor, &door->answer_task);
}

static void on_answer_task(struct hx_task *task)
{
	answer(task->context);
}

static void on_submit_task(struct hx_task *task)
{
	struct hx_resp_door *door = task->context;
	struct hx_resp_round *round = door->gathering;

	if (door->on_its_way != NULL || round->first == NULL)
		return;
	door->on_its_way = round;
	door->gathering = round == &door->rounds[0] ? &door->rounds[1] : &door->rounds[0];
	hx_resp_batch_seal(&round->batch);
	atomic_store(&door->phase, 0);
	if (round->batch.count == 0) {
		answer(door);
		return;
	}
	hapax_store_submit(
		door->service->options.store, round->batch.ops, round->batch.count,
		(struct hapax_completion){on_answered, door});
	if (atomic_fetch_or(&door->phase, PHASE_SUBMITTED) & PHASE_ANSWERED)
		answer(door);
}

/* ---------------------------------------------------------------- connections */

/* A large command arrived in part, without room for the rest: the next cannot be found. */
static void refuse_part(struct hx_resp_peer *peer)
{
	static const char text[] = "-OOM " HX_RESP_STARVED "\r\n";

	peer->session.starved++;
	tell_starved(peer);
	(void)hx_connection_write(&peer->connection, text, sizeof(text) - 1);
	hx_connection_finish(&peer->connection);
}

static size_t on_input(struct hx_connection *connection, struct hapax_bytes input, bool is_end)
{
	struct hx_resp_peer *peer = (struct hx_resp_peer *)connection;
	size_t used;

	(void)is_end;
	/* A round has its commands, and the read did not stop in time. */
	if (peer->is_busy || peer->is_waiting)
		return 0;
	used = work(peer, input);
	if (input.size - used > HX_BLOCK_SIZE && !peer->is_busy && !peer->is_waiting &&
	    !peer->is_unread && connection->state == HX_CONNECTION_OPEN &&
	    hx_budget_is_full(peer->door->service->options.budget))
		refuse_part(peer);
	return used;
}

static void on_drained(struct hx_connection *connection)
{
	struct hx_resp_peer *peer = (struct hx_resp_peer *)connection;

	if (!peer->is_unread)
		return;
	peer->is_unread = false;
	if (!peer->is_busy && !peer->is_waiting)
		go_on(peer);
}

static void on_close(struct hx_connection *connection, const struct hapax_error *why)
{
	struct hx_resp_peer *peer = (struct hx_resp_peer *)connection;

	if (peer->door->tls != NULL && !connection->is_secured)
		hx_serve_unsecured(
			peer->door->loop->serve, peer->door->loop->cells, "resp", peer->client,
			why);
	if (why->os_errno == ETIMEDOUT)
		hx_metrics_add(
			peer->door->loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_SEND_TIMEOUT, 1);
	hx_metrics_add(peer->door->loop->cells, HX_METRIC_CONNECTIONS, 0, HX_DOOR_RESP, -1);
	peer->is_gone = true;
	if (hx_resp_session_has_job(&peer->session))
		hx_resp_job_drop(peer->session.job);
	if (!peer->is_busy && !peer->is_waiting)
		end_peer(peer);
}

/* The handshake has one time limit, authentication another. */
static void begin_session(struct hx_connection *connection)
{
	struct hx_resp_peer *peer = (struct hx_resp_peer *)connection;

	peer->was_stranger = is_stranger(peer);
	if (peer->was_stranger)
		hx_connection_set_deadline(
			connection, hx_reactor_now_ns(connection->reactor) + STRANGER_NS);
	else
		set_idle_deadline(peer);
}

static const struct hx_connection_ops ops = {
	.on_input = on_input,
	.on_drained = on_drained,
	.on_secured = begin_session,
	.on_close = on_close,
};

static enum hapax_status open_peer(struct hx_resp_peer *peer, int fd)
{
	struct hx_resp_door *door = peer->door;
	size_t share = hx_resp_session_share(door->service);
	const struct hx_connection_limits limits = {
		.input_size_max = hx_resp_service_bulk_size_max(door->service) +
			(share < INPUT_AHEAD_MAX ? share : INPUT_AHEAD_MAX),
		.output_size_max = OUTPUT_SIZE_MAX};

	struct hx_tls *tls = NULL;
	enum hapax_status status = HAPAX_OK;

	if (door->tls != NULL)
		status = hx_tls_new(door->tls, NULL, &tls, NULL);
	hx_resp_session_init(&peer->session, door->service);
	peer->session.is_locked = is_locked;
	peer->session.locked_context = peer;
	peer->job_job.run = run_job;
	peer->job_done = (struct hx_task){.fn = on_job_done, .context = peer};
	if (status == HAPAX_OK)
		status = hx_connection_open(
			&peer->connection, &door->loop->reactor, fd, tls, &ops, &limits, NULL);
	if (status != HAPAX_OK)
		hx_tls_free(tls);
	return status;
}

/* Applies the limits in force. False: its address has too many; it got an error if possible. */
static bool admit(struct hx_resp_peer *peer, int fd)
{
	static const char refusal[] = "-ERR max number of clients reached for this address\r\n";
	struct hx_loop *loop = peer->door->loop;
	const struct hx_net *net = loop->reactor.net;
	struct hx_loop_config *config = hx_loop_config_use(loop);
	enum hapax_status status = HAPAX_OK;

	if (config == NULL)
		return false;
	peer->idle_ns = config->config->resp.idle_timeout_ms * HX_NS_PER_MS;
	peer->is_counted = !hx_origin_is_trusted(&config->config->http, peer->client);
	if (peer->is_counted)
		status = hx_peers_take(
			&loop->serve->peers, peer->client, HX_PEERS_RESP_CONNECTIONS,
			hx_descriptors_per_address(
				&loop->serve->descriptors, config->config, HX_DOOR_RESP));
	hx_loop_config_give(loop, config);
	if (status == HAPAX_OK)
		return true;
	hx_metrics_add(loop->cells, HX_METRIC_REFUSED, 0, HX_REFUSED_ADDRESS, 1);
	if (peer->door->tls == NULL)
		(void)net->ops->send(net->context, fd, refusal, sizeof(refusal) - 1);
	return false;
}

static void on_accept(struct hx_listener *listener, int fd, const struct hx_address *address)
{
	struct hx_resp_door *door = listener->context;
	const struct hx_net *net = door->loop->reactor.net;
	struct hx_resp_peer *peer = hx_alloc_zero(1, sizeof(*peer));

	if (peer != NULL) {
		peer->door = door;
		hx_address_host(address, peer->client);
	}
	if (peer != NULL && !admit(peer, fd)) {
		hx_free(peer);
		peer = NULL;
	}
	if (peer == NULL || open_peer(peer, fd) != HAPAX_OK) {
		if (peer != NULL && peer->is_counted)
			hx_peers_give(
				&door->loop->serve->peers, peer->client, HX_PEERS_RESP_CONNECTIONS);
		hx_free(peer);
		net->ops->close(net->context, fd);
		hx_listener_ended(listener);
		return;
	}
	peer->next = door->peers;
	if (door->peers != NULL)
		door->peers->back = peer;
	door->peers = peer;
	door->peer_count++;
	atomic_fetch_add_explicit(&door->service->clients, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&door->service->connections, 1, memory_order_relaxed);
	hx_metrics_add(door->loop->cells, HX_METRIC_CONNECTIONS, 0, HX_DOOR_RESP, 1);
	if (door->tls == NULL)
		begin_session(&peer->connection);
	else
		hx_connection_set_deadline(
			&peer->connection,
			hx_reactor_now_ns(&door->loop->reactor) +
				door->handshake_ms * HX_NS_PER_MS);
}

/* ---------------------------------------------------------------- the door */

static void set_drain_timer(struct hx_resp_door *door)
{
	struct hx_reactor *reactor = &door->loop->reactor;

	hx_timer_set(
		&reactor->timers, &door->drain_timer,
		hx_reactor_now_ns(reactor) + DRAIN_MS * HX_NS_PER_MS);
}

/* First closes the door, then idle connections. */
static void on_drain_timer(struct hx_timer *timer)
{
	struct hx_resp_door *door = timer->context;
	bool was_open = hx_listener_is_open(&door->listener);
	struct hx_resp_peer *next;

	if (was_open)
		hx_listener_finish(&door->listener);
	for (struct hx_resp_peer *peer = door->peers; peer != NULL; peer = next) {
		uint64_t bytes = peer->connection.received_bytes;

		next = peer->next;
		if (!was_open)
			drain_peer(peer, bytes == peer->heard_bytes);
		peer->heard_bytes = bytes;
	}
	if (door->peer_count > 0)
		set_drain_timer(door);
	hx_loop_check_idle(door->loop);
}

enum hapax_status hx_resp_door_open(
	struct hx_resp_door *door, struct hx_loop *loop, struct hx_resp_service *service,
	const struct hx_address *address, bool shares_port, size_t connections_max,
	struct hapax_error *err)
{
	enum hapax_status status;

	door->loop = loop;
	door->service = service;
	door->gathering = &door->rounds[0];
	door->submit_task = (struct hx_task){.fn = on_submit_task, .context = door};
	door->answer_task = (struct hx_task){.fn = on_answer_task, .context = door};
	hx_buf_init(&door->out, OUTPUT_SIZE_MAX);
	for (size_t i = 0; i < 2; i++) {
		hx_resp_batch_init(&door->rounds[i].batch);
		door->rounds[i].batch.budget = service->options.budget;
	}
	door->listener.open_max = connections_max;
	status =
		hx_timer_introduce(&loop->reactor.timers, &door->drain_timer, on_drain_timer, door);
	if (status != HAPAX_OK)
		(void)hx_error_set(err, status, 0, "not enough memory for the Redis listener");
	else
		status = hx_listener_open(
			&door->listener, &loop->reactor, address, shares_port, on_accept, door,
			err);
	if (status != HAPAX_OK) {
		hx_timer_retire(&loop->reactor.timers, &door->drain_timer);
		door->service = NULL;
	}
	return status;
}

void hx_resp_door_drain(struct hx_resp_door *door)
{
	if (door->service == NULL || door->is_draining)
		return;
	door->is_draining = true;
	hx_listener_shut(&door->listener);
	set_drain_timer(door);
}

void hx_resp_door_close(struct hx_resp_door *door)
{
	if (door->service == NULL)
		return;
	hx_listener_close(&door->listener);
	for (struct hx_resp_peer *peer = door->peers; peer != NULL; peer = peer->next)
		hx_connection_close(&peer->connection, NULL);
}

void hx_resp_door_done(struct hx_resp_door *door)
{
	if (door->service == NULL)
		return;
	assert(hx_resp_door_has_gone(door));
	hx_timer_retire(&door->loop->reactor.timers, &door->drain_timer);
	for (size_t i = 0; i < 2; i++)
		hx_resp_batch_done(&door->rounds[i].batch);
	hx_buf_done(&door->out);
	door->service = NULL;
}
