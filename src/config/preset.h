/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preset.h - settings of proxy routes for known senders of webhooks, by name.
 *
 * A preset is what an operator would write for that sender. Settings that the route has itself
 * replace those of its preset.
 *
 * Threads: any; it is constant.
 */
#ifndef HX_CONFIG_PRESET_H
#define HX_CONFIG_PRESET_H

/* "none", then the senders; ends with NULL. */
extern const char *const hx_preset_names[];

/* The settings as YAML. NULL: no preset of that name has any. */
const char *hx_preset_settings(const char *name);

#endif
