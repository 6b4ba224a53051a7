/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h - something that the daemon does beside its doors, on a thread of its own that
 * may block: the relay of an outbox, the consumers of a broker.
 *
 *	wanted ──open──▶ run ──stopped──▶ end, or open with the configuration that is new
 *	                  └──failed, or open did──▶ a pause, longer each time ──▶ open
 *
 *  (1) Its failures are its own: the daemon goes on, a probe tells of them, and it is tried
 *      again for as long as the daemon lives.
 *  (2) A reload that changes nothing of its section leaves it alone. Another one stops it, which
 *      lets it finish what is under way, and opens it again.
 *  (3) It ends when it is told to, whether it runs or pauses. Whoever cannot wait for that
 *      leaves it behind: then it says nothing more, and the process ends with it.
 *
 * What it is stands in a table (struct hx_background_ops). A struct of zeros is one that is off.
 *
 * Threads: hx_background_say() and hx_background_tell() its own, hx_background_trouble() any; the
 * rest the control loop's.
 */
#ifndef HX_SERVE_TASK_BACKGROUND_H
#define HX_SERVE_TASK_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include <hapax/error.h>

#include "base/thread.h"
#include "observe/logger/logger.h"

struct hx_background;
struct hx_config;

struct hx_background_ops {
	const char *name;    /* for people and probes; of the thread, too: at most 9 bytes */
	const char *section; /* of the configuration: "outbox" */

	/* Whether there is anything to do. */
	bool (*is_wanted)(const struct hx_config *config);

	/* Make what is run; on its own thread. config is kept until close. Owned: *ret_work. */
	enum hapax_status (*open)(
		struct hx_background *background, const struct hx_config *config, void **ret_work,
		struct hapax_error *err);

	/* Until stop; then HAPAX_OK. Anything else is a failure, and it is opened again later. */
	enum hapax_status (*run)(void *work, struct hapax_error *err);

	/* Let run return, now or when it is called. Must not block. Threads: any. */
	void (*stop)(void *work);

	/* run has ended: what of work is to be remembered. Must not block; NULL: nothing is. */
	void (*retire)(struct hx_background *background, void *work);

	void (*close)(void *work);
};

struct hx_background {
	const struct hx_background_ops *ops;
	struct hx_logger *log;
	void (*ended)(void *context); /* it has ended for good; on any thread */
	void *context;
	struct hx_thread thread;
	bool is_started; /* there is a thread */

	struct hx_mutex mutex;
	struct hx_cond wake;
	struct hx_event has_ended;
	/* Locks: mutex. */
	struct hx_config *config; /* kept */
	void *work;               /* while it runs */
	bool is_wanted;           /* by config */
	bool is_changed;          /* config is another one than that of work */
	bool stops;
	bool is_left;               /* nobody reads the log any more */
	unsigned failures;          /* since it was well */
	int64_t resume_ns;          /* not before: it failed */
	struct hapax_error trouble; /* status HAPAX_OK: there is none */
};

/*
 * background is zeros. Where config wants nothing of it, nothing is started until a reload
 * does. log outlives it, unless it was left behind.
 */
enum hapax_status hx_background_start(
	struct hx_background *background, const struct hx_background_ops *ops,
	struct hx_config *config, struct hx_logger *log, void (*ended)(void *context),
	void *context, struct hapax_error *err);

/* Another configuration is in force. */
enum hapax_status hx_background_reload(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err);

/* The same, where the owner knows that what it is to do has changed: it is opened anew. */
enum hapax_status hx_background_renew(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err);

/* Stop for good; ended is called when that is done, perhaps before this returns. */
void hx_background_drain(struct hx_background *background);

/* After drain. False: it has not ended by deadline_ns, and was left behind. */
bool hx_background_join(struct hx_background *background, int64_t deadline_ns);

/* How it is. False: nothing is wanted of it. trouble has HAPAX_OK when it has said that it is well. */
bool hx_background_look(struct hx_background *background, struct hapax_error *ret_trouble);

/*
 * Call look with what runs, or NULL; meanwhile nothing begins or is retired. It must not block.
 * False: nothing is wanted of it, and nobody was called.
 */
bool hx_background_visit(
	struct hx_background *background,
	void (*look)(struct hx_background *background, void *work, void *context), void *context);

/* It is well (NULL), or it goes on and is not. */
void hx_background_trouble(struct hx_background *background, const struct hapax_error *trouble);

/* Call tell with the log, unless it was left behind. Threads: its own. */
void hx_background_tell(
	struct hx_background *background, void (*tell)(struct hx_logger *log, const void *context),
	const void *context);

/* A line of the log. */
void hx_background_say(
	struct hx_background *background, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t count);

#endif
