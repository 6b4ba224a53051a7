/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server store when its daemon, or the line to it, fails: what it says is true, or it
 * says that it does not know. That it decides as other stores do is shown by the conformance
 * suite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hapax/hapax.h>

#include "support/api_case.h"
#include "support/cut_proxy.h"
#include "support/scale.h"

static struct hapax_store *open_port(int port)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;
	struct hapax_store *store = NULL;
	struct hapax_error err = {.message = ""};
	char url[64];

	/* Nothing here waits for it; a busy machine may. */
	options.timeout_ms = 60000;
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	if (hapax_store_open(url, &options, &store, &err) != HAPAX_OK)
		fail_msg("%s: %s", url, err.message);
	return store;
}

/* ---------------------------------------------------------------- a line that is cut */

struct world {
	struct api_case *api;
	struct cut_proxy proxy;
	struct hapax_store *store; /* over the line */
	struct hapax_store *truth; /* behind the API */
	int64_t sizes[2];          /* of the last exchange that was not cut, by way */
	uint64_t cuts;
	uint64_t uncertain;
};

static void world_begin(struct world *world)
{
	struct hapax_store_options options = HAPAX_STORE_OPTIONS_INIT;

	memset(world, 0, sizeof(*world));
	options.flags = HAPAX_STORE_NO_HOUSEKEEPING;
	options.clock = hapax_clock_system();
	world->api = api_case_begin("memory:", &options);
	world->truth = api_case_store(world->api);
	cut_proxy_start(
		&world->proxy, (int)strtol(strrchr(api_case_url(world->api), ':') + 1, NULL, 10));
	world->store = open_port(world->proxy.port);
}

static void world_end(struct world *world)
{
	hapax_store_close(world->store);
	cut_proxy_stop(&world->proxy);
	api_case_end(world->api);
}

static bool is_found(struct world *world, struct hapax_bytes key, struct hapax_op *look)
{
	*look = (struct hapax_op){.type = HAPAX_OP_LOOKUP, .key = key};
	assert_int_equal(hapax_store_run(world->truth, look, 1, NULL), HAPAX_OK);
	return look->outcome == HAPAX_OUTCOME_FOUND;
}

/*
 * Until the line is up, and the proxy has done what it was about to do: it passes one thing
 * on after the other. What is left of a cut hits nothing but these lookups.
 */
static void settle(struct world *world)
{
	struct hapax_op ping = {.type = HAPAX_OP_LOOKUP, .key = {"ping", 4}};

	do {
		(void)hapax_store_run(world->store, &ping, 1, NULL);
		assert_true(ping.status == HAPAX_OK || ping.status == HAPAX_ERR_UNAVAILABLE);
	} while (ping.status != HAPAX_OK);
}

/* One operation, cut after so many bytes; negative: it is not cut, but measured. */
static void run_cut(struct world *world, struct hapax_op *op, enum cut_way way, int64_t bytes)
{
	struct cut_proxy *proxy = &world->proxy;
	uint64_t before[2];

	settle(world);
	for (int i = 0; i < 2; i++)
		before[i] = atomic_load(&proxy->passed[i]);
	if (bytes >= 0)
		cut_proxy_arm(proxy, way, bytes);
	(void)hapax_store_run(world->store, op, 1, NULL);
	for (int i = 0; i < 2 && bytes < 0; i++)
		world->sizes[i] = (int64_t)(atomic_load(&proxy->passed[i]) - before[i]);
	settle(world);
	world->cuts += bytes >= 0;
	world->uncertain += op->status == HAPAX_ERR_UNCERTAIN;
}

typedef void operate_fn(struct world *world, const char *name, enum cut_way way, int64_t bytes);

static void operate_at(struct world *world, operate_fn *operate, enum cut_way way, int64_t bytes)
{
	char name[32];

	/* Of one length, as what is sent is. */
	(void)snprintf(name, sizeof(name), "cut %d/%06lld", way, (long long)bytes);
	operate(world, name, way, bytes);
}

/* Both ways, at every byte, or at some of them. */
static void at_every_byte(const char *what, operate_fn *operate)
{
	int64_t step = scale_is_proof() ? 1 : 61;
	double begun = scale_seconds();
	struct world world;

	world_begin(&world);
	for (int way = CUT_TO_SERVER; way <= CUT_TO_CLIENT; way++) {
		operate_at(&world, operate, (enum cut_way)way, -1);
		assert_true(world.sizes[way] > 100);
		for (int64_t bytes = 0; bytes < world.sizes[way]; bytes += step)
			operate_at(&world, operate, (enum cut_way)way, bytes);
		/* Behind its last byte. */
		operate_at(&world, operate, (enum cut_way)way, world.sizes[way]);
	}
	scale_report(what, world.cuts, scale_seconds() - begun, true);
	printf("# %llu of them uncertain\n", (unsigned long long)world.uncertain);
	world_end(&world);
}

/* UNCERTAIN is settled by the same attempt_id: the claim is ours, and there is one. */
static void cut_claim(struct world *world, const char *name, enum cut_way way, int64_t bytes)
{
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op op = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};
	struct hapax_op look;
	bool is_there;

	hapax_attempt_id(attempt_id);
	op.key = hapax_bytes_from_text(name);
	run_cut(world, &op, way, bytes);
	is_there = is_found(world, op.key, &look);
	switch (op.status) {
	case HAPAX_OK:
		assert_true(is_there);
		assert_int_equal(look.token, op.token);
		break;
	case HAPAX_ERR_UNAVAILABLE: assert_false(is_there); break;
	case HAPAX_ERR_UNCERTAIN: break;
	default: fail_msg("%s: %s", name, hapax_status_name(op.status));
	}
	assert_int_equal(hapax_store_run(world->store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
	assert_int_equal(op.attempt, 1);
	if (is_there)
		assert_int_equal(op.token, look.token);
}

/* Repeated as it is, it is done, and no other caller has the key meanwhile. */
static void cut_complete(struct world *world, const char *name, enum cut_way way, int64_t bytes)
{
	static const struct hapax_result result = {
		.kind = HAPAX_RESULT_BYTES, .body = {"receipt", 7}};
	unsigned char attempt_id[HAPAX_ATTEMPT_ID_SIZE];
	struct hapax_op claim = {.type = HAPAX_OP_CLAIM, .attempt_id = attempt_id};
	struct hapax_op op = {.type = HAPAX_OP_COMPLETE, .result = &result};
	struct hapax_op look;
	bool is_done;

	hapax_attempt_id(attempt_id);
	claim.key = op.key = hapax_bytes_from_text(name);
	assert_int_equal(hapax_store_run(world->store, &claim, 1, NULL), HAPAX_OK);
	op.token = claim.token;
	run_cut(world, &op, way, bytes);
	assert_true(is_found(world, op.key, &look));
	/* A claim has a lease, what is done has none. */
	is_done = look.lease_left_ms <= 0;
	if (op.status == HAPAX_OK)
		assert_true(is_done);
	else if (op.status == HAPAX_ERR_UNAVAILABLE)
		assert_false(is_done);
	else
		assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	assert_int_equal(hapax_store_run(world->store, &op, 1, NULL), HAPAX_OK);
	assert_int_equal(op.outcome, HAPAX_OUTCOME_APPLIED);
}

/* Nothing repeats it: only the caller knows whether a duplicate would be its own. */
static void cut_check(struct world *world, const char *name, enum cut_way way, int64_t bytes)
{
	struct hapax_op op = {.type = HAPAX_OP_CHECK, .ttl_ms = 60000};
	struct hapax_op look;
	bool is_there;

	op.key = hapax_bytes_from_text(name);
	run_cut(world, &op, way, bytes);
	is_there = is_found(world, op.key, &look);
	if (op.status == HAPAX_OK) {
		assert_int_equal(op.outcome, HAPAX_OUTCOME_ACQUIRED);
		assert_true(is_there);
	} else if (op.status == HAPAX_ERR_UNAVAILABLE) {
		assert_false(is_there);
	} else {
		assert_int_equal(op.status, HAPAX_ERR_UNCERTAIN);
	}
}

/* It changes nothing, so that nothing can be uncertain. */
static void cut_lookup(struct world *world, const char *name, enum cut_way way, int64_t bytes)
{
	struct hapax_op op = {.type = HAPAX_OP_LOOKUP, .key = hapax_bytes_from_text(name)};

	run_cut(world, &op, way, bytes);
	assert_true(op.status == HAPAX_OK || op.status == HAPAX_ERR_UNAVAILABLE);
}

static void claims_that_are_cut(void **state)
{
	(void)state;
	at_every_byte("claims over HTTP cut", cut_claim);
}

static void completions_that_are_cut(void **state)
{
	(void)state;
	at_every_byte("completions over HTTP cut", cut_complete);
}

static void checks_that_are_cut(void **state)
{
	(void)state;
	at_every_byte("checks over HTTP cut", cut_check);
}

static void lookups_that_are_cut(void **state)
{
	(void)state;
	at_every_byte("lookups over HTTP cut", cut_lookup);
}

/* ---------------------------------------------------------------- others that answer */

struct words {
	const char *head; /* without its length */
	const char *body;
	enum hapax_status status; /* what a check that is answered so has */
};

/* Answers GET as a daemon does, and POST with words of the test's. */
struct stranger {
	int listener;
	int port;
	pthread_t thread;
	_Atomic(const struct words *) words;
};

static const char greeting[] =
	"{\"now\":\"2026-11-16T00:00:00.000Z\",\"states\":{\"claimed\":0},\"capabilities\":0}";

/* A whole request; false: there is none. Bodies of these tests are small. */
static bool read_request(int fd, char text[8192])
{
	size_t size = 0;

	for (;;) {
		const char *end;
		const char *length;
		ssize_t got = recv(fd, text + size, 8191 - size, 0);

		if (got <= 0)
			return false;
		size += (size_t)got;
		text[size] = '\0';
		end = strstr(text, "\r\n\r\n");
		length = strstr(text, "Content-Length: ");
		if (end != NULL &&
		    (length == NULL ||
		     (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10) <= size))
			return true;
	}
}

static void answer(const struct stranger *stranger, int fd)
{
	char text[8192];

	while (read_request(fd, text)) {
		static const struct words greets = {"HTTP/1.1 200 OK", greeting, HAPAX_OK};
		const struct words *words =
			strncmp(text, "GET ", 4) == 0 ? &greets : atomic_load(&stranger->words);
		int size = snprintf(
			text, sizeof(text), "%s\r\nContent-Length: %zu\r\n\r\n%s", words->head,
			strlen(words->body), words->body);

		if (send(fd, text, (size_t)size, MSG_NOSIGNAL) != size)
			return;
	}
}

static void *stranger_run(void *context)
{
	struct stranger *stranger = context;
	int fd;

	while ((fd = accept(stranger->listener, NULL, NULL)) >= 0) {
		answer(stranger, fd);
		close(fd);
	}
	return NULL;
}

static void stranger_start(struct stranger *stranger)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	stranger->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(stranger->listener >= 0);
	assert_int_equal(bind(stranger->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(stranger->listener, 4), 0);
	assert_int_equal(getsockname(stranger->listener, (struct sockaddr *)&address, &size), 0);
	stranger->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&stranger->thread, NULL, stranger_run, stranger), 0);
}

static void stranger_stop(struct stranger *stranger)
{
	(void)shutdown(stranger->listener, SHUT_RDWR);
	pthread_join(stranger->thread, NULL);
	close(stranger->listener);
}

/*
 * A proxy before the daemon may answer in its place after it has sent the request on: that
 * is not known to have been done, and not known not to have been.
 */
static void what_others_answer(void **state)
{
	static const struct words cases[] = {
		/* Envoy, when the connection behind it was reset. */
		{"HTTP/1.1 503 Service Unavailable", "", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html", "<html></html>",
		 HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 502 Bad Gateway", "<html></html>", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 504 Gateway Timeout", "", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 500 Internal Server Error", "{\"type\":\"about:blank\"}",
		 HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 503 Service Unavailable",
		 "{\"type\":\"about:blank\",\"detail\":\"no memory for the reply\"}",
		 HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 204 No Content", "", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 302 Found\r\nLocation: /", "", HAPAX_ERR_UNCERTAIN},
		/* What does not answer one operation. */
		{"HTTP/1.1 200 OK", "", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "<html></html>", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "{}", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "[]", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "[{}]", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "[{\"outcome\":\"first\"}]", HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "[{\"outcome\":\"acquired\",\"token\":-1}]",
		 HAPAX_ERR_UNCERTAIN},
		{"HTTP/1.1 200 OK", "[{\"failure\":\"never heard of\"}]", HAPAX_ERR_UNCERTAIN},
		/* The daemon's own words. */
		{"HTTP/1.1 200 OK", "[{\"failure\":\"limit\",\"key\":\"k\"}]", HAPAX_ERR_LIMIT},
		{"HTTP/1.1 503 Service Unavailable", "{\"type\":\"urn:hapax:problem:unavailable\"}",
		 HAPAX_ERR_UNAVAILABLE},
		{"HTTP/1.1 503 Service Unavailable", "{\"type\":\"urn:hapax:problem:uncertain\"}",
		 HAPAX_ERR_UNCERTAIN},
		/* No answer gets past these. */
		{"HTTP/1.1 401 Unauthorized", "", HAPAX_ERR_UNSUPPORTED},
		{"HTTP/1.1 403 Forbidden", "", HAPAX_ERR_UNSUPPORTED},
		{"HTTP/1.1 413 Content Too Large", "", HAPAX_ERR_LIMIT},
	};
	/* A program that opens a store checks whether it is a whole one. */
	static const struct words none = {
		"HTTP/1.1 200 OK", "[{\"outcome\":\"absent\"}]", HAPAX_OK};
	struct stranger stranger = {.words = &none};
	struct hapax_store *store;

	(void)state;
	stranger_start(&stranger);
	store = open_port(stranger.port);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hapax_op op = {.type = HAPAX_OP_CHECK, .key = {"k", 1}, .ttl_ms = 1000};
		struct hapax_op look = {.type = HAPAX_OP_LOOKUP, .key = {"k", 1}};
		enum hapax_status expected = cases[i].status;

		atomic_store(&stranger.words, &cases[i]);
		(void)hapax_store_run(store, &op, 1, NULL);
		if (op.status != expected)
			fail_msg("%zu: %s", i, hapax_status_name(op.status));
		(void)hapax_store_run(store, &look, 1, NULL);
		if (expected == HAPAX_ERR_UNCERTAIN)
			expected = HAPAX_ERR_UNAVAILABLE;
		if (look.status != expected)
			fail_msg("lookup, %zu: %s", i, hapax_status_name(look.status));
	}
	hapax_store_close(store);
	stranger_stop(&stranger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims_that_are_cut), cmocka_unit_test(completions_that_are_cut),
		cmocka_unit_test(checks_that_are_cut), cmocka_unit_test(lookups_that_are_cut),
		cmocka_unit_test(what_others_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
