/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "support/temp_dir.h"

#define MIB (UINT64_C(1024) * 1024)

static struct temp_dir dir;

static int setup(void **state)
{
	(void)state;
	temp_dir_init(&dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	temp_dir_done(&dir);
	return 0;
}

static void write_file(const char *path, const char *text)
{
	const struct hx_io *io = hx_io_system();
	char whole[1024];
	char *slash;
	int file;

	(void)snprintf(whole, sizeof(whole), "%s%s", dir.path, path);
	slash = strrchr(whole, '/');
	*slash = '\0';
	assert_int_equal(hx_io_make_folders(io, whole, 0700, NULL), HAPAX_OK);
	*slash = '/';
	file = io->ops->open(io->context, whole, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE, 0600);
	assert_true(file >= 0);
	assert_int_equal(hx_io_write_full(io, file, text, strlen(text), 0), 0);
	(void)io->ops->close(io->context, file);
}

static uint64_t limit(void)
{
	return hx_memory_limit(hx_io_system(), dir.path);
}

static void machine(void)
{
	write_file(
		"/proc/meminfo",
		"MemTotal:        1048576 kB\nMemFree:           1000 kB\nMemAvailable: 5 kB\n");
}

static void nothing_is_known(void **state)
{
	(void)state;
	assert_int_equal(limit(), 0);
}

static void without_groups_the_machine_counts(void **state)
{
	(void)state;
	machine();
	assert_int_equal(limit(), 1024 * MIB);
	write_file("/proc/self/cgroup", "");
	assert_int_equal(limit(), 1024 * MIB);
}

static void version_2(void **state)
{
	(void)state;
	machine();
	write_file("/proc/self/cgroup", "0::/system.slice/hapax.service\n");
	write_file("/sys/fs/cgroup/system.slice/hapax.service/memory.max", "max\n");
	assert_int_equal(limit(), 1024 * MIB);
	write_file("/sys/fs/cgroup/system.slice/hapax.service/memory.max", "134217728\n");
	assert_int_equal(limit(), 128 * MIB);
	/* A parent with less counts. */
	write_file("/sys/fs/cgroup/system.slice/memory.max", "67108864\n");
	assert_int_equal(limit(), 64 * MIB);
}

/* The root of a container's own namespace. */
static void version_2_in_a_container(void **state)
{
	(void)state;
	machine();
	write_file("/proc/self/cgroup", "0::/\n");
	write_file("/sys/fs/cgroup/memory.max", "134217728\n");
	assert_int_equal(limit(), 128 * MIB);
	write_file("/proc/self/cgroup", "0::/../other\n");
	assert_int_equal(limit(), 128 * MIB);
}

static void version_1(void **state)
{
	(void)state;
	machine();
	write_file(
		"/proc/self/cgroup",
		"12:cpuset:/docker/7\n6:cpu,memory:/docker/7\n1:name=systemd:/x\n0::/\n");
	/* Its way to say that there is none. */
	write_file("/sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(limit(), 1024 * MIB);
	write_file("/sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes", "134217728\n");
	assert_int_equal(limit(), 128 * MIB);
	write_file("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "33554432\n");
	assert_int_equal(limit(), 32 * MIB);
}

/* The host's path, which is not there: the mount's root is the container's group. */
static void version_1_in_a_container(void **state)
{
	(void)state;
	machine();
	write_file("/proc/self/cgroup", "6:memory:/docker/7\n");
	write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
	assert_int_equal(limit(), 128 * MIB);
}

static void what_makes_no_sense_is_passed_over(void **state)
{
	(void)state;
	machine();
	write_file("/proc/self/cgroup", "\n:\n::\n0:\nx\n6:memoryx:/a\n0::/a\n");
	write_file("/sys/fs/cgroup/a/memory.max", "99999999999999999999999\n");
	write_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n");
	assert_int_equal(limit(), 1024 * MIB);
	write_file("/sys/fs/cgroup/a/memory.max", "");
	assert_int_equal(limit(), 1024 * MIB);
	write_file("/proc/meminfo", "MemTotal: many\n");
	assert_int_equal(limit(), 0);
}

static void this_machine_has_some(void **state)
{
	(void)state;
	assert_true(hx_memory_limit(hx_io_system(), "") > MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(without_groups_the_machine_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(version_2, setup, teardown),
		cmocka_unit_test_setup_teardown(version_2_in_a_container, setup, teardown),
		cmocka_unit_test_setup_teardown(version_1, setup, teardown),
		cmocka_unit_test_setup_teardown(version_1_in_a_container, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_makes_no_sense_is_passed_over, setup, teardown),
		cmocka_unit_test(this_machine_has_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
