/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - the private part of the work that a handler gets.
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
 * The private part of a struct hapax_work. Code that makes works without hapax_process() uses only
 * body and error: zero the struct, then set the maximum of body.
 */
struct hapax_call {
	struct hx_event decided; /* step RUN, or END without RUN */
	struct hx_event ended;   /* step END after RUN */
	bool is_over;            /* ended without RUN */
	_Atomic bool is_fenced;
	struct hapax_run *run;
	struct hapax_answer answer; /* its bytes are in buf */
	struct hapax_buf *buf;      /* the caller's, or NULL */
	struct hapax_work work;
	struct hapax_buf body;
	char error[HAPAX_ERROR_MESSAGE_SIZE];
	struct hx_tx *tx; /* a pointer: most calls only check it */
};

#endif
