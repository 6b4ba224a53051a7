/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.h - a record in sentences: the state of a key, the answer that a claim would get now, and
 * actions that help.
 *
 * `hapax explain` and GET /keys/{tenant}/{group}/{key}/explain tell the same story. They differ in
 * how an action is written, a command or a request, and in what only a shell needs: ages beside
 * the times, and the names of commands.
 *
 *	static struct hx_story story;
 *
 *	story = (struct hx_story){.record = op.record, .lease_left_ms = op.lease_left_ms};
 *	hx_story_tell(&story);
 *	for (size_t i = 0; i < story.link_count; i++)
 *		puts(story.lines[i]);
 *
 * The lines contain bytes of the record unchanged: the caller must escape them for printing.
 *
 * Threads: any.
 */
#ifndef HX_STORY_H
#define HX_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hapax/record.h>
#include <hapax/store.h>

/* A line holds an owner or an error of any size, and its sentence. */
enum { HX_STORY_LINES_MAX = 6, HX_STORY_LINE_SIZE = 1536, HX_STORY_ACTIONS_MAX = 2 };

enum hx_story_action {
	HX_STORY_DONE,   /* resolve it as done */
	HX_STORY_RETRY,  /* resolve it so that the next claim runs */
	HX_STORY_FORGET, /* remove the record */
};

struct hx_story {
	/* Set by the caller. */
	const struct hapax_record *record; /* NULL: there is none */
	int64_t lease_left_ms;             /* as the store said it; 0: the lease has ended */
	bool is_for_shell;                 /* also write ages and commands */
	int64_t now_ms;                    /* for a shell: the store's clock */

	/* Set by hx_story_tell(). */
	char lines[HX_STORY_LINES_MAX][HX_STORY_LINE_SIZE];
	size_t link_count;
	enum hapax_outcome next; /* the answer to a claim with the same payload */
	enum hx_story_action actions[HX_STORY_ACTIONS_MAX];
	size_t action_count;
};

void hx_story_tell(struct hx_story *story);

/* Add a sentence of the caller's own. It is left out if it does not fit. */
__attribute__((format(printf, 2, 3))) void hx_story_add(
	struct hx_story *story, const char *format, ...);

/* When to do it: "it happened: never run it again". */
const char *hx_story_reason(enum hx_story_action action);

#endif
