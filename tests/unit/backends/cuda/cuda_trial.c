/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_trial.c - the trial allocations of an opening device: host nodes at which the driver creates
 * no memory, and pages that are capable of RDMA and exportable where the driver grants that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/cuda/open.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

/* ---- the log --------------------------------------------------------------------------------- */

typedef struct log_lines {
    int warnings;
    char last[512];
} log_lines;

static void write_line(void *user, quire_log_level level, const char *line)
{
    log_lines *lines = user;
    if (level != QUIRE_LOG_WARNING)
        return;
    lines->warnings++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static quire_cuda_settings logged(log_lines *lines)
{
    *lines = (log_lines){.warnings = 0};
    return (quire_cuda_settings){.device = {.log = {.write = write_line, .user = lines}}};
}

/* ---- host nodes ------------------------------------------------------------------------------ */

static bool has_node(cuda_bench *b, int32_t node)
{
    uint32_t kind;
    return !quire_cuda_find_kind(b->device, QUIRE_CUDA_HOST_NUMA, node, &kind);
}

static fc_options two_nodes(uint32_t refused)
{
    fc_options options = cuda_bench_options("gh200", 0);
    options.numa_nodes = 2;
    options.refused_nodes = refused;
    return options;
}

/* Drivers crash there: quire calls nothing for a host node that nobody names. */
CUDA_UNIT(cuda_trial, a_host_node_that_is_not_named_is_not_tried)
{
    log_lines lines;
    quire_cuda_info info;
    fc_options driver = two_nodes(0x3);
    quire_cuda_settings settings = logged(&lines);
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &settings));
    CHECK(!has_node(b, -1));
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    CHECK(info.has_host_numa);
    CHECK_EQ(lines.warnings, 0);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 1); /* of the trial of device memory */
    CHECK_EQ(b->fc->usage_of(-1).peak, 0);
}

CUDA_UNIT(cuda_trial, a_host_node_that_is_named_and_has_no_memory_is_refused)
{
    fc_options driver = two_nodes(0x2);
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.numa_nodes = 0x1}));
    CHECK(has_node(b, 0) && !has_node(b, 1));
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK(!cuda_bench_open(b, &(quire_cuda_settings){.numa_nodes = 0x3}));
    CHECK_EQ(b->result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "host node 1");
    CHECK_HAS(quire_last_error(), "CUDA_ERROR_INVALID_VALUE");
    CHECK_EQ(quire_last_native_code(), QI_CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(b->fc->leaks(), 0);
}

/* Before 12.9 the driver does not know the attribute, so the trial decides. */
UNIT(cuda_trial, host_nodes_are_offered_from_driver_12_2_on)
{
    static const struct {
        int version;
        bool is_offered;
    } cases[] = {{12010, false}, {12020, true}, {12090, true}, {13000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cuda_bench b;
        fc_options driver = two_nodes(0);
        driver.version = cases[i].version;
        cuda_bench_begin(&b, &driver);
        CHECK_EQ(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(HOST_NUMA)}),
                 cases[i].is_offered);
        CHECK_EQ(b.fc->usage_of(-1).bytes, 0); /* the trial is released at once */
        if (b.device)
            CHECK_OK(quire_allocate(cuda_bench_memory(&b, QUIRE_CUDA_HOST_NUMA, &SMALL),
                                    &(quire_allocation_options){.size = 100},
                                    &(quire_allocation){.id = 0}));
        cuda_bench_end(&b);
    }
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_EQ(remove(path), 0);
}

/* A trial allocation at a node without memory crashes in some drivers. */
UNIT(cuda_trial, the_system_reports_nodes_without_memory)
{
    char folder[] = "/tmp/quire-nodes-XXXXXX";
    CHECK(mkdtemp(folder));
    CHECK(!qi_cuda_lacks_memory(folder, 0)); /* unknown */
    write_file(folder, "online", "0-3,8,10-11\n");
    CHECK(!qi_cuda_lacks_memory(folder, 1));
    write_file(folder, "has_memory", "0,2-3,11\n");
    static const bool lacks[] = {false, true,  false, false, false, false,
                                 false, false, true,  false, true,  false};
    for (int node = 0; node < 12; node++)
        CHECK_EQ(qi_cuda_lacks_memory(folder, node), lacks[node]);
    write_file(folder, "has_memory", "\n");
    CHECK(qi_cuda_lacks_memory(folder, 0));
    write_file(folder, "has_memory", "damaged");
    CHECK(qi_cuda_lacks_memory(folder, 0));
    remove_file(folder, "online");
    CHECK(!qi_cuda_lacks_memory(folder, 0));
    remove_file(folder, "has_memory");
    CHECK_EQ(rmdir(folder), 0);
}

/* ---- RDMA and descriptors -------------------------------------------------------------------- */

static quire_cuda_range range_of_new(quire_memory *memory, uint64_t size)
{
    quire_allocation a;
    quire_cuda_range range;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &a));
    CHECK_OK(quire_cuda_get_range(memory, a, &range));
    return range;
}

UNIT(cuda_trial, device_pages_are_as_the_driver_grants_them)
{
    static const struct {
        uint32_t with, without;
        bool is_rdma;
        quire_cuda_handle_types types;
        const char *warning;
    } cases[] = {
        {0, 0, true, QUIRE_CUDA_FD, NULL},
        {0, FC_RDMA, false, QUIRE_CUDA_FD, NULL},
        {0, FC_POSIX_FD, true, 0, NULL},
        {0, FC_RDMA | FC_POSIX_FD, false, 0, NULL},
        {FC_RDMA_REFUSED, 0, false, QUIRE_CUDA_FD, "GPUDirect RDMA"},
        {FC_RDMA_INACCESSIBLE, 0, false, QUIRE_CUDA_FD, "GPUDirect RDMA"},
        {FC_FD_REFUSED, 0, true, 0, "descriptors"},
        {FC_RDMA_REFUSED | FC_FD_REFUSED, 0, false, 0, "descriptors"},
        {FC_RDMA_UNGRANTED, 0, false, QUIRE_CUDA_FD, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cuda_bench b;
        log_lines lines;
        fc_model model = *fc_model_named("a100");
        quire_cuda_settings settings = logged(&lines);
        model.features = (model.features | cases[i].with) & ~cases[i].without;
        cuda_bench_begin(&b, &(fc_options){.models = {&model}});
        CHECK(cuda_bench_open(&b, &settings));
        CHECK_EQ(b.fc->leaks(), 1); /* the context */
        CHECK_EQ(lines.warnings, cases[i].warning != NULL);
        if (cases[i].warning)
            CHECK_HAS(lines.last, cases[i].warning);
        quire_memory *memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
        quire_cuda_range range = range_of_new(memory, 100);
        CHECK_EQ(range.is_rdma_capable, cases[i].is_rdma);
        CHECK_EQ(range.export_types, cases[i].types);
        CHECK_EQ(range.padded_size, 2 * MIB);
        cuda_bench_end(&b);
    }
}

/* Without an exportable intent. */
CUDA_UNIT_ON(cuda_trial, a_device_page_is_exported_by_default, cuda_bench_begin(b, NULL))
{
    quire_allocation a;
    CHECK(cuda_bench_open(b, NULL));
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
    CHECK_OK(quire_cuda_export_fd(memory, a, &b->descriptor));
    CHECK(b->descriptor >= 0);
}

/* Pages of several handles cannot be exported, but they can be RDMA-capable. cuda_memory.c has
   pages that grow. */
CUDA_UNIT_ON(cuda_trial, only_pages_of_one_handle_are_exportable, cuda_bench_begin(b, NULL))
{
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.chunk_size = 2 * MIB}));
    quire_cuda_range range =
        range_of_new(cuda_bench_memory(b, QUIRE_CUDA_DEVICE,
                                       &(quire_memory_options){.pages = {.page_size = 8 * MIB}}),
                     100);
    CHECK_EQ(range.handle_count, 4);
    CHECK_EQ(range.export_types, 0);
    CHECK(range.is_rdma_capable);
}

/* Nothing is known of a device without free memory, so its pages are plain. */
CUDA_UNIT_ON(cuda_trial, a_full_device_opens_with_plain_pages, cuda_bench_begin(b, NULL))
{
    b->fc->set_capacity(0, MIB);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE)}));
    CHECK_EQ(b->fc->calls("cuMemCreate"), 1); /* no other trial can succeed */
    b->fc->set_capacity(0, 0);
    quire_cuda_range range = range_of_new(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL), 100);
    CHECK(!range.is_rdma_capable);
    CHECK_EQ(range.export_types, 0);
}

/* A driver that shuts down and missing host memory are no answer to the trial: the device does not
   open. */
UNIT(cuda_trial, a_trial_that_cannot_be_made_is_an_error)
{
    const quire_cuda_settings only_device = {.kinds = CUDA_KIND(DEVICE)};
    cuda_bench b;
    uint32_t refused = 0;
    cuda_bench_begin(&b, NULL);
    CHECK(b.fc->fail(
        &(fc_fault){.function = "cuMemCreate", .call = 1, .result = QI_CUDA_ERROR_DEINITIALIZED}));
    CHECK(!cuda_bench_open(&b, &only_device));
    CHECK_EQ(b.result, QUIRE_ERROR_DEVICE_LOST);
    cuda_bench_end(&b);
    for (uint64_t call = 1; call == 1 || !b.device; call++) {
        cuda_bench_begin(&b, NULL);
        test_memory_fail(&b.host_memory, call, false);
        if (!cuda_bench_open(&b, &only_device)) {
            CHECK_EQ(b.result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            refused++;
            cuda_bench_end(&b);
        }
    }
    CHECK(refused > 2);
    test_memory_fail(&b.host_memory, 0, false);
    CHECK(range_of_new(cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL), 100).is_rdma_capable);
    cuda_bench_end(&b);
}

CUDA_UNIT(cuda_trial, a_refused_trial_leaves_the_last_error)
{
    fc_model model = *fc_model_named("a100");
    model.features |= FC_RDMA_REFUSED;
    cuda_bench_begin(b, &(fc_options){.models = {&model}});
    CHECK_FAILS(quire_device_destroy(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    char before[256];
    snprintf(before, sizeof before, "%s", quire_last_error());
    CHECK(cuda_bench_open(b, NULL));
    CHECK(!strcmp(quire_last_error(), before));
}

/* Fabric handles are for exportable intents. */
CUDA_UNIT(cuda_trial, settings_without_descriptors_make_no_page_exportable)
{
    fc_options driver = cuda_bench_options("gh200", 0);
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.export_types = QUIRE_CUDA_FABRIC}));
    quire_cuda_range range = range_of_new(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL), 100);
    CHECK_EQ(range.export_types, 0);
    CHECK(range.is_rdma_capable);
}

CUDA_UNIT_ON(cuda_trial, the_kind_reports_what_its_pages_request, cuda_bench_begin(b, NULL))
{
    uint32_t kind;
    quire_cuda_kind_info info;
    CHECK(cuda_bench_open(b, NULL));
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_DEVICE, -1, &kind));
    CHECK_OK(quire_cuda_get_kind_info(b->device, kind, &info));
    CHECK(info.is_rdma_capable);
    CHECK_EQ(info.export_types, QUIRE_CUDA_FD);
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_PINNED, -1, &kind));
    CHECK_OK(quire_cuda_get_kind_info(b->device, kind, &info));
    CHECK(!info.is_rdma_capable);
    CHECK_EQ(info.export_types, 0);
}

/* The driver refuses to release a trial: the next page or the end of the device retries it. */
CUDA_UNIT_EACH(cuda_trial, a_trial_that_is_not_released_is_retried, i, 3)
{
    static const char *const steps[] = {"cuMemUnmap", "cuMemRelease", "cuMemAddressFree"};
    cuda_bench_begin(b, NULL);
    CHECK(b->fc->fail(
        &(fc_fault){.function = steps[i], .call = 1, .result = QI_CUDA_ERROR_INVALID_VALUE}));
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kept_bytes = 64 * MIB}));
    CHECK_EQ(b->fc->live(FC_RESERVATION), 1);
    range_of_new(cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL), 100);
    CHECK_EQ(b->fc->live(FC_RESERVATION), 1);
    CHECK_EQ(b->fc->live(FC_MEMORY), 1);
}
