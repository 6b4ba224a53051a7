/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.c - resolve host names on a thread that may block.
 *
 * A job is queued, then run by the worker, then posted to its reactor, whose task frees it.
 * Forgetting a job only clears its function; the job still runs and is freed at the end: by its
 * task, or by hx_resolver_done() if its reactor does not turn again.
 */
#include "net/resolver.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

struct hx_resolver_job {
	struct hx_job base;
	struct hx_resolver *resolver;
	struct hx_reactor *reactor;
	struct hx_resolver_job *next; /* in resolver->answered */
	hx_resolved_fn *fn;           /* NULL: forgotten. Only the reactor's thread uses it */
	void *context;
	struct hx_task task;
	struct hx_address addresses[HX_RESOLVED_MAX];
	int count; /* or a negative errno */
	uint16_t port;
	char host[HX_HOST_SIZE_MAX + 1];
};

void hx_resolver_init(struct hx_resolver *resolver, const struct hx_net *net)
{
	resolver->net = net;
	hx_worker_init(&resolver->worker, "hapax-resolver");
	hx_lock_init(&resolver->lock);
	resolver->answered = NULL;
}

/* No reactor may turn again, so nothing else would free the answer to a query that was dropped. */
static void free_dropped(struct hx_resolver *resolver)
{
	while (resolver->answered != NULL) {
		struct hx_resolver_job *job = resolver->answered;

		resolver->answered = job->next;
		job->resolver = NULL;
		if (job->fn == NULL) {
			hx_reactor_cancel(job->reactor, &job->task);
			hx_free(job);
		}
	}
}

void hx_resolver_done(struct hx_resolver *resolver)
{
	struct hx_job *job = hx_worker_stop(&resolver->worker);

	while (job != NULL) {
		struct hx_job *next = job->next;

		hx_free(HX_CONTAINER(job, struct hx_resolver_job, base));
		job = next;
	}
	(void)hx_worker_join(&resolver->worker, INT64_MAX);
	free_dropped(resolver);
}

/* job->resolver is NULL: the resolver is done. */
static void leave_answered(struct hx_resolver_job *job)
{
	struct hx_resolver *resolver = job->resolver;
	struct hx_resolver_job **at;

	if (resolver == NULL)
		return;
	hx_lock_acquire(&resolver->lock);
	at = &resolver->answered;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	hx_lock_release(&resolver->lock);
}

static void report(struct hx_task *task)
{
	struct hx_resolver_job *job = task->context;
	struct hapax_error err = {.status = HAPAX_OK};

	leave_answered(job);
	if (job->fn != NULL) {
		if (job->count == -ENOENT)
			(void)hx_error_set(
				&err, HAPAX_ERR_UNAVAILABLE, 0, "unknown host '%s'", job->host);
		else if (job->count < 0)
			(void)hx_error_set(
				&err, hx_error_status_of(-job->count), -job->count,
				"could not resolve the host '%s'", job->host);
		job->fn(job->context, job->addresses, job->count < 0 ? 0 : (size_t)job->count,
			&err);
	}
	hx_free(job);
}

static void resolve(struct hx_job *base)
{
	struct hx_resolver_job *job = HX_CONTAINER(base, struct hx_resolver_job, base);
	struct hx_resolver *resolver = job->resolver;
	const struct hx_net *net = resolver->net;

	job->count = net->ops->resolve(
		net->context, job->host, job->port, job->addresses, HX_RESOLVED_MAX);
	hx_lock_acquire(&resolver->lock);
	job->next = resolver->answered;
	resolver->answered = job;
	hx_lock_release(&resolver->lock);
	hx_reactor_post(job->reactor, &job->task);
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
	if (hx_worker_queued(&resolver->worker) >= HX_RESOLVER_QUEUE_MAX)
		return hx_error_set(
			err, HAPAX_ERR_LIMIT, 0,
			"too many host names are waiting to be resolved: limit %d",
			HX_RESOLVER_QUEUE_MAX);
	job = hx_alloc_zero(1, sizeof(*job));
	if (job == NULL)
		return hx_error_set(
			err, HAPAX_ERR_NO_MEMORY, 0, "not enough memory to resolve a host name");
	job->base.run = resolve;
	job->resolver = resolver;
	job->reactor = reactor;
	job->fn = fn;
	job->context = context;
	job->port = port;
	job->task = (struct hx_task){.fn = report, .context = job};
	memcpy(job->host, host, size);
	status = hx_worker_post(&resolver->worker, &job->base, err);
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
