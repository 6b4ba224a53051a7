/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c - edit distance between what was typed and what exists.
 *
 * The distance counts insertions, deletions, replacements and swaps of neighbors
 * (optimal string alignment): the four slips of a typing hand. A word may be off by
 * one, and by one more for every four letters after the first: 'tcsh' is not 'bash'. Beyond that a
 * suggestion is noise.
 */
#include "base/suggest.h"

#include <stdint.h>
#include <string.h>

/* Longer than every command, option and setting. */
enum { WORD_SIZE_MAX = 48 };

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t rows[3][WORD_SIZE_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *current = rows[2];

	for (size_t j = 0; j <= b_size; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		size_t *oldest = before;

		current[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;

			current[j] = min_size(above[j] + 1, current[j - 1] + 1);
			current[j] = min_size(current[j], above[j - 1] + cost);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				current[j] = min_size(current[j], before[j - 2] + 1);
		}
		before = above;
		above = current;
		current = oldest;
	}
	return above[b_size];
}

void hx_suggest_init(struct hx_suggest *suggest, const char *word)
{
	*suggest = (struct hx_suggest){.word = word, .best_distance = SIZE_MAX};
}

void hx_suggest_consider(struct hx_suggest *suggest, const char *candidate)
{
	size_t size = strnlen(suggest->word, WORD_SIZE_MAX + 1);
	size_t candidate_size = strnlen(candidate, WORD_SIZE_MAX + 1);
	size_t found;

	if (size < 2 || size > WORD_SIZE_MAX || candidate_size > WORD_SIZE_MAX)
		return;
	found = distance(suggest->word, size, candidate, candidate_size);
	if (found > 1 + (size - 1) / 4 || found >= suggest->best_distance)
		return;
	suggest->best = candidate;
	suggest->best_distance = found;
}
