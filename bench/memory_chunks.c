/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_chunks.c - what the growth of an elastic memory costs by the size of its chunks, on the
 * host: a chunk gets memory, is written for the first time, and loses its memory; and a request
 * takes memory of a free chunk elsewhere. Each step is timed alone. Then two threads give chunks
 * memory and take it, in one memory and in two.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "bench/memory.h"
#include "bench/ticks.h"
#include "quire/elastic.h"
#include "quire/host.h"
#include "quire/quire.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

enum { BACKED, WRITTEN, RELEASED, MOVED, STEPS };

static const char *const NAMES[STEPS] = {"back_ns", "write_ns", "release_ns", "move_ns"};

typedef struct scene {
    quire_device *device;
    quire_memory *memory;
    uint64_t chunk;
} scene;

static bool begin(scene *s, uint64_t chunk)
{
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .elastic = true,
                                          .address_space = 64 * chunk,
                                          .pages.page_size = chunk};
    *s = (scene){.chunk = chunk};
    return !quire_host_open(NULL, &s->device) &&
           !quire_memory_create(s->device, &options, &s->memory);
}

static void end(scene *s)
{
    quire_memory_destroy_all(&s->memory);
    quire_device_destroy(&s->device);
}

static double ns_since(uint64_t since)
{
    return (double)ticks_spent(since) * the_clock.ns;
}

/* Allocates `count` chunks. Returns the time in ns, or a value below 0 if that fails. */
static double allocate(const scene *s, uint64_t count, quire_allocation *made)
{
    const uint64_t since = ticks_now();
    if (quire_allocate(s->memory, &(quire_allocation_options){.size = count * s->chunk}, made))
        return -1;
    return ns_since(since);
}

/* A request of two chunks takes the memory of a free chunk between live ones, and new memory. */
static bool measure_move(const scene *s, double *ns)
{
    quire_allocation low, gap, high, large;
    if (allocate(s, 1, &low) < 0 || allocate(s, 1, &gap) < 0 || allocate(s, 1, &high) < 0 ||
        quire_free(s->memory, gap))
        return false;
    *ns = allocate(s, 2, &large);
    return *ns >= 0 && !quire_free(s->memory, large) && !quire_free(s->memory, high) &&
           !quire_free(s->memory, low) && !quire_memory_trim(s->memory, 0, NULL);
}

/* One repeat. A live chunk keeps the page. */
static bool measure_once(const scene *s, double ns[STEPS])
{
    quire_allocation made;
    void *pointer = NULL;
    ns[BACKED] = allocate(s, 1, &made);
    if (ns[BACKED] < 0 || quire_map(s->memory, made, &pointer))
        return false;
    uint64_t since = ticks_now();
    memset(pointer, 1, s->chunk);
    ns[WRITTEN] = ns_since(since);
    if (quire_unmap(s->memory, made) || quire_free(s->memory, made))
        return false;
    since = ticks_now();
    if (quire_memory_trim(s->memory, 0, NULL))
        return false;
    ns[RELEASED] = ns_since(since);
    return measure_move(s, &ns[MOVED]);
}

/* A row of a table: the medians, printed in microseconds; JSON has all. */
static void report(memory_bench *b, uint64_t chunk, const char *const *names,
                   double (*values)[MAX_REPS], int columns, size_t reps, int width)
{
    qi_json_object(&b->out.json, NULL);
    qi_json_number(&b->out.json, "chunk", chunk);
    qi_json_number(&b->out.json, "reps", reps);
    printf("  %9" PRIu64 " KiB", chunk / KIB);
    for (int i = 0; i < columns && reps; i++) {
        const spread found = spread_of(values[i], reps);
        printf(" %*.2f", width, found.median / 1000);
        write_spread(&b->out.json, names[i], found);
    }
    printf("\n");
    qi_json_end_object(&b->out.json);
}

static void measure_size(memory_bench *b, uint64_t chunk)
{
    static double values[STEPS][MAX_REPS];
    quire_allocation base;
    size_t reps = 0;
    scene s;
    bool good = begin(&s, chunk) && allocate(&s, 1, &base) >= 0;
    for (; good && reps < b->reps; reps++) {
        double ns[STEPS];
        if (!measure_once(&s, ns))
            break;
        for (int step = 0; step < STEPS; step++)
            values[step][reps] = ns[step];
    }
    end(&s);
    report(b, chunk, NAMES, values, STEPS, reps, 10);
}

/* ---- two threads -------------------------------------------------------------------------- */

enum { SIDES = 3, PAIRS = 1000 };

/* Chunks of a lazy allocation get memory and lose it, in a thread of their own. */
typedef struct side {
    quire_memory *memory;
    uint64_t chunk;
    bool good;
} side;

static void *change_chunks(void *user)
{
    side *s = user;
    const quire_allocation_options options = {.size = 16 * s->chunk, .lazy = true};
    quire_view chunk = {.size = s->chunk};
    s->good = !quire_allocate(s->memory, &options, &chunk.allocation);
    for (uint64_t i = 0; i < PAIRS && s->good; i++) {
        chunk.offset = i % 16 * s->chunk;
        s->good = !quire_back_range(s->memory, &chunk, 1) &&
                  !quire_unback_range(s->memory, &chunk, 1, NULL);
    }
    if (s->good)
        s->good = !quire_free(s->memory, chunk.allocation);
    return NULL;
}

/* Returns the time for a pair in ns, all threads together, or 0 if that failed. */
static double measure_sides(uint64_t chunk, int threads, int memories)
{
    pthread_t ids[2];
    scene scenes[2];
    side sides[2];
    bool good = true;
    for (int i = 0; i < memories; i++)
        good = begin(&scenes[i], chunk) && good;
    const uint64_t since = ticks_now();
    int started = 0;
    for (; started < threads && good; started++) {
        sides[started] = (side){scenes[started % memories].memory, chunk, false};
        if (pthread_create(&ids[started], NULL, change_chunks, &sides[started]))
            break;
    }
    good = good && started == threads;
    for (int i = 0; i < started; i++) {
        pthread_join(ids[i], NULL);
        good = good && sides[i].good;
    }
    const double ns = ns_since(since);
    for (int i = 0; i < memories; i++)
        end(&scenes[i]);
    return good ? ns / threads / PAIRS : 0;
}

/* One thread; two that take turns in one memory; two in a memory each. */
static void measure_turns(memory_bench *b, uint64_t chunk)
{
    static const char *const names[SIDES] = {"one_ns", "one_memory_ns", "two_memories_ns"};
    static double values[SIDES][MAX_REPS];
    size_t reps = 0;
    for (bool good = true; reps < b->reps && good; reps += good)
        for (int i = 0; i < SIDES && good; i++) {
            values[i][reps] = measure_sides(chunk, i ? 2 : 1, i == 2 ? 2 : 1);
            good = values[i][reps] > 0;
        }
    report(b, chunk, names, values, SIDES, reps, 14);
}

void measure_chunks(memory_bench *b)
{
    static const uint64_t sizes[] = {64 * KIB, 256 * KIB, 2 * MIB, 8 * MIB, 32 * MIB};
    qi_json_array(&b->out.json, "chunks");
    if (is_wanted(&b->wanted_families, "chunks")) {
        printf("\nchunks: us for a chunk of an elastic memory on the host\n  %13s %10s %10s %10s "
               "%10s\n",
               "", "back", "write", "release", "move");
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure_size(b, sizes[i]);
    }
    qi_json_end_array(&b->out.json);
    qi_json_array(&b->out.json, "chunk_threads");
    if (is_wanted(&b->wanted_families, "chunks")) {
        printf("\nchunks: us for memory given to one and taken, by one thread, and by two at once\n"
               "  %13s %14s %14s %14s\n",
               "", "one thread", "in one memory", "in two");
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            measure_turns(b, sizes[i]);
    }
    qi_json_end_array(&b->out.json);
}
