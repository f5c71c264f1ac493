/*
 * page_map.c - see page_map.h.
 */
#include "src/tool/page_map.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/tool/tool.h"

/* BESIDE: the columns of a row beside its cells, for sizes of 11 characters and counts of six. */
enum { MAX_CELLS = 64, MIN_CELLS = 8, LEVELS = 8, BESIDE = 48 };

typedef struct row {
    int cells;
    bool open;
    uint32_t page;
    uint64_t page_size;
    uint64_t live, count;
    uint64_t filled[MAX_CELLS]; /* live bytes in each cell */
} row;

/* A cell with any live byte shows at least the lowest block. */
static void print_row(const row *r)
{
    /* U+2581 to U+2588, and a middle dot for an empty cell */
    static const char *const blocks[LEVELS + 1] = {"\u00b7", "\u2581", "\u2582", "\u2583", "\u2584",
                                                   "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[LEVELS + 1] = {".", ":", "-", "=", "+", "o", "*", "%", "#"};
    const char *const *signs = is_utf8_output() ? blocks : letters;
    printf("page %-4" PRIu32 " ", r->page);
    for (int i = 0; i < r->cells; i++) {
        double share = (double)r->filled[i] * (double)r->cells / (double)r->page_size;
        int level = r->filled[i] ? 1 + (int)(share * (LEVELS - 1) + 0.001) : 0;
        fputs(signs[level > LEVELS ? LEVELS : level], stdout);
    }
    printf(" %11s  %3.0f%%  %" PRIu64 " allocation%s\n", qi_bytes(r->page_size).text,
           100.0 * (double)r->live / (double)r->page_size, r->count, plural(r->count));
}

/* Adds [begin, end) to the cells that it covers, at least one byte each, so that it is visible. */
static void fill(row *r, uint64_t begin, uint64_t end)
{
    double cell = (double)r->page_size / (double)r->cells;
    int first = (int)((double)begin / cell), last = (int)((double)(end - 1) / cell);
    for (int i = first; i <= last && i < r->cells; i++) {
        double low = i * cell, high = low + cell;
        low = (double)begin > low ? (double)begin : low;
        high = (double)end < high ? (double)end : high;
        uint64_t bytes = high > low ? (uint64_t)(high - low) : 0;
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
        *r = (row){
            .cells = r->cells, .open = true, .page = item->page, .page_size = item->page_size};
    }
    if (item->is_free)
        return true;
    uint64_t begin = item->offset - item->left_padding, end = item->offset + item->size;
    r->live += end - begin;
    r->count++;
    fill(r, begin, end);
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
