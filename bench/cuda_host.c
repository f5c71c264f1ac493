/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_host.c - host memory of each page kind: what a page costs, and how fast the device and the
 * processor reach it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/ticks.h"
#include "quire/quire.h"
#include "src/base/result.h"

#define MIB (UINT64_C(1) << 20)

typedef struct host_kind {
    const char *name;
    quire_cuda_page_kind kind;
} host_kind;

static const host_kind KINDS[] = {
    {"pinned", QUIRE_CUDA_PINNED},
    {"write-combined", QUIRE_CUDA_COMBINED},
    {"host NUMA", QUIRE_CUDA_HOST_NUMA},
    {"host", QUIRE_CUDA_HOST},
};

/* Times in ns, and rates in bytes per ns. */
enum { MAKE, RELEASE, TO_DEVICE, FROM_DEVICE, WRITE, READ, FIGURES };

static const char *const NAMES[FIGURES] = {
    [MAKE] = "make_ns",          [RELEASE] = "release_ns",
    [TO_DEVICE] = "to_device",   [FROM_DEVICE] = "from_device",
    [WRITE] = "processor_write", [READ] = "processor_read",
};

typedef struct host_row {
    uint64_t size, reps;
    double of[FIGURES][MAX_REPS];
    char refused[128];
} host_row;

static double spent_ns(uint64_t since)
{
    double ns = (double)ticks_spent(since) * the_clock.ns;
    return ns > 1 ? ns : 1;
}

/* Bytes per ns of a copy in the stream; 0 after an error. */
static double rate_of_copy(bool to_device, qi_cu_ptr block, void *host, uint64_t size)
{
    const qi_cuda_functions *f = &the_cuda.f;
    uint64_t since = ticks_now();
    qi_cu_result code = to_device ? f->MemcpyHtoDAsync(block, host, size, the_cuda.stream)
                                  : f->MemcpyDtoHAsync(host, block, size, the_cuda.stream);
    if (code || cuda_driver_wait())
        return 0;
    return (double)size / spent_ns(since);
}

static void measure_processor(host_row *row, void *host, void *other)
{
    uint64_t since = ticks_now();
    memcpy(host, other, row->size);
    row->of[WRITE][row->reps] = (double)row->size / spent_ns(since);
    since = ticks_now();
    memcpy(other, host, row->size);
    row->of[READ][row->reps] = (double)row->size / spent_ns(since);
}

/* A page of its own is made, used and released. Returns false after an error. */
static bool measure_once(quire_memory *memory, qi_cu_ptr block, void *other, host_row *row)
{
    const quire_allocation_options options = {.size = row->size};
    quire_allocation made;
    quire_cuda_range range;
    uint64_t since = ticks_now();
    if (quire_allocate(memory, &options, &made))
        return false;
    row->of[MAKE][row->reps] = spent_ns(since);
    if (quire_cuda_get_range(memory, made, &range))
        return false;
    measure_processor(row, range.host, other);
    row->of[TO_DEVICE][row->reps] = rate_of_copy(true, block, range.host, row->size);
    row->of[FROM_DEVICE][row->reps] = rate_of_copy(false, block, range.host, row->size);
    since = ticks_now();
    if (quire_free(memory, made) || quire_memory_trim(memory, 0, NULL))
        return false;
    row->of[RELEASE][row->reps++] = spent_ns(since);
    return true;
}

static bool measure_memory(memory_bench *b, const host_kind *kind, qi_cu_ptr block, void *other,
                           host_row *row)
{
    const quire_cuda_options options = {.settings.kinds = QUIRE_CUDA_KIND_BIT(kind->kind)};
    const quire_memory_options of_memory = {.kind.required = QUIRE_HOST_VISIBLE,
                                            .pages.dedicated = QUIRE_DEDICATED_ALWAYS};
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    bool good =
        !quire_cuda_open(&options, &device) && !quire_memory_create(device, &of_memory, &memory);
    for (uint64_t rep = 0; rep < b->reps && good; rep++)
        good = measure_once(memory, block, other, row);
    if (!good)
        snprintf(row->refused, sizeof row->refused, "%.127s", quire_last_error());
    quire_memory_destroy_all(&memory);
    quire_device_destroy(&device);
    return good;
}

static void report_row(memory_bench *b, const char *name, host_row *row)
{
    qi_json *json = &b->out.json;
    printf("  %-16s", name);
    qi_json_object(json, NULL);
    qi_json_text(json, "kind", name);
    qi_json_number(json, "size", row->size);
    qi_json_text(json, "refused", row->refused[0] ? row->refused : NULL);
    for (int i = 0; i < FIGURES && !row->refused[0]; i++) {
        spread s = spread_of(row->of[i], row->reps);
        write_spread(json, NAMES[i], s);
        printf(" %12.2f", i <= RELEASE ? s.median / 1000 : s.median);
    }
    printf("%s%s\n", row->refused[0] ? " " : "", row->refused);
    fflush(stdout);
    qi_json_end_object(json);
}

void measure_host(memory_bench *b, uint64_t most)
{
    uint64_t size = most < 64 * MIB ? most : 64 * MIB;
    qi_cu_ptr block = 0;
    void *other = calloc(1, size);
    printf("\nhost: a page of %s; us to make and release, GB/s of copies and of the processor\n"
           "  %-16s %12s %12s %12s %12s %12s %12s\n",
           qi_bytes(size).text, "", "make", "release", "to device", "from device", "write", "read");
    qi_json_array(&b->out.json, "host");
    bool good = other && !the_cuda.f.MemAlloc(&block, size);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && good; i++) {
        static host_row row;
        row = (host_row){.size = size};
        (void)measure_memory(b, &KINDS[i], block, other, &row);
        report_row(b, KINDS[i].name, &row);
    }
    if (block)
        (void)the_cuda.f.MemFree(block);
    free(other);
    qi_json_end_array(&b->out.json);
}
