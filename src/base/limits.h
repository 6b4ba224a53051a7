/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - size limits, each with its reason.
 *
 * Everything that can grow has its limit here. Units are in the names; values above MAX are
 * refused, DEFAULT is the meaning of a zero setting.
 */
#ifndef HX_LIMITS_H
#define HX_LIMITS_H

#include <stdint.h>

#include "base/time.h"

enum {
	/* Room for any sane composite; keeps a record's head in one 4 KiB page. */
	HX_KEY_SIZE_MAX = 1024,

	/* A tenant or a group: a name that people type, and a metric's label. */
	HX_SCOPE_PART_SIZE_MAX = 128,

	/* Host, program and pid as text; decides nothing, so it need not be longer. */
	HX_OWNER_SIZE_MAX = 128,

	/* Three texts of 255 bytes, sizes and time: the event of a claim, for reports. */
	HX_CAUSE_SIZE_MAX = 776,

	/* The last error of a failed run, kept for a person to read, not a log. */
	HX_ERROR_TEXT_SIZE_MAX = 1024,

	/* Most HTTP replies; small enough that thousands fit in memory at once. */
	HX_RESULT_SIZE_DEFAULT = 256 * 1024,

	/* A result is held in memory whole; over this, tombstones are the answer. */
	HX_RESULT_SIZE_LIMIT = 16 * 1024 * 1024,

	/* Four times what common servers accept as a whole header block. */
	HX_RESULT_HEADERS_SIZE_MAX = 64 * 1024,

	/* All parts of the largest record: scope, texts, headers, body; and 4 KiB to spare. */
	HX_RECORD_SIZE_MAX = 2 * HX_SCOPE_PART_SIZE_MAX + HX_KEY_SIZE_MAX + HX_OWNER_SIZE_MAX +
		HX_CAUSE_SIZE_MAX + HX_ERROR_TEXT_SIZE_MAX + HX_RESULT_HEADERS_SIZE_MAX +
		HX_RESULT_SIZE_LIMIT + 4096,

	/* Parked records wait for a person, who cannot work through more than this. */
	HX_PARKED_MAX_DEFAULT = 10000,

	/* Counters per scope and hour are held in memory; the rest counts as other. */
	HX_COUNTED_SCOPES_MAX = 10000,

	/* Interned scope numbers take 20 bits in the packed record. */
	HX_SCOPES_MAX = 1 << 20,

	/* One submit is one group commit at most: bounds its frame and its latency. */
	HX_SUBMIT_OPS_MAX = 65536,
};

/* Tokens pass through JSON and JavaScript, whose exact integers end here. */
#define HX_TOKEN_MAX ((UINT64_C(1) << 53) - 1)

/* 100 years of 365.25 days: "forever" is a separate value, this is a typo. */
#define HX_TTL_MS_MAX (36525 * HX_MS_PER_DAY)

/* A day of retries, as most senders of webhooks make them. */
#define HX_TTL_MS_DEFAULT HX_MS_PER_DAY

/* A claim whose holder died blocks its key this long at worst. */
#define HX_LEASE_MS_MAX (7 * HX_MS_PER_DAY)

/* Longer than common pauses (collector, disk, failover), short for a person. */
#define HX_LEASE_MS_DEFAULT (INT64_C(30) * 1000)

/* Maximum step of the wall clock that is trusted after a reboot; the rest is slewed. */
#define HX_CLOCK_STEP_MS_DEFAULT (7 * HX_MS_PER_DAY)

#endif
