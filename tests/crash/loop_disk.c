/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/loop_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* <linux/ext4.h> is not installed; these are its numbers. */
#define EXT4_IOC_SHUTDOWN _IOR('X', 125, uint32_t)
enum { EXT4_GOING_FLAGS_NOLOGFLUSH = 2 };

/* Run a program in silence; true when it ended well. */
static bool run(const char *const argv[])
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		(void)dup2(null, 1);
		(void)dup2(null, 2);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		WEXITSTATUS(status) == 0;
}

static bool make_image(struct loop_disk *disk, int image_mib)
{
	int file = open(disk->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* No journal checksums to fight with, no lazy work in the background. */
	const char *const mkfs[] = {
		"mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
		disk->image, NULL};
	bool ok = file >= 0 && ftruncate(file, (off_t)image_mib << 20) == 0;

	if (file >= 0)
		(void)close(file);
	return ok && run(mkfs);
}

static bool mount_image(struct loop_disk *disk)
{
	const char *const mount[] = {"mount", "-o", "loop", disk->image, disk->place, NULL};

	disk->is_mounted = run(mount);
	return disk->is_mounted;
}

static bool unmount(struct loop_disk *disk)
{
	const char *const umount[] = {"umount", disk->place, NULL};

	/* The process that held files there has just died; the kernel may still be closing them. */
	for (int i = 0; i < 200 && disk->is_mounted; i++) {
		if (run(umount))
			disk->is_mounted = false;
		else
			usleep(10000);
	}
	return !disk->is_mounted;
}

const char *loop_disk_init(struct loop_disk *disk, int image_mib, int backing_mib)
{
	const char *reason = NULL;

	memset(disk, 0, sizeof(*disk));
	temp_dir_init(&disk->dir);
	snprintf(disk->place, sizeof(disk->place), "%s/mounted", disk->dir.path);
	snprintf(disk->backing, sizeof(disk->backing), "%s/backing", disk->dir.path);
	if (geteuid() != 0)
		reason = "mounting needs root";
	else if (mkdir(disk->place, 0700) != 0 || mkdir(disk->backing, 0700) != 0)
		reason = "no folder could be made";
	if (!reason && backing_mib > 0) {
		char size[32];

		snprintf(size, sizeof(size), "size=%dm", backing_mib);
		disk->has_backing = mount("hapax-test", disk->backing, "tmpfs", 0, size) == 0;
		if (!disk->has_backing)
			reason = "no tmpfs can be mounted here";
	}
	snprintf(
		disk->image, sizeof(disk->image), "%s/ext4.img",
		disk->has_backing ? disk->backing : disk->dir.path);
	if (!reason && !make_image(disk, image_mib))
		reason = "mkfs.ext4 is missing or failed";
	if (!reason && !mount_image(disk))
		reason = "loop devices cannot be mounted here";
	if (reason)
		loop_disk_done(disk);
	return reason;
}

void loop_disk_done(struct loop_disk *disk)
{
	(void)unmount(disk);
	if (disk->has_backing)
		(void)umount(disk->backing);
	disk->has_backing = false;
	if (!disk->is_mounted)
		temp_dir_done(&disk->dir);
}

bool loop_disk_cut_power(struct loop_disk *disk)
{
	uint32_t how = EXT4_GOING_FLAGS_NOLOGFLUSH;
	int file = open(disk->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = file >= 0 && ioctl(file, EXT4_IOC_SHUTDOWN, &how) == 0;

	if (file >= 0)
		(void)close(file);
	return ok;
}

bool loop_disk_remount(struct loop_disk *disk)
{
	return unmount(disk) && mount_image(disk);
}

static void filler_of(const struct loop_disk *disk, char path[320])
{
	snprintf(path, 320, "%s/filler", disk->backing);
}

bool loop_disk_fill(struct loop_disk *disk)
{
	static char page[4096];
	char path[320];
	int file;

	filler_of(disk, path);
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (file < 0)
		return false;
	memset(page, 'f', sizeof(page));
	while (write(file, page, sizeof(page)) > 0)
		continue;
	(void)close(file);
	return errno == ENOSPC;
}

bool loop_disk_drain(struct loop_disk *disk)
{
	char path[320];

	filler_of(disk, path);
	return unlink(path) == 0;
}
