/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics_sample plain|openmetrics - print metrics in which every family has something.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "support/metrics_sample.h"

int main(int argc, char **argv)
{
	struct hx_metrics *metrics = metrics_sample_new();
	struct hx_metrics_facts facts = metrics_sample_facts();
	enum hx_promtext_format format = argc > 1 && strcmp(argv[1], "openmetrics") == 0
		? HX_PROMTEXT_OPENMETRICS
		: HX_PROMTEXT_PLAIN;
	struct hapax_error err;
	struct hapax_buf out;
	int code = 0;

	hx_buf_init(&out, 16 * 1024 * 1024);
	if (hx_metrics_render(metrics, &facts, format, &out, &err) != HAPAX_OK) {
		(void)fprintf(stderr, "%s\n", err.message);
		code = 1;
	} else if (fwrite(out.data, 1, out.size, stdout) != out.size) {
		code = 1;
	}
	hx_buf_done(&out);
	hx_metrics_free(metrics);
	return code;
}
