/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.c - commands of Redis that hapax does not have, by family, with the reason.
 *
 * A client that needs one of them must not learn this from its second half, such as the release of
 * a lock, so the error says what to use instead. A name in no family is an unknown command.
 */
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "resp/resp_command.h"

static const struct {
	const char *names; /* in upper case, each between blanks */
	const char *reason;
} families[] = {
	{" INCR INCRBY INCRBYFLOAT DECR DECRBY ",
	 "a repeated increment counts twice, and hapax has no counters; use HAPAX.CHECK or SET NX"},
	{" MSET MSETNX ", "it sets no expiry; use SET for each key, in MULTI to set all or none"},
	{" WATCH UNWATCH ",
	 "use SET with NX or IFEQ and DELEX with IFEQ, which compare in one step"},
	{" BLPOP BRPOP LPUSH RPUSH LPOP RPOP LRANGE LLEN LREM LTRIM LINDEX LSET BLMOVE LMOVE "
	 "BRPOPLPUSH RPOPLPUSH ",
	 "hapax has no lists; a lock that waits by one must try again instead (blocking=False)"},
	{" HSET HGET HDEL HGETALL HMGET HMSET HINCRBY HINCRBYFLOAT HEXISTS HKEYS HVALS HLEN HSETNX "
	 "HSCAN ",
	 "hapax has no hashes; use one key for each field"},
	{" SADD SREM SISMEMBER SMEMBERS SCARD SPOP SSCAN ZADD ZREM ZRANGE ZRANGEBYSCORE ZSCORE ZCARD "
	 "ZPOPMIN BZPOPMIN PFADD PFCOUNT ",
	 "hapax has no sets; use one key for each member, with HAPAX.CHECK or SET NX"},
	{" XADD XREAD XREADGROUP XACK XDEL XLEN XRANGE XGROUP XPENDING XCLAIM XAUTOCLAIM ",
	 "hapax has no streams; 'hapax consume' reads those of a Redis server"},
	{" SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE PUBLISH SPUBLISH PUBSUB ",
	 "hapax has no channels; a lock that waits by one must try again instead"},
	{" APPEND GETRANGE SETRANGE SUBSTR SETBIT GETBIT BITCOUNT BITOP ",
	 "hapax stores whole values; use GET and SET"},
	{" RENAME RENAMENX COPY MOVE DUMP RESTORE MIGRATE ",
	 "a key is the name of one operation; use SET and DEL"},
	{" EVAL_RO EVALSHA_RO FCALL FCALL_RO ",
	 "hapax runs no Lua, only the scripts of common locks, by EVAL and EVALSHA"},
	{" CLUSTER READONLY READWRITE ", "the server is not a cluster; connect to it as one node"},
};

const char *hx_resp_refusal(struct hapax_bytes name)
{
	for (size_t i = 0; i < HX_COUNT(families); i++) {
		const char *at = families[i].names;
		const char *end;

		for (; (end = strchr(at + 1, ' ')) != NULL; at = end) {
			if ((size_t)(end - at - 1) == name.size &&
			    strncasecmp(name.data, at + 1, name.size) == 0)
				return families[i].reason;
		}
	}
	return NULL;
}
