/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - all that a store holds, read once, to be compared with what it may hold.
 *
 * After a crash there are several states in which a store may be: each is a model.
 */
#ifndef TEST_CRASH_CONTENT_H
#define TEST_CRASH_CONTENT_H

#include <hapax/hapax.h>

#include "conformance/model.h"

struct content {
	int64_t now_ms; /* the store's clock */
	uint64_t token; /* none above it was given out, the store says */
	size_t count;
	struct hapax_record records[MODEL_KEYS_MAX];
	struct hapax_buf *bufs[MODEL_KEYS_MAX];
	char why[MODEL_WHY_SIZE];
};

/* NULL: no memory. */
struct content *content_new(void);
void content_free(struct content *content);

/* Read everything that has not expired. False: why says what went wrong. */
bool content_read(struct content *content, struct hapax_store *store);

/* Is it what the model says? False: why says what differs. */
bool content_is(struct content *content, struct model *model);

/* Is each record as in one model or as in the other? For work that goes key by key. */
bool content_is_between(struct content *content, struct model *one, struct model *other);

/* The record of the key that op is about, or NULL. */
const struct hapax_record *content_find(const struct content *content, const struct hapax_op *op);

#endif
