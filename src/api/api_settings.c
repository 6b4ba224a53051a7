/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_settings.c - GET and PATCH /config.
 *
 * A patch (RFC 7396: null removes a setting, a list replaces the whole list) is merged with earlier
 * patches in conf.d/99-runtime.yaml, as JSON, which is YAML. The result is first read as a whole
 * configuration. Then the file is replaced in one step and read again. If the daemon cannot use it,
 * the old file is restored: a failure changes nothing. A setting that a variable, an option or a
 * later file overrides is refused, since the patch would have no effect. Only one change is in
 * progress at a time.
 *
 * Settings that name a host, a file or a command, and permissions, can be changed only in the
 * operator's files: an API token must not give its bearer the rights of the daemon's user. The
 * flags of the schema are checked for both the patch and its result.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/api_request.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "config/config.h"
#include "config/dump.h"
#include "config/patch.h"
#include "net/tls/tls.h"

enum {
	NAME_SIZE = 128,
	FILE_SIZE_MAX = 256 * 1024,
	DETAIL_SIZE_MAX = 1024,
	DEPTH_MAX = 16,
	MEMBERS_MAX = 256, /* per object, several times the largest; each lookup is linear */
};

struct patch {
	struct hx_api *api;
	struct hx_config *config; /* in force on arrival; kept */
	struct hapax_buf file;    /* before the patch */
	struct hapax_buf merged;
	struct hx_json_reader reader;
	enum hapax_status result; /* of the change: a failure is audited, too */
	unsigned status;          /* of HTTP, if refused */
	bool had_file;
	char setting[HX_CONFIG_SETTING_SIZE]; /* the first overridden setting, and its source */
	char by[HX_CONFIG_PATH_SIZE];
	char folder[HX_CONFIG_PATH_SIZE];
	char path[HX_CONFIG_PATH_SIZE + 64];
	char next[HX_CONFIG_PATH_SIZE + 64];
};

void hx_api_get_config(struct hx_api_request *request)
{
	struct hx_config_current *current = request->api->options.current;
	struct hx_config *config;
	enum hapax_status status;

	if (current == NULL) {
		hx_api_problem(request, 501, NULL, "there is no configuration");
		return;
	}
	config = hx_config_current_keep(current);
	status = hx_config_dump_public(config, &request->out);
	hx_config_release(config);
	if (status != HAPAX_OK)
		hx_api_fail(request, status, NULL);
	else
		hx_api_reply(request, 200);
}

/* ------------------------------------------------------------------ merge */

struct side {
	const struct hx_json_tree *tree;
	const struct hx_json_node *node; /* NULL: there is none */
};

static bool is_object(struct side side)
{
	return side.node != NULL && side.node->token.type == HX_JSON_OBJECT;
}

static struct side member_of(struct side side, struct hapax_bytes name)
{
	if (is_object(side))
		side.node = hx_json_tree_member(side.tree, side.node, name);
	else
		side.node = NULL;
	return side;
}

static void write_node(struct hx_json_write *json, const char *name, struct side side)
{
	hx_json_write_raw(json, name, hx_json_node_text(side.tree, side.node));
}

static void merge(
	struct hx_json_write *json, const char *name, struct side old, struct side new,
	unsigned depth);

/* Members of one side that the other side also has, or lacks. */
static void merge_members(
	struct hx_json_write *json, struct side of, struct side old, struct side new,
	unsigned depth)
{
	unsigned count = 0;

	if (of.node == NULL || of.node->token.type != HX_JSON_OBJECT)
		return;
	for (uint32_t at = of.node->child; at != 0 && json->status == HAPAX_OK;
	     at = of.tree->nodes[at].next) {
		struct hx_json_string name = hx_json_node_name(of.tree, &of.tree->nodes[at]);
		char text[NAME_SIZE];
		struct hapax_bytes bytes = hx_bytes(name.data, name.size);

		/* No setting has such a name: the configuration reader reports it. */
		if (name.escaped || name.size >= sizeof(text) || depth > DEPTH_MAX ||
		    ++count > MEMBERS_MAX) {
			json->status = HAPAX_ERR_INVALID;
			return;
		}
		memcpy(text, name.data, name.size);
		text[name.size] = '\0';
		/* Common members were written with the old ones. */
		if (of.tree == new.tree && member_of(old, bytes).node != NULL)
			continue;
		merge(json, text, member_of(old, bytes), member_of(new, bytes), depth + 1);
	}
}

static void merge(
	struct hx_json_write *json, const char *name, struct side old, struct side new,
	unsigned depth)
{
	if (new.node == NULL) {
		if (old.node != NULL)
			write_node(json, name, old);
		return;
	}
	if (new.node->token.type == HX_JSON_NULL)
		return;
	if (!is_object(new)) {
		write_node(json, name, new);
		return;
	}
	if (!is_object(old))
		old.node = NULL;
	hx_json_write_begin(json, name, '{');
	merge_members(json, old, old, new, depth);
	merge_members(json, new, old, new, depth);
	hx_json_write_end(json, '}');
}

/* ------------------------------------------------------------------ the file */

static enum hapax_status read_old(struct patch *patch, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	struct hx_io_stat stat;
	enum hapax_status status;
	int result;

	result = io->ops->stat_path(io->context, patch->path, &stat);
	patch->had_file = result != -ENOENT && result != -ENOTDIR;
	if (!patch->had_file)
		return hx_buf_append(&patch->file, "{}", 2);
	status = hx_io_read_all(io, patch->path, FILE_SIZE_MAX, &patch->file, err);
	if (status == HAPAX_OK &&
	    hx_json_reader_read(&patch->reader, hapax_buf_bytes(&patch->file), NULL) != HAPAX_OK) {
		patch->status = 409;
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"%s was not written by this API, which writes JSON; move its contents "
			"to another file",
			patch->path);
	}
	return status;
}

static enum hapax_status write_file(
	struct patch *patch, const struct hapax_buf *text, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	int result = io->ops->mkdir(io->context, patch->folder, 0755);
	int file;

	if (result < 0 && result != -EEXIST)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, -result, "could not create '%s'",
			patch->folder);
	file = io->ops->open(
		io->context, patch->next, HX_IO_WRITE | HX_IO_CREATE | HX_IO_TRUNCATE, 0600);
	result = file;
	if (file >= 0) {
		result = hx_io_write_full(io, file, text->data, text->size, 0);
		if (result == 0)
			result = io->ops->fdatasync(io->context, file);
		(void)io->ops->close(io->context, file);
	}
	if (result >= 0)
		result = io->ops->rename(io->context, patch->next, patch->path);
	if (result >= 0)
		result = io->ops->fsync_dir(io->context, patch->folder);
	if (result < 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, -result, "could not write '%s'", patch->path);
	return HAPAX_OK;
}

/* Restore the file from before the patch. */
static enum hapax_status put_back(struct patch *patch, struct hapax_error *err)
{
	const struct hx_io *io = hx_io_system();
	int result;

	if (patch->had_file)
		return write_file(patch, &patch->file, err);
	result = io->ops->unlink(io->context, patch->path);
	if (result >= 0)
		result = io->ops->fsync_dir(io->context, patch->folder);
	if (result < 0)
		return hx_error_set(
			err, HAPAX_ERR_UNAVAILABLE, -result, "could not remove '%s'", patch->path);
	return HAPAX_OK;
}

/* Does the patch set it: "log.level"? */
static bool is_patched(const struct hx_api_request *request, const char *setting)
{
	struct side side = {&request->reader.tree, &request->reader.tree.nodes[0]};

	while (side.node != NULL && *setting != '\0') {
		size_t size = strcspn(setting, ".");

		side = member_of(side, hx_bytes(setting, size));
		setting += size + (setting[size] == '.');
	}
	return side.node != NULL && side.node->token.type != HX_JSON_NULL;
}

/* Ignore overridden settings of earlier patches. */
static void note_overruled(const char *setting, const char *by, void *context)
{
	struct hx_api_request *request = context;
	struct patch *patch = request->extra;

	if (patch->by[0] != '\0' || !is_patched(request, setting))
		return;
	(void)snprintf(patch->setting, sizeof(patch->setting), "%s", setting);
	(void)snprintf(patch->by, sizeof(patch->by), "%s", by);
}

/* The first door that would change to or from TLS at the next start, or NULL. */
static const char *find_other_tls(const struct hx_config *a, const struct hx_config *b)
{
	for (int i = 0; i < HX_CONFIG_TLS_DOORS; i++) {
		enum hx_config_tls_index index = (enum hx_config_tls_index)i;
		struct hx_tls_options options;

		if ((hx_config_listens_by_tcp(a, index) &&
		     hx_config_tls_options(a, index, &options)) !=
		    (hx_config_listens_by_tcp(b, index) &&
		     hx_config_tls_options(b, index, &options)))
			return hx_config_tls_name(index);
	}
	return NULL;
}

static enum hapax_status refuse_setting(
	struct patch *patch, const char *setting, struct hapax_error *err)
{
	patch->status = 409;
	return hx_error_set(
		err, HAPAX_ERR_INVALID, 0,
		"cannot change %s here, because it names a host, a file, a command or access "
		"rights; change it in the configuration file, then send HUP",
		setting);
}

/*
 * Does it leave the operator's settings alone? Compare with the current files and earlier patches,
 * which may contain more than is in force.
 */
static enum hapax_status check_fixed(
	struct hx_api_request *request, const struct hx_config *config, struct hapax_error *err)
{
	struct patch *patch = request->extra;
	struct hx_config_source with = *request->api->options.source;
	struct hapax_bytes text = hapax_buf_bytes(&patch->file);
	struct hx_config *before = NULL;
	char setting[HX_CONFIG_SETTING_SIZE];
	bool is_changed;

	with.runtime = &text;
	/* An unreadable configuration is not in force. */
	if (hx_config_load(&with, &before, NULL, NULL) != HAPAX_OK)
		before = hx_config_keep(patch->config);
	is_changed = hx_config_needs_file(before, config, setting);
	hx_config_release(before);
	return is_changed ? refuse_setting(patch, setting, err) : HAPAX_OK;
}

/* Would every requested setting be in force after a reload? */
static enum hapax_status check_force(
	struct patch *patch, const struct hx_config *config, struct hapax_error *err)
{
	const char *door = find_other_tls(patch->config, config);
	char setting[HX_CONFIG_SETTING_SIZE];

	patch->status = 409;
	if (hx_config_needs_restart(patch->config, config, setting))
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot change '%s' while the daemon runs; change it in the configuration "
			"file, then restart",
			setting);
	if (door != NULL)
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"cannot change TLS of listen.%s while the daemon runs; change it in the "
			"configuration file, then restart",
			door);
	if (patch->by[0] != '\0')
		return hx_error_set(
			err, HAPAX_ERR_INVALID, 0,
			"%s is set by %.200s, which overrides a change made here; change it there",
			patch->setting, patch->by);
	patch->status = 0;
	return HAPAX_OK;
}

/* Is the result a valid configuration that this process can use? */
static enum hapax_status try_new(struct hx_api_request *request, struct hapax_error *err)
{
	struct patch *patch = request->extra;
	struct hx_config_source with = *request->api->options.source;
	struct hapax_bytes text = hapax_buf_bytes(&patch->merged);
	struct hx_config *config = NULL;
	enum hapax_status status;

	with.runtime = &text;
	with.overruled = note_overruled;
	with.context = request;
	status = hx_config_load(&with, &config, NULL, err);
	if (status != HAPAX_OK) {
		patch->status = 422;
		return status;
	}
	status = check_fixed(request, config, err);
	if (status == HAPAX_OK)
		status = check_force(patch, config, err);
	hx_config_release(config);
	return status;
}

static bool is_forbidden(int os_errno)
{
	return os_errno == EROFS || os_errno == EACCES || os_errno == EPERM || os_errno == ENOTDIR;
}

/* Threads: the worker's. */
static void apply(struct hx_api_job *job)
{
	struct hx_api_request *request = hx_api_request_of(job);
	struct patch *patch = request->extra;
	struct hx_json_write json;
	struct side old, new;
	char setting[HX_CONFIG_SETTING_SIZE];

	/* Check this first, so that a possible attack is not examined further. */
	if (hx_config_patch_needs_file(&request->reader.tree, setting)) {
		patch->result = refuse_setting(patch, setting, &request->err);
		return;
	}
	patch->result = read_old(patch, &request->err);
	if (patch->result != HAPAX_OK)
		return;
	patch->result =
		hx_json_reader_read(&patch->reader, hapax_buf_bytes(&patch->file), &request->err);
	if (patch->result != HAPAX_OK)
		return;
	old = (struct side){&patch->reader.tree, &patch->reader.tree.nodes[0]};
	new = (struct side){&request->reader.tree, &request->reader.tree.nodes[0]};
	hx_json_write_init(&json, &patch->merged);
	merge(&json, NULL, old, new, 0);
	if (json.status == HAPAX_OK)
		json.status = hx_buf_append_byte(&patch->merged, '\n');
	if (json.status != HAPAX_OK) {
		patch->status = json.status == HAPAX_ERR_INVALID ? 422 : 0;
		patch->result = hx_error_set(
			&request->err, json.status, 0,
			"a name is too long, an object has more than %d members, or nesting is "
			"too deep",
			MEMBERS_MAX);
		return;
	}
	patch->result = try_new(request, &request->err);
	if (patch->result == HAPAX_OK)
		patch->result = write_file(patch, &patch->merged, &request->err);
	if (patch->result == HAPAX_ERR_UNAVAILABLE && is_forbidden(request->err.os_errno)) {
		/* A retry would not help. */
		patch->status = 409;
		(void)hx_error_set(
			&request->err, HAPAX_ERR_UNAVAILABLE, request->err.os_errno,
			"the daemon may not write '%.200s', where changes are stored; under "
			"systemd set ReadWritePaths=",
			patch->path);
	}
}

static void patch_done(void *extra)
{
	struct patch *patch = extra;

	patch->api->is_patching = false;
	hx_config_release(patch->config);
	hx_buf_done(&patch->file);
	hx_buf_done(&patch->merged);
	hx_json_reader_done(&patch->reader);
}

/* The patch with secrets hidden, unless it is long. */
static void audit(struct hx_api_request *request, const char *outcome)
{
	struct hx_json_write json;
	struct hapax_buf detail;

	hx_buf_init(&detail, DETAIL_SIZE_MAX);
	hx_json_write_init(&json, &detail);
	hx_config_patch_write(&request->reader.tree, &json);
	hx_api_audit_request(
		request,
		&(struct hx_audit_entry){
			.action = "config.patch",
			.outcome = outcome,
			.detail = json.status == HAPAX_OK ? hapax_buf_bytes(&detail)
							  : hx_bytes(NULL, 0)});
	hx_buf_done(&detail);
}

/*
 * The daemon rejected the configuration (see request->err), and the next start would, too. Restore
 * the file here, not in the worker, which may be stopping. It takes no longer than the reload did.
 */
static void take_back(struct hx_api_request *request)
{
	struct patch *patch = request->extra;
	struct hapax_error err;

	patch->status = 422;
	if (put_back(patch, &err) == HAPAX_OK)
		return;
	patch->status = 0;
	(void)hx_error_set(
		&request->err, HAPAX_ERR_UNAVAILABLE, 0,
		"change rejected (%.80s), but still stored: %.120s; %s before the next start",
		request->err.message, err.message,
		patch->had_file ? "undo it in the file" : "remove the file");
}

static void on_applied(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	struct patch *patch = request->extra;

	if (patch->result == HAPAX_OK) {
		patch->result = options->reload(options->context, &request->err);
		if (patch->result != HAPAX_OK)
			take_back(request);
	}
	audit(request, patch->result == HAPAX_OK ? "applied" : hapax_status_name(patch->result));
	if (patch->result == HAPAX_OK)
		hx_api_get_config(request);
	else if (patch->status != 0)
		hx_api_problem(
			request, patch->status, HX_API_PROBLEM("config"), "%s",
			request->err.message);
	else
		hx_api_fail(request, patch->result, request->err.message);
}

void hx_api_patch_config(struct hx_api_request *request)
{
	const struct hx_api_options *options = &request->api->options;
	const char *slash;
	struct patch *patch;
	int folder_size;

	if (options->source == NULL || options->source->path == NULL || options->reload == NULL) {
		hx_api_problem(
			request, 409, HX_API_PROBLEM("config"),
			"the daemon was started without a configuration file and cannot store a "
			"change; start it with --config FILE");
		return;
	}
	if (request->reader.tree.nodes[0].token.type != HX_JSON_OBJECT) {
		hx_api_fail(request, HAPAX_ERR_INVALID, "the body must be a JSON object");
		return;
	}
	if (request->body.size > FILE_SIZE_MAX) {
		hx_api_problem(
			request, 413, HX_API_PROBLEM("config"),
			"the change is too large: limit 256 KiB; change the file instead");
		return;
	}
	if (request->api->is_patching) {
		hx_api_problem(request, 503, NULL, "another change is in progress; retry later");
		return;
	}
	patch = hx_api_extra(request, sizeof(*patch), patch_done);
	if (patch == NULL)
		return;
	patch->api = request->api;
	patch->api->is_patching = true;
	patch->config = hx_config_current_keep(options->current);
	hx_buf_init(&patch->file, FILE_SIZE_MAX);
	hx_buf_init(&patch->merged, FILE_SIZE_MAX);
	hx_json_reader_init(&patch->reader, HX_API_SCRATCH_MAX, options->budget);
	slash = strrchr(options->source->path, '/');
	folder_size = slash == NULL ? 0 : (int)(slash - options->source->path + 1);
	(void)snprintf(
		patch->folder, sizeof(patch->folder), "%.*sconf.d", folder_size,
		options->source->path);
	(void)snprintf(
		patch->path, sizeof(patch->path), "%s/" HX_CONFIG_RUNTIME_NAME, patch->folder);
	(void)snprintf(
		patch->next, sizeof(patch->next), "%s/." HX_CONFIG_RUNTIME_NAME ".new",
		patch->folder);
	hx_api_work(request, &request->api->worker, apply, on_applied);
}
