/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_subject.h - file: as a subject of crash tests: on a simulated disk, with segments
 * so small that a history fills dozens of them.
 */
#ifndef TEST_CRASH_LOG_SUBJECT_H
#define TEST_CRASH_LOG_SUBJECT_H

#include "crash/subject.h"

enum { LOG_SEGMENT_BYTES = 16 * 1024 };

extern const struct crash_subject log_subject;

#endif
