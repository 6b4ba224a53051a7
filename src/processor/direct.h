/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.h - the fast path: a claim without a run.
 */
#ifndef HX_PROCESSOR_DIRECT_H
#define HX_PROCESSOR_DIRECT_H

#include <stdbool.h>

#include <hapax/processor.h>

#include "processor/processor.h"
#include "processor/run.h"

/* State of a direct claim that was ACQUIRED. */
struct hx_direct {
	struct hapax_op op;
	struct hapax_record record;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hx_early_claim claim;
};

enum hx_directly {
	HX_DIRECTLY_NOT,      /* no answer: begin a run */
	HX_DIRECTLY_ANSWERED, /* answer is filled in; its bytes are in buf */
	HX_DIRECTLY_ACQUIRED, /* begin a run with direct->claim */
};

/*
 * Claim on this thread, without the mutex and without a run, if the store answers at once. Most
 * requests are duplicates of finished work and need nothing else. request is complete. Without buf
 * the answer has no bytes.
 */
enum hx_directly hx_direct_claim(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, struct hx_direct *direct, struct hapax_answer *answer,
	struct hapax_buf *buf);

/* Release a direct claim whose run could not begin. */
void hx_direct_release(struct hapax_processor *processor, const struct hx_direct *direct);

#endif
