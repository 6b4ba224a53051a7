/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager is told, and what it hands over.
 */
#include "serve/daemon/service_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/daemon/daemon.h"

#define SECOND_NS INT64_C(1000000000)

enum { LOOPS = 2 };

static struct hx_serve serve;
static struct hx_loop loops[LOOPS];
static struct hx_service service;
static int manager; /* the socket that it listens on */

static struct {
	char notify[64];
	const char *watchdog_us;
	char watchdog_pid[24];
	char listen_pid[24];
	const char *listen_fds;
	const char *names;
} variables;

static const char *variable(const char *name)
{
	const char *value = NULL;

	if (strcmp(name, "NOTIFY_SOCKET") == 0)
		value = variables.notify;
	else if (strcmp(name, "WATCHDOG_USEC") == 0)
		value = variables.watchdog_us;
	else if (strcmp(name, "WATCHDOG_PID") == 0)
		value = variables.watchdog_pid;
	else if (strcmp(name, "LISTEN_PID") == 0)
		value = variables.listen_pid;
	else if (strcmp(name, "LISTEN_FDS") == 0)
		value = variables.listen_fds;
	else if (strcmp(name, "LISTEN_FDNAMES") == 0)
		value = variables.names;
	return value == NULL || value[0] == '\0' ? NULL : value;
}

/* With an abstract name that no other process has. */
static int init(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size;

	(void)state;
	memset(&serve, 0, sizeof(serve));
	memset(&service, 0, sizeof(service));
	memset(&variables, 0, sizeof(variables));
	(void)snprintf(
		variables.notify, sizeof(variables.notify), "@hapax-test-service-%ld",
		(long)getpid());
	size = strlen(variables.notify);
	memcpy(address.sun_path + 1, variables.notify + 1, size - 1);
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(manager >= 0);
	assert_int_equal(
		bind(manager, (const struct sockaddr *)&address,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
		0);
	assert_int_equal(hx_reactor_init(&serve.reactor, hx_net_system(), NULL), HAPAX_OK);
	serve.loops = loops;
	serve.loop_count = LOOPS;
	for (size_t i = 0; i < LOOPS; i++)
		atomic_init(&loops[i].beat_ns, INT64_MAX);
	return 0;
}

static int done(void **state)
{
	(void)state;
	hx_service_done(&service);
	hx_reactor_done(&serve.reactor);
	close(manager);
	return 0;
}

/* The next message, or "": there is none. */
static const char *told(void)
{
	static char text[2048];
	ssize_t size = recv(manager, text, sizeof(text) - 1, 0);

	if (size < 0)
		assert_int_equal(errno, EAGAIN);
	text[size < 0 ? 0 : size] = '\0';
	return text;
}

static void open_service(void)
{
	struct hapax_error err;

	if (hx_service_open(&service, &serve, variable, &err) != HAPAX_OK)
		fail_msg("%s", err.message);
}

static void states_are_told(void **state)
{
	(void)state;
	open_service();
	assert_string_equal(told(), "");
	hx_service_ready(&service, "serving");
	assert_string_equal(told(), "READY=1\nSTATUS=serving");
	hx_service_reloading(&service);
	assert_memory_equal(told(), "RELOADING=1\nMONOTONIC_USEC=", 27);
	hx_service_stopping(&service, "draining");
	assert_string_equal(told(), "STOPPING=1\nSTATUS=draining");
	/* The manager does not wait for signs of life. */
	assert_false(hx_timer_is_set(&service.timer));
}

static void life_is_told_while_all_loops_turn(void **state)
{
	(void)state;
	variables.watchdog_us = "1000000";
	(void)snprintf(
		variables.watchdog_pid, sizeof(variables.watchdog_pid), "%ld", (long)getpid());
	open_service();
	assert_false(hx_timer_is_set(&service.timer));
	hx_service_ready(&service, "serving");
	assert_int_equal(service.interval_ns, SECOND_NS / 2);
	assert_true(hx_timer_is_set(&service.timer));
	(void)told();
	hx_service_beat(&service);
	assert_string_equal(told(), "WATCHDOG=1");
	/* Asked a moment ago: it may be busy. */
	atomic_store(&loops[1].beat_ns, hx_clock_mono_ns());
	hx_service_beat(&service);
	assert_string_equal(told(), "WATCHDOG=1");
	atomic_store(&loops[1].beat_ns, hx_clock_mono_ns() - 60 * SECOND_NS);
	hx_service_beat(&service);
	assert_string_equal(told(), "");
	atomic_store(&loops[1].beat_ns, INT64_MAX);
	hx_service_beat(&service);
	assert_string_equal(told(), "WATCHDOG=1");
}

static void signs_of_life_that_nobody_waits_for(void **state)
{
	static const char *const wrong[] = {"", "0", "x", "1x", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		variables.watchdog_us = wrong[i];
		open_service();
		assert_int_equal(service.interval_ns, 0);
		hx_service_done(&service);
	}
	variables.watchdog_us = "1000000";
	(void)snprintf(
		variables.watchdog_pid, sizeof(variables.watchdog_pid), "%ld", (long)getppid());
	open_service();
	assert_int_equal(service.interval_ns, 0);
}

static void names_of_sockets(void **state)
{
	char long_name[200];

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[0] = '/';
	long_name[sizeof(long_name) - 1] = '\0';
	assert_true(hx_service_notify(variables.notify, "READY=1"));
	assert_string_equal(told(), "READY=1");
	assert_false(hx_service_notify("/nonexistent/socket", "READY=1"));
	assert_false(hx_service_notify("relative", "READY=1"));
	assert_false(hx_service_notify("", "READY=1"));
	assert_false(hx_service_notify(long_name, "READY=1"));
}

static void fails_with(const char *part)
{
	struct hapax_error err;

	assert_int_equal(hx_service_open(&service, &serve, variable, &err), HAPAX_ERR_INVALID);
	if (strstr(err.message, part) == NULL)
		fail_msg("'%s' is not in '%s'", part, err.message);
}

static void sockets_that_are_not_right(void **state)
{
	(void)state;
	/* Of another process. */
	(void)snprintf(variables.listen_pid, sizeof(variables.listen_pid), "%ld", (long)getppid());
	variables.listen_fds = "1";
	open_service();
	assert_int_equal(service.sockets.count, 0);
	hx_service_done(&service);
	(void)snprintf(variables.listen_pid, sizeof(variables.listen_pid), "%ld", (long)getpid());
	variables.listen_fds = "65";
	fails_with("LISTEN_FDS");
	variables.listen_fds = "-1";
	fails_with("LISTEN_FDS");
	variables.listen_fds = "1";
	fails_with("LISTEN_FDNAMES");
	variables.names = ":gateway";
	fails_with("LISTEN_FDNAMES");
	variables.names = "a-name-that-is-longer-than-any-of-a-door";
	fails_with("LISTEN_FDNAMES");
	/* Whatever descriptor 3 is in this process: it does not listen. */
	variables.names = "gateway";
	fails_with("is not a listening stream socket");
	memset(&service, 0, sizeof(service));
}

static int listening(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void sockets_are_given_in_turn(void **state)
{
	struct hapax_error err;
	struct hx_address address;
	int first, second, again;

	(void)state;
	service.serve = NULL;
	service.sockets.count = 3;
	for (size_t i = 0; i < 3; i++) {
		service.sockets.fds[i] = listening();
		(void)snprintf(
			service.sockets.names[i], HX_SERVICE_NAME_SIZE, "%s",
			i == 1 ? "admin" : "gateway");
	}
	assert_false(hx_service_has_door(&service, "resp", &address));
	assert_true(hx_service_has_door(&service, "gateway", &address));
	assert_int_equal(hx_service_take_door(&service, "resp", 0, &first, &err), HAPAX_OK);
	assert_int_equal(first, 0);
	assert_int_equal(hx_service_take_door(&service, "gateway", 0, &first, &err), HAPAX_OK);
	assert_int_equal(hx_service_check_doors(&service, &err), HAPAX_ERR_INVALID);
	assert_non_null(strstr(err.message, "'admin'"));
	assert_int_equal(hx_service_take_door(&service, "gateway", 1, &second, &err), HAPAX_OK);
	assert_int_equal(hx_service_take_door(&service, "gateway", 2, &again, &err), HAPAX_OK);
	assert_true(first > 2 && second > 2 && again > 2);
	assert_true(first != second && first != again);
	close(first);
	close(second);
	assert_int_equal(hx_service_take_door(&service, "admin", 0, &first, &err), HAPAX_OK);
	assert_int_equal(hx_service_check_doors(&service, &err), HAPAX_OK);
	close(first);
	close(again);
	for (size_t i = 0; i < 3; i++)
		close(service.sockets.fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(states_are_told, init, done),
		cmocka_unit_test_setup_teardown(life_is_told_while_all_loops_turn, init, done),
		cmocka_unit_test_setup_teardown(signs_of_life_that_nobody_waits_for, init, done),
		cmocka_unit_test_setup_teardown(names_of_sockets, init, done),
		cmocka_unit_test_setup_teardown(sockets_that_are_not_right, init, done),
		cmocka_unit_test_setup_teardown(sockets_are_given_in_turn, init, done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
