/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_peaks.c - how many bytes of the device a trace needs at its peak: with quire's pages, with
 * an elastic page, and with the driver's pool.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "quire/quire.h"
#include "quire/trace.h"
#include "src/base/result.h"
#include "src/base/system.h"

typedef struct peak_row {
    const char *subject;
    uint64_t reserved, refused, ns; /* bytes at the peak, refused allocations, time of the replay */
    char error[128];                /* why there are no figures; empty if there are */
} peak_row;

/* ---- quire ---------------------------------------------------------------------------------- */

static void replay_quire(const quire_trace *trace, const quire_memory_options *options,
                         peak_row *row)
{
    quire_memory *memory = NULL;
    quire_replay_report report = {0};
    if (quire_memory_create(the_cuda.device, options, &memory) ||
        quire_trace_replay(trace, memory, NULL, &report))
        snprintf(row->error, sizeof row->error, "%.127s", quire_last_error());
    row->reserved = report.peak_reserved_bytes;
    row->refused = report.failures;
    row->ns = report.wall_ns;
    quire_memory_destroy_all(&memory);
}

static void replay_pages(const quire_trace *trace, peak_row *row)
{
    replay_quire(trace, NULL, row);
}

static void replay_elastic(const quire_trace *trace, peak_row *row)
{
    replay_quire(trace, &(quire_memory_options){.elastic = true}, row);
}

/* ---- the driver's pool ---------------------------------------------------------------------- */

static void play_pool(const quire_trace *trace, const quire_trace_info *info, qi_cu_ptr *blocks,
                      peak_row *row)
{
    quire_trace_event event;
    for (uint64_t i = 0; i < info->event_count && !quire_trace_get_event(trace, i, &event); i++) {
        qi_cu_ptr *block = &blocks[event.range];
        if (event.op == QUIRE_TRACE_ALLOC &&
            the_cuda.f.MemAllocAsync(block, event.size, the_cuda.stream)) {
            *block = 0;
            row->refused++;
        } else if (event.op == QUIRE_TRACE_FREE && *block) {
            (void)the_cuda.f.MemFreeAsync(*block, the_cuda.stream);
            *block = 0;
        }
    }
}

/* The pool keeps everything, as an allocator that caches does. */
static void replay_pool(const quire_trace *trace, peak_row *row)
{
    quire_trace_info info;
    uint64_t zero = 0;
    qi_ignore(quire_trace_get_info(trace, &info));
    qi_cu_ptr *blocks = calloc(info.peak_ranges + 1, sizeof *blocks);
    qi_cu_result code =
        the_cuda.pool && blocks ? cuda_driver_keep(true) : QI_CUDA_ERROR_NOT_SUPPORTED;
    if (!code)
        code = the_cuda.f.MemPoolSetAttribute(the_cuda.pool, QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                              &zero);
    if (!code) {
        uint64_t since = qi_clock();
        play_pool(trace, &info, blocks, row);
        row->ns = qi_clock() - since;
        code = the_cuda.f.MemPoolGetAttribute(the_cuda.pool, QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                              &row->reserved);
        for (uint64_t i = 0; i < info.peak_ranges; i++)
            if (blocks[i])
                (void)the_cuda.f.MemFreeAsync(blocks[i], the_cuda.stream);
        (void)cuda_driver_keep(false);
    }
    if (code)
        snprintf(row->error, sizeof row->error, "%.127s", cuda_driver_error(code));
    free(blocks);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void report(memory_bench *b, const char *trace, uint64_t live, const peak_row *row)
{
    qi_json *json = &b->out.json;
    double ratio = live ? (double)row->reserved / (double)live : 0;
    qi_json_object(json, NULL);
    qi_json_text(json, "trace", trace);
    qi_json_text(json, "subject", row->subject);
    qi_json_text(json, "refused", row->error[0] ? row->error : NULL);
    printf("  %-40s %-18s", trace, row->subject);
    if (row->error[0]) {
        printf(" %s\n", row->error);
    } else {
        qi_json_number(json, "live", live);
        qi_json_number(json, "reserved", row->reserved);
        qi_json_number(json, "refused_allocations", row->refused);
        qi_json_number(json, "replay_ns", row->ns);
        printf(" %10.1f %10.1f %7.3f %8" PRIu64 " %9.2f\n", (double)live / 1048576,
               (double)row->reserved / 1048576, ratio, row->refused, (double)row->ns / 1e6);
    }
    fflush(stdout);
    qi_json_end_object(json);
}

static void measure_trace(memory_bench *b, const char *name, const quire_trace *trace)
{
    static const struct {
        const char *name;
        void (*replay)(const quire_trace *trace, peak_row *row);
    } subjects[] = {{"quire, pages", replay_pages},
                    {"quire, elastic", replay_elastic},
                    {"cuMemPool", replay_pool}};
    quire_trace_info info;
    qi_ignore(quire_trace_get_info(trace, &info));
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        peak_row row = {.subject = subjects[i].name};
        subjects[i].replay(trace, &row);
        report(b, name, info.peak_bytes, &row);
    }
}

/* Returns NULL after a message. The caller frees it. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    if (file && !fseek(file, 0, SEEK_END)) {
        long length = ftell(file);
        text = length > 0 ? malloc((size_t)length) : NULL;
        rewind(file);
        *size = text ? fread(text, 1, (size_t)length, file) : 0;
    }
    if (file)
        fclose(file);
    if (!text)
        fprintf(stderr, "bench_cuda: %s cannot be read\n", path);
    return text;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void measure_peaks(memory_bench *b, const patterns *traces)
{
    printf("\npeaks: bytes of the device at the peak of a trace; MiB, and ms of the replay\n"
           "  %-40s %-18s %10s %10s %7s %8s %9s\n",
           "", "", "live", "reserved", "ratio", "refused", "replay");
    qi_json_array(&b->out.json, "peaks");
    for (size_t i = 0; i < traces->count; i++) {
        const char *name = base_name(traces->items[i]);
        quire_trace *trace = NULL;
        size_t size = 0;
        char *text = read_file(traces->items[i], &size);
        if (text && quire_trace_parse(name, text, size, NULL, &trace))
            fprintf(stderr, "bench_cuda: %s\n", quire_last_error());
        if (trace)
            measure_trace(b, name, trace);
        quire_trace_destroy(&trace);
        free(text);
    }
    qi_json_end_array(&b->out.json);
}
