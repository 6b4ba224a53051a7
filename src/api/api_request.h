/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_request.h - a request inside the API; for api/ only.
 *
 *	handle ──▶ submit, or the worker ──▶ a step on the reactor's thread ──▶ reply
 *
 *  (1) From handle to its reply a request is in the API's list, and nowhere else.
 *  (2) A reply or a problem is the last call for a request: it frees the request.
 *  (3) While the store or the worker has the request, no other code touches it.
 *
 * Threads: the reactor's, except as api_worker.h says.
 */
#ifndef HX_API_API_REQUEST_H
#define HX_API_API_REQUEST_H

#include "api/api.h"
#include "api/api_operation.h"
#include "api/audit.h"
#include "api/events.h"
#include "api/route.h"
#include "api/api_worker.h"
#include "base/buf.h"
#include "observe/decision.h"
#include "wire/json/json_object.h"
#include "wire/json/json_write.h"

enum {
	/* For a reply; a page of keys is far smaller, a batch of results may be large. */
	HX_API_REPLY_MAX = 64 * 1024 * 1024,

	/* Of a consumer, with its NUL. */
	HX_API_NAME_SIZE = 128 + 1,

	/* For a tree: 1,024 operations take a hundredth of it, a large result is one node. */
	HX_API_SCRATCH_MAX = 16 * 1024 * 1024,
};

/* The types of problems. */
#define HX_API_PROBLEM(name) "urn:hapax:problem:" name

struct hx_config;
struct hx_config_consumer;

struct hx_api {
	struct hx_api_options options; /* complete */
	struct hx_observer observer;   /* of its decisions */
	char *audit_path;              /* the API's copy, since settings change */
	struct hx_api_worker worker;
	struct hx_api_worker outbox_worker; /* for jobs that use the outbox's database */
	struct hx_api_worker broker_worker; /* for jobs that use a consumer's broker */
	struct hx_api_request *requests;
	uint64_t cursor_key[2]; /* cursors of another process are refused */
	struct hx_audit audit;
	struct hx_api_events events;
	struct hapax_buf description; /* /openapi.json; empty until the first request */
	/* Counts at the last reset, to be subtracted; in this process only. */
	int64_t reset_ms; /* 0: never */
	uint64_t reset_counts[HAPAX_DECISION_COUNT];
	size_t submitted; /* requests in the store */
	bool is_patching; /* a change of the settings is in progress */
};

typedef void hx_api_step_fn(struct hx_api_request *request);

struct hx_api_request {
	struct hx_api *api;
	struct hx_http_exchange *exchange;
	const struct hx_api_route *route;
	struct hx_api_caller caller;
	int64_t came_ns;
	struct hapax_bytes names[HX_API_NAMES_MAX]; /* decoded */
	struct hx_api_value values[HX_API_PARAMETERS_MAX];
	struct hapax_buf text;        /* memory of names and values */
	struct hapax_buf body_text;   /* a body from a file */
	struct hapax_bytes body;      /* all of it */
	struct hx_json_reader reader; /* for the body */
	struct hapax_buf out;
	bool is_streamed;           /* out is being streamed */
	size_t streamed;            /* bytes of it */
	struct hx_api_batch *batch; /* operations; or NULL */
	hx_api_step_fn *step;       /* called after the store or the worker has answered */
	struct hx_task task;
	struct hx_api_job job;
	/* Of the worker's job. If it failed, the request fails with both, instead of step. */
	enum hapax_status status;
	struct hapax_error err;
	void *extra; /* belongs to the handler; freed with the request, after extra_done */
	void (*extra_done)(void *extra); /* or NULL */
	struct hx_api_request *next;
	struct hx_api_request *back;
};

/* Reply with out, as JSON. */
void hx_api_reply(struct hx_api_request *request, unsigned status);

/* Begin an object in out; and end it and reply 200, or fail if it did not fit. */
void hx_api_json(struct hx_api_request *request, struct hx_json_write *json);
void hx_api_reply_json(struct hx_api_request *request, struct hx_json_write *json);

/* Reply with a problem of that type (NULL: the status says it all). */
__attribute__((format(printf, 4, 5))) void hx_api_problem(
	struct hx_api_request *request, unsigned status, const char *type, const char *format, ...);

/* Reply with a failure of the store, as a problem. */
void hx_api_fail(struct hx_api_request *request, enum hapax_status status, const char *detail);

/* The HTTP status for a status, and its name. */
unsigned hx_api_status(enum hapax_status status);
const char *hx_api_status_text(enum hapax_status status);

/* Submit operations; step is called when they are answered. */
void hx_api_submit(
	struct hx_api_request *request, struct hapax_op *ops, size_t count, hx_api_step_fn *step);

/* Run work on the worker, then step. Without a worker or memory, reply with a problem. */
void hx_api_work(
	struct hx_api_request *request, struct hx_api_worker *worker, hx_api_job_fn *work,
	hx_api_step_fn *step);

/* Set extra to zeroed memory. NULL: no memory; answered. */
void *hx_api_extra(struct hx_api_request *request, size_t size, void (*done)(void *extra));

struct hx_api_request *hx_api_request_of(struct hx_api_job *job);

/* Free the request of a stream; the exchange stays. */
struct hx_http_exchange *hx_api_request_leave(struct hx_api_request *request);

/* Does the caller's token cover the tenant? Empty: "default". False: answered. */
bool hx_api_may_use(struct hx_api_request *request, struct hapax_bytes tenant);

/* Refuse: the request exceeds the caller's role. */
void hx_api_refuse_role(struct hx_api_request *request, enum hx_api_role wanted);

/* Wall clock, for display. */
int64_t hx_api_now_ms(const struct hx_api *api);

/* Read the body, as the route defines it, into request->batch. False: answered. */
bool hx_api_read_batch(struct hx_api_request *request);

/* Create a batch of one operation on the key in the path. False: answered. */
bool hx_api_name_key(struct hx_api_request *request, enum hapax_op_type type);

/* Count it for metrics and listeners. */
void hx_api_count(struct hx_api_request *request, const struct hapax_op *ops, size_t count);

/* Reply: all operations are answered. */
void hx_api_answer_batch(struct hx_api_request *request);

/* The body of POST /gc: api_stats.c. */
struct hx_gc_json {
	uint64_t given;
	int64_t count_max;
};
extern const struct hx_json_section hx_gc_json_section;

/* The body of POST /consumers/{name}/pause: api_consumers.c. */
struct hx_pause_json {
	uint64_t given;
	struct hapax_bytes reason;
};
extern const struct hx_json_section hx_pause_json_section;

/* A consumer by its name; NULL: there is none. */
const struct hx_config_consumer *hx_api_consumer_named(
	const struct hx_config *config, struct hapax_bytes name);

/* The scope of a consumer, as TENANT/GROUP. False: its messages choose, and out is "". */
enum { HX_API_SCOPE_SIZE = 2 * HX_SCOPE_PART_SIZE_MAX + 2 };
bool hx_api_consumer_scope(const struct hx_config_consumer *consumer, char out[HX_API_SCOPE_SIZE]);

/* Reply: there is no consumer of the name in the path. */
void hx_api_no_consumer(struct hx_api_request *request);

/* The body of POST /consumers/{name}/retry: api_letters.c. */
struct hx_retry_json {
	uint64_t given;
	struct hapax_bytes ids;
	struct hapax_bytes match;
	bool all;
};
extern const struct hx_json_section hx_retry_json_section;

/* The body of POST /consumers/{name}/rebuild: rebuild.c. */
struct hx_rebuild_json {
	uint64_t given;
	struct hapax_bytes confirm;
	bool shared;
	int64_t from_ms;
};
extern const struct hx_json_section hx_rebuild_json_section;

/* The name of an answered operation's outcome, or of its failure. */
const char *hx_api_outcome_name(const struct hapax_op *op);

/* Handlers, by file. */
hx_api_handle_fn hx_api_post_operations; /* api_batch.c */
hx_api_handle_fn hx_api_post_resolve;    /* resolve.c */
hx_api_handle_fn hx_api_get_keys;        /* keys.c */
hx_api_handle_fn hx_api_get_key;
hx_api_handle_fn hx_api_delete_key;
hx_api_handle_fn hx_api_get_explain; /* explain.c */
hx_api_handle_fn hx_api_get_stats;   /* api_stats.c */
hx_api_handle_fn hx_api_get_conditions;
hx_api_handle_fn hx_api_post_reset;
hx_api_handle_fn hx_api_post_gc;
hx_api_handle_fn hx_api_get_duplicates; /* events.c */
hx_api_handle_fn hx_api_get_events;
hx_api_handle_fn hx_api_get_audit;  /* audit.c */
hx_api_handle_fn hx_api_get_config; /* api_settings.c */
hx_api_handle_fn hx_api_patch_config;
hx_api_handle_fn hx_api_get_openapi; /* openapi.c */
hx_api_handle_fn hx_api_get_outbox;  /* api_outbox.c */
hx_api_handle_fn hx_api_post_outbox;
hx_api_handle_fn hx_api_get_consumers; /* api_consumers.c */
hx_api_handle_fn hx_api_post_pause;
hx_api_handle_fn hx_api_get_letters; /* api_letters.c */
hx_api_handle_fn hx_api_post_retry;
hx_api_handle_fn hx_api_post_rebuild; /* rebuild.c */

/* Uses of hx_api_post_outbox(). */
enum { HX_OUTBOX_RETRY = 1, HX_OUTBOX_PARK };

/* Uses of hx_api_post_pause(). */
enum { HX_CONSUMER_PAUSE = 1, HX_CONSUMER_RESUME };

#endif
