/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_compaction.c - what a compaction reaches and how long its steps take, on a device whose
 * copies cost nothing. First a memory of about 1 GB of holes, whose allocations come and go: each
 * frame frees and allocates a few, and makes one small step; then the same memory, which no other
 * call changes, until the compaction is complete. Then a memory of which a random half was freed,
 * in one step. Then one page, of which a random half was freed: the goal of a free range.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/memory.h"
#include "bench/ticks.h"
#include "bench/workload.h"
#include "quire/backend.h"
#include "quire/compact.h"
#include "quire/quire.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum {
    MANY = 23000, /* allocations that fill the memory */
    LEFT = 18000, /* of them: the others are freed */
    FRAMES = 2000,
    MAX_STEPS = 20000,
    CHANGES = 4, /* frees, and allocations, of a frame */
    MOVES = 10   /* at most, of a step */
};
static const uint64_t PAGE = 8 * MIB;
static const uint64_t RANGE_PAGE = 256 * MIB;
static const double GOAL_MB = 100;

/* ---- a device without bytes --------------------------------------------------------------- */

static quire_result describe(void *state, quire_device_info *info)
{
    (void)state;
    snprintf(info->name, sizeof info->name, "empty");
    info->heap_count = info->kind_count = 1;
    info->heaps[0] = (quire_heap){.size = UINT64_C(1) << 40, .flags = QUIRE_HEAP_DEVICE_LOCAL};
    info->kinds[0].flags = QUIRE_DEVICE_LOCAL;
    return QUIRE_SUCCESS;
}

static quire_result make_page(void *state, const quire_page_request *request,
                              quire_native_page *page)
{
    (void)state;
    page->handle = 1;
    page->size = request->size;
    return QUIRE_SUCCESS;
}

static void end_page(void *state, const quire_native_page *page)
{
    (void)state;
    (void)page;
}

static quire_result copy_to(void *state, const quire_native_page *page, uint64_t offset,
                            const void *data, uint64_t size)
{
    (void)state, (void)page, (void)offset, (void)data, (void)size;
    return QUIRE_SUCCESS;
}

static quire_result copy_from(void *state, const quire_native_page *page, uint64_t offset,
                              void *data, uint64_t size)
{
    (void)state, (void)page, (void)offset, (void)data, (void)size;
    return QUIRE_SUCCESS;
}

static quire_result copy_pages(void *state, const quire_copy_job *job)
{
    (void)state, (void)job;
    return QUIRE_SUCCESS;
}

static const quire_backend EMPTY_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "empty",
    .features =
        QUIRE_BACKEND_COPY_TO_PAGE | QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_COPY_PAGES,
    .describe = describe,
    .page_create = make_page,
    .page_destroy = end_page,
    .copy_to_page = copy_to,
    .copy_from_page = copy_from,
    .copy_pages = copy_pages,
};

/* ---- a memory ----------------------------------------------------------------------------- */

typedef struct scene {
    quire_device *device;
    quire_memory *memory;
    rng sizes, victims;
    uint64_t smallest, largest; /* allocations */
    quire_allocation *live;
    uint64_t count;
} scene;

static bool allocate(scene *s)
{
    const quire_allocation_options options = {
        .size = rng_log_uniform(&s->sizes, (double)s->smallest, (double)s->largest),
        .alignment = UINT64_C(1) << rng_below(&s->sizes, 9)};
    if (quire_allocate(s->memory, &options, &s->live[s->count]))
        return false;
    s->count++;
    return true;
}

static bool release_any(scene *s)
{
    const uint64_t i = rng_below(&s->victims, s->count);
    const quire_allocation freed = s->live[i];
    s->live[i] = s->live[--s->count];
    return !quire_free(s->memory, freed);
}

/* Without allocations, and with room for the handles of `many`. */
static bool open(scene *s, uint64_t smallest, uint64_t largest, uint64_t many,
                 quire_page_policy pages)
{
    const quire_memory_options options = {.shards = 1, .movable = true, .pages = pages};
    *s = (scene){.sizes = {1}, .victims = {2}, .smallest = smallest, .largest = largest};
    s->live = calloc(many, sizeof *s->live);
    return s->live && !quire_device_create(&EMPTY_BACKEND, NULL, NULL, &s->device) &&
           !quire_memory_create(s->device, &options, &s->memory);
}

/* Allocates `many`, and frees some at random until `left` are live. */
static bool begin(scene *s, uint64_t smallest, uint64_t largest, uint64_t many, uint64_t left)
{
    bool good = open(s, smallest, largest, many, (quire_page_policy){.page_size = PAGE});
    while (good && s->count < many)
        good = allocate(s);
    while (good && s->count > left)
        good = release_any(s);
    return good;
}

static void end(scene *s)
{
    quire_memory_destroy_all(&s->memory);
    quire_device_destroy(&s->device);
    free(s->live);
}

static quire_memory_stats stats_of(const scene *s)
{
    quire_memory_stats stats = {.live_bytes = 0};
    return quire_memory_get_stats(s->memory, &stats) ? (quire_memory_stats){.live_bytes = 0}
                                                     : stats;
}

static double holes_mb(const scene *s)
{
    const quire_memory_stats stats = stats_of(s);
    return (double)(stats.reserved_bytes - stats.live_bytes) / 1e6;
}

/* ---- frames ------------------------------------------------------------------------------- */

typedef struct outcome {
    uint64_t pages; /* at the begin */
    double begin_mb, end_mb;
    uint64_t steps, moves;
    uint64_t steps_to_goal; /* 0: the holes stayed above it */
    double us[MAX_STEPS];   /* of each step */
} outcome;

static bool change(scene *s)
{
    for (int i = 0; i < CHANGES; i++)
        if (!release_any(s))
            return false;
    for (int i = 0; i < CHANGES; i++)
        if (!allocate(s))
            return false;
    return true;
}

/* One step, timed. */
static bool run_step(quire_compaction *c, outcome *o, quire_compact_stats *stats)
{
    const uint64_t since = ticks_now();
    if (quire_compact_step(c, &(quire_compact_limits){.moves = MOVES}, stats))
        return false;
    o->us[o->steps++] = (double)ticks_spent(since) * the_clock.ns / 1000;
    return true;
}

/* With changes: so many frames. Without: until the compaction is complete. */
static bool run_frames(scene *s, bool changes, uint64_t frames, outcome *o)
{
    quire_compaction *c = NULL;
    quire_compact_stats stats = {.moves = 0};
    *o = (outcome){.pages = stats_of(s).page_count, .begin_mb = holes_mb(s)};
    bool good = !quire_compact_begin(s->memory, &c);
    while (good && o->steps < frames && (changes || !stats.is_complete)) {
        good = (!changes || change(s)) && run_step(c, o, &stats);
        if (!o->steps_to_goal && holes_mb(s) < GOAL_MB)
            o->steps_to_goal = o->steps;
    }
    quire_compact_end(&c);
    o->end_mb = holes_mb(s);
    o->moves = stats.moves;
    return good && o->steps;
}

static void report_frames(memory_bench *b, const char *part, outcome *o)
{
    qsort(o->us, o->steps, sizeof *o->us, spread_compare);
    const struct {
        const char *name;
        double us;
    } times[] = {{"p50_us", o->us[o->steps / 2]},
                 {"p99_us", o->us[o->steps * 99 / 100]},
                 {"p999_us", o->us[o->steps * 999 / 1000]},
                 {"max_us", o->us[o->steps - 1]}};
    printf("  %-8s %6" PRIu64 " %9.1f %8.1f %7" PRIu64 " %9" PRIu64 " %7" PRIu64, part, o->pages,
           o->begin_mb, o->end_mb, o->steps, o->steps_to_goal, o->moves);
    qi_json_object(&b->out.json, NULL);
    qi_json_text(&b->out.json, "part", part);
    qi_json_number(&b->out.json, "pages", o->pages);
    qi_json_real(&b->out.json, "begin_mb", o->begin_mb);
    qi_json_real(&b->out.json, "end_mb", o->end_mb);
    qi_json_number(&b->out.json, "steps", o->steps);
    qi_json_number(&b->out.json, "steps_to_goal", o->steps_to_goal);
    qi_json_number(&b->out.json, "moves", o->moves);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        printf(" %9.1f", times[i].us);
        qi_json_real(&b->out.json, times[i].name, times[i].us);
    }
    qi_json_end_object(&b->out.json);
    printf("\n");
}

/* Each on a new memory. */
static void measure_frames(memory_bench *b, bool changes)
{
    static outcome o;
    scene s;
    const uint64_t many = b->max_pairs < MANY ? b->max_pairs : MANY;
    const uint64_t frames = b->max_pairs < FRAMES ? b->max_pairs : FRAMES;
    if (begin(&s, 16 * KIB, MIB, many, many * LEFT / MANY) &&
        run_frames(&s, changes, changes ? frames : MAX_STEPS, &o))
        report_frames(b, changes ? "changes" : "alone", &o);
    end(&s);
}

/* ---- half of a memory --------------------------------------------------------------------- */

static void measure_half(memory_bench *b)
{
    scene s;
    quire_compaction *c = NULL;
    quire_compact_stats done;
    const uint64_t many = b->max_pairs < MANY ? b->max_pairs : MANY;
    if (begin(&s, 256, PAGE / 16, many, many / 2) && !quire_compact_begin(s.memory, &c)) {
        const quire_memory_stats before = stats_of(&s);
        const uint64_t since = ticks_now();
        if (!quire_compact_step(c, NULL, &done)) {
            const double ms = (double)ticks_spent(since) * the_clock.ns / 1e6;
            const quire_memory_stats after = stats_of(&s);
            const double live = (double)after.live_bytes;
            const double reserved = (double)after.reserved_bytes;
            printf("  half of %" PRIu64
                   " pages freed: reserved / live %.4f, then %.4f; without two "
                   "pages %.4f; %" PRIu64 " moves, %.1f ms\n",
                   before.page_count, (double)before.reserved_bytes / live, reserved / live,
                   (reserved - 2 * (double)PAGE) / live, done.moves, ms);
            qi_json_object(&b->out.json, NULL);
            qi_json_text(&b->out.json, "part", "half");
            qi_json_number(&b->out.json, "pages", before.page_count);
            qi_json_number(&b->out.json, "moves", done.moves);
            qi_json_number(&b->out.json, "live_bytes", after.live_bytes);
            qi_json_number(&b->out.json, "begin_bytes", before.reserved_bytes);
            qi_json_number(&b->out.json, "end_bytes", after.reserved_bytes);
            qi_json_real(&b->out.json, "ms", ms);
            qi_json_end_object(&b->out.json);
        }
    }
    quire_compact_end(&c);
    end(&s);
}

/* ---- a free range ------------------------------------------------------------------------- */

static void report_range(memory_bench *b, uint64_t before, uint64_t wanted, uint64_t after,
                         const quire_compact_stats *done, double ms)
{
    printf("  a page of %" PRIu64 " MiB, half freed: largest free range %.2f MiB; %" PRIu64
           " MiB wanted, %.2f MiB after %" PRIu64 " moves of %.2f MiB, %.2f ms\n",
           RANGE_PAGE / MIB, (double)before / (double)MIB, wanted / MIB,
           (double)after / (double)MIB, done->moves, (double)done->bytes_moved / (double)MIB, ms);
    qi_json_object(&b->out.json, NULL);
    qi_json_text(&b->out.json, "part", "range");
    qi_json_number(&b->out.json, "wanted_bytes", wanted);
    qi_json_number(&b->out.json, "begin_bytes", before);
    qi_json_number(&b->out.json, "end_bytes", after);
    qi_json_number(&b->out.json, "moves", done->moves);
    qi_json_number(&b->out.json, "bytes_moved", done->bytes_moved);
    qi_json_real(&b->out.json, "ms", ms);
    qi_json_end_object(&b->out.json);
}

/* One page is filled, and a random half freed. */
static void measure_range(memory_bench *b, uint64_t wanted)
{
    scene s;
    quire_compaction *c = NULL;
    quire_compact_stats done;
    const quire_page_policy one = {.page_size = RANGE_PAGE, .max_pages = 1};
    const quire_compact_limits limits = {.largest_free = wanted};
    bool good = open(&s, 4 * KIB, MIB, MANY, one);
    while (good && s.count < MANY && allocate(&s)) {
    }
    for (uint64_t left = s.count / 2; good && s.count > left;)
        good = release_any(&s);
    if (good && !quire_compact_begin(s.memory, &c)) {
        const uint64_t before = stats_of(&s).largest_free, since = ticks_now();
        if (!quire_compact_step(c, &limits, &done))
            report_range(b, before, wanted, stats_of(&s).largest_free, &done,
                         (double)ticks_spent(since) * the_clock.ns / 1e6);
    }
    quire_compact_end(&c);
    end(&s);
}

void measure_compaction(memory_bench *b)
{
    qi_json_array(&b->out.json, "compaction");
    if (is_wanted(&b->wanted_families, "compaction")) {
        printf("\ncompaction: MB of holes in pages of 8 MiB; us for a step of %d moves\n"
               "  %-8s %6s %9s %8s %7s %9s %7s %9s %9s %9s %9s\n",
               MOVES, "", "pages", "holes", "then", "steps", "to 100 MB", "moves", "p50", "p99",
               "p99.9", "max");
        measure_frames(b, true);
        measure_frames(b, false);
        measure_half(b);
        measure_range(b, RANGE_PAGE / 16);
        measure_range(b, RANGE_PAGE / 4);
    }
    qi_json_end_array(&b->out.json);
}
