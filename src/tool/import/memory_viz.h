/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.h - the reader of PyTorch's snapshots with the caller's host memory, so that tests can
 * let it run out. import_memory_viz is the same with that of the program.
 */
#ifndef QUIRE_SRC_TOOL_IMPORT_MEMORY_VIZ_H
#define QUIRE_SRC_TOOL_IMPORT_MEMORY_VIZ_H

#include "src/base/host_memory.h"
#include "src/tool/import/import.h"

bool memory_viz_read(import_source *source, import_rows *rows, qi_host *host);

#endif
