/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_picture.c - draws each item as a rectangle: its lifetime across, its bytes up. A line shows
 * the bytes in use at each time; where it touches the top of the rectangles the plan wastes
 * nothing.
 *
 * Of many items the ones of the largest area are drawn; the others would be narrower than a pixel.
 * The line shows the most bytes of the times in each pixel.
 */
#include "src/tool/plan_picture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/result.h"
#include "src/base/text.h"

/* Pixels. LEFT has room for a number of bytes. */
enum { LEFT = 90, WIDTH = 1000, RIGHT = 20, TOP = 30, BOTTOM = 30, GAP = 24 };
enum { HEIGHT = 520, LEAST_HEIGHT = 60, MOST_CHARTS = 32 };

/* What is computed before the first element is written. */
typedef struct layout {
    const plan_picture *picture;
    uint64_t begin, end;   /* of all times; `end` is one above the last */
    uint32_t charts;       /* one for each arena, as far as there is room */
    int height;            /* of a chart */
    uint32_t *by_area;     /* the items, the largest area first */
    uint64_t loads[WIDTH]; /* the most bytes in use at a time of each pixel */
} layout;

/* ---- layout -------------------------------------------------------------------------------- */

static double x_of(const layout *l, uint64_t time)
{
    return (double)(time - l->begin) / (double)(l->end - l->begin) * WIDTH;
}

typedef struct event {
    uint64_t time;
    uint64_t size;
    bool is_end;
} event;

/* What ends before a time is gone at it. */
static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return y->is_end - x->is_end;
}

/* From one time to the next the load is the same. */
static void add_load(layout *l, uint64_t from, uint64_t until, uint64_t load)
{
    int first = (int)x_of(l, from), last = (int)x_of(l, until);
    for (int i = first; i <= last && i < WIDTH; i++)
        if ((i < last || i == first) && load > l->loads[i])
            l->loads[i] = load;
}

static bool find_loads(layout *l)
{
    const quire_plan_problem *problem = l->picture->problem;
    const size_t count = 2 * (size_t)problem->item_count;
    event *events = calloc(count, sizeof *events);
    uint64_t load = 0;
    if (!events)
        return false;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const quire_plan_item *item = &problem->items[i];
        events[2 * i] = (event){item->first_use, item->size, false};
        events[2 * i + 1] = (event){item->last_use + 1, item->size, true};
    }
    qsort(events, count, sizeof *events, by_time);
    for (size_t i = 0; i < count; i++) {
        load = events[i].is_end ? load - events[i].size : load + events[i].size;
        if (i + 1 < count && events[i + 1].time > events[i].time)
            add_load(l, events[i].time, events[i + 1].time, load);
    }
    free(events);
    return true;
}

/* An item and its area. */
typedef struct area {
    double area;
    uint32_t item;
} area;

static int by_area(const void *a, const void *b)
{
    const area *x = a, *y = b;
    if (x->area != y->area)
        return x->area > y->area ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static bool sort_items(layout *l)
{
    const quire_plan_problem *problem = l->picture->problem;
    area *areas = calloc(problem->item_count, sizeof *areas);
    l->by_area = calloc(problem->item_count, sizeof *l->by_area);
    if (areas && l->by_area) {
        for (uint32_t i = 0; i < problem->item_count; i++) {
            const quire_plan_item *item = &problem->items[i];
            double lifetime = (double)(item->last_use - item->first_use) + 1;
            areas[i] = (area){lifetime * (double)item->size, i};
        }
        qsort(areas, problem->item_count, sizeof *areas, by_area);
        for (uint32_t i = 0; i < problem->item_count; i++)
            l->by_area[i] = areas[i].item;
    }
    bool is_done = areas && l->by_area;
    free(areas);
    return is_done;
}

/* Returns false if host memory is exhausted. The caller frees by_area. */
static bool measure(layout *l)
{
    const quire_plan_problem *problem = l->picture->problem;
    l->charts = charts_of_plan(problem);
    l->height = HEIGHT / (int)l->charts;
    if (l->height < LEAST_HEIGHT)
        l->height = LEAST_HEIGHT;
    l->begin = UINT64_MAX;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const quire_plan_item *item = &problem->items[i];
        l->begin = item->first_use < l->begin ? item->first_use : l->begin;
        l->end = item->last_use >= l->end ? item->last_use + 1 : l->end;
    }
    if (!problem->item_count)
        return true;
    return find_loads(l) && sort_items(l);
}

/* ---- SVG ----------------------------------------------------------------------------------- */

/* Maps the first part of a name to the same colour in every run: FNV-1a. */
static uint32_t hue_of(const quire_plan_item *item, uint32_t number)
{
    uint32_t hash = UINT32_C(2166136261);
    if (!item->name)
        return number * 137 % 360;
    for (const char *c = item->name; *c && *c != '/' && *c != '.' && *c != ':'; c++)
        hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
    return hash % 360;
}

static void write_item(const layout *l, qi_writer *w, uint32_t i, int bottom, double scale)
{
    const quire_plan_item *item = &l->picture->problem->items[i];
    const quire_plan_place at = l->picture->places[i];
    const double x = x_of(l, item->first_use), right = x_of(l, item->last_use + 1);
    const double width = right - x < 0.5 ? 0.5 : right - x, height = (double)item->size * scale;
    qi_write_format(w, "<rect x=\"%s\" y=\"%s\" ", qi_real_2(LEFT + x).text,
                    qi_real_2(bottom - (double)(at.offset + item->size) * scale).text);
    qi_write_format(w, "width=\"%s\" height=\"%s\" fill=\"hsl(%" PRIu32 ",55%%,60%%)\"><title>",
                    qi_real_2(width).text, qi_real_2(height < 0.5 ? 0.5 : height).text,
                    hue_of(item, i));
    if (item->name)
        qi_write_escaped(w, item->name);
    else
        qi_write_format(w, "item %" PRIu32, i);
    qi_write_format(w, ": %s at offset %" PRIu64 ", times %" PRIu64 " to %" PRIu64,
                    qi_bytes(item->size).text, at.offset, item->first_use, item->last_use);
    qi_write_text(w, "</title></rect>\n");
}

/* A line across at a number of bytes, with its label. */
static void write_level(qi_writer *w, int bottom, double scale, uint64_t bytes, const char *class)
{
    const double y = bottom - (double)bytes * scale;
    qi_write_format(w, "<path class=\"%s\" d=\"M%d %sh%d\"/>", class, LEFT, qi_real_2(y).text,
                    WIDTH);
    qi_write_format(w, "<text class=\"e\" x=\"%d\" y=\"%s\">%s</text>\n", LEFT - 6,
                    qi_real_2(y + 4).text, qi_bytes(bytes).text);
}

static void write_load(const layout *l, qi_writer *w, int bottom, double scale)
{
    qi_write_format(w, "<path class=\"u\" d=\"M%d %d", LEFT, bottom);
    for (int i = 0; i < WIDTH; i++)
        qi_write_format(w, "V%sh1", qi_real_2(bottom - (double)l->loads[i] * scale).text);
    qi_write_text(w, "\"><title>bytes in use</title></path>\n");
}

static void write_chart(const layout *l, qi_writer *w, uint32_t arena)
{
    const quire_plan_problem *problem = l->picture->problem;
    const uint64_t capacity = problem->arena_count ? problem->arenas[arena].capacity : 0;
    const uint64_t peak = l->picture->peaks[arena], top = capacity > peak ? capacity : peak;
    const int bottom = TOP + (int)arena * (l->height + GAP) + l->height;
    const double scale = top ? l->height / (double)top : 0;
    const uint32_t most =
        problem->item_count < l->picture->most_items ? problem->item_count : l->picture->most_items;
    qi_write_format(w, "<rect class=\"f\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT,
                    bottom - l->height, WIDTH, l->height);
    qi_write_text(w, "<g class=\"i\">\n");
    for (uint32_t i = 0; i < most; i++)
        if (l->picture->places[l->by_area[i]].arena == arena + 1)
            write_item(l, w, l->by_area[i], bottom, scale);
    qi_write_text(w, "</g>\n");
    if (problem->arena_count <= 1)
        write_load(l, w, bottom, scale);
    write_level(w, bottom, scale, 0, "z");
    write_level(w, bottom, scale, peak, "k");
    if (capacity > peak)
        write_level(w, bottom, scale, capacity, "z");
    if (problem->arena_count > 1)
        qi_write_format(w, "<text x=\"%d\" y=\"%d\">arena %" PRIu32 "</text>\n", LEFT,
                        bottom - l->height - 6, arena + 1);
}

static void write_svg(const layout *l, qi_writer *w)
{
    const int width = LEFT + WIDTH + RIGHT;
    const int height = TOP + (int)l->charts * (l->height + GAP) + BOTTOM;
    qi_write_format(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ",
                    width, height);
    qi_write_format(w, "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>a plan: ", width, height);
    qi_write_escaped(w, l->picture->title);
    qi_write_text(w, "</title>\n<style>text{font:12px sans-serif;fill:#333}.e{text-anchor:end}"
                     ".b{fill:#fff}.f{fill:#e8e8ea}.i rect{stroke:#fff;stroke-width:.3}"
                     "path{fill:none}.u{stroke:#111}.k{stroke:#c2553a}.z{stroke:#8888}"
                     "@media(prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#17181b}"
                     ".f{fill:#2c2e33}.i rect{stroke:#17181b}.u{stroke:#fff}}</style>\n");
    qi_write_format(w, "<rect class=\"b\" width=\"%d\" height=\"%d\"/>\n", width, height);
    for (uint32_t i = 0; i < l->charts && l->by_area; i++)
        write_chart(l, w, i);
    qi_write_format(w, "<text x=\"%d\" y=\"%d\">time %" PRIu64 "</text>\n", LEFT, height - 12,
                    l->by_area ? l->begin : 0);
    qi_write_format(w, "<text class=\"e\" x=\"%d\" y=\"%d\">%" PRIu64 "</text>\n</svg>\n",
                    LEFT + WIDTH, height - 12, l->by_area ? l->end - 1 : 0);
}

/* ---- the picture ---------------------------------------------------------------------------- */

bool draw_plan(const plan_picture *picture, qi_writer *w)
{
    layout l = {.picture = picture};
    const bool has_memory = measure(&l);
    if (has_memory)
        write_svg(&l, w);
    free(l.by_area);
    return has_memory;
}

uint32_t charts_of_plan(const quire_plan_problem *problem)
{
    const uint32_t arenas = problem->arena_count ? problem->arena_count : 1;
    return arenas < MOST_CHARTS ? arenas : MOST_CHARTS;
}

quire_result write_plan_svg(const plan_picture *picture, quire_sink sink, void *user)
{
    qi_writer w;
    qi_writer_init(&w, sink, user);
    const bool has_memory = draw_plan(picture, &w);
    quire_result result = qi_writer_finish(&w);
    if (!has_memory)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the picture of a plan");
    return result;
}
