/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resp_command.h - commands as data, and what their functions get.
 *
 * A command is planned when it is read and finished when the store has answered. One that
 * needs nothing from the store writes its reply while it is planned.
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

/* Behind OOM: of a command that is refused because all doors hold too much. */
#define HX_RESP_STARVED "command not allowed when the memory for clients is in use; try again later"

enum hx_resp_command_flag {
	HX_RESP_READ = 1 << 0,
	HX_RESP_WRITE = 1 << 1,
	HX_RESP_FAST = 1 << 2,
	HX_RESP_NO_AUTH = 1 << 3,  /* before AUTH, too */
	HX_RESP_NO_QUEUE = 1 << 4, /* runs at once inside MULTI */
	HX_RESP_ALONE = 1 << 5,    /* asks the store by itself: all before it must be answered */
	HX_RESP_TEST = 1 << 6,     /* only with resp.test_commands */
	HX_RESP_ADMIN = 1 << 7,
	HX_RESP_STEPS = 1 << 8, /* may take several steps: nothing is planned behind it */
};

struct hx_resp_call;

typedef void hx_resp_plan_fn(struct hx_resp_call *call);

struct hx_resp_command {
	const char *name; /* lower case; NULL ends a table */
	int arity;        /* with the name; negative: at least */
	unsigned flags;   /* enum hx_resp_command_flag */
	int first_key;    /* 0: none */
	int last_key;     /* -1: the last argument */
	int key_step;
	const char *summary;
	const char *since; /* of Redis; of hapax for its own */
	const char *group;
	hx_resp_plan_fn *plan;
	const struct hx_resp_command *subcommands; /* NULL: none */
	const char *full_name;                     /* "client|setname"; NULL: as name */
};

/* Is that its name, in any case? */
bool hx_resp_command_is_named(const struct hx_resp_command *command, struct hapax_bytes name);

/* By name in any case; NULL: there is none. */
const struct hx_resp_command *hx_resp_command_find(struct hapax_bytes name);
const struct hx_resp_command *hx_resp_subcommand_find(
	const struct hx_resp_command *command, struct hapax_bytes name);

/* By index, NULL after the last. */
const struct hx_resp_command *hx_resp_command_at(size_t index);
size_t hx_resp_command_count(void);

/* Is it there with these settings? */
bool hx_resp_command_is_offered(
	const struct hx_resp_command *command, const struct hx_resp_service *service);

/* A command that is being planned. */
struct hx_resp_call {
	struct hx_resp_session *session;
	struct hx_resp_service *service;
	struct hx_resp_batch *batch;
	const struct hx_resp_command *command;
	const struct hapax_bytes *argv;
	size_t argc;
	struct hx_resp_entry *entry;
	struct hapax_buf *text; /* the reply, if it is known already */
};

/* A command whose operations are answered. */
struct hx_resp_answer {
	struct hx_resp_session *session;
	struct hx_resp_entry *entry;
	const struct hapax_op *ops;
	size_t count;
	int protocol;
	struct hapax_buf *out;
	struct hx_resp_batch *next;
};

/* Is it the word, in any case? word is in upper case. Most are told apart by their size. */
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

/* The reply is an error. text has its code: "ERR syntax error". */
void hx_resp_refuse(struct hx_resp_call *call, const char *text);
__attribute__((format(printf, 2, 3))) void hx_resp_refuse_format(
	struct hx_resp_call *call, const char *format, ...);
void hx_resp_refuse_syntax(struct hx_resp_call *call);
void hx_resp_refuse_arity(struct hx_resp_call *call);

/* A whole number; false: it was refused as none. */
bool hx_resp_integer_arg(struct hx_resp_call *call, struct hapax_bytes arg, int64_t *ret_value);

/*
 * An operation on key in the session's scope. NULL: it was refused, and the call has no
 * operations. finish is called when all of them are answered.
 */
struct hapax_op *hx_resp_add(
	struct hx_resp_call *call, enum hapax_op_type type, struct hapax_bytes key,
	bool wants_record, hx_resp_finish_fn *finish);

/* A copy that lives as long as the batch; false: refused. */
bool hx_resp_keep(
	struct hx_resp_call *call, struct hapax_bytes bytes, struct hapax_bytes *ret_copy);

/* The value of the set operation that was added last. False: refused. */
bool hx_resp_set_value(struct hx_resp_call *call, struct hapax_bytes value);

/* It was done: somebody keeps an account of such changes. key may be empty. */
void hx_resp_tell_changed(
	const struct hx_resp_answer *answer, const char *action, struct hapax_bytes key);

/*
 * Another step of a command, in answer->next: begin it, then add to it as above. NULL: the
 * reply says why.
 */
void hx_resp_begin_step(struct hx_resp_answer *answer, hx_resp_finish_fn *finish);
struct hapax_op *hx_resp_add_step(
	struct hx_resp_answer *answer, enum hapax_op_type type, struct hapax_bytes key,
	bool wants_record);

/* Whether the store did not answer op; then the reply says so. */
bool hx_resp_put_failure(struct hx_resp_answer *answer, const struct hapax_op *op);

/* What a record that was read is to Redis: the value, or none. */
bool hx_resp_exists(const struct hapax_op *op);
bool hx_resp_has_value(const struct hapax_op *op);
void hx_resp_put_value(struct hx_resp_answer *answer, const struct hapax_op *op);
void hx_resp_put_busy(struct hx_resp_answer *answer);

/* The end of what changes one key: 1, or 0 if there was nothing to change. */
bool hx_resp_finish_applied(struct hx_resp_answer *answer);

/* As redis-server matches names: * ? [a-z] [^a] and backslash. */
bool hx_resp_glob(struct hapax_bytes pattern, struct hapax_bytes text, bool ignores_case);

#endif
