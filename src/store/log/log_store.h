/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_store.h - "file:DIR", the segment log.
 */
#ifndef HX_STORE_LOG_STORE_H
#define HX_STORE_LOG_STORE_H

#include <hapax/store.h>

struct hx_io;

/* See hapax_store_open(). path is the directory; it is created if it is absent. */
enum hapax_status hx_log_open(
	const char *url, const char *path, const struct hapax_store_options *options,
	struct hapax_store **ret_store, struct hapax_error *err);

/*
 * The same on other files than the system's, which must outlive the store. With
 * HAPAX_STORE_NO_HOUSEKEEPING the store has no thread of its own: each submit does its I/O
 * before it returns, in the same order each time. Passes over old segments then run only inside
 * hapax_store_sweep().
 */
enum hapax_status hx_log_open_on(
	const struct hx_io *io, const char *url, const char *path,
	const struct hapax_store_options *options, struct hapax_store **ret_store,
	struct hapax_error *err);

struct hx_clock_mark;

/* The same; if the store is new, its clock continues from mark. mark may be NULL. */
enum hapax_status hx_log_open_from(
	const struct hx_io *io, const char *url, const char *path,
	const struct hapax_store_options *options, const struct hx_clock_mark *mark,
	struct hapax_store **ret_store, struct hapax_error *err);

#endif
