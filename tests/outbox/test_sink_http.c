/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PostgreSQL to a service that speaks HTTP (http_recorder.py): the cases of all sinks. The
 * service writes down what it takes before it says so, and dies by SIGKILL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "outbox/sink_case.h"
#include "support/temp_dir.h"

enum { LINE_SIZE = 64 * 1024 };

static struct {
	const char *program;
	struct temp_dir dir;
	char file[256];
	char port[16];
	pid_t pid;
} service = {.port = "0"};

static void start_service(void)
{
	char line[64] = "";
	int out[2];
	FILE *from;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	service.pid = fork();
	assert_true(service.pid >= 0);
	if (service.pid == 0) {
		(void)dup2(out[1], 1);
		(void)execl(
			service.program, service.program, service.port, service.file, (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	from = fdopen(out[0], "r");
	assert_non_null(from);
	assert_non_null(fgets(line, sizeof(line), from));
	assert_int_equal(sscanf(line, "ready %15s", service.port), 1);
	(void)fclose(from);
}

static void stop_service(void)
{
	(void)kill(service.pid, SIGKILL);
	assert_int_equal(waitpid(service.pid, NULL, 0), service.pid);
}

static void broker_url(enum sink_mode mode, char *out, size_t size)
{
	(void)mode;
	(void)snprintf(out, size, "http://127.0.0.1:%s/in/", service.port);
}

static void broker_restart(void)
{
	stop_service();
	start_service();
}

static void take_line(char *line, const char *topic, sink_message_fn *each, void *context)
{
	struct sink_message message = {.count = 0};
	char *rest = line;
	char *field;

	line[strcspn(line, "\n")] = '\0';
	if (strcmp(strsep(&rest, "\t"), topic) != 0)
		return;
	message.body = hapax_bytes_from_text(strsep(&rest, "\t"));
	while ((field = strsep(&rest, "\t")) != NULL && message.count < HAPAX_OUTBOX_HEADERS_MAX) {
		char *name = strsep(&field, "=");

		message.fields[message.count].name = hapax_bytes_from_text(name);
		message.fields[message.count++].value = hapax_bytes_from_text(field);
	}
	each(context, &message);
}

static void broker_read(const char *topic, sink_message_fn *each, void *context)
{
	FILE *file = fopen(service.file, "r");
	char *line = malloc(LINE_SIZE);

	assert_non_null(file);
	assert_non_null(line);
	while (fgets(line, LINE_SIZE, file) != NULL)
		take_line(line, topic, each, context);
	free(line);
	(void)fclose(file);
}

int main(int argc, char **argv)
{
	static const struct sink_bad bad[] = {
		{"unroutable", "nowhere", 1, "answered with status 404"},
		{"large", "parking", 5000000, "answered with status 413"},
	};
	static const struct sink_broker broker = {
		.name = "HTTP",
		.prefix = "ce-",
		.absent = "http://127.0.0.1:1/in/",
		.bad = bad,
		.bad_count = sizeof(bad) / sizeof(bad[0]),
		.restarts_fast = true,
		.url = broker_url,
		.restart = broker_restart,
		.read = broker_read,
	};
	int failed;

	service.program = argc > 1 ? argv[1] : getenv("HAPAX_TEST_HTTP_RECORDER");
	if (service.program == NULL)
		return 64;
	temp_dir_init(&service.dir);
	(void)snprintf(service.file, sizeof(service.file), "%s/taken", service.dir.path);
	start_service();
	failed = sink_cases_run(&broker, NULL, 0);
	stop_service();
	temp_dir_done(&service.dir);
	return failed;
}
