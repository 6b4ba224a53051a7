/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_session.h - one client of the Redis door: bytes in, operations out, answers in,
 * replies out. It knows no socket.
 *
 *	used = hx_resp_session_plan(session, batch, input);   as many commands as fit
 *	... the batch, with those of other sessions, goes through the store ...
 *	hx_resp_session_finish(session, batch, out)            replies, in their order
 *
 * Nothing is replied before the store has answered all commands that came with it, so a
 * reply never tells more than is durable. A session has one batch on its way; until it
 * is finished, plan must not be called.
 *
 * A few commands need several steps (look, then write). finish then returns false: the
 * next step has been added to the batch `next`, and finish is due again for that one. A
 * few walk through the store instead, as a job; it is the only command that is planned
 * then.
 *
 * Threads: one at a time.
 */
#ifndef HX_RESP_RESP_SESSION_H
#define HX_RESP_RESP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/store.h>

#include "base/buf.h"
#include "resp/resp_batch.h"
#include "resp/resp_service.h"
#include "wire/resp/resp_request.h"

struct hx_resp_answer;
struct hx_resp_command;
struct hx_resp_job;

/* Writes the reply; false: another step was added to answer->next. */
typedef bool hx_resp_finish_fn(struct hx_resp_answer *answer);

/* A command whose reply is due. */
struct hx_resp_entry {
	hx_resp_finish_fn *finish; /* NULL: the reply is known: text_size bytes of the text */
	uint32_t first;            /* of its operations, in the batch */
	uint32_t count;
	uint32_t text_size;
	uint8_t protocol;
	bool is_silent;
	unsigned flags; /* the command's own */
	int64_t value;
};

enum hx_resp_reply_mode {
	HX_RESP_REPLY_ON = 0,
	HX_RESP_REPLY_OFF,
	HX_RESP_REPLY_SKIP_NEXT, /* asked for: it counts from the next command on */
	HX_RESP_REPLY_SKIP,
};

enum {
	HX_RESP_NAME_SIZE = 129,
	HX_RESP_FAILURES_MAX = 3, /* wrong passwords of a connection: then it is closed */
};

/*
 * Whether a credential does not count for now, since others of the same address were wrong too
 * often. user is its owner; NULL: it is wrong. False with a user: the session becomes that user.
 */
typedef bool hx_resp_locked_fn(void *context, const struct hx_resp_user *user);

struct hx_resp_session {
	struct hx_resp_service *service;
	struct hx_resp_request request;
	struct hapax_bytes *argv; /* of the command that is being planned */
	size_t argc;
	size_t argv_capacity;
	const struct hx_resp_command *command; /* NULL: there is none of that name */

	struct hx_resp_entry *entries; /* in order of the commands */
	size_t entry_count;
	size_t entry_capacity;
	struct hapax_buf text; /* replies that were known when their commands were planned */

	uint64_t id;
	int64_t began_ms;
	unsigned refused;  /* credentials, since whoever keeps an account of it has looked */
	unsigned locked;   /* the same, not looked at */
	unsigned failures; /* wrong credentials ever */
	hx_resp_locked_fn *is_locked; /* NULL: credentials always count */
	void *locked_context;
	uint8_t protocol;
	bool is_authenticated;
	bool is_closing;   /* no more is read; close when the replies are sent */
	bool is_abrupt;    /* close without a reply */
	bool is_last;      /* the command has steps: none is planned behind it */
	bool has_finished; /* the request was dealt with: begin the next one */
	enum hx_resp_reply_mode reply_mode;
	const struct hx_resp_user *user; /* NULL: everybody's */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	char name[HX_RESP_NAME_SIZE];
	char lib_name[HX_RESP_NAME_SIZE];
	char lib_version[HX_RESP_NAME_SIZE];

	/* MULTI */
	bool is_queuing;
	bool is_dirty;          /* something wrong was queued: EXEC refuses */
	bool is_executing;      /* the command that is being planned is one of EXEC's */
	struct hapax_buf queue; /* commands, as a client would send them */
	size_t queue_count;
	size_t exec_at;    /* EXEC: bytes of queue that were planned */
	size_t exec_count; /* EXEC: commands of the transaction */
	size_t exec_left;  /* EXEC: commands to be planned still */

	/*
	 * Memory. records: of the records that are being read for it, at most a share of the
	 * service's budget. noted_bytes: of what it holds otherwise, in that budget.
	 */
	struct hx_budget records;
	size_t noted_bytes;
	unsigned starved; /* commands refused for want of memory, since somebody has looked */

	struct hapax_buf kept;   /* what a command with steps has to remember */
	struct hx_resp_job *job; /* of the only command that is planned; NULL: none */
};

/* NO_MEMORY is told by the first plan; nothing is allocated here. */
void hx_resp_session_init(struct hx_resp_session *session, struct hx_resp_service *service);
void hx_resp_session_done(struct hx_resp_session *session);

/*
 * Plan the commands that stand at the front of input; returns how many bytes they were.
 * What they need from the store is added to batch. It stops early when enough is planned;
 * call it again, after finish, while it returns more than 0 or has entries.
 */
size_t hx_resp_session_plan(
	struct hx_resp_session *session, struct hx_resp_batch *batch, struct hapax_bytes input);

/* The most that one client may hold: of a transaction, of records, of a command that comes. */
size_t hx_resp_session_share(const struct hx_resp_service *service);

/* Whether something was planned for which a reply is due. */
static inline bool hx_resp_session_is_busy(const struct hx_resp_session *session)
{
	return session->entry_count > 0;
}

/* Whether a transaction has commands left: plan goes on with them, without any input. */
static inline bool hx_resp_session_wants_plan(const struct hx_resp_session *session)
{
	return session->exec_left > 0 && !session->is_closing;
}

/*
 * Whether the command that was planned has a job: take session->job to a thread that
 * may block, let it run to its end, then finish, with any batch.
 */
static inline bool hx_resp_session_has_job(const struct hx_resp_session *session)
{
	return session->job != NULL;
}

/* Of the command that began it: it is over. */
void hx_resp_session_end_job(struct hx_resp_session *session);

/* Whether any of it needs the store, or may in a later step. */
bool hx_resp_session_needs_round(const struct hx_resp_session *session);

/*
 * The batch is answered: append the replies to out. False: a command has another step in
 * next, which is another batch; what came before it is in out.
 */
bool hx_resp_session_finish(
	struct hx_resp_session *session, const struct hx_resp_batch *batch,
	struct hx_resp_batch *next, struct hapax_buf *out);

#endif
