/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * holes.c - replays traces on one region with holes, as a memory would use it: a request that no
 * free range holds takes a window, whose chunks are taken from free ranges before new ones are
 * made. Reports how many bytes are backed at most, beside the bytes that live.
 *
 * usage: bench_holes [--chunk BYTES] [--goal RATIO] TRACE.csv...
 *
 * With a goal it fails if a trace needs more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ticks.h"
#include "quire/trace.h"
#include "src/space/space.h"

enum { GRANULE = 256 };

static const uint64_t ADDRESSES = UINT64_C(256) << 30; /* bytes; several times the largest trace */

typedef struct replay {
    quire_space *space;
    uint64_t chunk;
    quire_range *ranges; /* by range number of the trace */
    uint64_t backed, live, most_backed, most_live;
    uint64_t made, moved;  /* chunks: new ones, and those taken from free ranges */
    uint64_t hits, misses; /* requests that a free range held, and others */
    double miss_ns;
} replay;

static void fail(const char *what)
{
    fprintf(stderr, "bench_holes: %s: %s\n", what, quire_last_error());
    exit(1);
}

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (!file || fseek(file, 0, SEEK_END) || (long)(*size = (size_t)ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) || !(text = malloc(*size + 1)) ||
        fread(text, 1, *size, file) != *size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

static bool place(replay *r, const quire_trace_event *event, uint32_t flags)
{
    quire_placement at;
    uint64_t alignment = event->alignment ? event->alignment : 1;
    if (r->space->allocate_range(r->space, event->size, alignment, 0, flags, &at))
        return false;
    r->ranges[event->range] = at.range;
    r->live += at.size;
    return true;
}

/* Takes the chunks of the window from free ranges, as far as there are any. */
static void back(replay *r, uint64_t bytes)
{
    for (qi_chunk_run run; bytes; bytes -= run.size) {
        if (qi_space_take_chunks(r->space, bytes / r->chunk, true, &run))
            fail("chunks");
        if (!run.size)
            break;
        r->moved += run.size / r->chunk;
    }
    r->made += bytes / r->chunk;
    r->backed += bytes;
}

static void miss(replay *r, const quire_trace_event *event)
{
    qi_window window;
    uint64_t begin = ticks_now();
    r->misses++;
    if (!qi_space_find_window(r->space, event->size, event->alignment ? event->alignment : 1,
                              &window) ||
        qi_space_reserve_window(r->space, &window))
        fail("no window");
    back(r, window.unbacked);
    qi_space_open_window(r->space, &window);
    if (!place(r, event, QI_TRY) && !place(r, event, QI_EXHAUSTIVE))
        fail("the window is lost");
    r->miss_ns += (double)ticks_spent(begin) * the_clock.ns;
}

static void step(replay *r, const quire_trace_event *event)
{
    quire_placement at;
    if (event->op == QUIRE_TRACE_FREE) {
        if (qi_space_get(r->space, r->ranges[event->range], &at) ||
            r->space->free_range(r->space, at.range))
            fail("free");
        r->live -= at.size;
    }
    if (event->op != QUIRE_TRACE_ALLOC || !event->size)
        return;
    if (place(r, event, QI_TRY))
        r->hits++;
    else
        miss(r, event);
    r->most_backed = r->backed > r->most_backed ? r->backed : r->most_backed;
    r->most_live = r->live > r->most_live ? r->live : r->most_live;
}

/* Returns the ratio of backed to live bytes, at most. */
static double run(const char *path, uint64_t chunk)
{
    size_t size;
    char *text = read_all(path, &size);
    quire_trace *trace;
    quire_trace_info info;
    quire_trace_event event;
    uint32_t region;
    replay r = {.chunk = chunk};
    if (quire_trace_parse(path, text, size, NULL, &trace) || quire_trace_get_info(trace, &info))
        fail("trace");
    free(text);
    if (qi_space_create(&(quire_space_options){.fit = {.granule = GRANULE}}, &r.space) ||
        qi_space_add_hole(r.space, ADDRESSES, 0, 0, chunk, &region))
        fail("space");
    r.ranges = calloc(info.peak_ranges + 1, sizeof *r.ranges);
    for (uint64_t i = 0; r.ranges && i < info.event_count; i++) {
        if (quire_trace_get_event(trace, i, &event))
            fail("event");
        step(&r, &event);
    }
    double ratio = (double)r.most_backed / (double)r.most_live;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf("| `%s` | %.1f | %.4f | %" PRIu64 " | %" PRIu64 " | %.2f%% | %.0f |\n", name,
           (double)r.most_live / (1 << 20), ratio, r.made, r.moved,
           100.0 * (double)r.hits / (double)(r.hits + r.misses), r.miss_ns / (double)r.misses);
    if (qi_space_check(r.space))
        fail("check");
    qi_space_destroy(r.space);
    quire_trace_destroy(&trace);
    free(r.ranges);
    return ratio;
}

int main(int argc, char **argv)
{
    uint64_t chunk = 2 << 20;
    double goal = 0;
    int missed = 0, first = 1;
    bool is_known = true;
    for (; first + 1 < argc && !strncmp(argv[first], "--", 2); first += 2)
        if (!strcmp(argv[first], "--chunk"))
            chunk = strtoull(argv[first + 1], NULL, 0);
        else if (!strcmp(argv[first], "--goal"))
            goal = strtod(argv[first + 1], NULL);
        else
            is_known = false;
    if (!is_known || first == argc || chunk < GRANULE || chunk & (chunk - 1)) {
        fprintf(stderr, "usage: bench_holes [--chunk BYTES] [--goal RATIO] TRACE.csv...\n");
        return 2;
    }
    ticks_init();
    printf("| chunks of %" PRIu64
           " KiB | live, MiB | backed of live | chunks made | moved | hits | "
           "ns per miss |\n|---|---:|---:|---:|---:|---:|---:|\n",
           chunk >> 10);
    for (; first < argc; first++)
        missed += run(argv[first], chunk) > goal && goal > 0;
    if (missed)
        fprintf(stderr, "bench_holes: %d above the goal of %.4f\n", missed, goal);
    return missed != 0;
}
