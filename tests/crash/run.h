/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a history of random submits on a simulated disk, crashed at every change.
 *
 * One caller submits and waits. Whenever the disk has changed, what a power cut would
 * meet is kept; when the submit has been answered, each of these becomes several
 * images, and each image is opened and judged: it holds everything that was
 * acknowledged before the submit, and all or a beginning of the submit itself. So one
 * history gives thousands of images and every one of them is at a boundary of a write.
 *
 * Between submits the machine restarts now and then, cleanly or not, and the history
 * goes on with what recovery made of it. With faults, calls of the disk fail: then
 *
 *  I11  after an UNCERTAIN answer nothing is answered OK on that handle
 *  I13  what was answered with a definite error has left nothing, and no definite answer
 *       rests upon what is UNCERTAIN: not even upon what came before it in the same frame
 *  I2b  what is seen after a failed sync, ghosts in the cache, survives a power cut
 *
 * In unsafe mode a power cut may take back answers, but only from the end: what is left is
 * a beginning of the history since the store was opened. It always opens, in either mode, and
 * what was seen once stays; no token is given twice.
 *
 * Equal seeds give equal histories; a failure prints its seed.
 */
#ifndef TEST_CRASH_RUN_H
#define TEST_CRASH_RUN_H

#include "crash/image.h"

struct run_plan {
	uint64_t seed;
	uint64_t submits;
	unsigned images; /* of each change of the disk; 0: with faults, and many of them */
	bool with_faults;
	bool is_unsafe; /* lives in unsafe mode and in the default mode, by turns */
};

struct run_report {
	bool ok;
	uint64_t submits;
	uint64_t images;
	uint64_t recoveries_cut;
	uint64_t restarts;
	uint64_t faults;
	uint64_t latched;
	uint64_t trace; /* a hash over every answer */
	char why[IMAGE_WHY_SIZE];
};

/* False: report->why says what was violated, and the last operations were printed. */
bool crash_run(
	const struct crash_subject *subject, const struct run_plan *plan,
	struct run_report *ret_report);

#endif
