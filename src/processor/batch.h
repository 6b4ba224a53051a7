/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - operations of several runs, on their way to the store and back.
 */
#ifndef HX_PROCESSOR_BATCH_H
#define HX_PROCESSOR_BATCH_H

#include <hapax/processor.h>

struct hx_batch {
	struct hapax_processor *processor;
	struct hapax_op *ops;
	size_t count;
	size_t capacity;
	struct hx_batch *next;     /* among the free ones */
	struct hx_batch *all_next; /* every batch there is */
};

/*
 * Ask the questions of the runs in that list (list_next), in one submit or several.
 * Locks: takes the mutex; not held while the store is called.
 */
void hx_batch_submit(struct hapax_processor *processor, struct hapax_run *list);

/* Free all there are. */
void hx_batches_free(struct hapax_processor *processor);

#endif
