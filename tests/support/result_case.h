/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_case.h - a file: store on a simulated disk, keys with results of every size, and short ways
 * to get these results out of memory into a class segment.
 */
#ifndef TEST_SUPPORT_RESULT_CASE_H
#define TEST_SUPPORT_RESULT_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/hapax.h>

#include "support/sim_disk.h"
#include "support/virtual_clock.h"

enum {
	RESULT_CASE_SEGMENT = 64 * 1024,
	RESULT_CASE_BYTES_MAX = 1 << 20,
	RESULT_CASE_TTL_MS = 60000,
	RESULT_CASE_SIZES = 14, /* keys of result_case_complete_all() */
};

/* A store on a disk in memory, without threads of its own. */
struct result_case {
	struct sim_disk *disk;
	const struct hx_io *io;
	char path[300];
	struct hx_virtual_clock clock;
	struct hapax_store_options options;
	struct hapax_store *store;
	struct hapax_record record;
	struct hapax_buf *buf;
	unsigned fillers;
	uint64_t attempts;
};

void result_case_init(struct result_case *scene);
void result_case_done(struct result_case *scene);
void result_case_open(struct result_case *scene);
void result_case_reopen(struct result_case *scene);

/* A result whose bytes follow from seed. It points to bytes. */
struct hapax_result result_case_result(
	unsigned char *bytes, unsigned seed, size_t headers_size, size_t body_size);

/* The record holds that result. */
void result_case_must_be(const struct hapax_record *record, const struct hapax_result *expected);

struct hapax_op result_case_op(struct result_case *scene, enum hapax_op_type type, const char *key);

/* Claim and complete key. */
void result_case_complete(
	struct result_case *scene, const char *key, const struct hapax_result *result);

/* A whole sweep. */
enum hapax_status result_case_sweep(struct result_case *scene, struct hapax_error *err);

/* Write until the segment that is written now is an old one. push_out: then a sweep copies it. */
void result_case_fill_log(struct result_case *scene);
void result_case_push_out(struct result_case *scene);

/* Number, key and result of each size, below RESULT_CASE_SIZES. is_large: it leaves memory. */
struct hapax_result result_case_expected(unsigned i);
void result_case_key(char key[32], unsigned i);
bool result_case_is_large(unsigned i);
void result_case_complete_all(struct result_case *scene);
void result_case_must_scan_all(struct result_case *scene);

/* Class segments on the disk. */
unsigned result_case_count_classes(struct result_case *scene);

#endif
