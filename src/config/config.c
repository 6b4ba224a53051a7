/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - load a config from files, variables and options; share and release it.
 */
#include "config/config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "config/bind.h"
#include "config/complete/complete.h"
#include "config/yaml.h"

/* Contains a struct hx_config. */
struct owned {
	struct hx_config config; /* first: a pointer to one is a pointer to the other */
	_Atomic uint32_t owners;
	struct hx_config_arena arena;
	struct hapax_key_strategy **strategies; /* in arena */
	size_t strategy_count;
};

static struct owned *owned_of(struct hx_config *config)
{
	return (struct owned *)config;
}

static void owned_free(struct owned *owned)
{
	for (size_t i = 0; i < owned->strategy_count; i++)
		hapax_key_strategy_free(owned->strategies[i]);
	hx_config_arena_done(&owned->arena);
	hx_free(owned);
}

/* ------------------------------------------------------------------ files */

struct files {
	const struct hx_io *io;
	struct hx_config_arena *arena;
	struct hx_faults *faults;
	const struct hx_yaml_node *trees[HX_BIND_TREES_MAX];
	size_t tree_count;
	const char *names[HX_BIND_TREES_MAX]; /* of conf.d */
	size_t name_count;
	bool is_full;
	const char *runtime; /* the name of the tree for 99-runtime.yaml; or NULL */
};

static void read_text(struct files *files, const char *path, struct hapax_bytes text)
{
	struct hx_place place = {.name = path};
	const char *name = hx_config_arena_text(files->arena, hapax_bytes_from_text(path));
	const struct hx_yaml_node *tree;

	if (name == NULL) {
		hx_fault(files->faults, HAPAX_ERR_NO_MEMORY, &place, "not enough memory for it");
		return;
	}
	tree = hx_yaml_read(text, name, files->arena, files->faults);
	if (tree != NULL)
		files->trees[files->tree_count++] = tree;
}

/* The file in question is identified by the name of its tree. */
static void read_runtime(struct files *files, const char *path, struct hapax_bytes text)
{
	size_t count = files->tree_count;

	read_text(files, path, text);
	if (files->tree_count > count)
		files->runtime = files->trees[count]->place.name;
}

/* Report a file error without the path, which the place already has. */
static void fault_file(struct files *files, const char *path, const struct hapax_error *err)
{
	struct hx_place place = {.name = path};
	const char *message = err->message;
	const char *at = strstr(message, path);
	size_t size = strlen(path);

	if (at != NULL && at > message && at[-1] == '\'' && at[size] == '\'')
		hx_fault(
			files->faults, err->status, &place, "%.*sthe file%s",
			(int)(at - 1 - message), message, at + size + 1);
	else
		hx_fault(files->faults, err->status, &place, "%s", message);
}

static void read_file(struct files *files, const char *path)
{
	struct hapax_error err;
	enum hapax_status status;
	struct hapax_buf text;

	hx_buf_init(&text, HX_YAML_SIZE_MAX);
	status = hx_io_read_all(files->io, path, HX_YAML_SIZE_MAX, &text, &err);
	if (status == HAPAX_OK)
		read_text(files, path, hx_bytes(text.data, text.size));
	else
		fault_file(files, path, &err);
	hx_buf_done(&text);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_config_name(const char *name)
{
	static const char suffix[] = ".yaml";
	size_t size = strlen(name);

	/* Names with a leading dot are leftovers of editors and package managers. */
	return size >= sizeof(suffix) && name[0] != '.' &&
		strcmp(name + size - strlen(suffix), suffix) == 0;
}

static int note_name(void *arg, const char *name)
{
	struct files *files = arg;

	if (!is_config_name(name))
		return 0;
	/* One slot is for the file itself. */
	if (files->name_count == HX_BIND_TREES_MAX - 1) {
		files->is_full = true;
		return 1;
	}
	files->names[files->name_count] =
		hx_config_arena_text(files->arena, hapax_bytes_from_text(name));
	if (files->names[files->name_count] == NULL)
		return -ENOMEM;
	files->name_count++;
	return 0;
}

/* Add the runtime file as if it existed. */
static int note_runtime(struct files *files)
{
	for (size_t i = 0; i < files->name_count; i++) {
		if (strcmp(files->names[i], HX_CONFIG_RUNTIME_NAME) == 0)
			return 0;
	}
	return note_name(files, HX_CONFIG_RUNTIME_NAME);
}

/* Read conf.d beside the file in name order, so that 99-runtime.yaml has the last word. */
static void read_folder(struct files *files, const char *path, const struct hapax_bytes *runtime)
{
	const char *slash = strrchr(path, '/');
	char folder[HX_CONFIG_PATH_SIZE];
	char name[HX_CONFIG_PATH_SIZE + 256];
	struct hx_place place = {.name = folder};
	int result = snprintf(
		folder, sizeof(folder), "%.*sconf.d", slash == NULL ? 0 : (int)(slash - path + 1),
		path);

	if (result < 0 || (size_t)result >= sizeof(folder))
		return;
	result = files->io->ops->list(files->io->context, folder, note_name, files);
	if (result == 0 || result == -ENOENT || result == -ENOTDIR)
		result = runtime == NULL ? 0 : note_runtime(files);
	if (result < 0)
		hx_fault(
			files->faults, hx_error_status_of(-result), &place,
			"could not read the directory (error %d)", -result);
	if (files->is_full)
		hx_fault(
			files->faults, HAPAX_ERR_LIMIT, &place, "too many files: limit %d",
			HX_BIND_TREES_MAX - 1);
	qsort(files->names, files->name_count, sizeof(files->names[0]), compare_names);
	for (size_t i = 0; i < files->name_count; i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", folder, files->names[i]);
		if (runtime != NULL && strcmp(files->names[i], HX_CONFIG_RUNTIME_NAME) == 0)
			read_runtime(files, name, *runtime);
		else
			read_file(files, name);
	}
}

/* ------------------------------------------------------------------ load */

static void load(
	const struct hx_config_source *source, struct owned *owned, struct files *files,
	struct hx_faults *faults)
{
	struct hx_complete complete = {
		.arena = &owned->arena,
		.faults = faults,
		.variable = source->variable,
		.io = files->io};

	struct hx_bind bind = {
		.arena = &owned->arena,
		.faults = faults,
		.variable = source->variable,
		.options = source->options,
		.option_count = source->option_count};

	if (source->text != NULL) {
		read_text(files, source->path == NULL ? "text" : source->path, *source->text);
	} else if (source->path != NULL) {
		read_file(files, source->path);
		read_folder(files, source->path, source->runtime);
	}
	bind.trees = files->trees;
	bind.tree_count = files->tree_count;
	bind.asked = files->runtime;
	bind.overruled = source->overruled;
	bind.context = source->context;

	/* Even if one file is not YAML, check the rest. */
	hx_bind_run(&bind, &owned->config);
	if (faults->count > 0)
		return;
	hx_complete_run(&complete, &owned->config);
	owned->strategies = complete.strategies;
	owned->strategy_count = complete.strategy_count;
}

enum hapax_status hx_config_load(
	const struct hx_config_source *source, struct hx_config **ret_config,
	struct hapax_buf *faults, struct hapax_error *err)
{
	struct hx_faults found = {.lines = faults, .err = err};
	struct owned *owned = hx_alloc_zero(1, sizeof(*owned));
	struct files *files = hx_alloc_zero(1, sizeof(*files));

	if (owned == NULL || files == NULL) {
		hx_free(owned);
		hx_free(files);
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory for a configuration");
	}
	atomic_init(&owned->owners, 1);
	files->io = source->io == NULL ? hx_io_system() : source->io;
	files->arena = &owned->arena;
	files->faults = &found;
	load(source, owned, files, &found);
	hx_free(files);
	if (found.count > 0) {
		owned_free(owned);
		return found.status;
	}
	*ret_config = &owned->config;
	return HAPAX_OK;
}

struct hx_config *hx_config_keep(struct hx_config *config)
{
	uint32_t before =
		atomic_fetch_add_explicit(&owned_of(config)->owners, 1, memory_order_relaxed);

	assert(before > 0 && before < UINT32_MAX);
	return config;
}

void hx_config_release(struct hx_config *config)
{
	uint32_t before;

	if (config == NULL)
		return;
	before = atomic_fetch_sub_explicit(&owned_of(config)->owners, 1, memory_order_acq_rel);
	assert(before > 0);
	if (before == 1)
		owned_free(owned_of(config));
}

/* ------------------------------------------------------------------ which file */

static bool is_file(const struct hx_io *io, const char *path)
{
	struct hx_io_stat stat;

	return io->ops->stat_path(io->context, path, &stat) == 0 && stat.kind == HX_IO_FILE;
}

bool hx_config_find(
	const struct hx_io *io, hx_config_variable_fn *variable, char path[HX_CONFIG_PATH_SIZE])
{
	static const struct {
		const char *variable; /* NULL: the folder itself */
		const char *folder;
	} places[] = {
		{"CONFIGURATION_DIRECTORY", ""},
		{"XDG_CONFIG_HOME", "/hapax"},
		{"HOME", "/.config/hapax"},
		{NULL, "/etc/hapax"},
	};

	for (size_t i = 0; i < HX_COUNT(places); i++) {
		const char *begin = places[i].variable == NULL ? "" : variable(places[i].variable);
		int size;

		/* A relative folder is ignored (XDG Base Directory). */
		if (begin == NULL || (places[i].variable != NULL && begin[0] != '/'))
			continue;
		size = snprintf(
			path, HX_CONFIG_PATH_SIZE, "%.*s%s/hapax.yaml", (int)strcspn(begin, ":"),
			begin, places[i].folder);
		if (size > 0 && size < HX_CONFIG_PATH_SIZE && is_file(io, path))
			return true;
	}
	return false;
}

void hx_config_source_find(struct hx_config_source *source, const char *named)
{
	const struct hx_io *io = source->io == NULL ? hx_io_system() : source->io;

	source->path = named != NULL ? named : source->variable("HAPAX_CONFIG");
	if (source->path == NULL && hx_config_find(io, source->variable, source->found))
		source->path = source->found;
}

/* ------------------------------------------------------------------ in force */

void hx_config_current_init(struct hx_config_current *current, struct hx_config *config)
{
	hx_lock_init(&current->lock);
	atomic_init(&current->config, config);
}

void hx_config_current_done(struct hx_config_current *current)
{
	hx_config_release(atomic_load_explicit(&current->config, memory_order_relaxed));
	atomic_store_explicit(&current->config, NULL, memory_order_relaxed);
}

struct hx_config *hx_config_current_keep(struct hx_config_current *current)
{
	struct hx_config *config;

	/* Under the lock the last owner cannot release it between load and keep. */
	hx_lock_acquire(&current->lock);
	config = hx_config_keep(atomic_load_explicit(&current->config, memory_order_relaxed));
	hx_lock_release(&current->lock);
	return config;
}

void hx_config_current_swap(struct hx_config_current *current, struct hx_config *config)
{
	struct hx_config *before;

	hx_lock_acquire(&current->lock);
	before = atomic_exchange_explicit(&current->config, config, memory_order_relaxed);
	hx_lock_release(&current->lock);
	hx_config_release(before);
}
