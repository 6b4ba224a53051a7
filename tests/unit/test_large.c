/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/large.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "net/system.h"
#include "serve/daemon/daemon.h"
#include "serve/http/delivery.h"

enum { BODIES = 2 };

/* A reader with one thread, and bodies of one client that a loop has not claimed yet. */
struct large_case {
	struct hx_serve *serve;
	struct hx_loop *loop;
	struct hx_http_exchange *exchange;
	struct hx_delivery *delivery;
	struct hx_large bodies[BODIES];
	size_t places[BODIES]; /* where they were read */
	size_t done;
	bool has_begun;
};

static struct large_case *now;

static void nothing(struct hx_large *large)
{
	(void)large;
}

static void started(struct hx_large *large)
{
	(void)large;
	now->has_begun = true;
}

static void note_place(struct hx_large *large)
{
	now->places[large - now->bodies] = large->place;
}

static void on_read(struct hx_task *task)
{
	(void)task;
	now->done++;
}

static void begin(struct large_case *c)
{
	struct hapax_error err;

	memset(c, 0, sizeof(*c));
	now = c;
	c->serve = hx_alloc_zero(1, sizeof(*c->serve));
	c->loop = hx_alloc_zero(1, sizeof(*c->loop));
	c->exchange = hx_alloc_zero(1, sizeof(*c->exchange));
	c->delivery = hx_alloc_zero(1, sizeof(*c->delivery));
	assert_true(c->serve != NULL && c->loop != NULL && c->exchange != NULL);
	assert_non_null(c->delivery);
	assert_int_equal(hx_reactor_init(&c->loop->reactor, hx_net_system(), NULL), HAPAX_OK);
	hx_reader_init(&c->serve->reader);
	c->serve->reader.thread_max = BODIES;
	c->loop->serve = c->serve;
	c->delivery->loop = c->loop;
	c->delivery->exchange = c->exchange;
	c->exchange->body.file = -1;
	/* The first body starts a thread; it needs no place. */
	assert_int_equal(hx_large_start(c->delivery, nothing, started, false, &err), HAPAX_OK);
	while (!c->has_begun)
		hx_reactor_turn(&c->loop->reactor, -1);
}

static void end(struct large_case *c)
{
	hx_large_free(c->delivery->large);
	hx_reader_done(&c->serve->reader);
	hx_reactor_done(&c->loop->reactor);
	hx_free(c->delivery);
	hx_free(c->exchange);
	hx_free(c->loop);
	hx_free(c->serve);
}

static void ask(struct large_case *c, size_t index)
{
	struct hx_large *large = &c->bodies[index];

	*large = (struct hx_large){
		.delivery = c->delivery,
		.read = note_place,
		.task = {.fn = on_read, .context = large},
		.is_trusted = true,
		.needs_place = true};
	hx_large_ask(large);
}

static bool is_taken(struct large_case *c, size_t place)
{
	bool is_so;

	hx_mutex_lock(&c->serve->reader.mutex);
	is_so = c->serve->reader.is_taken[place];
	hx_mutex_unlock(&c->serve->reader.mutex);
	return is_so;
}

/*
 * The loop still uses the texts of a body that was read, so the next body is read elsewhere. One
 * thread reads both: it has given the first one back when it takes the second one up.
 */
static void a_place_is_taken_until_the_claim(void **state)
{
	struct large_case c;

	(void)state;
	begin(&c);
	for (size_t i = 0; i < BODIES; i++)
		ask(&c, i);
	while (c.done < BODIES)
		hx_reactor_turn(&c.loop->reactor, -1);
	assert_int_not_equal(c.places[0], c.places[1]);
	for (size_t i = 0; i < BODIES; i++) {
		assert_true(c.bodies[i].has_place);
		assert_true(is_taken(&c, c.places[i]));
	}
	/* A delivery that ends leaves its place, as one that was claimed does. */
	for (size_t i = 0; i < BODIES; i++) {
		struct hx_large *large = hx_alloc(sizeof(*large));

		assert_non_null(large);
		*large = c.bodies[i];
		hx_large_free(large);
		assert_false(is_taken(&c, c.places[i]));
	}
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_is_taken_until_the_claim),
	};

	return cmocka_run_group_tests_name("large", tests, NULL, NULL);
}
