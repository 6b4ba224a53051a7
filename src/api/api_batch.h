/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_batch.h - what handlers of operations share; for api/ only.
 */
#ifndef HX_API_API_BATCH_H
#define HX_API_API_BATCH_H

#include "api/api_operation.h"
#include "api/api_request.h"

/* The body, as the route has it, into request->batch. False: answered. */
bool hx_api_read_batch(struct hx_api_request *request);

/* A batch of one operation on the key that the path names. False: answered. */
bool hx_api_name_key(struct hx_api_request *request, enum hapax_op_type type);

/* For metrics and for those who look on. */
void hx_api_count(struct hx_api_request *request, const struct hapax_op *ops, size_t count);

/* All of them are answered. */
void hx_api_answer_batch(struct hx_api_request *request);

#endif
