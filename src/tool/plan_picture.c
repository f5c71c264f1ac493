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
enum { HEIGHT = 520, LEAST_HEIGHT = 60, MOST_ITEMS = 20000, MOST_CHARTS = 32, MOST_ROWS = 25 };

/* What is computed before the first element is written. */
typedef struct layout {
    const plan_picture *picture;
    uint64_t begin, end;   /* of all times; `end` is one above the last */
    uint32_t charts;       /* one for each arena, as far as there is room */
    int height;            /* of a chart */
    uint32_t *by_area;     /* the items, the largest area first */
    uint64_t loads[WIDTH]; /* the most bytes in use at a time of each pixel */
    uint64_t busiest;      /* the first time with the most bytes in use */
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
    uint64_t load = 0, most = 0;
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
        if (load > most) {
            most = load;
            l->busiest = events[i].time;
        }
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
    const uint32_t arenas = problem->arena_count ? problem->arena_count : 1;
    l->charts = arenas < MOST_CHARTS ? arenas : MOST_CHARTS;
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
    const uint32_t most = problem->item_count < MOST_ITEMS ? problem->item_count : MOST_ITEMS;
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

/* ---- HTML ---------------------------------------------------------------------------------- */

static void write_row(qi_writer *w, const char *what, uint64_t bytes)
{
    qi_write_format(w, "<tr><td>%s<td>%" PRIu64 "<td>%s</tr>\n", what, bytes, qi_bytes(bytes).text);
}

static void write_figures(const layout *l, qi_writer *w)
{
    const quire_plan_info *info = l->picture->info;
    qi_write_text(w, "<table><tr><th><th>bytes<th></tr>\n");
    write_row(w, "peak", info->peak_bytes);
    write_row(w, "lower bound", info->lower_bound_bytes);
    qi_write_text(w, "</table>\n<p>");
    if (info->proven_optimal)
        qi_write_text(w, "No plan has a lower peak.");
    else if (info->lower_bound_bytes)
        qi_write_format(w, "The peak is %s times the lower bound.",
                        qi_real((double)info->peak_bytes / (double)info->lower_bound_bytes).text);
    if (l->picture->problem->item_count > MOST_ITEMS)
        qi_write_format(w, " The picture has the %d items of the largest area.", MOST_ITEMS);
    if ((l->picture->problem->arena_count ? l->picture->problem->arena_count : 1) > l->charts)
        qi_write_format(w, " The picture has the first %" PRIu32 " arenas.", l->charts);
    qi_write_text(w, "</p>\n");
}

/* An item in use at the busiest time. */
static int by_size(const void *a, const void *b)
{
    const quire_plan_item *x = *(const quire_plan_item *const *)a;
    const quire_plan_item *y = *(const quire_plan_item *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return (x > y) - (x < y);
}

static void write_busiest_row(const layout *l, qi_writer *w, const quire_plan_item *item)
{
    const uint32_t number = (uint32_t)(item - l->picture->problem->items);
    qi_write_text(w, "<tr><td>");
    if (item->name)
        qi_write_escaped(w, item->name);
    else
        qi_write_format(w, "item %" PRIu32, number);
    qi_write_format(w, "<td>%" PRIu64 "<td>%s<td>%" PRIu64 " to %" PRIu64 "<td>%" PRIu64 "</tr>\n",
                    item->size, qi_bytes(item->size).text, item->first_use, item->last_use,
                    l->picture->places[number].offset);
}

static bool write_busiest(const layout *l, qi_writer *w)
{
    const quire_plan_problem *problem = l->picture->problem;
    const quire_plan_item **live = calloc(problem->item_count, sizeof *live);
    uint32_t count = 0;
    if (!live)
        return false;
    for (uint32_t i = 0; i < problem->item_count; i++)
        if (problem->items[i].first_use <= l->busiest && l->busiest <= problem->items[i].last_use)
            live[count++] = &problem->items[i];
    qsort(live, count, sizeof(*live), by_size);
    qi_write_format(w, "<h2>In use at the busiest time, %" PRIu64 "</h2>\n", l->busiest);
    qi_write_text(w, "<table><tr><th>name<th>bytes<th><th>times<th>offset</tr>\n");
    for (uint32_t i = 0; i < count && i < MOST_ROWS; i++)
        write_busiest_row(l, w, live[i]);
    qi_write_text(w, "</table>\n");
    if (count > MOST_ROWS)
        qi_write_format(w, "<p>and %" PRIu32 " smaller ones</p>\n", count - MOST_ROWS);
    free(live);
    return true;
}

static void write_head(const layout *l, qi_writer *w)
{
    qi_write_text(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    qi_write_escaped(w, l->picture->title);
    qi_write_text(w, "</title>\n<style>body{font:14px sans-serif;margin:2em auto;padding:0 1em;"
                     "max-width:1150px;color:#222;background:#fff}h1{overflow-wrap:anywhere}"
                     "td,th{padding:.15em 1.5em .15em 0;text-align:left}"
                     "td+td{text-align:right;font-variant-numeric:tabular-nums}"
                     ".x{overflow-x:auto}.x svg{width:100%;min-width:640px;height:auto}"
                     "@media(prefers-color-scheme:dark){body{color:#ddd;background:#17181b}}"
                     "</style></head><body>\n<h1>");
    qi_write_escaped(w, l->picture->title);
    qi_write_format(w,
                    "</h1>\n<p>A plan of %" PRIu32 " item%s: time across, addresses up. The line "
                    "shows the bytes in use at each time.</p>\n",
                    l->picture->problem->item_count, qi_plural(l->picture->problem->item_count));
}

/* ---- both ---------------------------------------------------------------------------------- */

static quire_result write_picture(const plan_picture *picture, bool is_page, quire_sink sink,
                                  void *user)
{
    layout l = {.picture = picture};
    qi_writer w;
    qi_writer_init(&w, sink, user);
    bool has_memory = measure(&l);
    if (has_memory && is_page) {
        write_head(&l, &w);
        write_figures(&l, &w);
        qi_write_text(&w, "<div class=\"x\">\n");
    }
    if (has_memory)
        write_svg(&l, &w);
    if (has_memory && is_page) {
        qi_write_text(&w, "</div>\n");
        has_memory = !picture->problem->item_count || write_busiest(&l, &w);
        qi_write_text(&w, "</body></html>\n");
    }
    free(l.by_area);
    quire_result result = qi_writer_finish(&w);
    if (!has_memory)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the picture of a plan");
    return result;
}

quire_result write_plan_svg(const plan_picture *picture, quire_sink sink, void *user)
{
    return write_picture(picture, false, sink, user);
}

quire_result write_plan_html(const plan_picture *picture, quire_sink sink, void *user)
{
    return write_picture(picture, true, sink, user);
}
