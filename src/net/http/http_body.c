/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_body.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "base/random.h"

enum { PATH_SIZE = 4096 };

void hx_http_body_init(struct hx_http_body *body, const char *folder, size_t memory_max)
{
	body->folder = folder;
	hx_buf_init(&body->memory, memory_max);
	body->file = -1;
	body->size = 0;
	body->file_budget = NULL;
	body->file_taken = 0;
}

static void close_file(struct hx_http_body *body)
{
	const struct hx_io *io = hx_io_system();

	if (body->file >= 0)
		(void)io->ops->close(io->context, body->file);
	body->file = -1;
	if (body->file_taken > 0)
		hx_budget_give(body->file_budget, body->file_taken);
	body->file_taken = 0;
}

void hx_http_body_clear(struct hx_http_body *body)
{
	close_file(body);
	body->size = 0;
	hx_buf_clear(&body->memory);
	if (body->memory.capacity > HX_HTTP_BODY_KEPT_MAX)
		hx_buf_done(&body->memory);
}

void hx_http_body_done(struct hx_http_body *body)
{
	close_file(body);
	body->size = 0;
	hx_buf_done(&body->memory);
}

static enum hapax_status http_body_refuse(struct hapax_error *err, int code, const char *what)
{
	return hx_error_set(
		err, hx_error_status_of(-code), -code,
		"could not %s a temporary file for a large body", what);
}

/*
 * A file of our own, whose name is removed before anything is written.
 */
static enum hapax_status open_file(struct hx_http_body *body, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	char path[PATH_SIZE];
	uint64_t name[2];
	int size;
	int file;

	hx_random_bytes(name, sizeof(name));
	size = snprintf(
		path, sizeof(path), "%s/hapax-body-%016llx%016llx", body->folder,
		(unsigned long long)name[0], (unsigned long long)name[1]);
	if (size < 0 || (size_t)size >= sizeof(path))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"the path of the temporary directory is too long");
	file = io->ops->open(
		io->context, path, HX_IO_READ | HX_IO_WRITE | HX_IO_CREATE | HX_IO_EXCLUSIVE, 0600);
	if (file < 0)
		return http_body_refuse(err, file, "create");
	(void)io->ops->unlink(io->context, path);
	body->file = file;
	return HAPAX_OK;
}

static enum hapax_status add_to_file(
	struct hx_http_body *body, struct hapax_bytes data, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	int code;

	if (body->file_budget != NULL) {
		if (!hx_budget_take(body->file_budget, data.size))
			return hx_error_set(
				err, HAPAX_ERR_LIMIT, 0,
				"the space for large bodies is in use; retry later");
		body->file_taken += data.size;
	}
	code = hx_io_write_full(io, body->file, data.data, data.size, body->size);
	if (code < 0)
		return http_body_refuse(err, code, "write");
	body->size += data.size;
	return HAPAX_OK;
}

static enum hapax_status move_to_file(struct hx_http_body *body, struct hapax_error *err)
{
	enum hapax_status status = open_file(body, err);

	if (status != HAPAX_OK)
		return status;
	body->size = 0;
	status = add_to_file(body, hapax_buf_bytes(&body->memory), err);
	hx_buf_done(&body->memory);
	return status;
}

enum hapax_status hx_http_body_add(
	struct hx_http_body *body, struct hapax_bytes data, struct hapax_error *err)
{
	enum hapax_status status = HAPAX_OK;

	if (body->file < 0 && data.size <= body->memory.size_max - body->memory.size) {
		status = hx_buf_append(&body->memory, data.data, data.size);
		if (status != HAPAX_OK)
			return hx_error_set(err, status, 0, "not enough memory for a message");
		body->size += data.size;
		return HAPAX_OK;
	}
	if (body->file < 0)
		status = move_to_file(body, err);
	return status == HAPAX_OK ? add_to_file(body, data, err) : status;
}

enum hapax_status hx_http_body_read(
	const struct hx_http_body *body, uint64_t offset, void *data, size_t size,
	struct hapax_error *err)
{
	ssize_t count;

	assert(offset <= body->size && size <= body->size - offset);
	if (body->file < 0) {
		if (size > 0)
			memcpy(data, body->memory.data + offset, size);
		return HAPAX_OK;
	}
	count = hx_io_read_full(hx_io_system(), body->file, data, size, offset);
	if (count < 0)
		return http_body_refuse(err, (int)count, "read");
	return (size_t)count == size ? HAPAX_OK : http_body_refuse(err, -EIO, "read");
}

enum hapax_status hx_http_body_whole(
	const struct hx_http_body *body, struct hapax_buf *buf, struct hapax_bytes *ret,
	struct hapax_error *err)
{
	enum hapax_status status;

	if (body->file < 0) {
		*ret = hapax_buf_bytes(&body->memory);
		return HAPAX_OK;
	}
	hx_buf_clear(buf);
	status = hx_buf_reserve(buf, (size_t)body->size);
	if (status != HAPAX_OK)
		return hx_error_set(err, status, 0, "not enough memory for a message");
	status = hx_http_body_read(body, 0, buf->data, (size_t)body->size, err);
	if (status != HAPAX_OK)
		return status;
	buf->size = (size_t)body->size;
	*ret = hapax_buf_bytes(buf);
	return HAPAX_OK;
}
