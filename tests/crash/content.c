/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "record/record.h"

struct content *content_new(void)
{
	struct content *content = calloc(1, sizeof(*content));

	for (size_t i = 0; content && i < MODEL_KEYS_MAX; i++) {
		content->bufs[i] = hapax_buf_new(1 << 20);
		if (!content->bufs[i]) {
			content_free(content);
			return NULL;
		}
	}
	return content;
}

void content_free(struct content *content)
{
	if (!content)
		return;
	for (size_t i = 0; i < MODEL_KEYS_MAX; i++)
		hapax_buf_free(content->bufs[i]);
	free(content);
}

static int keep_record(const struct hapax_record *record, void *context)
{
	struct content *content = context;

	/* A record that changed during the scan may come twice; nothing changes here. */
	if (content->count == MODEL_KEYS_MAX)
		return 1;
	if (hx_record_copy(
		    record, &content->records[content->count], content->bufs[content->count]) !=
	    HAPAX_OK)
		return 2;
	content->count++;
	return 0;
}

bool content_read(struct content *content, struct hapax_store *store)
{
	struct hapax_scan scan = HAPAX_SCAN_INIT;
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_cursor cursor = {0};
	struct hapax_error err = {0};

	content->count = 0;
	if (hapax_store_stats(store, &stats, NULL, NULL, &err) != HAPAX_OK) {
		snprintf(content->why, sizeof(content->why), "stats: %.400s", err.message);
		return false;
	}
	content->now_ms = stats.now_ms;
	content->token = stats.token;
	while (!cursor.done)
		if (hapax_store_scan(store, &scan, &cursor, keep_record, content, &err) !=
		    HAPAX_OK) {
			snprintf(content->why, sizeof(content->why), "scan: %.400s", err.message);
			return false;
		}
	return true;
}

bool content_is(struct content *content, struct model *model)
{
	bool ok = true;

	model->why[0] = '\0';
	model_scan_begin(model);
	for (size_t i = 0; ok && i < content->count; i++)
		ok = model_scan_record(model, content->now_ms, &content->records[i]);
	ok = ok && model_scan_end(model, content->now_ms);
	if (!ok)
		snprintf(content->why, sizeof(content->why), "%.500s", model->why);
	return ok;
}

bool content_is_between(struct content *content, struct model *one, struct model *other)
{
	model_scan_begin(one);
	model_scan_begin(other);
	for (size_t i = 0; i < content->count; i++) {
		const struct hapax_record *record = &content->records[i];
		bool is_one = model_scan_record(one, content->now_ms, record);
		bool is_other = model_scan_record(other, content->now_ms, record);

		if (!is_one && !is_other) {
			snprintf(
				content->why, sizeof(content->why),
				"neither as before (%.200s) nor as after (%.200s)", one->why,
				other->why);
			return false;
		}
	}
	/* What was there before and after must be there; each key was seen in one of them. */
	for (size_t i = 0; i < one->count && i < other->count; i++)
		one->keys[i].seen = other->keys[i].seen = one->keys[i].seen || other->keys[i].seen;
	if (model_scan_end(one, content->now_ms) || model_scan_end(other, content->now_ms))
		return true;
	snprintf(content->why, sizeof(content->why), "%.500s", one->why);
	return false;
}

static struct hapax_bytes or_default(struct hapax_bytes name)
{
	return name.size ? name : hapax_bytes_from_text("default");
}

const struct hapax_record *content_find(const struct content *content, const struct hapax_op *op)
{
	for (size_t i = 0; i < content->count; i++) {
		const struct hapax_record *record = &content->records[i];

		if (hx_bytes_equal(record->tenant, or_default(op->tenant)) &&
		    hx_bytes_equal(record->group, or_default(op->group)) &&
		    hx_bytes_equal(record->key, op->key))
			return record;
	}
	return NULL;
}
