/* SPDX-License-Identifier: Apache-2.0 */
#include "support/crowd.h"

#include <stdio.h>
#include <stdlib.h>

struct crowd_member {
	struct crowd *crowd;
	size_t index;
	pthread_t thread;
};

static void *crowd_main(void *argument)
{
	struct crowd_member *member = argument;
	struct crowd *crowd = member->crowd;

	for (;;) {
		pthread_barrier_wait(&crowd->begin);
		if (crowd->closing)
			return NULL;
		crowd->fn(member->index, crowd->context);
		pthread_barrier_wait(&crowd->end);
	}
}

void crowd_init(struct crowd *crowd, size_t count)
{
	pthread_attr_t attributes;

	*crowd = (struct crowd){.count = count};
	crowd->members = calloc(count, sizeof(*crowd->members));
	if (!crowd->members)
		abort();
	pthread_barrier_init(&crowd->begin, NULL, (unsigned)count + 1);
	pthread_barrier_init(&crowd->end, NULL, (unsigned)count + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 512 << 10);
	for (size_t i = 0; i < count; i++) {
		struct crowd_member *member = &crowd->members[i];

		member->crowd = crowd;
		member->index = i;
		if (pthread_create(&member->thread, &attributes, crowd_main, member) != 0) {
			perror("pthread_create");
			abort();
		}
	}
	pthread_attr_destroy(&attributes);
}

void crowd_done(struct crowd *crowd)
{
	crowd->closing = true;
	pthread_barrier_wait(&crowd->begin);
	for (size_t i = 0; i < crowd->count; i++)
		pthread_join(crowd->members[i].thread, NULL);
	pthread_barrier_destroy(&crowd->begin);
	pthread_barrier_destroy(&crowd->end);
	free(crowd->members);
}

void crowd_run(struct crowd *crowd, crowd_fn *fn, void *context)
{
	crowd->fn = fn;
	crowd->context = context;
	pthread_barrier_wait(&crowd->begin);
	pthread_barrier_wait(&crowd->end);
}
