/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fsck.h - hapax_fsck() on other files than the system's, for tests.
 */
#ifndef HX_STORE_LOG_READ_FSCK_H
#define HX_STORE_LOG_READ_FSCK_H

#include <hapax/fsck.h>

struct hx_io;

/* See hapax_fsck(). fsck is not NULL and has the right size. */
enum hapax_status hx_log_fsck_on(
	const struct hx_io *io, const char *path, struct hapax_fsck *fsck, struct hapax_error *err);

#endif
