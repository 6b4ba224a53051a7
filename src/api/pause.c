/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pause.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

void hx_pause_name(struct hapax_op *op, enum hapax_op_type type, const char *name)
{
	*op = (struct hapax_op){
		.type = type,
		.tenant = HX_BYTES_LIT("hapax"),
		.group = HX_BYTES_LIT("consumers"),
		.key = hapax_bytes_from_text(name),
		.ttl_ms = type == HAPAX_OP_SET ? HAPAX_TTL_FOREVER : 0,
	};
}

struct hapax_bytes hx_pause_value(const struct hx_pause *pause, char out[HX_PAUSE_VALUE_SIZE])
{
	(void)snprintf(out, HX_PAUSE_VALUE_SIZE, "%s\n%s", pause->who, pause->reason);
	return hapax_bytes_from_text(out);
}

static void copy(char *out, size_t size, const char *from, size_t from_size)
{
	(void)snprintf(out, size, "%.*s", (int)from_size, from_size == 0 ? "" : from);
}

/* A value that another program wrote is a name without a reason. */
static void read_value(struct hapax_bytes value, struct hx_pause *pause)
{
	const char *text = value.data;
	const char *end = value.size == 0 ? NULL : memchr(text, '\n', value.size);
	size_t size = end == NULL ? value.size : (size_t)(end - text);

	copy(pause->who, sizeof(pause->who), text, size);
	if (end != NULL)
		copy(pause->reason, sizeof(pause->reason), end + 1, value.size - size - 1);
}

bool hx_pause_read(const struct hapax_op *op, struct hx_pause *ret_pause)
{
	*ret_pause = (struct hx_pause){.is_known = op->status == HAPAX_OK};
	/* Only a value that was set pauses: no claim or event does, wherever its scope leads. */
	if (op->status != HAPAX_OK || op->outcome != HAPAX_OUTCOME_FOUND ||
	    op->record->state != HAPAX_STATE_DONE || op->record->origin != HAPAX_ORIGIN_SET)
		return ret_pause->is_known;
	ret_pause->is_paused = true;
	ret_pause->at_ms = op->record->changed_ms;
	read_value(op->record->result.body, ret_pause);
	return true;
}
