/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * read.h - the items of a plan from a file.
 */
#ifndef QUIRE_SRC_PLAN_READ_H
#define QUIRE_SRC_PLAN_READ_H

#include "quire/plan.h"
#include "src/base/host_memory.h"

typedef struct qi_plan_file {
    uint32_t count;
    uint32_t room; /* elements of `items` */
    quire_plan_item *items;
} qi_plan_file;

/*
 * Reads MiniMalloc's format: CSV whose header has the columns id, lower, upper and size, and may
 * have alignment, offset, arena and alias, in any order. An item lives from `lower` until before
 * `upper`. Cells of the last four may be empty; an offset is a fixed one. `name` is for the
 * messages. text[size] is 0. The text is cut into cells, which are the names of the items: it must
 * outlive them. Fails with BAD_FILE, which names the line, and OUT_OF_HOST_MEMORY; the file is
 * empty then.
 */
QUIRE_MUST_USE quire_result qi_plan_read(const char *name, char *text, size_t size, qi_host *host,
                                         qi_plan_file *file);
void qi_plan_file_release(qi_plan_file *file, qi_host *host);

#endif
