/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - random submits for crash tests: few keys, all operations, groups.
 *
 * A workload draws its own shape from its seed. It reads the model only to choose
 * tokens that mean something. What an operation points at lives until the next
 * workload_fill().
 */
#ifndef TEST_CRASH_WORKLOAD_H
#define TEST_CRASH_WORKLOAD_H

#include <hapax/hapax.h>

#include "base/random.h"
#include "conformance/model.h"

enum {
	WORKLOAD_KEYS_MAX = 8,
	WORKLOAD_OPS_MAX = 8,
	WORKLOAD_TYPES = HAPAX_OP_EXPIRE + 1,
};

struct workload_slot {
	struct hapax_bytes tenant; /* as asked; the store writes its own into the operation */
	struct hapax_bytes group;
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	unsigned char body[MODEL_BODY_MAX];
	char owner[24];
	char error[24];
	struct hapax_result result;
};

struct workload {
	struct hx_prng prng;
	size_t key_count;
	size_t scope_count;
	size_t batch_max;
	unsigned weights[WORKLOAD_TYPES];
	unsigned weight_sum;
	unsigned group_percent;
	size_t body_max;
	uint64_t attempts;
	char key_names[WORKLOAD_KEYS_MAX][48];
	struct workload_slot slots[WORKLOAD_OPS_MAX];
	struct hapax_op ops[WORKLOAD_OPS_MAX];
};

void workload_init(struct workload *workload, uint64_t seed);

/* Fill workload->ops for one submit; how many. */
size_t workload_fill(struct workload *workload, const struct model *model, int64_t now_ms);

/* After the submit: give the operations their scopes back, as the model wants them. */
void workload_restore(struct workload *workload, size_t count);

/* How far time may pass before the next submit. */
int64_t workload_step_ms(struct workload *workload);

/* Print operations and their answers as TAP comments. */
void workload_print(const struct hapax_op *ops, size_t count, int64_t now_ms);

#endif
