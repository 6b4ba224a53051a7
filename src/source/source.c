/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - the common part of all sources.
 */
#include "source/source.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <hapax/source.h>

#include "base/alloc.h"

enum hapax_status hx_source_init(
	struct hapax_source *source, const struct hapax_source_ops *ops, const char *url)
{
	memset(source, 0, sizeof(*source));
	source->ops = ops;
	source->url = hx_alloc_text(url);
	return source->url == NULL ? HAPAX_ERR_NO_MEMORY : HAPAX_OK;
}

void hx_source_done(struct hapax_source *source)
{
	hx_free(source->url);
	source->url = NULL;
}

bool hx_source_adds_header(struct hapax_bytes name)
{
	return (name.size > 11 && strncasecmp(name.data, "hapax-dead-", 11) == 0) ||
		(name.size > 16 && strncasecmp(name.data, "hapax-duplicate-", 16) == 0);
}

bool hx_source_letters_target(const char *asked, const char *topic, char *out, size_t size)
{
	int used = asked[0] != '\0' ? snprintf(out, size, "%s", asked)
				    : snprintf(out, size, "%s.dead", topic);

	return used >= 0 && (size_t)used < size;
}

void hapax_source_close(struct hapax_source *source)
{
	if (source != NULL)
		source->ops->close(source);
}

const char *hapax_source_url(const struct hapax_source *source)
{
	return source->url;
}

const char *hapax_duplicate_cause_name(enum hapax_duplicate_cause cause)
{
	switch (cause) {
	case HAPAX_CAUSE_REREAD: return "reread";
	case HAPAX_CAUSE_REDELIVERED: return "redelivered";
	case HAPAX_CAUSE_PRODUCER: return "producer";
	case HAPAX_CAUSE_DEAD_LETTER: return "dead_letter";
	case HAPAX_CAUSE_OTHER_DOOR: return "other_door";
	}
	return "unknown";
}
