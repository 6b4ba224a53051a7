/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_sample.h - metrics in which every family has something, for those who read them.
 */
#ifndef TEST_SUPPORT_METRICS_SAMPLE_H
#define TEST_SUPPORT_METRICS_SAMPLE_H

#include "observe/metrics/metrics.h"

/* Owned by the caller. Ends the program when there is no memory. */
struct hx_metrics *metrics_sample_new(void);

struct hx_metrics_facts metrics_sample_facts(void);

#endif
