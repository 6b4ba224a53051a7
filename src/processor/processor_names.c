/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_names.c - names of the processor's constants.
 */
#include <hapax/processor.h>

const char *hapax_run_outcome_name(enum hapax_run_outcome outcome)
{
	switch (outcome) {
	case HAPAX_RUN_OK: return "ok";
	case HAPAX_RUN_DEFINITIVE: return "definitive";
	case HAPAX_RUN_TRANSIENT: return "transient";
	case HAPAX_RUN_AMBIGUOUS: return "ambiguous";
	}
	return "unknown";
}

const char *hapax_on_mismatch_name(enum hapax_on_mismatch on_mismatch)
{
	switch (on_mismatch) {
	case HAPAX_ON_MISMATCH_REJECT: return "reject";
	case HAPAX_ON_MISMATCH_DUPLICATE: return "duplicate";
	}
	return "unknown";
}

const char *hapax_step_name(enum hapax_step step)
{
	switch (step) {
	case HAPAX_STEP_WAIT: return "wait";
	case HAPAX_STEP_RUN: return "run";
	case HAPAX_STEP_LAPSED: return "lapsed";
	case HAPAX_STEP_OVERDUE: return "overdue";
	case HAPAX_STEP_FENCED: return "fenced";
	case HAPAX_STEP_UNSTORED: return "unstored";
	case HAPAX_STEP_END: return "end";
	}
	return "unknown";
}
