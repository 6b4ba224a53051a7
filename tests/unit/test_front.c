/* SPDX-License-Identifier: Apache-2.0 */
#include "store/front.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/stub_store.h"

/* A front that passes submits on, in front of a stub whose watchers are counted. */
struct front_case {
	struct stub_store stub;
	struct hapax_store_ops stub_ops;
	struct hx_front front;
};

static size_t watches; /* of the stub */

static void stub_watch(struct hapax_store *store)
{
	(void)store;
	watches++;
}

static void submit(
	struct hapax_store *store, struct hapax_op *ops, size_t count,
	struct hapax_completion completion)
{
	hapax_store_submit(((struct hx_front *)store)->store, ops, count, completion);
}

static void close_front(struct hapax_store *store)
{
	hx_front_detach((struct hx_front *)store);
}

static void begin(struct front_case *c)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	memset(c, 0, sizeof(*c));
	watches = 0;
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	stub_store_open(&c->stub, HAPAX_STORE_NO_HOUSEKEEPING);
	c->stub_ops = *c->stub.base.ops;
	c->stub_ops.watch = stub_watch;
	c->stub.base.ops = &c->stub_ops;
	hx_front_init(&c->front, &c->stub.base, submit, close_front);
	assert_int_equal(hx_front_attach(&c->front, &options, NULL), HAPAX_OK);
}

static void end(struct front_case *c)
{
	hapax_store_close(&c->front.base);
	hapax_store_close(&c->stub.base);
}

static void it_looks_like_the_store_behind(void **state)
{
	struct front_case c;
	char mine[256], theirs[256];

	(void)state;
	begin(&c);
	assert_string_equal(hapax_store_url(&c.front.base), hapax_store_url(&c.stub.base));
	assert_string_equal(hapax_store_name(&c.front.base), hapax_store_name(&c.stub.base));
	assert_int_equal(
		hapax_store_capabilities(&c.front.base), hapax_store_capabilities(&c.stub.base));
	hapax_store_guarantee(&c.front.base, mine, sizeof(mine));
	hapax_store_guarantee(&c.stub.base, theirs, sizeof(theirs));
	assert_string_equal(mine, theirs);
	end(&c);
}

static void sweeps_and_counts_reach_the_store(void **state)
{
	struct hapax_sweep sweep = HAPAX_SWEEP_INIT;
	struct hapax_counters row = {
		.tenant = HX_BYTES_LIT("t"), .group = HX_BYTES_LIT("g"), .counts = {3}};
	struct front_case c;

	(void)state;
	begin(&c);
	assert_int_equal(hapax_store_sweep(&c.front.base, &sweep, NULL), HAPAX_OK);
	hx_event_wait(&c.stub.swept);
	assert_int_equal(c.front.ops.count(&c.front.base, &row, 1, NULL), HAPAX_OK);
	assert_int_equal(c.stub.kept[0], 3);
	c.stub_ops.count = NULL;
	assert_int_equal(c.front.ops.count(&c.front.base, &row, 1, NULL), HAPAX_OK);
	end(&c);
}

static void on_event(
	struct hapax_bytes tenant, struct hapax_bytes group, struct hapax_bytes key, void *context)
{
	assert_true(hx_bytes_equal(tenant, HX_BYTES_LIT("t")));
	assert_true(hx_bytes_equal(group, HX_BYTES_LIT("g")));
	assert_true(hx_bytes_equal(key, HX_BYTES_LIT("k")));
	++*(size_t *)context;
}

static void announce(struct front_case *c)
{
	hapax_store_announce(
		&c->stub.base, HX_BYTES_LIT("t"), HX_BYTES_LIT("g"), HX_BYTES_LIT("k"));
}

/* The store behind has one watcher, however many this one has, and none after the end. */
static void announcements_pass(void **state)
{
	size_t heard[2] = {0, 0};
	struct hapax_watcher watchers[2] = {
		{.fn = on_event, .context = &heard[0]}, {.fn = on_event, .context = &heard[1]}};
	struct front_case c;

	(void)state;
	begin(&c);
	announce(&c);
	assert_int_equal(watches, 0);
	hapax_store_watch(&c.front.base, &watchers[0]);
	hapax_store_watch(&c.front.base, &watchers[1]);
	assert_int_equal(watches, 1);
	announce(&c);
	assert_int_equal(heard[0], 1);
	assert_int_equal(heard[1], 1);
	hapax_store_unwatch(&c.front.base, &watchers[0]);
	announce(&c);
	assert_int_equal(heard[0], 1);
	assert_int_equal(heard[1], 2);
	hapax_store_close(&c.front.base);
	announce(&c);
	assert_int_equal(heard[1], 2);
	hapax_store_close(&c.stub.base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_looks_like_the_store_behind),
		cmocka_unit_test(sweeps_and_counts_reach_the_store),
		cmocka_unit_test(announcements_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
