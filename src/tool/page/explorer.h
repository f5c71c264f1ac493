/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * explorer.h - the part of a page that shows the memory at any moment of a course: its markup, its
 * rules, its script and the course that they show. It loads nothing.
 */
#ifndef QUIRE_SRC_TOOL_PAGE_EXPLORER_H
#define QUIRE_SRC_TOOL_PAGE_EXPLORER_H

#include "src/tool/page/data.h"

/* Writes the rules, inside an element <style>. */
void explorer_write_style(qi_writer *w);

/* Writes the rest. Returns false without host memory. */
bool explorer_write(qi_writer *w, const course *c, const page_selection *s);

#endif
