/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_pages.c - what a page costs through quire, by stage: made and released while the device is
 * idle and while a kernel runs, and an elastic page that gets new handles and kept ones.
 */
#include "bench/cuda_driver.h"
#include "bench/cuda_kernel.h"
#include "bench/cuda_parts.h"
#include "bench/cuda_stages.h"
#include "quire/quire.h"

#define MIB (UINT64_C(1) << 20)
#define CHUNK (2 * MIB)
#define KERNEL_NS UINT64_C(20000000) /* longer than a page takes */

/* A device of its own with one memory, whose functions are watched. */
typedef struct scene {
    quire_device *device;
    quire_memory *memory;
    const cuda_kernels *kernels; /* NULL: the device stays idle */
} scene;

static bool open_scene(scene *s, uint64_t chunk, const quire_memory_options *memory)
{
    const quire_cuda_options options = {
        .settings = {.chunk_size = chunk, .kept_bytes = memory->elastic ? 4096 * MIB : 0}};
    *s = (scene){.device = NULL};
    if (quire_cuda_open(&options, &s->device) || quire_memory_create(s->device, memory, &s->memory))
        return false;
    stages_watch(s->device);
    return true;
}

static void close_scene(scene *s)
{
    quire_memory_destroy_all(&s->memory);
    quire_device_destroy(&s->device);
}

/* ---- one measurement ------------------------------------------------------------------------ */

static bool start_kernel(const scene *s)
{
    return !s->kernels || !cuda_kernel_spin(s->kernels, KERNEL_NS, the_cuda.stream);
}

static bool end_kernel(const scene *s)
{
    return !s->kernels || !cuda_driver_wait();
}

/* Allocates `size` bytes, which makes a page or backs a part, and adds the stages to the row. */
static bool measure_make(scene *s, uint64_t size, quire_allocation *made, stage_row *row)
{
    const quire_allocation_options options = {.size = size};
    bool good = start_kernel(s);
    stages_begin();
    good = good && !quire_allocate(s->memory, &options, made);
    stage_row_add(row, stages_end());
    return end_kernel(s) && good;
}

/* Frees the allocation, and releases its page or its part of it. */
static bool measure_release(scene *s, quire_allocation made, stage_row *row)
{
    bool good = start_kernel(s);
    stages_begin();
    good = good && !quire_free(s->memory, made) && !quire_memory_trim(s->memory, 0, NULL);
    stage_row_add(row, stages_end());
    return end_kernel(s) && good;
}

/* Records why a measurement ended. */
static void end_row(stage_row *row, bool good)
{
    if (!good) {
        row->reps = 0;
        snprintf(row->refused, sizeof row->refused, "%.127s", quire_last_error());
    }
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void measure_page(memory_bench *b, uint64_t size, uint64_t chunk,
                         const cuda_kernels *kernels)
{
    static stage_row make, release;
    const quire_memory_options options = {.pages.dedicated = QUIRE_DEDICATED_ALWAYS};
    const char *state = kernels ? (chunk ? "chunks, busy" : "busy") : chunk ? "chunks" : "idle";
    quire_allocation made;
    scene s;
    make = (stage_row){.what = "make", .size = size, .state = state};
    release = (stage_row){.what = "release", .size = size, .state = state};
    bool good = open_scene(&s, chunk, &options);
    s.kernels = kernels;
    for (uint64_t rep = 0; rep < b->reps && good; rep++)
        good = measure_make(&s, size, &made, &make) && measure_release(&s, made, &release);
    end_row(&make, good);
    end_row(&release, good);
    close_scene(&s);
    stage_row_report(&make, &b->out.json);
    stage_row_report(&release, &b->out.json);
}

void measure_pages_of_cuda(memory_bench *b, uint64_t most)
{
    static const uint64_t sizes[] = {2 * MIB, 32 * MIB, 256 * MIB};
    cuda_kernels kernels;
    const char *reason = cuda_kernels_load(the_cuda.library, &kernels);
    stage_table_head("pages: a page made and released, in one handle and in chunks of 2 MiB");
    qi_json_array(&b->out.json, "pages");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= most; i++)
        for (int in_chunks = 0; in_chunks < 2; in_chunks++)
            for (int is_busy = 0; is_busy < (reason ? 1 : 2); is_busy++)
                measure_page(b, sizes[i], in_chunks ? CHUNK : 0, is_busy ? &kernels : NULL);
    qi_json_end_array(&b->out.json);
    qi_json_text(&b->out.json, "pages_busy_skipped", reason);
    if (reason)
        printf("  skipped while a kernel runs: %s\n", reason);
}

/* ---- growth --------------------------------------------------------------------------------- */

/* A page gets a chunk of `step` bytes, gives it up, and gets it again from the kept handle. */
static bool grow_once(scene *s, uint64_t step, stage_row rows[3])
{
    quire_allocation made;
    return !quire_cuda_release_kept(s->device) && measure_make(s, step, &made, &rows[0]) &&
           measure_release(s, made, &rows[1]) && measure_make(s, step, &made, &rows[2]) &&
           !quire_free(s->memory, made) && !quire_memory_trim(s->memory, 0, NULL);
}

static void measure_step(memory_bench *b, uint64_t step)
{
    static stage_row rows[3];
    const quire_memory_options options = {.elastic = true, .pages.page_size = step};
    quire_allocation base;
    scene s;
    rows[0] = (stage_row){.what = "grow", .size = step, .state = "cold"};
    rows[1] = (stage_row){.what = "shrink", .size = step, .state = "handles kept"};
    rows[2] = (stage_row){.what = "grow", .size = step, .state = "kept"};
    bool good = open_scene(&s, 0, &options) &&
                !quire_allocate(s.memory, &(quire_allocation_options){.size = step}, &base);
    for (uint64_t rep = 0; rep < b->reps && good; rep++)
        good = grow_once(&s, step, rows);
    for (int i = 0; i < 3; i++)
        end_row(&rows[i], good);
    close_scene(&s);
    for (int i = 0; i < 3; i++)
        stage_row_report(&rows[i], &b->out.json);
}

void measure_growth(memory_bench *b, uint64_t most)
{
    static const uint64_t steps[] = {2 * MIB, 20 * MIB, 32 * MIB, 64 * MIB};
    stage_table_head("growth: an elastic page gets a chunk, with a new handle and with a kept one");
    qi_json_array(&b->out.json, "growth");
    for (size_t i = 0; i < sizeof steps / sizeof *steps && steps[i] <= most; i++)
        measure_step(b, steps[i]);
    qi_json_end_array(&b->out.json);
}
