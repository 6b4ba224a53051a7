/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk_private.h - what the files of the simulated disk share: sim_disk.c owns
 * it, sim_disk_io.c makes the operations of it, sim_disk_rot.c spoils it.
 */
#ifndef TEST_SUPPORT_SIM_DISK_PRIVATE_H
#define TEST_SUPPORT_SIM_DISK_PRIVATE_H

#include "base/thread.h"
#include "support/sim_disk.h"
#include "support/sim_inode.h"
#include "support/sim_names.h"

struct sim_handle {
	int inode; /* -1: free */
	unsigned flags;
	bool has_lock;
};

struct sim_failure {
	unsigned calls;
	uint64_t left; /* 0: not armed */
	bool forever;
	int error;
};

struct sim_disk {
	struct hx_mutex mutex;
	struct hx_io io;
	struct sim_names names;
	size_t inode_count;
	struct sim_inode **inodes; /* NULL: the number is free */
	struct sim_handle handles[SIM_HANDLES_MAX];
	size_t handle_count; /* all above are free */
	uint64_t next_number;
	uint64_t room_pages;
	bool has_direct;
	sim_observer_fn *observer;
	void *observer_context;
	struct sim_failure failure;
	uint64_t calls[SIM_CALL_KINDS];
	uint64_t struck;
	struct hx_prng prng;
};

/* The operations, for sim_disk_new(). */
extern const struct hx_io_ops sim_disk_ops;

/* A new inode's place in the table. */
int sim_disk_add_inode(struct sim_disk *disk, enum hx_io_kind kind, mode_t mode);

/* Free what no name and no open file leads to any more. */
void sim_disk_collect(struct sim_disk *disk);

#endif
