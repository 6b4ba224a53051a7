/* SPDX-License-Identifier: Apache-2.0 */
#include "resp/resp_service.h"

#include <string.h>

#include "base/bytes.h"

void hx_resp_service_init(
	struct hx_resp_service *service, const struct hx_resp_service_options *options)
{
	struct hapax_stats stats = HAPAX_STATS_INIT;

	memset(service, 0, sizeof(*service));
	service->options = *options;
	if (service->options.clock == NULL)
		service->options.clock = hapax_clock_system();
	service->started_ms = service->options.clock->boot_ms(service->options.clock->context);
	service->is_local = strcmp(hapax_store_name(options->store), "memory") == 0 ||
		strcmp(hapax_store_name(options->store), "file") == 0;
	hx_mutex_init(&service->lock);
	if (hapax_store_stats(service->options.store, &stats, NULL, NULL, NULL) == HAPAX_OK)
		hx_resp_service_set_skew(service, stats.skew_ms);
}

void hx_resp_service_done(struct hx_resp_service *service)
{
	hx_mutex_done(&service->lock);
}

void hx_resp_service_set_skew(struct hx_resp_service *service, int64_t skew_ms)
{
	atomic_store_explicit(&service->skew_ms, skew_ms, memory_order_relaxed);
}

int64_t hx_resp_service_now_ms(const struct hx_resp_service *service)
{
	const struct hapax_clock *clock = service->options.clock;

	return clock->wall_ms(clock->context) +
		atomic_load_explicit(&service->skew_ms, memory_order_relaxed);
}

const struct hx_resp_user *hx_resp_service_find_user(
	const struct hx_resp_service *service, struct hapax_bytes name, struct hapax_bytes password)
{
	const struct hx_resp_user *found = NULL;
	unsigned char digest[HX_SHA256_SIZE];

	hx_sha256(password.data, password.size, digest);
	for (size_t i = 0; i < service->options.user_count; i++) {
		const struct hx_resp_user *user = &service->options.users[i];

		if (hx_sha256_equal(digest, user->password_sha256) &&
		    hx_bytes_equal(name, user->name))
			found = user;
	}
	return found;
}

bool hx_resp_service_take_scan(
	struct hx_resp_service *service, uint64_t id, struct hapax_cursor *ret_cursor)
{
	bool is_found = false;

	hx_mutex_lock(&service->lock);
	for (size_t i = 0; i < HX_RESP_SCANS_MAX && !is_found; i++) {
		struct hx_resp_kept_scan *scan = &service->scans[i];

		if (id == 0 || scan->id != id)
			continue;
		is_found = true;
		*ret_cursor = scan->cursor;
		/* A client that lost the reply asks again: keep it until the slot is needed. */
		scan->used = ++service->scan_count;
	}
	hx_mutex_unlock(&service->lock);
	return is_found;
}

void hx_resp_service_leave_scan(struct hx_resp_service *service, uint64_t id)
{
	hx_mutex_lock(&service->lock);
	for (size_t i = 0; i < HX_RESP_SCANS_MAX; i++)
		service->scans[i].has_gone_on |= service->scans[i].id == id;
	hx_mutex_unlock(&service->lock);
}

/* Whether a is evicted before b: continued scans before waiting ones, then the older. */
static bool goes_first(const struct hx_resp_kept_scan *a, const struct hx_resp_kept_scan *b)
{
	bool a_waits = a->id != 0 && !a->has_gone_on;
	bool b_waits = b->id != 0 && !b->has_gone_on;

	return a_waits != b_waits ? b_waits : a->used < b->used;
}

uint64_t hx_resp_service_keep_scan(
	struct hx_resp_service *service, const struct hapax_cursor *cursor)
{
	struct hx_resp_kept_scan *oldest = &service->scans[0];
	uint64_t id;

	hx_mutex_lock(&service->lock);
	for (size_t i = 1; i < HX_RESP_SCANS_MAX; i++) {
		if (goes_first(&service->scans[i], oldest))
			oldest = &service->scans[i];
	}
	id = ++service->scan_count;
	oldest->id = id;
	oldest->used = id;
	oldest->has_gone_on = false;
	oldest->cursor = *cursor;
	hx_mutex_unlock(&service->lock);
	return id;
}

static struct hx_resp_known_script *find_script(
	struct hx_resp_service *service, struct hapax_bytes digits)
{
	char wanted[HX_RESP_SHA1_DIGITS];

	if (digits.size != sizeof(wanted))
		return NULL;
	memcpy(wanted, digits.data, sizeof(wanted));
	for (size_t i = 0; i < sizeof(wanted); i++) {
		if (wanted[i] >= 'A' && wanted[i] <= 'F')
			wanted[i] = (char)(wanted[i] - 'A' + 'a');
	}
	for (size_t i = 0; i < HX_RESP_SCRIPTS_MAX; i++) {
		if (service->scripts[i].script != NULL &&
		    memcmp(service->scripts[i].sha1, wanted, sizeof(wanted)) == 0)
			return &service->scripts[i];
	}
	return NULL;
}

void hx_resp_service_learn(
	struct hx_resp_service *service, const char *digits, const struct hx_resp_script *script)
{
	struct hx_resp_known_script *known;

	hx_mutex_lock(&service->lock);
	if (find_script(service, hx_bytes(digits, HX_RESP_SHA1_DIGITS)) == NULL) {
		known = &service->scripts[service->script_count++ % HX_RESP_SCRIPTS_MAX];
		memcpy(known->sha1, digits, HX_RESP_SHA1_DIGITS);
		known->script = script;
	}
	hx_mutex_unlock(&service->lock);
}

const struct hx_resp_script *hx_resp_service_recall(
	struct hx_resp_service *service, struct hapax_bytes digits)
{
	const struct hx_resp_script *script = hx_resp_script_find_sha1(digits);
	struct hx_resp_known_script *known;

	if (script != NULL)
		return script;
	hx_mutex_lock(&service->lock);
	known = find_script(service, digits);
	script = known == NULL ? NULL : known->script;
	hx_mutex_unlock(&service->lock);
	return script;
}
