/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h - a task of the daemon besides its doors, on its own thread, which may block: the
 * relay of an outbox, the consumers of a broker.
 *
 *	wanted ──open──▶ run ──stopped──▶ end, or open with the new configuration
 *	                  └──failed, or open did──▶ a pause, longer each time ──▶ open
 *
 *  (1) Its failures are its own: the daemon continues, a probe reports them, and the task is
 *      retried for as long as the daemon lives.
 *  (2) A reload that does not change its section leaves it alone. A change stops it, which lets it
 *      finish the work in progress, and opens it again.
 *  (3) It ends on request, whether it runs or pauses. An owner that cannot wait leaves it behind:
 *      then it logs nothing more, and the process ends with it.
 *
 * A table describes it (struct hx_background_ops). A struct of zeros is off.
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
	const char *name;    /* for people, probes and the thread: at most 9 bytes */
	const char *section; /* of the configuration: "outbox" */

	/* Whether there is anything to do. */
	bool (*is_wanted)(const struct hx_background *background, const struct hx_config *config);

	/* Creates the work, on its own thread. config is kept until close. Owned: *ret_work. */
	enum hapax_status (*open)(
		struct hx_background *background, const struct hx_config *config, void **ret_work,
		struct hapax_error *err);

	/*
	 * Runs until stop; then HAPAX_OK. Any other status is a failure, and it is opened again
	 * later.
	 */
	enum hapax_status (*run)(void *work, struct hapax_error *err);

	/* Makes run return, now or when it is called. Must not block. Threads: any. */
	void (*stop)(void *work);

	/* run has ended: saves the state of work. Must not block; NULL: nothing to save. */
	void (*retire)(struct hx_background *background, void *work);

	void (*close)(void *work);
};

struct hx_background {
	const struct hx_background_ops *ops;
	struct hx_logger *log;
	void (*ended)(void *context); /* it has ended permanently; on any thread */
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
	bool is_changed;          /* config differs from that of work */
	bool stops;
	bool is_left;               /* the log is no longer available */
	unsigned failures;          /* since it was healthy */
	int64_t resume_ns;          /* retry not before: it failed */
	struct hapax_error trouble; /* status HAPAX_OK: none */
};

/*
 * background is zeros. If config does not want it, nothing starts until a reload does. log outlives
 * it, unless it was left behind.
 */
enum hapax_status hx_background_start(
	struct hx_background *background, const struct hx_background_ops *ops,
	struct hx_config *config, struct hx_logger *log, void (*ended)(void *context),
	void *context, struct hapax_error *err);

/* A new configuration is in force. */
enum hapax_status hx_background_reload(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err);

/* The same, if the owner knows that its work has changed: it is opened again. */
enum hapax_status hx_background_renew(
	struct hx_background *background, struct hx_config *config, struct hapax_error *err);

/* Stops permanently; then calls ended, perhaps before this returns. */
void hx_background_drain(struct hx_background *background);

/* After drain. False: it has not ended by deadline_ns, and was left behind. */
bool hx_background_join(struct hx_background *background, int64_t deadline_ns);

/*
 * Its health. False: it is not wanted. trouble has HAPAX_OK once it has reported healthy, and
 * os_errno EINPROGRESS before its first report.
 */
bool hx_background_look(struct hx_background *background, struct hapax_error *ret_trouble);

/*
 * Calls look with the running work, or NULL; meanwhile no work begins or is retired. look must not
 * block. False: it is not wanted, and look was not called.
 */
bool hx_background_visit(
	struct hx_background *background,
	void (*look)(struct hx_background *background, void *work, void *context), void *context);

/* Whether there is work, be it wanted or not. */
bool hx_background_works(struct hx_background *background);

/* It is healthy (NULL), or it continues with this trouble. */
void hx_background_trouble(struct hx_background *background, const struct hapax_error *trouble);

/* Calls tell with the log, unless it was left behind. Threads: its own. */
void hx_background_tell(
	struct hx_background *background, void (*tell)(struct hx_logger *log, const void *context),
	const void *context);

/* Logs a line. */
void hx_background_say(
	struct hx_background *background, enum hx_logger_level level, const char *msg,
	const struct hx_logger_field *fields, size_t count);

#endif
