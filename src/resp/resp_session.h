/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_session.h - one client of the Redis door: bytes in, operations out, answers in, replies out.
 * It has no socket.
 *
 *	used = hx_resp_session_plan(session, batch, input);   as many commands as fit
 *	... the batch, with those of other sessions, goes through the store ...
 *	hx_resp_session_finish(session, batch, out)            replies, in their order
 *
 * No reply is sent before the store has answered all commands of the batch, so a reply never
 * reports more than is durable. A session has one batch in progress; until it is finished, plan
 * must not be called.
 *
 * A few commands need several steps (read, then write). finish then returns false: the next step
 * has been added to the batch `next`, and finish must be called again for that one. Other commands
 * walk through the store, as a job. Such a command is planned alone.
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

/* Writes the reply, or adds another step to answer->next. */
typedef void hx_resp_finish_fn(struct hx_resp_answer *answer);

/* A planned command that has no reply yet. */
struct hx_resp_entry {
	hx_resp_finish_fn *finish; /* NULL: the reply is known, as text_size bytes of the text */
	uint32_t first;            /* index of its first operation in the batch */
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
	HX_RESP_REPLY_SKIP_NEXT, /* requested: takes effect with the next command */
	HX_RESP_REPLY_SKIP,
};

enum {
	HX_RESP_NAME_SIZE = 129,
	HX_RESP_FAILURES_MAX = 3, /* wrong passwords before the connection is closed */
};

/*
 * Whether the credential is ignored because its address has sent too many wrong ones. Called once
 * for each; a wrong one is counted here. False and is_right: the session becomes that user.
 */
typedef bool hx_resp_locked_fn(
	void *context, struct hapax_bytes name, struct hapax_bytes password, bool is_right);

struct hx_resp_session {
	struct hx_resp_service *service;
	struct hx_resp_request request;
	struct hapax_bytes *argv; /* of the command being planned */
	size_t argc;
	size_t argv_capacity;
	const struct hx_resp_command *command; /* NULL: unknown name */

	struct hx_resp_entry *entries; /* in command order */
	size_t entry_count;
	size_t entry_capacity;
	struct hapax_buf text; /* replies already known at planning */

	uint64_t id;
	int64_t began_ms;
	unsigned refused;             /* wrong credentials since the owner last read this */
	unsigned locked;              /* ignored credentials, likewise */
	unsigned failures;            /* wrong credentials in total */
	hx_resp_locked_fn *is_locked; /* NULL: credentials are always checked */
	void *locked_context;
	uint8_t protocol;
	bool is_authenticated;
	bool is_closing;   /* read no more; close when the replies are sent */
	bool is_abrupt;    /* close without a reply */
	bool is_last;      /* the command has steps: none is planned after it */
	bool has_finished; /* the request was handled: begin the next one */
	enum hx_resp_reply_mode reply_mode;
	const struct hx_resp_user *user; /* NULL: no users are configured, or none is logged in */
	struct hapax_bytes tenant;
	struct hapax_bytes group;
	char name[HX_RESP_NAME_SIZE];
	char lib_name[HX_RESP_NAME_SIZE];
	char lib_version[HX_RESP_NAME_SIZE];

	/* MULTI */
	bool is_queuing;
	bool is_dirty;          /* an invalid command was queued: EXEC refuses */
	bool is_executing;      /* the command being planned belongs to EXEC */
	struct hapax_buf queue; /* commands, as a client would send them */
	size_t queue_count;
	size_t exec_at;    /* EXEC: bytes of queue already planned */
	size_t exec_count; /* EXEC: commands of the transaction */
	size_t exec_left;  /* EXEC: commands left to plan */

	/*
	 * Memory. records: for the records being read, at most a share of the service's budget.
	 * noted_bytes: all other memory of the session, in that budget.
	 */
	struct hx_budget records;
	size_t noted_bytes;
	unsigned starved; /* commands refused for lack of memory since the owner last read this */

	/* Locks: service->lock, as writing names and user, since others list the clients. */
	struct hx_resp_session *next;
	struct hx_resp_session *previous;

	struct hapax_buf kept;   /* state of a command with steps */
	struct hx_resp_job *job; /* of the only planned command; NULL: none */
};

/* Allocates nothing; the first plan reports NO_MEMORY. */
void hx_resp_session_init(struct hx_resp_session *session, struct hx_resp_service *service);
void hx_resp_session_done(struct hx_resp_session *session);

/*
 * Plans the commands at the front of input and returns their size in bytes. Adds their store
 * operations to batch. It stops early when enough is planned. Call it again, after finish, while it
 * returns more than 0 or has entries.
 */
size_t hx_resp_session_plan(
	struct hx_resp_session *session, struct hx_resp_batch *batch, struct hapax_bytes input);

/* The most memory of one client, each for a transaction, records, an incoming command. */
size_t hx_resp_session_share(const struct hx_resp_service *service);

/* Whether a planned command still needs its reply. */
static inline bool hx_resp_session_is_busy(const struct hx_resp_session *session)
{
	return session->entry_count > 0;
}

/* Whether a transaction has commands left: plan continues with them, without input. */
static inline bool hx_resp_session_wants_plan(const struct hx_resp_session *session)
{
	return session->exec_left > 0 && !session->is_closing;
}

/*
 * Whether the planned command has a job: pass session->job to a thread that may block, run it to
 * its end, then finish, with any batch.
 */
static inline bool hx_resp_session_has_job(const struct hx_resp_session *session)
{
	return session->job != NULL;
}

/* Ends the job of the command. */
void hx_resp_session_end_job(struct hx_resp_session *session);

/* Whether any command needs the store, now or in a later step. */
bool hx_resp_session_needs_round(const struct hx_resp_session *session);

/*
 * The batch is answered: appends the replies to out. False: a command has another step in next,
 * which is another batch; out has the earlier replies.
 */
bool hx_resp_session_finish(
	struct hx_resp_session *session, const struct hx_resp_batch *batch,
	struct hx_resp_batch *next, struct hapax_buf *out);

#endif
