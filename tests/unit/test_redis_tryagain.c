/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_redis_tryagain.c - operations on a slot of a Redis Cluster that is on its way from one server to
 * another (tests/redis/with_cluster). A script needs several names; as long as they are not all at one
 * place both servers say TRYAGAIN. Nothing was done then: it is said again, later, until it is done, once,
 * or its time is over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hapax/hapax.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "store/redis/redis_store.h"
#include "store/redis/slot.h"
#include "support/fault_net.h"
#include "support/redis_cluster.h"
#include "support/scale.h"

enum {
	TIMEOUT_MS = 120000,
	SOURCE = 0, /* has the slot, and gives it to TARGET */
	TARGET = 1,
	SLOTS_OF_SOURCE = 5461, /* as with_cluster shares them out */
	KEY_SIZE = 40,
	GIVEN_UP = 3, /* keys that a caller has tried to use, in vain */

	/* What is refused waits for the next tick of cluster.c, 25 ms; this is a little less. */
	PAUSE_MS = 20,
};

static const unsigned char attempt_ids[][HAPAX_ATTEMPT_ID_SIZE] = {{1}, {2}};

/*
 * The network, which looks at what goes over it. Of one store whose operations come one by one: nothing
 * else is on its way while one of them is refused.
 */
struct seam {
	struct fault_net fault; /* first: it is what the operations are given */
	struct scene *scene;
	_Atomic int refusals_left; /* at the last of them time is over; 0: it goes on */
	_Atomic bool splits;       /* the move is given up behind the next script */
	int split_fd;              /* over which that one went; -1: none yet */
	uint64_t turned_away;      /* before it */
};

struct scene {
	struct hapax_store *store;
	struct hapax_store *watched; /* the same ledger, over the seam */
	struct seam seam;
	char ids[2][64]; /* of SOURCE and TARGET */
	char prefix[32];
	unsigned partition;
	unsigned slot;
	unsigned key_number;
};

static struct redis_cluster cluster;

/* ---------------------------------------------------------------- the Cluster */

/* The number behind field in a line of what INFO says; 0: there is no such line. */
static uint64_t figure(int server, const char *section, const char *line, const char *field)
{
	static char out[1 << 16];
	char command[64];
	const char *found;

	snprintf(command, sizeof(command), "info %s", section);
	redis_cluster_ask(&cluster, server, command, out, sizeof(out));
	found = strstr(out, line);
	found = found == NULL ? NULL : strstr(found, field);
	return found == NULL ? 0 : strtoull(found + strlen(field), NULL, 10);
}

static uint64_t refusals_of(int server)
{
	return figure(server, "errorstats", "errorstat_TRYAGAIN:", "count=");
}

static uint64_t refusals(void)
{
	return refusals_of(SOURCE) + refusals_of(TARGET);
}

/* Until there were so many; done is what they keep from ending. */
static void wait_for_refusals(uint64_t count, const struct hx_event *done)
{
	while (refusals() < count)
		assert_false(hx_event_is_set(done));
}

/* How often the source did not do something. Some versions leave TRYAGAIN to the target, and say ASK. */
static uint64_t turned_away(void)
{
	return refusals_of(SOURCE) + figure(SOURCE, "errorstats", "errorstat_ASK:", "count=");
}

/* Scripts that have run. Whatever is refused has not. */
static uint64_t scripts_run(void)
{
	return figure(SOURCE, "commandstats", "cmdstat_evalsha:", "calls=") +
		figure(TARGET, "commandstats", "cmdstat_evalsha:", "calls=");
}

static void set_slot(const struct scene *scene, int server, const char *what, const char *id)
{
	char command[200];

	snprintf(command, sizeof(command), "cluster setslot %u %s %s", scene->slot, what, id);
	redis_cluster_tell(&cluster, server, command);
}

static void begin_move(const struct scene *scene)
{
	set_slot(scene, TARGET, "importing", scene->ids[SOURCE]);
	set_slot(scene, SOURCE, "migrating", scene->ids[TARGET]);
}

static void give_up_move(const struct scene *scene)
{
	set_slot(scene, SOURCE, "stable", "");
	set_slot(scene, TARGET, "stable", "");
}

static void move_name(const char *name)
{
	char command[300];

	snprintf(
		command, sizeof(command), "migrate 127.0.0.1 %d '%s' 0 20000",
		cluster.ports[TARGET], name);
	redis_cluster_tell(&cluster, SOURCE, command);
}

static void move_record(const struct scene *scene, const char *key)
{
	char name[200];

	snprintf(
		name, sizeof(name), "%s:{%02x}:default/default:%s", scene->prefix, scene->partition,
		key);
	move_name(name);
}

/* All that the source still has; it says ASK from then on. */
static void move_the_rest(const struct scene *scene)
{
	char command[64], names[4000];

	snprintf(command, sizeof(command), "cluster getkeysinslot %u 100", scene->slot);
	redis_cluster_ask(&cluster, SOURCE, command, names, sizeof(names));
	for (char *save = NULL, *name = strtok_r(names, "\r\n", &save); name != NULL;
	     name = strtok_r(NULL, "\r\n", &save))
		move_name(name);
}

static void end_move(const struct scene *scene)
{
	set_slot(scene, TARGET, "node", scene->ids[TARGET]);
	set_slot(scene, SOURCE, "node", scene->ids[TARGET]);
}

/* ---------------------------------------------------------------- the seam */

static ssize_t seam_recv(void *context, int fd, void *data, size_t size)
{
	static const char refusal[] = "-TRYAGAIN";
	struct seam *seam = context;
	ssize_t count = hx_net_system()->ops->recv(NULL, fd, data, size);

	if (count > 0 && memmem(data, (size_t)count, refusal, sizeof(refusal) - 1) != NULL &&
	    atomic_load(&seam->refusals_left) > 0 && atomic_fetch_sub(&seam->refusals_left, 1) == 1)
		fault_net_advance(&seam->fault, TIMEOUT_MS);
	return count;
}

/* Where the second script in data begins, or the end; 0: there is none. */
static size_t first_script_size(const char *data, size_t size)
{
	static const char name[] = "EVALSHA";
	const char *first = memmem(data, size, name, sizeof(name) - 1);
	const char *second = first == NULL
		? NULL
		: memmem(first + 1, size - (size_t)(first + 1 - data), name, sizeof(name) - 1);

	if (first == NULL)
		return 0;
	if (second == NULL)
		return size;
	return (size_t)((const char *)memrchr(data, '*', (size_t)(second - data)) - data);
}

static ssize_t seam_send(void *context, int fd, const void *data, size_t size)
{
	struct seam *seam = context;
	size_t script_size = atomic_load(&seam->splits) ? first_script_size(data, size) : 0;

	if (script_size > 0 && seam->split_fd < 0) {
		seam->turned_away = turned_away();
		seam->split_fd = fd;
		size = script_size;
	} else if (script_size > 0 && seam->split_fd == fd) {
		for (double begun = scale_seconds(); turned_away() == seam->turned_away;)
			if (scale_seconds() - begun > TIMEOUT_MS / 1000.0)
				abort(); /* on the store's thread, where no case can fail */
		give_up_move(seam->scene);
		atomic_store(&seam->splits, false);
	}
	return hx_net_system()->ops->send(NULL, fd, data, size);
}

static void seam_init(struct seam *seam, struct scene *scene)
{
	fault_net_init(&seam->fault);
	seam->fault.ops.recv = seam_recv;
	seam->fault.ops.send = seam_send;
	seam->scene = scene;
	seam->split_fd = -1;
}

/* ---------------------------------------------------------------- scenes */

/* A partition that has not been moved yet. Of the first one counters are asked, too. */
static void choose_partition(struct scene *scene)
{
	static unsigned last;

	do {
		char name[16];

		snprintf(name, sizeof(name), "{%02x}", ++last);
		scene->partition = last;
		scene->slot = hx_redis_slot(hapax_bytes_from_text(name));
	} while (scene->slot >= SLOTS_OF_SOURCE);
}

static int set_up(void **state)
{
	struct scene *scene = test_calloc(1, sizeof(*scene));
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_error err = {0};
	char url[400];

	*state = scene;
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.timeout_ms = TIMEOUT_MS;
	choose_partition(scene);
	snprintf(scene->prefix, sizeof(scene->prefix), "test-%02x", scene->partition);
	snprintf(url, sizeof(url), "redis+cluster://%s?prefix=%s", cluster.masters, scene->prefix);
	for (int i = SOURCE; i <= TARGET; i++) {
		redis_cluster_ask(
			&cluster, i, "cluster myid", scene->ids[i], sizeof(scene->ids[i]));
		scene->ids[i][strcspn(scene->ids[i], "\r\n")] = '\0';
	}
	seam_init(&scene->seam, scene);
	if (hapax_store_open(url, &options, &scene->store, &err) == HAPAX_OK &&
	    hx_redis_open_on(&scene->seam.fault.net, url, &options, &scene->watched, &err) ==
		    HAPAX_OK)
		return 0;
	printf("# %s\n", err.message);
	return -1;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	hapax_store_close(scene->watched);
	hapax_store_close(scene->store);
	test_free(scene);
	return 0;
}

/* An operation on a key that is in the scene's slot, and that was never used. */
static struct hapax_op make_op(struct scene *scene, enum hapax_op_type type, char key[KEY_SIZE])
{
	char member[100];

	do {
		snprintf(key, KEY_SIZE, "key-%u", scene->key_number++);
		snprintf(member, sizeof(member), "default/default:%s", key);
	} while (hx_redis_slot(hapax_bytes_from_text(member)) % HX_REDIS_PARTITIONS !=
		 scene->partition);
	return (struct hapax_op){
		.type = type, .key = hapax_bytes_from_text(key), .attempt_id = attempt_ids[0]};
}

static void must_end(
	struct hapax_store *store, struct hapax_op *op, enum hapax_status status,
	enum hapax_outcome outcome)
{
	assert_int_equal(hapax_store_run(store, op, 1, NULL), status);
	assert_int_equal(op->outcome, outcome);
}

static void must_be_absent(struct scene *scene, const char *key)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(key)};

	must_end(scene->store, &op, HAPAX_OK, HAPAX_OUTCOME_ABSENT);
}

static void on_complete(struct hapax_op *ops, size_t count, void *context)
{
	(void)ops;
	(void)count;
	hx_event_set(context);
}

/* ---------------------------------------------------------------- cases */

/* It is said again, but not in a hot loop: each of count operations once in a tick. */
static void must_be_paced(uint64_t count, const struct hx_event *done)
{
	double begun = scale_seconds();
	uint64_t before = refusals();
	double passed_ms;
	uint64_t after;

	wait_for_refusals(before + 4 * count, done);
	after = refusals();
	passed_ms = (scale_seconds() - begun) * 1000;
	assert_true((double)(after - before) <= (double)count * (passed_ms / PAUSE_MS + 2));
}

/* The time of each operation is over when it is refused for the third time: not done, and it says so. */
static void must_give_up(
	struct scene *scene, const struct hapax_op *held, char keys[GIVEN_UP][KEY_SIZE])
{
	struct hapax_result value = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("value")};
	struct hapax_op ops[] = {
		make_op(scene, HAPAX_OP_CLAIM, keys[0]),
		make_op(scene, HAPAX_OP_CHECK, keys[1]),
		make_op(scene, HAPAX_OP_SET, keys[2]),
		{.type = HAPAX_OP_COMPLETE, .key = held->key, .token = held->token},
		{.type = HAPAX_OP_LOOKUP, .key = held->key},
	};

	ops[2].result = &value;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		uint64_t before = refusals();

		atomic_store(&scene->seam.refusals_left, 3);
		must_end(scene->watched, &ops[i], HAPAX_ERR_UNAVAILABLE, HAPAX_OUTCOME_NONE);
		assert_int_equal(atomic_load(&scene->seam.refusals_left), 0);
		assert_true(refusals() >= before + 3);
	}
}

static void operations_wait_for_the_end_of_a_move(void **state)
{
	enum { OPS = 3 };
	struct scene *scene = *state;
	struct hapax_result value = {
		.kind = HAPAX_RESULT_BYTES, .body = hapax_bytes_from_text("value")};
	struct hx_event done = {0};
	char keys[OPS][KEY_SIZE], given_up[GIVEN_UP][KEY_SIZE];
	struct hapax_stats stats = HAPAX_STATS_INIT;
	struct hapax_op held = make_op(scene, HAPAX_OP_CLAIM, keys[0]);
	struct hapax_op ops[OPS];
	uint64_t run_before, by_target;

	must_end(scene->store, &held, HAPAX_OK, HAPAX_OUTCOME_ACQUIRED);
	ops[0] = (struct hapax_op){.type = HAPAX_OP_COMPLETE, .key = held.key, .token = held.token};
	ops[1] = make_op(scene, HAPAX_OP_CHECK, keys[1]);
	ops[2] = make_op(scene, HAPAX_OP_SET, keys[2]);
	ops[2].result = &value;
	ops[2].set_if = HAPAX_SET_IF_ABSENT;
	/* One record is there, the books are still here. */
	begin_move(scene);
	move_record(scene, keys[0]);
	run_before = scripts_run();
	hapax_store_submit(scene->store, ops, OPS, (struct hapax_completion){on_complete, &done});
	must_be_paced(OPS, &done);
	must_give_up(scene, &held, given_up);
	/* Now the target says it, to who was told to ask there. */
	move_the_rest(scene);
	by_target = refusals_of(TARGET);
	must_be_paced(OPS, &done);
	assert_true(refusals_of(TARGET) > by_target);
	assert_false(hx_event_is_set(&done));
	assert_int_equal(scripts_run(), run_before);
	end_move(scene);
	hx_event_wait(&done);
	assert_int_equal(scripts_run(), run_before + OPS);
	for (int i = 0; i < OPS; i++)
		assert_int_equal(ops[i].status, HAPAX_OK);
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_APPLIED);
	/* Neither says this when it is done for the second time. */
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[2].outcome, HAPAX_OUTCOME_APPLIED);
	for (int i = 0; i < GIVEN_UP; i++)
		must_be_absent(scene, given_up[i]);
	assert_int_equal(hapax_store_stats(scene->store, &stats, NULL, NULL, NULL), HAPAX_OK);
	assert_int_equal(stats.done, OPS);
	assert_int_equal(stats.keys, OPS);
}

struct survey {
	struct hapax_store *store;
	struct hapax_stats stats;
	enum hapax_status status;
	struct hx_event done;
};

static void survey_run(void *arg)
{
	struct survey *survey = arg;

	survey->status = hapax_store_stats(survey->store, &survey->stats, NULL, NULL, NULL);
	hx_event_set(&survey->done);
}

/* The source keeps the slot after all. Who asks for all partitions waits for this one, too. */
static void operations_wait_until_a_move_is_given_up(void **state)
{
	struct scene *scene = *state;
	struct survey survey = {.store = scene->store, .stats = HAPAX_STATS_INIT};
	struct hx_event done = {0};
	struct hx_thread thread;
	char keys[2][KEY_SIZE];
	struct hapax_op first = make_op(scene, HAPAX_OP_CHECK, keys[0]);
	struct hapax_op op = make_op(scene, HAPAX_OP_CHECK, keys[1]);
	uint64_t before = refusals();
	uint64_t run_before;

	must_end(scene->store, &first, HAPAX_OK, HAPAX_OUTCOME_ACQUIRED);
	begin_move(scene);
	assert_int_equal(hx_thread_start(&thread, survey_run, &survey, "survey", NULL), HAPAX_OK);
	wait_for_refusals(before + 3, &survey.done);
	give_up_move(scene);
	hx_thread_join(&thread);
	assert_int_equal(survey.status, HAPAX_OK);
	assert_int_equal(survey.stats.done, 1);

	begin_move(scene);
	run_before = scripts_run();
	hapax_store_submit(scene->store, &op, 1, (struct hapax_completion){on_complete, &done});
	must_be_paced(1, &done);
	assert_false(hx_event_is_set(&done));
	give_up_move(scene);
	hx_event_wait(&done);
	assert_int_equal(op.status, HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(scripts_run(), run_before + 1);
	op = (struct hapax_op){.type = HAPAX_OP_CHECK, .key = op.key};
	must_end(scene->store, &op, HAPAX_OK, HAPAX_OUTCOME_REPLAY);
}

/* The first of two claims of one key is refused, the second one would not be: it does not overtake. */
static void operations_on_a_key_keep_their_order(void **state)
{
	struct scene *scene = *state;
	char key[KEY_SIZE];
	struct hapax_op first = make_op(scene, HAPAX_OP_CHECK, key);
	struct hapax_op ops[2];

	/* The partition has books. */
	must_end(scene->store, &first, HAPAX_OK, HAPAX_OUTCOME_ACQUIRED);
	ops[0] = ops[1] = make_op(scene, HAPAX_OP_CLAIM, key);
	ops[1].attempt_id = attempt_ids[1];
	begin_move(scene);
	atomic_store(&scene->seam.splits, true);
	assert_int_equal(hapax_store_run(scene->watched, ops, 2, NULL), HAPAX_OK);
	assert_false(atomic_load(&scene->seam.splits));
	assert_int_equal(ops[0].outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(ops[1].outcome, HAPAX_OUTCOME_IN_PROGRESS);
	assert_int_equal(ops[1].first_seen_ms, ops[0].first_seen_ms);
}

/* The time of the first of two claims of one key is over: the second one is not sent. */
static void nothing_is_begun_when_time_is_over(void **state)
{
	struct scene *scene = *state;
	char key[KEY_SIZE];
	struct hapax_op first = make_op(scene, HAPAX_OP_CHECK, key);
	struct hapax_op ops[2];
	uint64_t before;

	must_end(scene->store, &first, HAPAX_OK, HAPAX_OUTCOME_ACQUIRED);
	ops[0] = ops[1] = make_op(scene, HAPAX_OP_CLAIM, key);
	ops[1].attempt_id = attempt_ids[1];
	begin_move(scene);
	before = refusals();
	atomic_store(&scene->seam.refusals_left, 3);
	(void)hapax_store_run(scene->watched, ops, 2, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ops[i].status, HAPAX_ERR_UNAVAILABLE);
	assert_int_equal(refusals(), before + 3);
	give_up_move(scene);
	must_be_absent(scene, key);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(operations_wait_for_the_end_of_a_move),
		CASE(operations_wait_until_a_move_is_given_up),
		CASE(operations_on_a_key_keep_their_order),
		CASE(nothing_is_begun_when_time_is_over),
	};

	redis_cluster_find(&cluster);
	return cmocka_run_group_tests_name("redis_tryagain", tests, NULL, NULL);
}
