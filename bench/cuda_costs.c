/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_costs.c - the cost of driver calls by size: the steps that create and destroy a page with
 * virtual memory management, for several chunk sizes, and blocks of the driver's allocators.
 */
#include <stdlib.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/ticks.h"
#include "src/base/result.h"

#define MIN_SIZE (UINT64_C(2) << 20)

enum { MAX_STEPS = 8, MAX_CHUNKS = 512 };

/* A row of a table: a size, and the time of each step in each repeat. */
typedef struct cost_row {
    uint64_t size, count; /* size and number of chunks in the page; blocks have count 1 */
    qi_cu_result refused; /* the first error, or success */
    double ns[MAX_STEPS][MAX_REPS];
} cost_row;

/* How often a repeat runs a step. */
typedef enum step_times { ONCE, EACH_CHUNK } step_times;

typedef struct cost_step {
    const char *name;
    step_times times; /* the reported time is that of one execution */
} cost_step;

typedef struct cost_table {
    const char *name, *what;
    const cost_step *steps;
    size_t step_count;
    qi_cu_result (*run)(const cost_row *row, double *ns); /* adds to the time of each step */
} cost_table;

#define TIMED(sum, code, call)                                                                     \
    do {                                                                                           \
        uint64_t since = ticks_now();                                                              \
        (code) = (call);                                                                           \
        (sum) += (double)ticks_spent(since) * the_clock.ns;                                        \
    } while (0)

/* ---- a page in chunks ----------------------------------------------------------------------- */

enum { RESERVE, CREATE, MAP, ACCESS, UNMAP, RELEASE, UNRESERVE, CHUNK_STEPS };

static const cost_step CHUNK_STEP_LIST[CHUNK_STEPS] = {
    [RESERVE] = {"reserve", ONCE},  [CREATE] = {"create", EACH_CHUNK},
    [MAP] = {"map", EACH_CHUNK},    [ACCESS] = {"access", ONCE},
    [UNMAP] = {"unmap", ONCE},      [RELEASE] = {"release", EACH_CHUNK},
    [UNRESERVE] = {"return", ONCE},
};

typedef struct chunked {
    qi_cu_ptr address;
    uint64_t created, mapped; /* chunks */
    qi_cu_handle handles[MAX_CHUNKS];
} chunked;

/* Stops at the first error. `page` then says what give_back must undo. */
static qi_cu_result make_page(const cost_row *row, chunked *page, double *ns)
{
    const qi_cuda_functions *f = &the_cuda.f;
    const qi_cu_location here = {QI_CU_MEM_LOCATION_TYPE_DEVICE, the_cuda.info.ordinal};
    const qi_cu_allocation_prop prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    const qi_cu_access_desc desc = {here, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t size = row->size * row->count;
    qi_cu_result code;
    TIMED(ns[RESERVE], code, f->MemAddressReserve(&page->address, size, 0, 0, 0));
    for (; !code && page->created < row->count; page->created += !code)
        TIMED(ns[CREATE], code, f->MemCreate(&page->handles[page->created], row->size, &prop, 0));
    for (; !code && page->mapped < row->count; page->mapped += !code)
        TIMED(ns[MAP], code,
              f->MemMap(page->address + page->mapped * row->size, row->size, 0,
                        page->handles[page->mapped], 0));
    if (!code)
        TIMED(ns[ACCESS], code, f->MemSetAccess(page->address, size, &desc, 1));
    return code;
}

/* Undoes every step of make_page that succeeded; returns the first error. */
static qi_cu_result give_back(const cost_row *row, const chunked *page, double *ns)
{
    const qi_cuda_functions *f = &the_cuda.f;
    qi_cu_result code = QI_CUDA_SUCCESS, first = QI_CUDA_SUCCESS;
    if (page->mapped)
        TIMED(ns[UNMAP], first, f->MemUnmap(page->address, page->mapped * row->size));
    for (uint64_t i = 0; i < page->created; i++) {
        TIMED(ns[RELEASE], code, f->MemRelease(page->handles[i]));
        first = first ? first : code;
    }
    if (page->address)
        TIMED(ns[UNRESERVE], code, f->MemAddressFree(page->address, row->size * row->count));
    return first ? first : code;
}

static qi_cu_result run_chunks(const cost_row *row, double *ns)
{
    chunked page = {.address = 0};
    qi_cu_result made = make_page(row, &page, ns), given = give_back(row, &page, ns);
    return made ? made : given;
}

/* ---- a block of the driver's allocators ----------------------------------------------------- */

enum { ALLOC, FREE, POOL_ALLOC, POOL_FREE, POOL_ALLOC_AGAIN, POOL_FREE_AGAIN, BLOCK_STEPS };

static const cost_step BLOCK_STEP_LIST[BLOCK_STEPS] = {
    [ALLOC] = {"alloc", ONCE},           [FREE] = {"free", ONCE},
    [POOL_ALLOC] = {"async", ONCE},      [POOL_FREE] = {"freeasync", ONCE},
    [POOL_ALLOC_AGAIN] = {"kept", ONCE}, [POOL_FREE_AGAIN] = {"freekept", ONCE},
};

static qi_cu_result allocate_and_wait(qi_cu_ptr *pointer, uint64_t size)
{
    qi_cu_result code = the_cuda.f.MemAllocAsync(pointer, size, the_cuda.stream);
    return code ? code : cuda_driver_wait();
}

static qi_cu_result free_and_wait(qi_cu_ptr pointer)
{
    qi_cu_result code = the_cuda.f.MemFreeAsync(pointer, the_cuda.stream);
    return code ? code : cuda_driver_wait();
}

/* Allocates and frees twice: first from the device, then from memory that the pool kept. */
static qi_cu_result run_pool(const cost_row *row, double *ns)
{
    qi_cu_result code = cuda_driver_keep(true);
    for (int step = POOL_ALLOC; !code && step < BLOCK_STEPS; step += 2) {
        qi_cu_ptr pointer = 0;
        TIMED(ns[step], code, allocate_and_wait(&pointer, row->size));
        if (!code)
            TIMED(ns[step + 1], code, free_and_wait(pointer));
    }
    qi_cu_result given = cuda_driver_keep(false);
    return code ? code : given;
}

static qi_cu_result run_blocks(const cost_row *row, double *ns)
{
    qi_cu_ptr pointer = 0;
    qi_cu_result code;
    TIMED(ns[ALLOC], code, the_cuda.f.MemAlloc(&pointer, row->size));
    if (!code)
        TIMED(ns[FREE], code, the_cuda.f.MemFree(pointer));
    return code || !the_cuda.pool ? code : run_pool(row, ns);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Runs the repeats and divides the time of each step by the number of its executions. */
static void measure_row(const memory_bench *b, const cost_table *t, cost_row *row)
{
    for (uint64_t rep = 0; rep < b->reps && !row->refused; rep++) {
        double ns[MAX_STEPS] = {0};
        row->refused = t->run(row, ns);
        for (size_t i = 0; i < t->step_count; i++)
            row->ns[i][rep] = ns[i] / (double)(t->steps[i].times == ONCE ? 1 : row->count);
    }
}

static void report_row(memory_bench *b, const cost_table *t, cost_row *row)
{
    qi_json *json = &b->out.json;
    printf("  %-9s", qi_bytes(row->size).text);
    qi_json_object(json, NULL);
    qi_json_number(json, "size", row->size);
    qi_json_number(json, "count", row->count);
    qi_json_text(json, "refused", row->refused ? cuda_driver_error(row->refused) : NULL);
    for (size_t i = 0; i < t->step_count && !row->refused; i++) {
        spread s = spread_of(row->ns[i], b->reps);
        write_spread(json, t->steps[i].name, s);
        printf(" %10.2f", s.median / 1000);
    }
    printf("%s\n", row->refused ? cuda_driver_error(row->refused) : "");
    qi_json_end_object(json);
}

static void measure_table(memory_bench *b, const cost_table *t, uint64_t page)
{
    static cost_row row;
    printf("\n%s: %s; us, medians\n  %-9s", t->name, t->what, "size");
    for (size_t i = 0; i < t->step_count; i++)
        printf(" %10s", t->steps[i].name);
    printf("\n");
    qi_json_array(&b->out.json, t->name);
    for (uint64_t size = MIN_SIZE; size <= page; size *= 2) {
        bool in_chunks = t->run == run_chunks;
        row = (cost_row){.size = size, .count = in_chunks ? page / size : 1};
        if (row.count > MAX_CHUNKS)
            continue;
        measure_row(b, t, &row);
        report_row(b, t, &row);
    }
    qi_json_end_array(&b->out.json);
}

/* The largest power of two up to `max` that fits four times into the free device memory. */
static uint64_t max_size(uint64_t max)
{
    uint64_t size = MIN_SIZE, room = cuda_driver_free_bytes() / 4;
    while (size * 2 <= max && size * 2 <= room)
        size *= 2;
    return size;
}

void measure_costs(memory_bench *b, uint64_t max)
{
    const cost_table chunks = {"chunks",
                               "a page in chunks of a size; create, map and release per chunk",
                               CHUNK_STEP_LIST, CHUNK_STEPS, run_chunks};
    const cost_table blocks = {
        "blocks", "cuMemAlloc; cuMemAllocAsync and a wait, from the device and from kept memory",
        BLOCK_STEP_LIST, the_cuda.pool ? BLOCK_STEPS : POOL_ALLOC, run_blocks};
    uint64_t page = max_size(max);
    qi_json_number(&b->out.json, "page_size", page);
    measure_table(b, &chunks, the_cuda.info.has_virtual_memory ? page : 0);
    measure_table(b, &blocks, page);
}
