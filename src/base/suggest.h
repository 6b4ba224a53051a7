/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h - find the known word that a mistyped one was meant to be.
 *
 * Threads: any.
 */
#ifndef HX_SUGGEST_H
#define HX_SUGGEST_H

#include <stddef.h>

struct hx_suggest {
	const char *word;
	const char *best; /* NULL: nothing is near */
	size_t best_distance;
};

void hx_suggest_init(struct hx_suggest *suggest, const char *word);

/* Remember candidate if it is nearer than all before it, and near enough. */
void hx_suggest_consider(struct hx_suggest *suggest, const char *candidate);

#endif
