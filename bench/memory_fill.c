/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_fill.c - requests that a memory refuses while its limit stays nearly reached: with pages,
 * and elastic with chunks of two sizes. The sizes and the steps are those of churn.h; the limit is
 * the arena.
 */
#include <inttypes.h>

#include "bench/children.h"
#include "bench/churn.h"
#include "bench/memory.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/result.h"

#define KIB (UINT64_C(1) << 10)

enum { MEMORIES = 3, TARGETS = 3, ADDRESSES = 8 /* per byte of the limit */ };

static const uint64_t CHUNKS[MEMORIES] = {0 /* pages */, 256 * KIB, 64 * KIB};
static const double SHARES[TARGETS] = {0.90, 0.95, 0.99};

typedef struct fill_result {
    bool good;
    double failures_per_1000;
} fill_result;

typedef struct run {
    const churn_sizes *sizes;
    uint64_t max_steps;
    fill_result *results; /* shared: [memory][target] */
} run;

static uint64_t allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    quire_allocation made;
    quire_allocation_info info;
    const quire_allocation_options options = {.size = size, .alignment = alignment, .info = &info};
    if (quire_allocate(state, &options, &made))
        return 0;
    *offset = info.offset; /* of any page: only equal offsets in one page mean something */
    return made.id;
}

static void release(void *state, uint64_t handle)
{
    qi_ignore(quire_free(state, (quire_allocation){handle}));
}

static bool open_memory(const churn_sizes *sizes, uint64_t chunk, quire_device **device,
                        quire_memory **memory)
{
    quire_memory_options options = {.shards = 1, .limit = sizes->arena};
    options.fit.granule = sizes->unit;
    if (chunk) {
        options.elastic = true;
        options.address_space = ADDRESSES * sizes->arena;
        options.pages.page_size = chunk;
    }
    return !quire_host_open(NULL, device) && !quire_memory_create(*device, &options, memory);
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    churn_filled filled;
    fill_result *result = &r->results[index];
    if (!open_memory(r->sizes, CHUNKS[index / TARGETS], &device, &memory))
        return;
    const churn_space space = {memory, allocate, release};
    result->good = churn_fill(r->sizes, SHARES[index % TARGETS], r->max_steps, &space, &filled);
    result->failures_per_1000 = filled.failures_per_1000;
    quire_memory_destroy_all(&memory);
    quire_device_destroy(&device);
}

static void report(memory_bench *b, const run *r)
{
    for (size_t i = 0; i < MEMORIES; i++) {
        const uint64_t kib = CHUNKS[i] / KIB;
        printf("  %-8s", r->sizes->name);
        kib ? printf(" %4" PRIu64 " KiB", kib) : printf("    pages");
        for (size_t j = 0; j < TARGETS; j++) {
            const fill_result *one = &r->results[i * TARGETS + j];
            one->good ? printf(" %8.2f", one->failures_per_1000) : printf("   failed");
            qi_json_object(&b->out.json, NULL);
            qi_json_text(&b->out.json, "sizes", r->sizes->name);
            qi_json_number(&b->out.json, "chunk", CHUNKS[i]);
            qi_json_real(&b->out.json, "target", SHARES[j]);
            if (one->good)
                qi_json_real(&b->out.json, "failures_per_1000", one->failures_per_1000);
            qi_json_end_object(&b->out.json);
        }
        printf("\n");
    }
}

void measure_fill(memory_bench *b)
{
    qi_json_array(&b->out.json, "fill");
    if (is_wanted(&b->wanted_families, "fill")) {
        printf("\nfill: refusals of 1000 requests at 90, 95 and 99 %% of a limit, by chunk\n");
        for (size_t i = 0; churn_name(i); i++) {
            run r = {.sizes = churn_find(churn_name(i)), .max_steps = b->max_pairs};
            r.results = shared_memory(MEMORIES * TARGETS, sizeof *r.results);
            in_children(MEMORIES * TARGETS, 1, measure_index, &r);
            report(b, &r);
            shared_release(r.results, MEMORIES * TARGETS, sizeof *r.results);
        }
    }
    qi_json_end_array(&b->out.json);
}
