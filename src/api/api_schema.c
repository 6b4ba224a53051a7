/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_schema.c - replies of the API as JSON Schema (draft 2020-12). Replies have no other members.
 */
#include "api/route.h"

/* A name that may be bytes. */
#define ANY(name)                             \
	"\"" name "\":{\"type\":\"string\"}," \
	"\"" name "_base64\":{\"type\":\"string\",\"contentEncoding\":\"base64\"}"
#define COUNT(name)   "\"" name "\":{\"type\":\"integer\",\"minimum\":0}"
#define WHOLE(name)   "\"" name "\":{\"type\":\"integer\"}"
#define TEXT(name)    "\"" name "\":{\"type\":\"string\"}"
#define NO_TEXT(name) "\"" name "\":{\"type\":[\"string\",\"null\"]}"
#define NO_ANY(name)                                     \
	"\"" name "\":{\"type\":[\"string\",\"null\"]}," \
	"\"" name "_base64\":{\"type\":\"string\",\"contentEncoding\":\"base64\"}"
#define TIME(name)     "\"" name "\":{\"type\":\"string\",\"format\":\"date-time\"}"
#define NO_TIME(name)  "\"" name "\":{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"
#define LIMIT(name)    "\"" name "\":{\"type\":[\"integer\",\"null\"],\"minimum\":1}"
#define REF(name)      "{\"$ref\":\"#/components/schemas/" name "\"}"
#define LIST(name, of) "\"" name "\":{\"type\":\"array\",\"items\":" REF(of) "}"

#define NAMES ANY("tenant") "," ANY("group") "," ANY("key")

#define OBJECT(name, required, properties)                                                         \
	"\"" name "\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[" required \
	"],\"properties\":{" properties "}}"

#define STATES    "\"claimed\",\"done\",\"failed\",\"parked\""
#define DECISIONS "\"acquired\",\"replay\",\"in_progress\",\"mismatch\",\"parked\",\"fenced\""

const char hx_api_schemas[] = "{"
	OBJECT("Problem", "\"type\",\"title\",\"status\"",
	       TEXT("type") "," TEXT("title") "," WHOLE("status") "," TEXT("detail")) ","
	OBJECT("Result", "\"kind\",\"class\",\"status\"",
	       "\"kind\":{\"enum\":[\"none\",\"bytes\",\"http\",\"exec\"]},"
	       "\"class\":{\"enum\":[\"ok\",\"definitive\"]},"
	       WHOLE("status") "," ANY("headers") "," ANY("body") "," COUNT("omitted_bytes")) ","
	OBJECT("Record",
	       "\"state\",\"origin\",\"token\",\"attempt\",\"first_seen\",\"changed_at\","
	       "\"expires_at\",\"ttl_ms\",\"fingerprint\"",
	       NAMES ",\"state\":{\"enum\":[" STATES "]},"
	       "\"origin\":{\"enum\":[\"claim\",\"check\",\"set\"]},"
	       "\"on_lapse\":{\"enum\":[\"retry\",\"park\"]},"
	       COUNT("token") "," COUNT("attempt") "," TIME("first_seen") "," TIME("changed_at") ","
	       NO_TIME("expires_at") "," LIMIT("ttl_ms") "," TIME("lease_ends_at") ","
	       COUNT("lease_left_ms") ",\"fingerprint\":{\"type\":[\"string\",\"null\"]},"
	       TEXT("attempt_id") "," ANY("owner") "," ANY("error") ",\"event\":" REF("Event") ","
	       "\"result\":{\"oneOf\":[{\"type\":\"null\"}," REF("Result") "]}") ","
	OBJECT("Answer", "",
	       "\"outcome\":{\"enum\":[\"acquired\",\"replay\",\"in_progress\",\"mismatch\","
	       "\"parked\",\"applied\",\"found\",\"absent\",\"busy\",\"not_met\",\"skipped\"]},"
	       TEXT("failure") "," TEXT("detail") "," NAMES ","
	       "\"token\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"only with acquired, applied and "
	       "found; other callers do not get the holder's token\"},"
	       COUNT("attempt") "," TEXT("attempt_id") "," TIME("first_seen") ","
	       NO_TIME("expires_at") "," COUNT("lease_left_ms") ","
	       "\"unverified\":{\"const\":true},\"repeated\":{\"const\":true}," ANY("owner") "," ANY("error") ",\"event\":"
	       REF("Event") ","
	       "\"result\":{\"oneOf\":[{\"type\":\"null\"}," REF("Result") "]},"
	       "\"record\":" REF("Record")) ","
	OBJECT("Keys", "\"keys\",\"cursor\"",
	       LIST("keys", "Record") ",\"cursor\":{\"type\":[\"string\",\"null\"]}") ","
	OBJECT("Action", "\"method\",\"path\",\"reason\"",
	       TEXT("method") "," TEXT("path") "," TEXT("reason") ",\"body\":{\"type\":\"object\"}") ","
	OBJECT("Explanation", "\"state\",\"explanation\",\"next_claim\",\"actions\"",
	       NAMES ",\"state\":{\"enum\":[\"absent\"," STATES "]},"
	       "\"explanation\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	       "\"event\":" REF("Event") ","
	       "\"next_claim\":{\"enum\":[\"acquired\",\"replay\",\"in_progress\",\"parked\"]},"
	       LIST("actions", "Action")) ","
	OBJECT("Decisions",
	       DECISIONS ",\"completed\",\"released\",\"unverified\",\"limit\",\"forgotten\"",
	       COUNT("acquired") "," COUNT("replay") "," COUNT("in_progress") "," COUNT("mismatch") ","
	       COUNT("parked") "," COUNT("fenced") "," COUNT("completed") "," COUNT("released") ","
	       COUNT("unverified") "," COUNT("limit") "," COUNT("forgotten")) ","
	OBJECT("Row", "\"decisions\",\"hit_rate\"",
	       ANY("tenant") "," ANY("group") "," TIME("hour") ",\"decisions\":" REF("Decisions") ","
	       "\"hit_rate\":{\"type\":[\"number\",\"null\"]}") ","
	OBJECT("States", STATES,
	       COUNT("claimed") "," COUNT("done") "," COUNT("failed") "," COUNT("parked")) ","
	OBJECT("Stats",
	       "\"store\",\"capabilities\",\"now\",\"skew_ms\",\"keys\",\"states\",\"expired\","
	       "\"evicted\",\"swept\",\"tidy_failures\",\"bytes\",\"bytes_max\",\"keys_max\",\"reserve_bytes\","
	       "\"disk_full\",\"token\","
	       "\"since\",\"decisions\",\"hit_rate\"",
	       TEXT("store") "," COUNT("capabilities") "," TIME("now") "," WHOLE("skew_ms") ","
	       COUNT("keys") ",\"states\":" REF("States") "," COUNT("expired") "," COUNT("evicted") ","
	       COUNT("swept") "," COUNT("tidy_failures") "," COUNT("bytes") "," LIMIT("bytes_max") ","
	       LIMIT("keys_max") "," COUNT("reserve_bytes") ",\"disk_full\":{\"type\":\"boolean\"},"
	       COUNT("token") "," NO_TIME("since") ",\"decisions\":"
	       REF("Decisions") ",\"hit_rate\":{\"type\":[\"number\",\"null\"]},"
	       LIST("last_24h", "Row") "," LIST("hours", "Row")) ","
	OBJECT("Condition", "\"name\",\"severity\",\"since\",\"reason\"",
	       TEXT("name") "," TEXT("subject") ","
	       "\"severity\":{\"enum\":[\"info\",\"warning\",\"critical\"]},"
	       TIME("since") "," TEXT("reason")) ","
	OBJECT("Conditions", "\"conditions\"", LIST("conditions", "Condition")) ","
	OBJECT("Since", "\"since\"", TIME("since")) ","
	OBJECT("Sweep", "\"looked\",\"removed\",\"lapsed\",\"remaining\",\"done\"",
	       COUNT("looked") "," COUNT("removed") "," COUNT("lapsed") "," COUNT("remaining") ","
	       "\"done\":{\"type\":\"boolean\"}") ","
	OBJECT("Event", "", ANY("id") "," ANY("type") "," ANY("source") "," TIME("time")) ","
	OBJECT("Original", "\"first_seen\",\"attempt\"",
	       TIME("first_seen") "," COUNT("attempt") ",\"event\":" REF("Event")) ","
	OBJECT("Decision", "\"at\",\"decision\",\"door\"",
	       TIME("at") ",\"decision\":{\"enum\":[" DECISIONS "]}," TEXT("door") "," NAMES ","
	       "\"event\":" REF("Event") ","
	       "\"token\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"acquired only\"},"
	       "\"original\":" REF("Original") ","
	       COUNT("age_ms") ",\"cause\":{\"enum\":[\"concurrent\",\"redelivered\",\"repeated\","
	       "\"other_payload\",\"parked\",\"reread\",\"producer\",\"dead_letter\",\"other_door\"]}") ","
	OBJECT("Duplicates", "\"duplicates\",\"total\"",
	       LIST("duplicates", "Decision") "," COUNT("total")) ","
	OBJECT("Change", "\"number\",\"at\",\"who\",\"action\",\"outcome\"",
	       COUNT("number") "," TIME("at") "," TEXT("who") "," TEXT("client") "," TEXT("action") ","
	       TEXT("outcome") "," NAMES ",\"before\":" REF("Record") "," TEXT("after") ","
	       "\"detail\":{\"type\":\"object\"}") ","
	OBJECT("Audit", "\"entries\",\"total\"", LIST("entries", "Change") "," COUNT("total")) ","
	OBJECT("OutboxRelay", "\"owner\",\"partitions\",\"lease_ends_at\"",
	       TEXT("owner") "," COUNT("partitions") "," TIME("lease_ends_at")) ","
	OBJECT("OutboxEvent", "\"id\",\"topic\",\"ordering_key\",\"attempts\",\"error\"",
	       TEXT("id") "," TEXT("topic") "," NO_TEXT("ordering_key") "," COUNT("attempts") ","
	       NO_TEXT("error")) ","
	OBJECT("OutboxChange", "\"outcome\",\"id\"",
	       "\"outcome\":{\"const\":\"applied\"}," TEXT("id")) ","
	OBJECT("OutboxOwn",
	       "\"state\",\"reason\",\"published\",\"retried\",\"parked\",\"outages\",\"batches\","
	       "\"partitions\",\"publish_delay_ms\"",
	       "\"state\":{\"enum\":[\"running\",\"degraded\"]}," NO_TEXT("reason") ","
	       COUNT("published") "," COUNT("retried") "," COUNT("parked") "," COUNT("outages") ","
	       COUNT("batches") "," COUNT("partitions") "," WHOLE("publish_delay_ms")) ","
	OBJECT("Outbox",
	       "\"pending\",\"retrying\",\"waiting\",\"parked\",\"parked_keys\",\"oldest_ms\","
	       "\"partitions\",\"relay\",\"relays\",\"events\"",
	       COUNT("pending") "," COUNT("retrying") "," COUNT("waiting") "," COUNT("parked") ","
	       COUNT("parked_keys") "," COUNT("oldest_ms") "," COUNT("partitions") ",\"relay\":"
	       REF("OutboxOwn") "," LIST("relays", "OutboxRelay") "," LIST("events", "OutboxEvent")) ","
	OBJECT("Consumer",
	       "\"name\",\"state\",\"received\",\"acknowledged\",\"dead_letters\","
	       "\"in_hand\",\"running\",\"waiting\",\"lag\"",
	       TEXT("name") ",\"state\":{\"enum\":[\"running\",\"paused\",\"waiting\",\"failed\","
	       "\"disabled\"]}," NO_ANY("reason") "," NO_ANY("scope") ","
	       ANY("paused_by") "," TIME("paused_at") ","
	       COUNT("received") "," COUNT("acknowledged") "," COUNT("dead_letters") ","
	       COUNT("in_hand") "," COUNT("running") "," COUNT("waiting") ","
	       "\"lag\":{\"type\":[\"integer\",\"null\"],\"minimum\":0}") ","
	OBJECT("Consumers", "\"consumers\"", LIST("consumers", "Consumer")) ","
	OBJECT("ConsumerChange", "\"outcome\",\"name\",\"state\"",
	       "\"outcome\":{\"const\":\"applied\"}," TEXT("name") ","
	       "\"state\":{\"enum\":[\"paused\",\"resumed\"]}") ","
	OBJECT("DeadLetter", "\"id\",\"size\"",
	       TEXT("id") "," NO_ANY("reason") "," NO_ANY("error") "," NO_ANY("place") ","
	       NO_ANY("attempts") "," NO_ANY("key") "," TIME("time") "," COUNT("size") "," ANY("data")) ","
	OBJECT("DeadLetters", "\"letters\",\"more\",\"seen\",\"left\"",
	       LIST("letters", "DeadLetter") ",\"more\":{\"type\":\"boolean\",\"description\":"
	       "\"the list ended at the limit or at 8 MiB; there may be more\"}," COUNT("seen") ","
	       "\"left\":{\"type\":[\"integer\",\"null\"],\"minimum\":0}") ","
	OBJECT("Retried", "\"retried\",\"moved\",\"listed_again\",\"failed\",\"seen\",\"left\"",
	       COUNT("retried") "," COUNT("moved") "," COUNT("listed_again") "," COUNT("failed") "," ANY("why") ","
	       COUNT("seen") ","
	       "\"left\":{\"type\":[\"integer\",\"null\"],\"minimum\":0}") ","
	OBJECT("Rebuilt", "\"name\",\"forgotten\",\"done\"",
	       TEXT("name") "," COUNT("forgotten") ",\"done\":{\"type\":\"boolean\"}") ","
	"\"Config\":{\"type\":\"object\"},"
	"\"Stream\":{\"type\":\"string\",\"description\":\"events named decision, whose data is a "
	"Decision, and events named missed, whose data has a count\"}"
	"}";
