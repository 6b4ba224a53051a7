/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hapax_process.h - hapax_process() for a request that may come from a registration.
 */
#ifndef HX_PROCESSOR_HAPAX_PROCESS_H
#define HX_PROCESSOR_HAPAX_PROCESS_H

#include <hapax/processor.h>

#include "processor/call.h"
#include "processor/run.h"

enum hapax_status hx_processor_process(
	struct hapax_processor *processor, const struct hapax_request *request,
	const struct hx_run_origin *origin, hapax_handler_fn *handler, void *context,
	struct hapax_answer *answer, struct hapax_buf *buf, struct hapax_error *err);

#endif
