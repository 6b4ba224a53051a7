/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_option.h - options of a source's URL: NAME=VALUE&NAME=VALUE behind its question mark.
 *
 * A source takes those that it knows; the others are left as they are for the reader of
 * what every URL of that broker has (net/redis_place.h, broker/rabbit_place.h).
 *
 * Threads: any; the functions keep nothing.
 */
#ifndef HX_SOURCE_SOURCE_OPTION_H
#define HX_SOURCE_SOURCE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/bytes.h>
#include <hapax/error.h>

/* As it stands in the URL. */
struct hx_option {
	struct hapax_bytes name;
	struct hapax_bytes value;
};

/* Take an option, or set *ret_is_ours to false. INVALID: it is ours, and wrong. */
typedef enum hapax_status hx_option_take_fn(
	void *place, const struct hx_option *option, bool *ret_is_ours, struct hapax_error *err);

/*
 * All options of a query. What take leaves is appended to rest, a text that has room for the
 * whole of query, as a query of its own.
 */
enum hapax_status hx_options_take(
	const char *query, hx_option_take_fn *take, void *place, char *rest, size_t rest_size,
	struct hapax_error *err);

bool hx_option_is(const struct hx_option *option, const char *name);
bool hx_option_says(const struct hx_option *option, const char *value);

/* Its value, percent-decoded. False: it is empty, malformed, or there is no room for it. */
bool hx_option_text(const struct hx_option *option, char *out, size_t out_size);

/* A number from 1 to max. */
bool hx_option_number(const struct hx_option *option, int64_t max, int64_t *ret_number);

#endif
