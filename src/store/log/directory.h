/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.h - a store's directory: names, LOCK, STORE.
 *
 * Threads: any, once it is open.
 */
#ifndef HX_STORE_LOG_DIRECTORY_H
#define HX_STORE_LOG_DIRECTORY_H

#include <limits.h>

#include "store/log/format.h"

struct hx_io;

/* A path: the directory's, a slash, and a name. */
enum { HX_LOG_NAME_SIZE = 64, HX_LOG_PATH_SIZE = PATH_MAX };

struct hx_log_directory {
	const struct hx_io *io;
	int lock_file; /* -1: not held */
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
 * Take LOCK. The directory must be there; UNAVAILABLE with the pid of the owner if
 * somebody else holds it. directory->path is set by hx_log_directory_init(): INVALID
 * when it is empty or too long.
 */
enum hapax_status hx_log_directory_init(
	struct hx_log_directory *directory, const struct hx_io *io, const char *path,
	struct hapax_error *err);
enum hapax_status hx_log_directory_lock(
	struct hx_log_directory *directory, struct hapax_error *err);

/* Give LOCK back, if it is held. */
void hx_log_directory_done(struct hx_log_directory *directory);

/*
 * Read STORE. *ret_found: false, there is none, and nothing else that a store of
 * hapax leaves behind either. INVALID: there is none, and other files are here.
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
