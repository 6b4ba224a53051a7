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

/* Files that hold space and no data (write/reserve.h). */
#define HX_LOG_RESERVE_PREFIX "RESERVE."

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

/* False: this is not the name of a segment. */
bool hx_log_name_parse(const char *name, enum hx_log_kind *ret_kind, uint64_t *ret_id);

void hx_log_path(
	const struct hx_log_directory *directory, const char *name,
	char ret_path[HX_LOG_PATH_SIZE]);

/* Both in one: the path of a segment. */
void hx_log_segment_path(
	const struct hx_log_directory *directory, enum hx_log_kind kind, uint64_t id,
	const char *suffix, char ret_path[HX_LOG_PATH_SIZE]);

/*
 * Set the path and make it absolute: the process may change its working directory. INVALID: it
 * is empty or too long.
 */
enum hapax_status hx_log_directory_init(
	struct hx_log_directory *directory, const struct hx_io *io, const char *path,
	struct hapax_error *err);

/*
 * Take LOCK; its content is not changed. The directory must exist, and LOCK also, unless
 * may_create. UNAVAILABLE with the owner's pid: another process holds it. OK without LOCK held:
 * there is none.
 */
enum hapax_status hx_log_directory_lock(
	struct hx_log_directory *directory, bool may_create, struct hapax_error *err);

/*
 * Create a name and remove it. A directory that accepts no names would otherwise fail when the
 * first segment is full, long after the open could have reported it. Only in a store.
 */
enum hapax_status hx_log_directory_try(struct hx_log_directory *directory, struct hapax_error *err);

/* Write our pid to LOCK, which is held, for people (base/lock_note.h). Only in a store. */
void hx_log_directory_sign(struct hx_log_directory *directory);

/* Was the locked directory removed or replaced by another one? */
bool hx_log_directory_is_gone(const struct hx_log_directory *directory);

/* Release LOCK, if it is held. */
void hx_log_directory_done(struct hx_log_directory *directory);

/*
 * Read STORE. *ret_found false: there is no STORE, and nothing else that a store of hapax leaves
 * behind. INVALID: there is no STORE, but other files, or a LOCK that is not ours. CORRUPT:
 * segments without STORE, or a damaged one.
 */
enum hapax_status hx_log_directory_read(
	struct hx_log_directory *directory, bool *ret_found, struct hapax_error *err);

/* Write STORE from directory->store, replacing the existing one. */
enum hapax_status hx_log_directory_write(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Make STORE say that log segment id has durable frames. Nothing is written if it already does. */
enum hapax_status hx_log_directory_vouch(
	struct hx_log_directory *directory, uint64_t id, struct hapax_error *err);

/* Create the directory itself, and make its name durable. It may already exist. */
enum hapax_status hx_log_directory_make(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Remove unfinished files: *.tmp. */
enum hapax_status hx_log_directory_clean(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Make new and removed names durable. */
enum hapax_status hx_log_directory_sync(
	struct hx_log_directory *directory, struct hapax_error *err);

/* The directory that holds this one. */
void hx_log_directory_parent(
	const struct hx_log_directory *directory, char ret_path[HX_LOG_PATH_SIZE]);

#endif
