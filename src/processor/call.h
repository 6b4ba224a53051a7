/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - what is behind the work that a handler gets.
 */
#ifndef HX_PROCESSOR_CALL_H
#define HX_PROCESSOR_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <hapax/processor.h>

#include "base/buf.h"
#include "base/thread.h"

struct hx_tx;

/*
 * What stands behind a struct hapax_work. Who makes works without hapax_process() needs body
 * and error of it: zero it, then give body its maximum.
 */
struct hapax_call {
	struct hx_event decided; /* told RUN, or END without it */
	struct hx_event ended;   /* told END after RUN */
	bool is_over;            /* decided by END */
	_Atomic bool is_fenced;
	struct hapax_run *run;
	struct hapax_answer answer; /* its bytes are in buf */
	struct hapax_buf *buf;      /* the caller's, or NULL */
	struct hapax_work work;
	struct hapax_buf body;
	char error[HAPAX_ERROR_MESSAGE_SIZE];
	struct hx_tx *tx; /* not a part of it: most calls need no more of it than a look */
};

#endif
