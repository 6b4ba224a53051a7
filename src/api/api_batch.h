/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_batch.h - shared functions of the operation handlers; for api/ only.
 */
#ifndef HX_API_API_BATCH_H
#define HX_API_API_BATCH_H

#include "api/api_operation.h"
#include "api/api_request.h"

/* Read the body, as the route defines it, into request->batch. False: answered. */
bool hx_api_read_batch(struct hx_api_request *request);

/* Create a batch of one operation on the key in the path. False: answered. */
bool hx_api_name_key(struct hx_api_request *request, enum hapax_op_type type);

/* Count it for metrics and listeners. */
void hx_api_count(struct hx_api_request *request, const struct hapax_op *ops, size_t count);

/* Reply: all operations are answered. */
void hx_api_answer_batch(struct hx_api_request *request);

#endif
