/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_fault.c - the adapter for torch when calls of the driver fail: each call in turn, once and
 * from then on. Nothing is lost, and everything works afterwards.
 */
#include <stdlib.h>

#include "tests/support/torch_client.h"
#include "tests/support/unit.h"

#define MIB (INT64_C(1) << 20)

static torch_client c;
static const torch_pool_id POOL = {0, 1};

/* What the scenario holds; NULL: the allocation failed. */
static void *held[3];

static void allocate(int i, int64_t size, void *stream)
{
    if (torch_allocate(size, 0, stream, &held[i])) {
        CHECK(!held[i]);
        CHECK(*torch_message());
    }
}

/* A free that fails leaves the allocation live. */
static void free_held(int i, void *stream)
{
    if (!torch_free(held[i], 0, stream))
        held[i] = NULL;
}

/* Any step may fail; the test's own calls of the driver come before and after. */
static void run_scenario(void)
{
    const torch_filter all = {.matches = NULL};
    allocate(0, 3 * MIB, NULL);
    allocate(1, MIB, c.streams[0]);
    if (held[1] && torch_record_stream(held[1], c.streams[1]))
        CHECK(*torch_message());
    free_held(1, c.streams[0]);
    if (!torch_begin_pool(0, POOL, &all)) {
        allocate(2, 4 * MIB, c.streams[2]);
        free_held(2, c.streams[2]);
        CHECK_EQ(torch_end_pool(0, POOL), 0);
        CHECK_EQ(torch_release_pool(0, POOL), 0);
    }
    (void)!torch_reset();
    (void)!torch_set_fraction(0.5, 0);
    free(torch_statistics());
    free(torch_snapshot());
}

/* Allocates, frees and releases what is empty. */
static void come_and_go(void)
{
    torch_client_free(torch_client_allocate(MIB, c.streams[0]), c.streams[0]);
    CHECK_EQ(torch_reset(), 0);
}

/* The second page retries what the driver refused to release. */
static void check_after(void)
{
    void *streams[3] = {NULL, c.streams[0], c.streams[2]};
    c.b.fc->heal();
    CHECK_EQ(torch_set_fraction(1, 0), 0);
    for (int i = 0; i < 3; i++)
        if (held[i])
            torch_client_free(held[i], streams[i]);
    come_and_go();
    come_and_go();
    CHECK_EQ(torch_client_bytes(&c), 0);
}

/* Returns whether the call failed, that is, whether there are that many. */
static bool fail_at(uint64_t call, bool from_then)
{
    memset(held, 0, sizeof held);
    torch_client_begin(&c, 1);
    CHECK(c.b.fc->fail(&(fc_fault){.call = call, .from_then = from_then}));
    run_scenario();
    bool has_failed = c.b.fc->failed().times > 0;
    check_after();
    torch_client_end(&c);
    return has_failed;
}

UNIT(torch_fault, each_call_of_the_driver_fails_once)
{
    uint64_t call = 1;
    while (fail_at(call, false))
        call++;
    CHECK(call > 40);
}

UNIT(torch_fault, each_call_and_all_after_it_fail)
{
    uint64_t call = 1;
    while (fail_at(call, true))
        call++;
    CHECK(call > 40);
}
