/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sim_names.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/sim_block.h"

const char *sim_names_within(const char *directory, const char *path)
{
	size_t size = strlen(directory);

	/* The root ends with its slash, others do not. */
	if (size > 0 && directory[size - 1] == '/')
		size--;
	if (strncmp(directory, path, size) != 0 || path[size] != '/')
		return NULL;
	return strchr(path + size + 1, '/') ? NULL : path + size + 1;
}

/* Where path stands or would stand. */
static size_t place_of(const struct sim_name_list *list, const char *path, bool *ret_found)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(list->names[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = low < list->count && strcmp(list->names[low].path, path) == 0;
	return low;
}

static void list_remove(struct sim_name_list *list, const char *path)
{
	bool found;
	size_t at = place_of(list, path, &found);

	if (!found)
		return;
	list->count--;
	memmove(&list->names[at], &list->names[at + 1], (list->count - at) * sizeof(*list->names));
}

static void list_set(struct sim_name_list *list, const char *path, int inode)
{
	bool found;
	size_t at = place_of(list, path, &found);

	if (!found) {
		assert(list->count < SIM_NAMES_MAX);
		if (list->count == list->room) {
			list->room = list->room ? list->room * 2 : 8;
			list->names = sim_resize(list->names, list->room, sizeof(*list->names));
		}
		memmove(&list->names[at + 1], &list->names[at],
			(list->count - at) * sizeof(*list->names));
		list->count++;
		memcpy(list->names[at].path, path, strlen(path) + 1);
	}
	list->names[at].inode = inode;
}

static void list_copy(struct sim_name_list *target, const struct sim_name_list *source)
{
	if (target->room < source->count) {
		target->room = source->count;
		target->names = sim_resize(target->names, target->room, sizeof(*target->names));
	}
	target->count = source->count;
	if (source->count)
		memcpy(target->names, source->names, source->count * sizeof(*source->names));
}

static void list_apply(struct sim_name_list *list, const struct sim_step *step)
{
	if (step->source[0])
		list_remove(list, step->source);
	if (step->target[0])
		list_set(list, step->target, step->inode);
}

void sim_names_copy(struct sim_names *target, const struct sim_names *source)
{
	*target = (struct sim_names){.step_count = source->step_count};
	list_copy(&target->seen, &source->seen);
	list_copy(&target->medium, &source->medium);
	target->step_room = source->step_count;
	target->steps = sim_allocate(source->step_count, sizeof(*target->steps));
	if (source->step_count)
		memcpy(target->steps, source->steps, source->step_count * sizeof(*source->steps));
}

void sim_names_done(struct sim_names *names)
{
	free(names->seen.names);
	free(names->medium.names);
	free(names->steps);
	*names = (struct sim_names){.step_count = 0};
}

int sim_names_find(const struct sim_names *names, const char *path)
{
	bool found;
	size_t at = place_of(&names->seen, path, &found);

	return found ? names->seen.names[at].inode : -1;
}

void sim_names_step(struct sim_names *names, const char *source, const char *target, int inode)
{
	struct sim_step *step;

	if (names->step_count == names->step_room) {
		names->step_room = names->step_room ? names->step_room * 2 : 8;
		names->steps = sim_resize(names->steps, names->step_room, sizeof(*names->steps));
	}
	step = &names->steps[names->step_count++];
	*step = (struct sim_step){.inode = inode};
	if (source)
		memcpy(step->source, source, strlen(source) + 1);
	if (target)
		memcpy(step->target, target, strlen(target) + 1);
	list_apply(&names->seen, step);
}

static bool is_step_in(const struct sim_step *step, const char *directory)
{
	return (step->source[0] && sim_names_within(directory, step->source)) ||
		(step->target[0] && sim_names_within(directory, step->target));
}

static void carry(struct sim_names *names, const char *directory, struct hx_prng *fails)
{
	size_t left = 0;

	for (size_t i = 0; i < names->step_count; i++) {
		if (!is_step_in(&names->steps[i], directory)) {
			names->steps[left++] = names->steps[i];
			continue;
		}
		if (!fails || hx_prng_below(fails, 2))
			list_apply(&names->medium, &names->steps[i]);
	}
	names->step_count = left;
}

void sim_names_sync(struct sim_names *names, const char *directory)
{
	carry(names, directory, NULL);
}

void sim_names_sync_failed(struct sim_names *names, const char *directory, struct hx_prng *prng)
{
	carry(names, directory, prng);
}

/* A name whose directory did not survive leads nowhere. */
static void drop_orphans(struct sim_name_list *list)
{
	size_t left = 0;

	/* By rising path, so a directory stands before what is in it. */
	for (size_t i = 0; i < list->count; i++) {
		char parent[SIM_PATH_SIZE];
		struct sim_name_list before = {.count = left, .names = list->names};
		char *slash;
		bool found;

		memcpy(parent, list->names[i].path, sizeof(parent));
		slash = strrchr(parent, '/');
		assert(slash);
		*slash = '\0';
		if (parent[0]) {
			(void)place_of(&before, parent, &found);
			if (!found)
				continue;
		}
		if (left != i)
			list->names[left] = list->names[i];
		left++;
	}
	list->count = left;
}

void sim_names_crash(struct sim_names *names, const struct sim_fates *fates, struct hx_prng *prng)
{
	size_t first_lost = names->step_count;

	if (fates->names_are_in_order && fates->name_percent < 100)
		first_lost = (size_t)hx_prng_below(prng, names->step_count + 1);
	for (size_t i = 0; i < names->step_count; i++) {
		bool arrives = fates->names_are_in_order
			? i < first_lost
			: hx_prng_below(prng, 100) < fates->name_percent;

		if (arrives)
			list_apply(&names->medium, &names->steps[i]);
	}
	names->step_count = 0;
	drop_orphans(&names->medium);
	list_copy(&names->seen, &names->medium);
}

static bool list_has(const struct sim_name_list *list, int inode)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->names[i].inode == inode)
			return true;
	return false;
}

bool sim_names_need(const struct sim_names *names, int inode)
{
	if (list_has(&names->seen, inode) || list_has(&names->medium, inode))
		return true;
	for (size_t i = 0; i < names->step_count; i++)
		if (names->steps[i].target[0] && names->steps[i].inode == inode)
			return true;
	return false;
}
