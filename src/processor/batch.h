/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - operations of several runs, in progress at the store.
 */
#ifndef HX_PROCESSOR_BATCH_H
#define HX_PROCESSOR_BATCH_H

#include <hapax/processor.h>

struct hx_batch {
	struct hapax_processor *processor;
	struct hapax_op *ops;
	size_t count;
	size_t capacity;
	struct hx_batch *next;     /* in the free list */
	struct hx_batch *all_next; /* in the list of all batches */
};

/*
 * Submit the questions of the runs in the list (list_next), in one submit or several.
 * Locks: takes the mutex; not held while the store is called.
 */
void hx_batch_submit(struct hapax_processor *processor, struct hapax_run *list);

void hx_batches_free(struct hapax_processor *processor);

#endif
