/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * map.c - quire map: replays a trace up to one event and prints each page as a row of cells, which
 * show the share of their bytes that is live.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/tool/replay_setup.h"

/* ---- the page map ------------------------------------------------------------------------- */

/* BESIDE: the columns of a row beside its cells, for sizes of 11 characters and counts of six. */
enum { MAX_CELLS = 64, MIN_CELLS = 8, LEVELS = 8, BESIDE = 48 };

typedef struct row {
    int cells;
    bool open;
    uint32_t page;
    uint64_t page_size, page_bytes;
    uint64_t live, count;
    uint64_t filled[MAX_CELLS]; /* live bytes in each cell */
    uint64_t backed[MAX_CELLS]; /* bytes of each cell that have memory */
} row;

/* A cell with any live byte shows at least the lowest block. A cell of an elastic page without
   memory is blank. */
static void print_row(const row *r)
{
    /* U+2581 to U+2588, and a middle dot for an empty cell */
    static const char *const blocks[LEVELS + 1] = {"\u00b7", "\u2581", "\u2582", "\u2583", "\u2584",
                                                   "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[LEVELS + 1] = {".", ":", "-", "=", "+", "o", "*", "%", "#"};
    const char *const *signs = is_utf8_output() ? blocks : letters;
    printf("page %-4" PRIu32 " ", r->page);
    for (int i = 0; i < r->cells; i++) {
        bool is_whole = r->page_bytes == r->page_size;
        double room = is_whole ? (double)r->page_size / (double)r->cells : (double)r->backed[i];
        double share = room > 0 ? (double)r->filled[i] / room : 0;
        int level = r->filled[i] ? 1 + (int)(share * (LEVELS - 1) + 0.001) : 0;
        fputs(room > 0 ? signs[level > LEVELS ? LEVELS : level] : " ", stdout);
    }
    printf(" %11s  %3.0f%%  %" PRIu64 " allocation%s\n", qi_bytes(r->page_bytes).text,
           100.0 * (double)r->live / (double)r->page_bytes, r->count, plural(r->count));
}

/* Adds [begin, end) to the cells that it covers; if it is live, at least one byte each, so that it
   is visible. */
static void fill(row *r, uint64_t begin, uint64_t end, bool is_live)
{
    double cell = (double)r->page_size / (double)r->cells;
    int first = (int)((double)begin / cell), last = (int)((double)(end - 1) / cell);
    for (int i = first; i <= last && i < r->cells; i++) {
        double low = i * cell, high = low + cell;
        low = (double)begin > low ? (double)begin : low;
        high = (double)end < high ? (double)end : high;
        uint64_t bytes = high > low ? (uint64_t)(high - low) : 0;
        r->backed[i] += bytes;
        if (is_live)
            r->filled[i] += bytes ? bytes : 1;
    }
}

/* The visitor of the walk. Prints the row of the previous page when the next page begins. */
static bool add_item(void *user, const quire_item *item)
{
    row *r = user;
    if (!r->open || r->page != item->page) {
        if (r->open)
            print_row(r);
        *r = (row){.cells = r->cells,
                   .open = true,
                   .page = item->page,
                   .page_size = item->page_size,
                   .page_bytes = item->page_bytes};
    }
    uint64_t begin = item->offset - item->left_padding, end = item->offset + item->size;
    fill(r, begin, end, !item->is_free);
    r->live += item->is_free ? 0 : end - begin;
    r->count += !item->is_free;
    return true;
}

quire_result print_page_map(quire_memory *memory)
{
    quire_memory_info info;
    quire_memory_stats stats;
    int room = output_width() - BESIDE;
    row r = {.cells = room < MIN_CELLS ? MIN_CELLS : room > MAX_CELLS ? MAX_CELLS : room};
    qi_ignore(quire_memory_get_info(memory, &info));
    qi_ignore(quire_memory_get_stats(memory, &stats));
    print_wrapped(0, "%s: %s live in %" PRIu64 " allocation%s, %s reserved in %" PRIu64 " page%s",
                  info.name, qi_bytes(stats.live_bytes).text, stats.allocation_count,
                  plural(stats.allocation_count), qi_bytes(stats.reserved_bytes).text,
                  stats.page_count, plural(stats.page_count));
    quire_result result = quire_memory_walk(memory, add_item, &r);
    if (r.open)
        print_row(&r);
    return result;
}

/* ---- run ---------------------------------------------------------------------------------- */

typedef struct map_run {
    replay_setup setup;
    const char *at; /* "peak", "end" or a number of events; NULL means peak */
    output svg;
    bool json;
    progress bar;
} map_run;

static quire_result write_svg(void *memory, quire_sink sink, void *user)
{
    return quire_memory_write_svg(memory, sink, user);
}

static int show(map_run *m)
{
    quire_memory *memory = m->setup.memory;
    if (m->svg.path && !write_output(&m->svg, write_svg, memory))
        return EXIT_FAILED;
    if (m->json)
        return quire_memory_write_json(memory, write_to_file, stdout) ? fail_with_last_error()
                                                                      : EXIT_OK;
    if (is_standard(m->svg.path))
        return EXIT_OK;
    return print_page_map(memory) ? fail_with_last_error() : EXIT_OK;
}

static void print_after(const map_run *m, uint64_t count)
{
    print_clean(stdout, "%s", m->setup.path);
    printf(" after event %" PRIu64 " of %" PRIu64 "\n", count, m->setup.info.event_count);
}

/* The trace is read by now, so --at can be checked against its number of events. */
static int play(const command *self, map_run *m)
{
    uint64_t count = 0;
    int code = read_moment(self, &m->setup, m->at, &count);
    if (code >= 0)
        return code;
    quire_replay_options options = {
        .event_count = count,
        .keep = true,
        .name = true,
        .progress = show_progress,
        .user = &m->bar,
        .time = &m->setup.time,
    };
    if (!open_output(&m->svg))
        return EXIT_FAILED;
    quire_replay_report report;
    quire_result result = quire_trace_replay(m->setup.trace, m->setup.memory, &options, &report);
    end_progress(&m->bar);
    if (result)
        return fail_with_last_error();
    if (!m->json && !is_standard(m->svg.path))
        print_after(m, count);
    code = show(m);
    return report.failures ? fail_with_last_error() : code;
}

int run_map(const command *self, int argc, char **argv)
{
    map_run m = {.bar = {.what = "map"}};
    replay_setup *p = &m.setup;
    option_spec specs[MAX_OPTIONS] = {
        {"at", "WHEN", "replay up to the peak (default), the end, or N events", OPTION_TEXT, &m.at},
        DEVICE_OPTIONS(&p->choice),
        {"svg", "FILE", "draw the pages into a file (-: standard output)", OPTION_TEXT,
         &m.svg.path},
        {"json", NULL, "print every page and range as one JSON object", OPTION_FLAG, &m.json},
    };
    size_t count = count_options(specs);
    count += list_member_flags(specs + count, &p->memory_choice);
    int code = parse_options(self, argc, argv, specs, count, &p->path);
    if (code >= 0)
        return code;
    if (m.json && is_standard(m.svg.path))
        return bad_usage(self, "standard output takes one of --json and --svg");
    if (is_same_file(m.svg.path, p->path))
        return bad_usage(self, "the trace and --svg must be different files");
    code = open_replay(self, p);
    if (code < 0)
        code = play(self, &m);
    close_output(&m.svg);
    return close_replay(p, code);
}
