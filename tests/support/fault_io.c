/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault_io.h"

#include <errno.h>

/* Does this call fail? */
static bool must_fail(struct fault_io *fault)
{
	uint64_t call = ++fault->calls;
	bool fails = fault->fail_at != 0 &&
		(call == fault->fail_at || (fault->is_forever && call > fault->fail_at));

	fault->has_failed |= fails;
	return fails;
}

/* Run call unless it fails without effect; value is what it gives. */
#define FORWARD(fault, call)                                 \
	do {                                                 \
		if (must_fail(fault)) {                      \
			if ((fault)->effect == FAULT_IO_ALL) \
				(void)(call);                \
			return -(fault)->error;              \
		}                                            \
		return call;                                 \
	} while (0)

static const struct hx_io_ops *system_ops(void)
{
	return hx_io_system()->ops;
}

static int fault_open(void *context, const char *path, unsigned flags, mode_t mode)
{
	/* A file that was opened and is not told would leak: no effect, whatever is asked. */
	return must_fail(context) ? -((struct fault_io *)context)->error
				  : system_ops()->open(NULL, path, flags, mode);
}

static int fault_close(void *context, int file)
{
	(void)context;
	return system_ops()->close(NULL, file);
}

static ssize_t fault_pread(void *context, int file, void *data, size_t size, uint64_t offset)
{
	FORWARD((struct fault_io *)context, system_ops()->pread(NULL, file, data, size, offset));
}

static ssize_t fault_pwrite(void *context, int file, const void *data, size_t size, uint64_t offset)
{
	struct fault_io *fault = context;

	if (fault->effect == FAULT_IO_HALF && must_fail(fault)) {
		size_t half = size / 2 / 4096 * 4096;

		if (half != 0)
			(void)system_ops()->pwrite(NULL, file, data, half, offset);
		return -fault->error;
	}
	if (fault->effect == FAULT_IO_HALF)
		return system_ops()->pwrite(NULL, file, data, size, offset);
	FORWARD(fault, system_ops()->pwrite(NULL, file, data, size, offset));
}

static int fault_fdatasync(void *context, int file)
{
	FORWARD((struct fault_io *)context, system_ops()->fdatasync(NULL, file));
}

static int fault_fsync_dir(void *context, const char *path)
{
	FORWARD((struct fault_io *)context, system_ops()->fsync_dir(NULL, path));
}

static int fault_rename(void *context, const char *source, const char *target)
{
	FORWARD((struct fault_io *)context, system_ops()->rename(NULL, source, target));
}

static int fault_exchange(void *context, const char *one, const char *other)
{
	FORWARD((struct fault_io *)context, system_ops()->exchange(NULL, one, other));
}

static int fault_unlink(void *context, const char *path)
{
	FORWARD((struct fault_io *)context, system_ops()->unlink(NULL, path));
}

static int fault_mkdir(void *context, const char *path, mode_t mode)
{
	FORWARD((struct fault_io *)context, system_ops()->mkdir(NULL, path, mode));
}

static int fault_fallocate(void *context, int file, uint64_t offset, uint64_t size)
{
	FORWARD((struct fault_io *)context, system_ops()->fallocate(NULL, file, offset, size));
}

static int fault_ftruncate(void *context, int file, uint64_t size)
{
	FORWARD((struct fault_io *)context, system_ops()->ftruncate(NULL, file, size));
}

static int fault_stat(void *context, int file, struct hx_io_stat *ret)
{
	FORWARD((struct fault_io *)context, system_ops()->stat(NULL, file, ret));
}

static int fault_stat_path(void *context, const char *path, struct hx_io_stat *ret)
{
	FORWARD((struct fault_io *)context, system_ops()->stat_path(NULL, path, ret));
}

static int fault_list(void *context, const char *path, hx_io_list_fn *each, void *arg)
{
	return must_fail(context) ? -((struct fault_io *)context)->error
				  : system_ops()->list(NULL, path, each, arg);
}

static int fault_lock(void *context, int file)
{
	return must_fail(context) ? -((struct fault_io *)context)->error
				  : system_ops()->lock(NULL, file);
}

static const struct hx_io_ops fault_ops = {
	.open = fault_open,
	.close = fault_close,
	.pread = fault_pread,
	.pwrite = fault_pwrite,
	.fdatasync = fault_fdatasync,
	.fsync_dir = fault_fsync_dir,
	.rename = fault_rename,
	.exchange = fault_exchange,
	.unlink = fault_unlink,
	.mkdir = fault_mkdir,
	.fallocate = fault_fallocate,
	.ftruncate = fault_ftruncate,
	.stat = fault_stat,
	.stat_path = fault_stat_path,
	.list = fault_list,
	.lock = fault_lock,
};

void fault_io_init(struct fault_io *fault)
{
	*fault = (struct fault_io){.error = EIO};
	fault->io.ops = &fault_ops;
	fault->io.context = fault;
}
