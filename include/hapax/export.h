/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - marks what the shared library exports. Everything else is hidden.
 */
#ifndef HAPAX_EXPORT_H
#define HAPAX_EXPORT_H

#if defined(__GNUC__)
#define HAPAX_API __attribute__((visibility("default")))
#else
#define HAPAX_API
#endif

#endif
