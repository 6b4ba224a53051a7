/* SPDX-License-Identifier: Apache-2.0 */
#include "support/resp_case.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/bytes.h"
#include "resp/resp_job.h"
#include "support/virtual_clock.h"
#include "wire/resp/resp.h"

enum { SIZE_MAX_OF_TEXT = 1 << 26, VALUE_SIZE_MAX = 4096 };

bool resp_case_begin(struct resp_case *c, const struct hx_resp_service_options *options)
{
	struct hapax_store_options store = HAPAX_STORE_OPTIONS_INIT;
	struct hx_resp_service_options service = {.value_size_max = VALUE_SIZE_MAX};

	memset(c, 0, sizeof(*c));
	if (options != NULL)
		service = *options;
	if (service.value_size_max == 0)
		service.value_size_max = VALUE_SIZE_MAX;
	hx_virtual_clock_init(&c->clock, INT64_C(1700000000000));
	store.clock = hx_virtual_clock_clock(&c->clock);
	store.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	if (hapax_store_open("memory:", &store, &c->store, NULL) != HAPAX_OK)
		return false;
	service.store = c->store;
	service.clock = store.clock;
	hx_resp_service_init(&c->service, &service);
	hx_resp_session_init(&c->session, &c->service);
	hx_resp_batch_init(&c->batches[0]);
	hx_resp_batch_init(&c->batches[1]);
	hx_buf_init(&c->input, SIZE_MAX_OF_TEXT);
	hx_buf_init(&c->out, SIZE_MAX_OF_TEXT);
	return true;
}

void resp_case_end(struct resp_case *c)
{
	hx_resp_session_done(&c->session);
	hx_resp_service_done(&c->service);
	hx_resp_batch_done(&c->batches[0]);
	hx_resp_batch_done(&c->batches[1]);
	hx_buf_done(&c->input);
	hx_buf_done(&c->out);
	hapax_store_close(c->store);
}

static void submit(struct resp_case *c, struct hx_resp_batch *batch)
{
	hx_resp_batch_seal(batch);
	if (batch->count == 0)
		return;
	c->submits++;
	c->largest = batch->count > c->largest ? batch->count : c->largest;
	c->last_flags = batch->ops[0].flags;
	(void)hapax_store_run(c->store, batch->ops, batch->count, NULL);
}

static void finish(struct resp_case *c)
{
	size_t at = 0;
	bool is_done = false;

	while (hx_resp_session_has_job(&c->session) && hx_resp_job_run(c->session.job))
		;
	while (!is_done) {
		struct hx_resp_batch *batch = &c->batches[at];

		submit(c, batch);
		is_done = hx_resp_session_finish(&c->session, batch, &c->batches[1 - at], &c->out);
		hx_resp_batch_clear(batch);
		at = 1 - at;
	}
	hx_resp_batch_clear(&c->batches[0]);
	hx_resp_batch_clear(&c->batches[1]);
}

void resp_case_feed(struct resp_case *c, const void *data, size_t size)
{
	size_t used = 0;
	enum hapax_status status = hx_buf_append(&c->input, data, size);

	assert(status == HAPAX_OK);
	(void)status;
	while (!c->session.is_closing) {
		size_t step = hx_resp_session_plan(
			&c->session, &c->batches[0],
			used == c->input.size
				? hx_bytes(NULL, 0)
				: hx_bytes(c->input.data + used, c->input.size - used));

		used += step;
		if (!hx_resp_session_is_busy(&c->session) && step == 0)
			break;
		finish(c);
	}
	if (used > 0)
		memmove(c->input.data, c->input.data + used, c->input.size - used);
	c->input.size -= used;
}

static const char *fed(struct resp_case *c)
{
	enum hapax_status status = hx_buf_append_byte(&c->out, '\0');

	assert(status == HAPAX_OK);
	(void)status;
	return (const char *)c->out.data;
}

const char *resp_case_ask(struct resp_case *c, const char *text)
{
	hx_buf_clear(&c->out);
	resp_case_feed(c, text, strlen(text));
	return fed(c);
}

const char *resp_case_command(struct resp_case *c, const char *word, ...)
{
	struct hapax_buf bytes;
	va_list words;
	size_t count = 1;

	va_start(words, word);
	while (va_arg(words, const char *) != NULL)
		count++;
	va_end(words);
	hx_buf_init(&bytes, SIZE_MAX_OF_TEXT);
	(void)hx_resp_put_array(&bytes, count);
	va_start(words, word);
	for (const char *at = word; at != NULL; at = va_arg(words, const char *))
		(void)hx_resp_put_text(&bytes, at);
	va_end(words);
	hx_buf_clear(&c->out);
	resp_case_feed(c, bytes.data, bytes.size);
	hx_buf_done(&bytes);
	return fed(c);
}
