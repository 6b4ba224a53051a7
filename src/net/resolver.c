/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.c - host names to addresses, on a thread that may block.
 *
 * A job is in the queue, then with the worker, then posted to its reactor, whose task
 * frees it. Forgetting a job only takes its function away; it goes its way and is
 * freed at the end of it.
 */
#include "net/resolver.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct hx_resolver_job {
	struct hx_resolver_job *next;
	struct hx_reactor *reactor;
	hx_resolved_fn *fn; /* NULL: forgotten. The reactor's thread alone reads and writes it */
	void *context;
	struct hx_task task;
	struct hx_address addresses[HX_RESOLVED_MAX];
	int count; /* or a negative errno */
	uint16_t port;
	char host[HX_HOST_SIZE_MAX + 1];
};

void hx_resolver_init(struct hx_resolver *resolver, const struct hx_net *net)
{
	memset(resolver, 0, sizeof(*resolver));
	resolver->net = net;
	hx_mutex_init(&resolver->mutex);
	hx_cond_init(&resolver->wake);
}

void hx_resolver_done(struct hx_resolver *resolver)
{
	hx_mutex_lock(&resolver->mutex);
	resolver->is_stopped = true;
	hx_cond_signal(&resolver->wake);
	hx_mutex_unlock(&resolver->mutex);
	if (resolver->has_thread)
		hx_thread_join(&resolver->thread);
	while (resolver->first != NULL) {
		struct hx_resolver_job *job = resolver->first;

		resolver->first = job->next;
		hx_free(job);
	}
	hx_cond_done(&resolver->wake);
	hx_mutex_done(&resolver->mutex);
}

static void report(struct hx_task *task)
{
	struct hx_resolver_job *job = task->context;
	struct hapax_error err = {.status = HAPAX_OK};

	if (job->fn != NULL) {
		if (job->count == -ENOENT)
			(void)hx_error_set(
				&err, HAPAX_ERR_UNAVAILABLE, 0, "there is no host '%s'", job->host);
		else if (job->count < 0)
			(void)hx_error_set(
				&err, hx_status_from_errno(-job->count), -job->count,
				"the host '%s' was not resolved", job->host);
		job->fn(job->context, job->addresses, job->count < 0 ? 0 : (size_t)job->count,
		        &err);
	}
	hx_free(job);
}

static struct hx_resolver_job *next_job(struct hx_resolver *resolver)
{
	struct hx_resolver_job *job = NULL;

	hx_mutex_lock(&resolver->mutex);
	while (resolver->first == NULL && !resolver->is_stopped)
		hx_cond_wait(&resolver->wake, &resolver->mutex);
	if (!resolver->is_stopped) {
		job = resolver->first;
		resolver->first = job->next;
		resolver->queued--;
	}
	hx_mutex_unlock(&resolver->mutex);
	return job;
}

static void work(void *arg)
{
	struct hx_resolver *resolver = arg;
	struct hx_resolver_job *job;

	while ((job = next_job(resolver)) != NULL) {
		job->count = resolver->net->ops->resolve(
			resolver->net->context, job->host, job->port, job->addresses,
			HX_RESOLVED_MAX);
		hx_reactor_post(job->reactor, &job->task);
	}
}

/* Locks: mutex held. */
static enum hapax_status enqueue(
	struct hx_resolver *resolver, struct hx_resolver_job *job, struct hapax_error *err)
{
	if (resolver->queued >= HX_RESOLVER_QUEUE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0, "%d host names wait to be resolved already",
			HX_RESOLVER_QUEUE_MAX);
	if (!resolver->has_thread) {
		enum hapax_status status =
			hx_thread_start(&resolver->thread, work, resolver, "hapax-resolver", err);

		if (status != HAPAX_OK)
			return status;
		resolver->has_thread = true;
	}
	if (resolver->first == NULL)
		resolver->first = job;
	else
		resolver->last->next = job;
	resolver->last = job;
	resolver->queued++;
	hx_cond_signal(&resolver->wake);
	return HAPAX_OK;
}

enum hapax_status hx_resolver_ask(
	struct hx_resolver *resolver, struct hx_reactor *reactor, const char *host, uint16_t port,
	hx_resolved_fn *fn, void *context, struct hx_resolver_job **ret_job,
	struct hapax_error *err)
{
	size_t size = strlen(host);
	struct hx_resolver_job *job;
	enum hapax_status status;

	if (size == 0 || size > HX_HOST_SIZE_MAX)
		return hx_error_set(err, HAPAX_ERR_INVALID, 0, "the host name is malformed");
	job = hx_alloc_zero(1, sizeof(*job));
	if (job == NULL)
		return hx_error_set(err, HAPAX_ERR_NO_MEMORY, 0, "no memory to resolve a name");
	job->reactor = reactor;
	job->fn = fn;
	job->context = context;
	job->port = port;
	job->task = (struct hx_task){.fn = report, .context = job};
	memcpy(job->host, host, size);
	hx_mutex_lock(&resolver->mutex);
	status = enqueue(resolver, job, err);
	hx_mutex_unlock(&resolver->mutex);
	if (status != HAPAX_OK) {
		hx_free(job);
		return status;
	}
	*ret_job = job;
	return HAPAX_OK;
}

void hx_resolver_forget(struct hx_resolver *resolver, struct hx_resolver_job *job)
{
	(void)resolver;
	job->fn = NULL;
}
