/* SPDX-License-Identifier: Apache-2.0 */
#include "source/letter/letters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <hapax/source.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/thread.h"
#include "base/worker.h"
#include "source/letter/permit.h"
#include "source/source.h"

enum {
	/* A broker that has sent nothing for so long has no more. */
	QUIET_MS = 1000,
	SLOW_MS = 4000, /* the same, while it reports messages and none has come */
	/* A broker that fails from the start is given up; joining a group takes its time. */
	FAILED_MS = 3000,
	WALK_MS_MAX = 20 * 1000,
	/* Then no more letters are permitted to run: a slow store takes its time for each. */
	PERMIT_MS_MAX = 30 * 1000,
	SETTLE_MS_MAX = 8 * 1000,
	TURN_MS = 50,
	TOPICS_SIZE_MAX = 64 * 1024,
	ID_BYTES = 8,
	/* A queue and a stream say within a second how many they have left. */
	LEFT_MS = 1500,
	/* Messages that a broker sent before it was told to stop. */
	REST_MS = 200,
};

/* A letter in hand. */
struct held {
	struct walk *walk;
	struct hapax_message *message;
	struct hapax_publication publication;
	char topic[256];
	bool is_chosen; /* to be sent again */
	bool is_retry;  /* otherwise it is moved to the end of its own queue */
	bool is_publishing;
	bool is_published;
};

struct walk {
	const struct hx_letters *letters;
	struct hapax_source *source;
	struct hapax_buf topics; /* of the consumer, each with its NUL */
	struct held *held;
	size_t count;
	size_t publishing;
	struct hx_permit permit;
	struct hx_letters_sum *sum;
	int64_t began_ms;
	int64_t active_ms; /* when something last came */
	bool is_enough;
	bool is_broken;
	bool is_refused;                    /* the store does not answer */
	char why[HAPAX_ERROR_MESSAGE_SIZE]; /* of the last failure of the broker */

	struct hx_mutex mutex;
	struct hx_cond cond;
	bool is_awake; /* Locks: mutex */
};

/* Threads: any. */
static void on_wake(void *context)
{
	struct walk *walk = context;

	hx_mutex_lock(&walk->mutex);
	walk->is_awake = true;
	hx_cond_signal(&walk->cond);
	hx_mutex_unlock(&walk->mutex);
}

static void on_failed(void *context, const char *text, int is_fatal)
{
	struct walk *walk = context;

	(void)snprintf(walk->why, sizeof(walk->why), "%s", text);
	walk->is_broken = walk->is_broken || is_fatal;
}

static int64_t now_ms(void)
{
	return hx_clock_mono_ns() / HX_NS_PER_MS;
}

static bool is_stopped(const struct walk *walk)
{
	struct hx_worker *worker = walk->letters->worker;

	return worker != NULL && hx_worker_is_stopped(worker);
}

static void turn(struct walk *walk)
{
	hx_mutex_lock(&walk->mutex);
	if (!walk->is_awake)
		(void)hx_cond_wait_until_ns(
			&walk->cond, &walk->mutex, hx_clock_mono_ns() + TURN_MS * HX_NS_PER_MS);
	walk->is_awake = false;
	hx_mutex_unlock(&walk->mutex);
	(void)walk->source->ops->tick(walk->source, now_ms());
}

/* ------------------------------------------------------------------ one letter */

static struct hapax_bytes header_of(const struct hapax_message *message, const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < message->header_count; i++) {
		const struct hapax_field *field = &message->headers[i];

		if (field->name.size == size && strncasecmp(field->name.data, name, size) == 0)
			return field->value;
	}
	return hx_bytes(NULL, 0);
}

/* A message of a queue has no place: the same letter has the same hash each time. */
static void make_id(struct hx_letter *letter)
{
	const struct hapax_message *message = letter->message;
	unsigned char digest[HX_SHA256_SIZE];
	struct hx_sha256 sha;

	if (message->partition >= 0)
		(void)snprintf(
			letter->id, sizeof(letter->id), "%.*s/%d/%.*s", (int)message->topic.size,
			(const char *)message->topic.data, (int)message->partition,
			(int)message->place.size, (const char *)message->place.data);
	else if (message->place.size > 0)
		(void)snprintf(
			letter->id, sizeof(letter->id), "%.*s", (int)message->place.size,
			(const char *)message->place.data);
	if (letter->id[0] != '\0' || hx_sha256_init(&sha) != HAPAX_OK)
		return;
	hx_sha256_update(&sha, message->data.data, message->data.size);
	hx_sha256_update(&sha, letter->key.data, letter->key.size);
	hx_sha256_update(&sha, letter->error.data, letter->error.size);
	hx_sha256_final(&sha, digest);
	hx_sha256_done(&sha);
	hx_hex_encode(digest, ID_BYTES, letter->id);
	letter->id[2 * (size_t)ID_BYTES] = '\0';
}

static void read_letter(const struct hapax_message *message, struct hx_letter *letter)
{
	*letter = (struct hx_letter){
		.message = message,
		.reason = header_of(message, "hapax-dead-reason"),
		.error = header_of(message, "hapax-dead-error"),
		.place = header_of(message, "hapax-dead-place"),
		.attempts = header_of(message, "hapax-dead-attempts"),
		.key = header_of(message, "hapax-dead-key"),
	};
	make_id(letter);
}

/* The topic of a place: TOPIC/PARTITION/OFFSET of Kafka, STREAM/ID of Redis, a queue. */
static size_t topic_size(const struct walk *walk, struct hapax_bytes place)
{
	const char *text = place.data;
	size_t size = place.size;
	int parts = strcmp(walk->source->ops->name, "kafka") == 0 ? 2
		: strcmp(walk->source->ops->name, "redis") == 0   ? 1
								  : 0;

	for (; parts > 0 && size > 0; size--) {
		if (text[size - 1] == '/')
			parts--;
	}
	return size;
}

/*
 * Where the message belongs: the consumer's own topic, or the one of them that the letter names.
 * NULL: none. A header is data from the broker, and no permission to publish.
 */
static const char *origin_of(const struct walk *walk, const struct hx_letter *letter)
{
	const char *topics = (const char *)walk->topics.data;
	size_t size = topic_size(walk, letter->place);

	if (strlen(topics) + 1 == walk->topics.size)
		return topics;
	for (size_t at = 0; at < walk->topics.size; at += strlen(topics + at) + 1) {
		if (hx_bytes_equal(
			    hapax_bytes_from_text(topics + at), hx_bytes(letter->place.data, size)))
			return topics + at;
	}
	return NULL;
}

static void fail(struct walk *walk, const char *why)
{
	walk->sum->failed++;
	(void)snprintf(walk->sum->why, sizeof(walk->sum->why), "%s", why);
}

static void on_published(
	struct hapax_publication *publication, enum hapax_status status, const char *why)
{
	struct held *held = publication->context;
	struct walk *walk = held->walk;

	walk->publishing--;
	walk->active_ms = now_ms();
	held->is_publishing = false;
	held->is_published = status == HAPAX_OK;
	if (!held->is_published && held->is_retry)
		fail(walk, why);
}

static void publish(struct held *held, const char *target, bool is_retry)
{
	struct walk *walk = held->walk;
	const struct hapax_message *message = held->message;

	/* Its headers stay: they say where a duplicate came from. */
	held->publication = (struct hapax_publication){
		.target = target,
		.message = message,
		.headers = message->headers,
		.header_count = message->header_count,
		.done = on_published,
		.context = held,
	};
	held->is_retry = is_retry;
	held->is_publishing = true;
	walk->publishing++;
	walk->source->ops->publish(walk->source, &held->publication);
}

/* A store that does not answer is not asked for each letter: that would take its timeout each time. */
static void fail_permit(struct walk *walk, enum hapax_status status, const char *why)
{
	walk->is_refused = status == HAPAX_ERR_UNAVAILABLE || status == HAPAX_ERR_UNCERTAIN ||
		status == HAPAX_ERR_FAILED;
	fail(walk, why);
}

static void retry(struct held *held)
{
	struct walk *walk = held->walk;
	struct hapax_error err = {.message = ""};
	struct hx_letter letter;
	enum hapax_status status;
	const char *target;

	read_letter(held->message, &letter);
	target = origin_of(walk, &letter);
	if (letter.message->flags & HAPAX_MESSAGE_TOO_LARGE)
		fail(walk, "it is larger than size_max of the source");
	else if (target == NULL)
		fail(walk, "its place is not in a topic of the consumer");
	else if (walk->is_refused)
		walk->sum->failed++; /* for the same reason as the one before */
	else if (is_stopped(walk) || now_ms() - walk->began_ms >= PERMIT_MS_MAX)
		fail(walk, "there was no time for it; send it again");
	else if (
		(status = hx_permit_run(&walk->permit, letter.message, letter.key, &err)) !=
		HAPAX_OK)
		fail_permit(walk, status, err.message);
	else
		publish(held, target, true);
}

/*
 * After the last look: a message whose handler still fails is a letter again at once, and the walk
 * would send it as often as it can look.
 */
static void retry_chosen(struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++) {
		if (walk->held[i].is_chosen)
			retry(&walk->held[i]);
	}
}

/* The queue that the letter is in, as text. */
static const char *held_topic(struct held *held)
{
	struct hapax_bytes topic = held->message->topic;

	(void)snprintf(
		held->topic, sizeof(held->topic), "%.*s", (int)topic.size,
		(const char *)topic.data);
	return held->topic;
}

static struct held *hold(struct walk *walk, struct hapax_message *message)
{
	struct held *held = &walk->held[walk->count++];

	*held = (struct held){.walk = walk, .message = message};
	walk->active_ms = now_ms();
	return held;
}

static void take_letter(
	struct walk *walk, struct hapax_message *message, hx_letter_fn *each, void *context)
{
	struct held *held = hold(walk, message);
	struct hx_letter letter;

	read_letter(message, &letter);
	walk->sum->seen++;
	switch (each(&letter, context)) {
	case HX_LETTER_RETRY: held->is_chosen = true; break;
	case HX_LETTER_STOP: walk->is_enough = true; break;
	case HX_LETTER_KEEP: break;
	}
}

/* ------------------------------------------------------------------ the walk */

/* Has the broker no more to send, or has it failed? */
static bool is_over(struct walk *walk)
{
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;
	int64_t now = now_ms();
	int64_t quiet_ms;

	walk->source->ops->stats(walk->source, &stats);
	/* A lag in offsets includes those in hand. */
	walk->sum->left = stats.lag;
	if (walk->source->ops->position != NULL && stats.lag >= (int64_t)walk->count)
		walk->sum->left -= (int64_t)walk->count;
	if (walk->is_enough || walk->is_broken || is_stopped(walk) ||
	    now - walk->began_ms >= WALK_MS_MAX)
		return true;
	if (walk->count == HX_LETTERS_MAX)
		return walk->source->ops->position != NULL || now - walk->active_ms >= LEFT_MS;
	if (stats.changes == 0) {
		walk->active_ms = now;
		return stats.failures > 0 && now - walk->began_ms >= FAILED_MS;
	}
	quiet_ms = stats.lag > 0 && walk->count == 0 ? SLOW_MS : QUIET_MS;
	return now - walk->active_ms >= quiet_ms;
}

static enum hapax_status look(
	struct walk *walk, hx_letter_fn *each, void *context, struct hapax_error *err)
{
	struct hapax_source_stats stats = HAPAX_SOURCE_STATS_INIT;

	walk->began_ms = now_ms();
	walk->active_ms = walk->began_ms;
	do {
		struct hapax_message *message;

		turn(walk);
		while (walk->count < HX_LETTERS_MAX && !walk->is_enough &&
		       (message = walk->source->ops->next(walk->source)) != NULL)
			take_letter(walk, message, each, context);
	} while (!is_over(walk));
	walk->source->ops->stats(walk->source, &stats);
	if (walk->is_broken || stats.changes == 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "could not read the dead letters: %s",
			walk->why[0] != '\0' ? walk->why : "the broker did not answer in time");
	if (is_stopped(walk))
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, 0, "the daemon is stopping; nothing was sent");
	return HAPAX_OK;
}

static void await_published(struct walk *walk)
{
	const struct hapax_source_ops *ops = walk->source->ops;
	int64_t until_ms = now_ms() + SETTLE_MS_MAX;

	while (walk->publishing > 0 && now_ms() < until_ms)
		turn(walk);
	if (walk->publishing > 0 && ops->hurry != NULL)
		ops->hurry(walk->source);
	while (walk->publishing > 0)
		turn(walk);
}

/*
 * A quorum queue drops a message that comes back more often than its delivery limit, which may be 0
 * and which we do not know. So no letter comes back: it is published to its queue again, also one
 * that the broker has sent and the walk did not look at. The source is paused, or it would read the
 * new ones.
 */
static void renew(struct walk *walk)
{
	const struct hapax_source_ops *ops = walk->source->ops;
	struct hapax_message *message;

	if (strcmp(ops->name, "rabbitmq") != 0)
		return;
	ops->pause(walk->source, 1);
	walk->active_ms = now_ms();
	while (walk->count < HX_LETTERS_MAX && now_ms() - walk->active_ms < REST_MS) {
		turn(walk);
		while (walk->count < HX_LETTERS_MAX && (message = ops->next(walk->source)) != NULL)
			(void)hold(walk, message);
	}
	for (size_t i = 0; i < walk->count; i++) {
		struct held *held = &walk->held[i];

		if (!held->is_published)
			publish(held, held_topic(held), false);
	}
	await_published(walk);
}

/* Remove the letters whose message the broker has stored, and give the others back. */
static void settle(struct walk *walk)
{
	const struct hapax_source_ops *ops = walk->source->ops;
	bool is_behind = false; /* a letter that stays, and holds the offset */
	int64_t until_ms;

	await_published(walk);
	renew(walk);
	for (size_t i = 0; i < walk->count; i++) {
		struct held *held = &walk->held[i];

		walk->sum->retried += held->is_published && held->is_retry;
		walk->sum->moved += held->is_published && !held->is_retry;
		walk->sum->listed_again += held->is_published && is_behind;
		is_behind = is_behind || (ops->position != NULL && !held->is_published);
		if (held->is_published)
			ops->ack(walk->source, held->message);
		else
			ops->give_back(walk->source, held->message);
	}
	until_ms = now_ms() + SETTLE_MS_MAX;
	while (!ops->drain(walk->source) && now_ms() < until_ms)
		turn(walk);
}

enum hapax_status hx_letters_walk(
	const struct hx_letters *letters, hx_letter_fn *each, void *context,
	struct hx_letters_sum *ret_sum, struct hapax_error *err)
{
	struct walk walk = {.letters = letters, .sum = ret_sum};
	enum hapax_status status = HAPAX_ERR_NO_MEMORY;

	*ret_sum = (struct hx_letters_sum){.left = -1};
	hx_mutex_init(&walk.mutex);
	hx_cond_init(&walk.cond);
	hx_buf_init(&walk.topics, TOPICS_SIZE_MAX);
	walk.held = hx_alloc_zero(HX_LETTERS_MAX, sizeof(walk.held[0]));
	if (walk.held == NULL)
		(void)hx_error_set(err, status, 0, "not enough memory for dead letters");
	else
		status = hx_permit_init(&walk.permit, letters, err);
	if (status == HAPAX_OK)
		status = hx_source_open_letters(
			letters->from, letters->target, HX_LETTERS_MAX, &walk.topics, &walk.source,
			err);
	if (status == HAPAX_OK) {
		walk.source->hooks = (struct hapax_source_hooks){
			.wake = on_wake, .failed = on_failed, .context = &walk};
		status = look(&walk, each, context, err);
		if (status == HAPAX_OK)
			retry_chosen(&walk);
		settle(&walk);
		hapax_source_close(walk.source);
	}
	hx_permit_done(&walk.permit);
	hx_free(walk.held);
	hx_buf_done(&walk.topics);
	hx_cond_done(&walk.cond);
	hx_mutex_done(&walk.mutex);
	return status;
}
