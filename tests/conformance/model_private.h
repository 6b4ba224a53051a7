/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_private.h - what the files of the model share.
 */
#ifndef TEST_CONFORMANCE_MODEL_PRIVATE_H
#define TEST_CONFORMANCE_MODEL_PRIVATE_H

#include "conformance/model.h"

/* What the model expects of one operation. */
struct model_answer {
	enum hapax_status status;
	enum hapax_outcome outcome;
	int unverified;
	int repeated;
	bool takes_token;          /* a new one; else the record's */
	bool has_record;           /* then the record that op->record must show: */
	struct model_record shown; /* before set and forget, after all others */
};

/* Write what differs to model->why; false, for its caller to return. */
bool model_differ(struct model *model, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A token that is new in this submit; shared is one that the op's group has already. */
bool model_take_token(
	struct model *model, struct model_key *entry, const struct hapax_op *op, uint64_t shared);

/* The answer of a store to op is the expected one. */
bool model_compare(
	struct model *model, const struct hapax_op *op, const struct model_answer *expected,
	int64_t now_ms);

bool model_record_is_lapsed(const struct model_record *record, int64_t now_ms);

/* NULL: the record has no result. */
void model_record_keep_result(
	const struct model *model, struct model_record *record, const struct hapax_result *result);

#endif
