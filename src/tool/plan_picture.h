/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_picture.h - a plan as a picture: time across, addresses up.
 */
#ifndef QUIRE_SRC_TOOL_PLAN_PICTURE_H
#define QUIRE_SRC_TOOL_PLAN_PICTURE_H

#include "quire/plan.h"
#include "src/base/json.h"

typedef struct plan_picture {
    const char *title; /* from outside; is escaped */
    const quire_plan_problem *problem;
    const quire_plan_place *places;
    const quire_plan_info *info;
    const uint64_t *peaks; /* of each arena */
    uint32_t most_items;   /* that are drawn: of more, those of the largest area */
} plan_picture;

/* Writes SVG. Returns false without host memory. */
bool draw_plan(const plan_picture *picture, qi_writer *w);

/* The number of arenas that a picture has. */
uint32_t charts_of_plan(const quire_plan_problem *problem);

/* Writes SVG. Fails with OUT_OF_HOST_MEMORY, and BAD_FILE if the sink fails. */
quire_result write_plan_svg(const plan_picture *picture, quire_sink sink, void *user);

#endif
