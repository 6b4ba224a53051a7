/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_unit.h - units in which the tables of schema*.c are written; for these only.
 */
#ifndef HX_CONFIG_SCHEMA_SCHEMA_UNIT_H
#define HX_CONFIG_SCHEMA_SCHEMA_UNIT_H

#include <stdint.h>

enum { KIB = 1024, MIB = 1024 * KIB, LIST_MAX = 1000, NAME_MAX_SIZE = 128, TEXT_MAX = 4096 };

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define MANY   INT64_C(1000000000)

#endif
