/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json_parts.h - what several JSON documents say alike: flags, statistics of a memory, a heap.
 *
 * docs/formats.md lists the keys. The functions write into an open object and need no lock.
 */
#ifndef QUIRE_SRC_RENDER_JSON_PARTS_H
#define QUIRE_SRC_RENDER_JSON_PARTS_H

#include "quire/insight.h"
#include "src/base/json.h"

/* An array with the names of the flags that are set. */
void qi_json_flags(qi_json *json, const char *key, quire_memory_flags flags);

/* The object "stats". */
void qi_json_memory_stats(qi_json *json, const quire_memory_stats *stats);

/* The numbers of a heap. Those of the backend are null without has_budget. */
void qi_json_heap(qi_json *json, const quire_budget_info *budget, bool has_budget);

#endif
