/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_names.h - the names of a simulated disk: those that programs see, those on the
 * medium, and the steps that lie between the two, in order.
 *
 * A name leads to the number of an inode. Names are whole paths; a directory is a
 * name like any other. "/" is always there and not among them.
 */
#ifndef TEST_SUPPORT_SIM_NAMES_H
#define TEST_SUPPORT_SIM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/sim_disk.h"

struct sim_name {
	char path[SIM_PATH_SIZE];
	int inode;
};

struct sim_name_list {
	size_t count;
	size_t room;
	struct sim_name *names; /* by rising path */
};

/* target leads to inode; source, if there is one, leads nowhere. Both at once. */
struct sim_step {
	char source[SIM_PATH_SIZE]; /* empty: none */
	char target[SIM_PATH_SIZE]; /* empty: none */
	int inode;
};

struct sim_names {
	struct sim_name_list seen;
	struct sim_name_list medium;
	size_t step_count;
	size_t step_room;
	struct sim_step *steps;
};

void sim_names_copy(struct sim_names *target, const struct sim_names *source);
void sim_names_done(struct sim_names *names);

/* The inode that a path leads to, or -1. */
int sim_names_find(const struct sim_names *names, const char *path);

/* A step that programs see at once. Either path may be NULL. */
void sim_names_step(struct sim_names *names, const char *source, const char *target, int inode);

/* The names in that directory arrive. */
void sim_names_sync(struct sim_names *names, const char *directory);

/* Some arrive, the others never will, and are seen until the machine restarts. */
void sim_names_sync_failed(struct sim_names *names, const char *directory, struct hx_prng *prng);

void sim_names_crash(struct sim_names *names, const struct sim_fates *fates, struct hx_prng *prng);

/* Does anything lead there, or may it after a crash? */
bool sim_names_need(const struct sim_names *names, int inode);

/* Is path a name directly in directory? Then its last part, else NULL. */
const char *sim_names_within(const char *directory, const char *path);

#endif
