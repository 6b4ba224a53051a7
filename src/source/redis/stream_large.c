/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_large.c - finds and hands on entries above size_max, without reading them.
 *
 * A large entry within a reply is skipped there. An entry may also make a reply larger than a line
 * accepts: the line is lost, and the next one asks the server which of our pending entries are too
 * large. In both cases the consumer gets an entry without fields, to make it a dead letter, and the
 * server copies its fields there.
 *
 * The size of an entry is that of its fields in a reply: "$" SIZE CR LF BYTES CR LF each.
 */
#include <string.h>

#include "base/bytes.h"
#include "source/redis/redis_private.h"
#include "wire/resp/resp.h"

/* The member's pending entries above a size. */
static const char survey[] =
	"local found={} "
	"for _,p in ipairs(redis.call('XPENDING',KEYS[1],ARGV[1],'-','+',ARGV[4],ARGV[2])) do"
	" local e=redis.call('XRANGE',KEYS[1],p[1],p[1])[1] local n=0"
	" if e then for _,f in ipairs(e[2]) do n=n+#f+#tostring(#f)+5 end end"
	" if n>tonumber(ARGV[3]) then found[#found+1]=p[1] end "
	"end return found";

/* Copy an entry to another stream, with new fields in place of those of an earlier dead letter. */
static const char copy[] =
	"local e=redis.call('XRANGE',KEYS[1],ARGV[1],ARGV[1])[1] if not e then return 0 end "
	"local w={'XADD',KEYS[2],'*'} "
	"for i=1,#e[2],2 do local name=string.lower(e[2][i])"
	" if string.sub(name,1,11)~='hapax-dead-' and string.sub(name,1,16)~='hapax-duplicate-' then"
	" w[#w+1]=e[2][i] w[#w+1]=e[2][i+1] end "
	"end "
	"for i=2,#ARGV do w[#w+1]=ARGV[i] end "
	"return redis.call(unpack(w))";

void hx_redis_large_survey(struct hx_redis_source *source)
{
	struct hx_redis_line *line = &source->reader.line;

	hx_redis_line_command(
		line, 2,
		HX_REDIS_WORDS(
			"EVAL", survey, "1", source->place.stream, source->place.group,
			source->member));
	hx_redis_line_put_number(line, (int64_t)source->place.size_max);
	hx_redis_line_put_number(line, HX_STREAM_PREFETCH_MAX);
}

/* Numbers without leading zeros: if the lengths differ, the longer one is larger. */
static int compare_digits(const char *a, size_t a_size, const char *b, size_t b_size)
{
	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	return memcmp(a, b, a_size);
}

/* Compare both halves of an id. */
static bool is_behind(const char *a, const char *b)
{
	size_t a_size = strcspn(a, "-"), b_size = strcspn(b, "-");
	int order = compare_digits(a, a_size, b, b_size);

	if (order == 0)
		order = compare_digits(
			a + a_size, strlen(a + a_size), b + b_size, strlen(b + b_size));
	return order > 0;
}

struct hx_redis_entry *hx_redis_large_entry(struct hx_redis_source *source, struct hapax_bytes id)
{
	struct hx_redis_entry *entry = hx_redis_entry_take(source);

	if (entry != NULL) {
		hx_redis_entry_name(source, entry, id);
		entry->message_.message.flags |= HAPAX_MESSAGE_TOO_LARGE;
	}
	return entry;
}

bool hx_redis_large_take(
	struct hx_redis_source *source, struct hapax_bytes rest, struct hx_io_messages *ret_list)
{
	struct hx_redis_reader *reader = &source->reader;
	struct hx_resp_value value;
	struct hapax_bytes id;
	int64_t count;

	if (!hx_resp_next(&rest, &value) || value.type != HX_RESP_ARRAY)
		return false;
	count = value.integer;
	for (int64_t i = 0; i < count; i++) {
		struct hx_redis_entry *entry;

		if (!hx_resp_next(&rest, &value) || !hx_resp_text(&value, &id) || id.size == 0 ||
		    id.size >= HX_REDIS_ID_SIZE)
			return false;
		if (hx_redis_reader_holds(source, id))
			continue;
		entry = hx_redis_large_entry(source, id);
		if (entry == NULL)
			return false;
		hx_redis_reader_take_in(source, entry, ret_list);
		/* In order: our own entries were read up to the first of these. */
		if (reader->history[0] != '\0' && is_behind(entry->id, reader->history)) {
			memcpy(reader->history, entry->id, sizeof(entry->id));
			return true;
		}
	}
	return true;
}

void hx_redis_large_copy(
	struct hx_redis_source *source, const struct hx_redis_entry *entry,
	const struct hapax_publication *publication)
{
	struct hx_redis_line *line = &source->writer.line;

	hx_redis_line_command(
		line, 2 * publication->header_count,
		HX_REDIS_WORDS(
			"EVAL", copy, "2", source->place.stream, publication->target, entry->id));
	for (size_t i = 0; i < publication->header_count; i++) {
		hx_redis_line_put(line, publication->headers[i].name);
		hx_redis_line_put(line, publication->headers[i].value);
	}
}
