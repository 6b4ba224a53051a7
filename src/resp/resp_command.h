/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_command.h - commands as data, and the arguments of their functions.
 *
 * A command is planned when it is read and finished when the store has answered. A command that
 * needs no store operation writes its reply while it is planned.
 *
 * Threads: the table is constant; the rest belongs to a session.
 */
#ifndef HX_RESP_RESP_COMMAND_H
#define HX_RESP_RESP_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "resp/resp_batch.h"
#include "resp/resp_session.h"
#include "wire/resp/resp.h"

/* Follows OOM, for a command that is refused because all doors hold too much memory. */
#define HX_RESP_STARVED "command not allowed when the memory for clients is in use; retry later"

enum hx_resp_command_flag {
	HX_RESP_READ = 1 << 0,
	HX_RESP_WRITE = 1 << 1,
	HX_RESP_FAST = 1 << 2,
	HX_RESP_NO_AUTH = 1 << 3,  /* also allowed before AUTH */
	HX_RESP_NO_QUEUE = 1 << 4, /* runs at once inside MULTI */
	HX_RESP_ALONE = 1
		<< 5, /* submits its own operations: all earlier commands must be answered first */
	HX_RESP_TEST = 1 << 6, /* only with resp.test_commands */
	HX_RESP_ADMIN = 1 << 7,
	HX_RESP_STEPS = 1 << 8,  /* may take several steps: no command is planned after it */
	HX_RESP_PARENT = 1 << 9, /* has subcommands */
};

struct hx_resp_call;

typedef void hx_resp_plan_fn(struct hx_resp_call *call);

struct hx_resp_command {
	const char *name; /* lower case; of a subcommand "client|setname" */
	int arity;        /* includes the name; negative: at least */
	unsigned flags;   /* enum hx_resp_command_flag */
	int last_key;     /* keys are the arguments from 1 to this one; -1: the last; 0: none */
	const char *summary;
	const char *since; /* version of Redis; of hapax for its own commands */
	const char *group;
	hx_resp_plan_fn *plan;     /* NULL: has only subcommands */
	hx_resp_finish_fn *finish; /* for hx_resp_plan_lookup() */
	unsigned variant;          /* tells apart commands with the same functions */
};

/* Whether name is the command's name, in any case. */
bool hx_resp_command_is_named(const struct hx_resp_command *command, struct hapax_bytes name);

/* By name in any case; NULL: not found. The name of a subcommand is without its parent's. */
const struct hx_resp_command *hx_resp_command_find(struct hapax_bytes name);
const struct hx_resp_command *hx_resp_subcommand_find(
	const struct hx_resp_command *command, struct hapax_bytes name);

/* Why hapax does not have a command of Redis that people ask for; NULL: it names no such one. */
const char *hx_resp_refusal(struct hapax_bytes name);

/* The subcommand after sub, or the first one; NULL: no more. */
const struct hx_resp_command *hx_resp_subcommand_next(
	const struct hx_resp_command *command, const struct hx_resp_command *sub);

/* By index, NULL after the last. */
const struct hx_resp_command *hx_resp_command_at(size_t index);
size_t hx_resp_command_count(void);

/* Whether the command is enabled by these settings. */
bool hx_resp_command_is_offered(
	const struct hx_resp_command *command, const struct hx_resp_service *service);

/* A command during planning. */
struct hx_resp_call {
	struct hx_resp_session *session;
	struct hx_resp_service *service;
	struct hx_resp_batch *batch;
	const struct hx_resp_command *command;
	const struct hapax_bytes *argv;
	size_t argc;
	struct hx_resp_entry *entry;
	struct hapax_buf *text; /* the reply, if already known */
};

/* A command whose operations, or whose job, the store has answered without an error. */
struct hx_resp_answer {
	struct hx_resp_session *session;
	struct hx_resp_entry *entry;
	const struct hapax_op *ops;
	size_t count;
	int protocol;
	struct hapax_buf *out;
	struct hx_resp_batch *next;
	bool has_step; /* out: another step was added to next */
};

/* Compares in any case; word is in upper case. The size alone rules out most. */
static inline bool hx_resp_is_word(struct hapax_bytes bytes, const char *word)
{
	const char *at = bytes.data;

	if (bytes.size != strlen(word))
		return false;
	for (size_t i = 0; i < bytes.size; i++) {
		char byte = at[i];

		if (byte >= 'a' && byte <= 'z')
			byte = (char)(byte - 'a' + 'A');
		if (byte != word[i])
			return false;
	}
	return true;
}

/* The arguments of "%.*s" for the start of an argument that an error quotes. */
#define HX_RESP_SHOWN(bytes)                            \
	(int)((bytes).size < 128 ? (bytes).size : 128), \
		(bytes).size == 0 ? "" : (const char *)(bytes).data

/* Replies with an error. text includes its code: "ERR syntax error". False, for the caller. */
bool hx_resp_refuse(struct hx_resp_call *call, const char *text);
__attribute__((format(printf, 2, 3))) bool hx_resp_refuse_format(
	struct hx_resp_call *call, const char *format, ...);
bool hx_resp_refuse_syntax(struct hx_resp_call *call);
void hx_resp_refuse_arity(struct hx_resp_call *call);

/* Reads an integer. False: refused, as not an integer. */
bool hx_resp_integer_arg(struct hx_resp_call *call, struct hapax_bytes arg, int64_t *ret_value);

/*
 * Adds an operation on key in the session's scope. NULL: refused; the call then has no operations.
 * finish is called when all of them are answered.
 */
struct hapax_op *hx_resp_add(
	struct hx_resp_call *call, enum hapax_op_type type, struct hapax_bytes key,
	bool wants_record, hx_resp_finish_fn *finish);

/* A copy that lives as long as the batch. False: refused. */
bool hx_resp_keep(
	struct hx_resp_call *call, struct hapax_bytes bytes, struct hapax_bytes *ret_copy);

/* The value of the set operation that was added last. False: refused. */
bool hx_resp_set_value(struct hx_resp_call *call, struct hapax_bytes value);

/* Reports a change for the audit log. key may be empty. */
void hx_resp_tell_changed(
	const struct hx_resp_answer *answer, const char *action, struct hapax_bytes key);

/*
 * Adds an operation in answer->next: another step of the command, or more of it. *value is replaced
 * by a copy that lives as long; NULL: none. Returns NULL if the reply contains the error.
 */
struct hapax_op *hx_resp_add_step(
	struct hx_resp_answer *answer, enum hapax_op_type type, struct hapax_bytes key,
	hx_resp_finish_fn *finish, struct hapax_bytes *value);

/* Whether the store failed to answer; if so, the reply contains the error. */
bool hx_resp_put_failure(const struct hx_resp_answer *answer);

/* A record in terms of Redis: whether it exists, whether it has a value. */
bool hx_resp_exists(const struct hapax_op *op);
bool hx_resp_has_value(const struct hapax_op *op);
void hx_resp_put_value(struct hx_resp_answer *answer, const struct hapax_op *op);
void hx_resp_put_busy(struct hx_resp_answer *answer);

/* Finishes a command that changes one key: 1, or 0 if there was nothing to change. */
void hx_resp_finish_applied(struct hx_resp_answer *answer);

/* Matches like redis-server: * ? [a-z] [^a] and backslash. */
bool hx_resp_glob(struct hapax_bytes pattern, struct hapax_bytes text, bool ignores_case);

#endif
