/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_growth_fault.c - pages of the CUDA backend that grow in place while the driver fails: during
   growth, during its undoing, permanently, and in a forked child. */
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda_growing.h"
#include "tests/support/unit.h"

/* A page whose mappings are unmapped one by one: the first call of cuMemUnmap for a run of them is
   refused. */
static void begin_one_by_one(growing *g, uint64_t size, bool waits)
{
    const fc_options driver = cuda_bench_options(NULL, FC_UNMAPS_ONE);
    const quire_cuda_settings settings = {.chunk_size = 2 * MIB, .wait_before_release = waits};
    growing_begin_with(g, &driver, &settings, QUIRE_CUDA_DEVICE, size, 16 * MIB);
}

/* ---- growths that fail ---------------------------------------------------------------------- */

/* Grows by chunks, one of which is kept, with a fault. Returns true if the fault applied. */
static bool grow_with(const fc_fault *fault, uint64_t allocation)
{
    growing g;
    growing_begin(&g, &(quire_cuda_settings){.chunk_size = 2 * MIB, .kept_bytes = 2 * MIB}, 4 * MIB,
                  16 * MIB);
    growing_write(&g, 0, 4 * MIB);
    CHECK_OK(growing_resize(&g, 2 * MIB)); /* one chunk is kept */
    g.fc->reset_counters();
    if (fault)
        CHECK(g.fc->fail(fault));
    test_memory_fail(&g.b.host_memory, allocation, false);
    quire_result result = growing_resize(&g, 10 * MIB);
    test_memory_fail(&g.b.host_memory, 0, false);
    bool was_met = g.fc->failed().times > 0 || (allocation && result);
    g.fc->heal();
    if (result) {
        CHECK(was_met && *quire_last_error());
        growing_check_handles(&g, 2 * MIB, 1);
        CHECK(g.fc->live(FC_REFERENCE) <= 2); /* the kept chunk */
        CHECK(g.fc->usage_of(0).bytes <= 4 * MIB);
    }
    growing_check(&g, 0, 2 * MIB);
    CHECK_OK(growing_resize(&g, 12 * MIB));
    growing_write(&g, 0, 12 * MIB);
    growing_check(&g, 0, 12 * MIB);
    growing_check_handles(&g, 12 * MIB, 6);
    growing_end(&g);
    return was_met;
}

UNIT(cuda_growth_fault, a_growth_that_fails_changes_nothing)
{
    uint64_t failures = 0;
    bool any = true;
    for (uint32_t code = 0; any; code++) {
        any = false;
        for (uint64_t call = 1; call <= 12; call++)
            any |= grow_with(&(fc_fault){.call = call, .code_index = code}, 0);
        failures += any;
    }
    CHECK(failures > 3);
    for (uint64_t allocation = 1; allocation <= 3; allocation++)
        CHECK(grow_with(NULL, allocation)); /* host memory for the records of three handles */
    CHECK(!grow_with(NULL, 4));
}

/* The undoing fails too: the added chunks remain, and the next growth uses them. */
GROWING_UNIT_EACH(cuda_growth_fault, what_a_failure_leaves_is_gone_on_with, i, 4)
{
    static const char *const steps[] = {"cuMemUnmap", "cuMemRelease"};
    begin_one_by_one(g, 2 * MIB, false);
    growing_write(g, 0, 2 * MIB);
    CHECK(g->fc->fail(&(fc_fault){
        .function = "cuMemSetAccess", .call = 1, .result = QI_CUDA_ERROR_NOT_SUPPORTED}));
    CHECK(g->fc->fail(&(fc_fault){.function = steps[i % 2],
                                  .call = i % 2 ? 2 : 3,
                                  .from_then = true,
                                  .result = QI_CUDA_ERROR_INVALID_VALUE}));
    CHECK(growing_resize(g, 8 * MIB));
    CHECK_EQ(growing_record(g)->padded, 2 * MIB);
    CHECK(g->fc->live(FC_REFERENCE) > 1);
    growing_check(g, 0, 2 * MIB);
    if (i < 2) { /* otherwise the destruction retries it */
        CHECK_OK(growing_resize(g, 6 * MIB));
        growing_write(g, 2 * MIB, 6 * MIB);
        growing_check(g, 0, 6 * MIB);
    }
    g->fc->heal();
    if (i < 2) {
        CHECK_OK(growing_resize(g, 8 * MIB));
        growing_check_handles(g, 8 * MIB, 4);
        CHECK_EQ(g->fc->live(FC_REFERENCE), 4);
    }
}

/* Shrinking cannot fail. Memory that cannot be released at once is released by the next change of
   the size or the destruction. */
GROWING_UNIT_EACH(cuda_growth_fault, becoming_smaller_goes_on_later_where_the_driver_fails, i, 12)
{
    static const char *const steps[] = {"cuCtxPushCurrent", "cuCtxSynchronize", "cuMemUnmap",
                                        "cuMemRelease"};
    static const uint64_t calls[] = {1, 1, 3, 2};
    begin_one_by_one(g, 10 * MIB, true);
    growing_write(g, 0, 10 * MIB);
    CHECK(g->fc->fail(&(fc_fault){.function = steps[i % 4],
                                  .call = calls[i % 4],
                                  .from_then = true,
                                  .result = i % 4 == 1 ? QI_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                       : QI_CUDA_ERROR_INVALID_VALUE}) ||
          g->fc->fail(&(fc_fault){.function = steps[i % 4], .call = 1, .from_then = true}));
    CHECK_OK(growing_resize(g, 4 * MIB));
    CHECK(g->fc->failed().times > 0);
    CHECK(g->fc->live(FC_REFERENCE) > 2);
    g->fc->heal();
    growing_check(g, 0, 4 * MIB);
    if (i / 4 == 1) {
        CHECK_OK(growing_resize(g, 2 * MIB));
        growing_check_handles(g, 2 * MIB, 1);
        CHECK_EQ(g->fc->live(FC_REFERENCE), 1);
    } else if (i / 4 == 2) {
        CHECK_OK(growing_resize(g, 12 * MIB));
        growing_write(g, 4 * MIB, 12 * MIB);
        growing_check(g, 0, 12 * MIB);
        growing_check_handles(g, 12 * MIB, 6);
        CHECK_EQ(g->fc->live(FC_REFERENCE), 6);
    }
}

/* ---- lost devices, forks -------------------------------------------------------------------- */

UNIT(cuda_growth_fault, a_page_of_a_lost_device_can_be_ended)
{
    growing g;
    growing_begin(&g, &(quire_cuda_settings){.chunk_size = 2 * MIB}, 8 * MIB, 16 * MIB);
    g.fc->lose(0, QI_CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_OK(growing_resize(&g, 10 * MIB)); /* its calls belong to no context */
    CHECK_OK(growing_resize(&g, 4 * MIB));
    g.table->page_destroy(g.cuda, &g.page);
    CHECK_OK(quire_device_destroy(&g.b.device));
    CHECK_EQ(g.b.host_memory.blocks, 0);
}

static int in_child(growing *g)
{
    const quire_span more = {4 * MIB, 2 * MIB}, less = {2 * MIB, 2 * MIB};
    if (g->table->page_back(g->cuda, &g->page, &more, 1) != QUIRE_ERROR_NOT_PERMITTED ||
        !strstr(quire_last_error(), "fork"))
        return 1;
    g->table->page_unback(g->cuda, &g->page, &less, 1, false);
    g->table->page_destroy(g->cuda, &g->page);
    if (quire_device_destroy(&g->b.device))
        return 3;
    return g->b.host_memory.blocks ? 4 : 0;
}

GROWING_UNIT(cuda_growth_fault, a_forked_child_cannot_grow_a_page_and_can_end_it)
{
    growing_begin(g, &(quire_cuda_settings){.chunk_size = 2 * MIB}, 4 * MIB, 16 * MIB);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!in_child(g));
    CHECK(child_was_well(child));
    CHECK_OK(growing_resize(g, 6 * MIB));
}
