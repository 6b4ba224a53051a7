/* SPDX-License-Identifier: Apache-2.0 */
#include "net/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/process.h"

/* Of $LISTEN_FDS. */
enum { FIRST_FD = 3 };

bool hx_service_notify(const char *socket_name, const char *text)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = strlen(socket_name);
	ssize_t sent;
	int fd;

	if ((socket_name[0] != '/' && socket_name[0] != '@') || size >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, socket_name, size);
	if (socket_name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	sent =
		sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
		       (const struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
	(void)close(fd);
	return sent >= 0;
}

static bool read_number(const char *text, long max, long *ret)
{
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*ret = strtol(text, &end, 10);
	return errno == 0 && *end == '\0' && *ret <= max;
}

/* Check for a listening stream socket, and set the flags of our own sockets. */
static bool prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	int type = 0;
	int listens = 0;
	socklen_t size = sizeof(type);

	return flags >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
		type == SOCK_STREAM &&
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
		fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* The next of the names between colons. False: it is too long, or there is none. */
static bool take_name(const char **names, char out[HX_SERVICE_NAME_SIZE])
{
	size_t size = strcspn(*names, ":");

	if (size == 0 || size >= HX_SERVICE_NAME_SIZE)
		return false;
	memcpy(out, *names, size);
	out[size] = '\0';
	*names += size + ((*names)[size] == ':');
	return true;
}

enum hapax_status hx_service_take_sockets(
	hx_service_variable_fn *variable, struct hx_service_sockets *ret_sockets,
	struct hapax_error *err)
{
	const char *names = variable == NULL ? NULL : variable("LISTEN_FDNAMES");
	struct hx_service_sockets sockets = {.count = 0};
	long pid;
	long count;

	ret_sockets->count = 0;
	/* Ignore sockets for another process. */
	if (variable == NULL || !read_number(variable("LISTEN_PID"), INT32_MAX, &pid) ||
	    pid != (long)hx_process_id())
		return HAPAX_OK;
	if (!read_number(variable("LISTEN_FDS"), HX_SERVICE_SOCKETS_MAX, &count))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0, "LISTEN_FDS must be a number up to %d",
			(int)HX_SERVICE_SOCKETS_MAX);
	for (long i = 0; i < count; i++) {
		int fd = FIRST_FD + (int)i;

		if (names == NULL || !take_name(&names, sockets.names[i]))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"LISTEN_FDNAMES has no name for file descriptor %d", fd);
		if (!prepare(fd))
			return hx_error_set(
				err, HAPAX_ERR_INVALID, 0,
				"file descriptor %d ('%s') is not a listening stream socket", fd,
				sockets.names[i]);
		sockets.fds[i] = fd;
		sockets.count++;
	}
	*ret_sockets = sockets;
	return HAPAX_OK;
}

int hx_service_socket(struct hx_service_sockets *sockets, const char *name, size_t index)
{
	size_t matching[HX_SERVICE_SOCKETS_MAX];
	size_t count = 0;
	size_t chosen;
	int fd;

	for (size_t i = 0; i < sockets->count; i++) {
		if (strcmp(sockets->names[i], name) == 0)
			matching[count++] = i;
	}
	if (count == 0)
		return HX_SERVICE_NO_SOCKET;
	chosen = matching[index % count];
	sockets->is_taken[chosen] = true;
	fd = fcntl(sockets->fds[chosen], F_DUPFD_CLOEXEC, FIRST_FD);
	return fd < 0 ? -errno : fd;
}
