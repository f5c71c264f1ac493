/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan.h - plans of traces: what their ranges would need if all lifetimes were known.
 */
#ifndef QUIRE_SRC_TOOL_PLAN_H
#define QUIRE_SRC_TOOL_PLAN_H

#include "quire/trace.h"
#include "src/plan/read.h"
#include "src/tool/options.h"

/*
 * The ranges of a trace. Its events are the times; a range that is never freed lives to the end.
 * Names are labels of the trace, which must outlive them. The caller releases the file.
 */
quire_result plan_items_of_trace(const quire_trace *trace, qi_host *host, qi_plan_file *file);

/* Makes a plan of a trace within the default step limit. */
quire_result plan_trace(const quire_trace *trace, quire_plan_info *info);

#endif
