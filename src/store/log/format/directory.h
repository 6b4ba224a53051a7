/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.h - a store's directory: names, LOCK, STORE.
 *
 * Threads: any, once it is open.
 */
#ifndef HX_STORE_LOG_FORMAT_DIRECTORY_H
#define HX_STORE_LOG_FORMAT_DIRECTORY_H

#include <limits.h>

#include "store/log/format/format.h"

struct hx_io;

/* A path: the directory's, a slash, and a name. */
enum { HX_LOG_NAME_SIZE = 64, HX_LOG_PATH_SIZE = PATH_MAX };

struct hx_log_directory {
	const struct hx_io *io;
	int lock_file;   /* -1: not held */
	uint64_t device; /* with inode: which directory it is, once it is locked */
	uint64_t inode;
	char path[HX_LOG_PATH_SIZE - HX_LOG_NAME_SIZE];
	struct hx_log_store_file store;
};

/* "day-0000000000000007.seg". suffix may be "". */
void hx_log_name(
	char ret_name[HX_LOG_NAME_SIZE], enum hx_log_kind kind, uint64_t id, const char *suffix);

/* False: no segment is called so. */
bool hx_log_name_parse(const char *name, enum hx_log_kind *ret_kind, uint64_t *ret_id);

void hx_log_path(
	const struct hx_log_directory *directory, const char *name,
	char ret_path[HX_LOG_PATH_SIZE]);

/*
 * Set the path, which becomes absolute: the process may change its working directory. INVALID
 * when it is empty or too long.
 */
enum hapax_status hx_log_directory_init(
	struct hx_log_directory *directory, const struct hx_io *io, const char *path,
	struct hapax_error *err);

/*
 * Take LOCK; what stands in it is left alone. The directory must be there, and LOCK too, unless
 * may_create. UNAVAILABLE with the pid of the owner if somebody else holds it. OK without LOCK
 * held: there is none.
 */
enum hapax_status hx_log_directory_lock(
	struct hx_log_directory *directory, bool may_create, struct hapax_error *err);

/*
 * Make a name and remove it: a directory that takes none would fail the first time that a
 * segment is full, long after somebody could have been told. Only where a store is.
 */
enum hapax_status hx_log_directory_try(struct hx_log_directory *directory, struct hapax_error *err);

/* Write our pid to LOCK, which is held, for people. Only where a store is. */
void hx_log_directory_sign(struct hx_log_directory *directory);

/* Has somebody removed the directory that was locked, or put another one in its place? */
bool hx_log_directory_is_gone(const struct hx_log_directory *directory);

/* Give LOCK back, if it is held. */
void hx_log_directory_done(struct hx_log_directory *directory);

/*
 * Read STORE. *ret_found: false, there is none, and nothing else that a store of
 * hapax leaves behind either. INVALID: there is none, and other files are here, or a
 * LOCK that is not ours.
 * CORRUPT: segments without STORE, or a damaged one.
 */
enum hapax_status hx_log_directory_read(
	struct hx_log_directory *directory, bool *ret_found, struct hapax_error *err);

/* Write STORE from directory->store, in place of the one that is there. */
enum hapax_status hx_log_directory_write(
	struct hx_log_directory *directory, struct hapax_error *err);

/*
 * Let STORE say that log segment id has frames that are durable. Nothing is written if it says
 * so already.
 */
enum hapax_status hx_log_directory_vouch(
	struct hx_log_directory *directory, uint64_t id, struct hapax_error *err);

/* Make the directory itself, and its name durable. Present is fine. */
enum hapax_status hx_log_directory_make(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Remove what was left in the making: *.tmp. */
enum hapax_status hx_log_directory_clean(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Make new names, and lost ones, durable. */
enum hapax_status hx_log_directory_sync(
	struct hx_log_directory *directory, struct hapax_error *err);

#endif
