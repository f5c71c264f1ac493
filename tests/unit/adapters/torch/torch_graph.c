/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_graph.c - the adapter for torch while streams capture graphs, and private pools: no graph
 * is invalidated, and what a graph uses is not reused elsewhere while its pool has users.
 */
#include "tests/support/torch_client.h"
#include "tests/support/unit.h"

#define MIB (INT64_C(1) << 20)
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

static torch_client c;
static const torch_pool_id POOL = {0, 1}, OTHER = {0, 2};

static void fails(quire_result result, quire_result expected, const char *part)
{
    CHECK_EQ(result, expected);
    CHECK_HAS(torch_message(), part);
}

static void release(torch_pool_id id)
{
    if (torch_release_pool(0, id))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
}

#define CASE(name) TORCH_CASE(torch_graph, name, 1)

/* ---- memory of graphs ----------------------------------------------------------------------- */

CASE(a_graph_reuses_its_memory_and_nothing_else_does)
{
    qi_cu_stream s = c.streams[0];
    torch_client_begin_graph(&c, POOL, s);
    void *a = torch_client_allocate(4 * MIB, s);
    torch_client_free(a, s);
    void *b = torch_client_allocate(4 * MIB, s), *output = torch_client_allocate(MIB, s);
    CHECK(a == b);
    torch_client_free(b, s);
    torch_client_end_graph(&c, POOL, s);
    void *outside = torch_client_allocate(4 * MIB, s);
    CHECK(outside != b);
    torch_client_free(output, s);
    void *small = torch_client_allocate(MIB, s);
    CHECK(small != output);
    release(POOL);
    torch_client_free(outside, s);
    torch_client_free(small, s);
}

CASE(the_memory_of_a_pool_is_released_by_a_reset_after_its_last_user)
{
    qi_cu_stream s = c.streams[0];
    torch_client_begin_graph(&c, POOL, s);
    torch_client_free(torch_client_allocate(4 * MIB, s), s);
    torch_client_end_graph(&c, POOL, s);
    CHECK_EQ(torch_reset(), 0);
    CHECK(torch_client_bytes(&c) >= 4 * (uint64_t)MIB);
    release(POOL);
    CHECK(torch_client_bytes(&c) >= 4 * (uint64_t)MIB);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
}

/* Replays may run on any stream, so that the memory goes to nobody before the device is idle. */
CASE(exhausted_memory_releases_pools_without_users)
{
    qi_cu_stream s = c.streams[0];
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    torch_client_begin_graph(&c, POOL, s);
    void *a = torch_client_allocate(40 * MIB, s);
    torch_client_free(a, s);
    torch_client_end_graph(&c, POOL, s);
    torch_client_work(&c, a, (uint64_t)MIB, c.streams[2]); /* a replay */
    release(POOL);
    void *b = torch_client_allocate(40 * MIB, s);
    CHECK_EQ(c.b.fc->pending(), 0);
    torch_client_free(b, s);
}

CASE(what_outlives_its_graph_stays_until_later_work_on_it_is_done)
{
    qi_cu_stream s = c.streams[0];
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    torch_client_begin_graph(&c, POOL, s);
    void *a = torch_client_allocate(40 * MIB, s);
    torch_client_end_graph(&c, POOL, s);
    release(POOL);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_record_stream(a, c.streams[2]), 0);
    torch_client_work(&c, a, (uint64_t)MIB, c.streams[2]);
    torch_client_free(a, s);
    void *b = torch_client_allocate(40 * MIB, s); /* takes the page of `a` */
    torch_client_free(b, s);
}

CASE(streams_of_a_graph_do_not_exchange_memory)
{
    qi_cu_stream s = c.streams[0], t = c.streams[1];
    c.joins = true;
    torch_client_begin_graph(&c, POOL, s);
    torch_client_begin_capture(&c, t); /* as if it had joined the capture */
    void *a = torch_client_allocate(4 * MIB, s), *used = torch_client_allocate(4 * MIB, s);
    CHECK_EQ(torch_record_stream(used, t), 0);
    torch_client_free(a, s);
    torch_client_free(used, s);
    void *b = torch_client_allocate(4 * MIB, t), *d = torch_client_allocate(4 * MIB, s);
    CHECK(b != a && b != used && d == a);
    void *e = torch_client_allocate(4 * MIB, s);
    CHECK(e != used); /* the graph may use it in t */
    torch_client_free(b, t);
    torch_client_free(d, s);
    torch_client_free(e, s);
    CHECK(torch_client_end_capture(&c, t));
    torch_client_end_graph(&c, POOL, s);
    release(POOL);
}

/* ---- memory of the device during a capture -------------------------------------------------- */

CASE(memory_of_other_streams_comes_and_goes_during_a_capture)
{
    torch_client_begin_graph(&c, POOL, c.streams[0]);
    for (int i = 0; i < 3; i++) {
        void *a = torch_client_allocate((64 << i) * MIB, c.streams[1]);
        CHECK(torch_client_bytes(&c) >= (uint64_t)(64 << i) * MIB);
        torch_client_free(a, c.streams[1]);
        CHECK_EQ(torch_reset(), 0);
        CHECK_EQ(torch_client_bytes(&c), 0);
    }
    torch_client_end_graph(&c, POOL, c.streams[0]);
    release(POOL);
}

CASE(exhausted_memory_does_not_wait_during_a_capture)
{
    void *b = NULL;
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    void *a = torch_client_allocate(40 * MIB, c.streams[1]);
    CHECK_EQ(torch_record_stream(a, c.streams[2]), 0);
    torch_client_work(&c, a, (uint64_t)MIB, c.streams[2]);
    torch_client_free(a, c.streams[1]);
    torch_client_begin_graph(&c, POOL, c.streams[0]);
    fails(torch_allocate(50 * MIB, 0, c.streams[0], &b), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "quire");
    torch_client_end_graph(&c, POOL, c.streams[0]);
    CHECK_EQ(c.b.fc->pending(), 1);
    release(POOL);
    b = torch_client_allocate(50 * MIB, c.streams[0]);
    torch_client_free(b, c.streams[0]);
}

CASE(a_segment_is_freed_without_a_wait_during_a_capture)
{
    void *a = torch_client_allocate(20 * MIB, c.streams[0]);
    torch_client_work(&c, a, (uint64_t)MIB, c.streams[0]);
    torch_client_begin_capture(&c, c.streams[0]);
    CHECK_EQ(torch_free_segment(a, 0, c.streams[0]), 0);
    CHECK(torch_client_end_capture(&c, c.streams[0]));
    CHECK_EQ(c.b.fc->pending(), 1);
}

/* A stream that the adapter first sees while it captures, and without a pool, has no mark yet. */
CASE(frees_that_a_capture_forbids_are_done_after_it)
{
    qi_cu_stream s = c.streams[0], t = c.streams[1];
    void *used = torch_client_allocate(4 * MIB, t);
    torch_client_begin_capture(&c, s);
    void *a = torch_client_allocate(4 * MIB, s);
    torch_client_free(a, s);
    CHECK_EQ(torch_record_stream(used, s), 0);
    torch_client_free(used, t);
    CHECK(torch_client_end_capture(&c, s));
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
}

/* ---- filters and misuse --------------------------------------------------------------------- */

CASE(a_pool_without_a_filter_gets_everything)
{
    const torch_filter all = {.matches = NULL};
    CHECK_EQ(torch_begin_pool(0, POOL, &all), 0);
    void *a = torch_client_allocate(4 * MIB, c.streams[0]);
    CHECK_EQ(torch_end_pool(0, POOL), 0);
    void *b = torch_client_allocate(4 * MIB, c.streams[0]);
    torch_client_free(a, c.streams[0]);
    torch_client_free(b, c.streams[0]);
    release(POOL);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
}

CASE(filters_end_with_their_begin)
{
    torch_filter filters[3];
    for (int i = 0; i < 3; i++)
        filters[i] = torch_client_filter(&c, NULL);
    CHECK_EQ(torch_begin_pool(0, POOL, &filters[0]), 0);
    CHECK_EQ(torch_begin_pool(0, POOL, &filters[1]), 0);
    fails(torch_begin_pool(-1, POOL, &filters[2]), INVALID, "device -1");
    CHECK_EQ(torch_client_filters(), 2);
    CHECK_EQ(torch_end_pool(0, POOL), 0);
    CHECK_EQ(torch_client_filters(), 1);
    release(POOL);
    CHECK_EQ(torch_client_filters(), 1);
    release(POOL); /* of a capture that failed: it was not ended */
    CHECK_EQ(torch_client_filters(), 0);
}

CASE(pools_that_are_not_there_are_refused)
{
    fails(torch_end_pool(0, POOL), INVALID, "pool (0, 1)");
    fails(torch_release_pool(0, POOL), INVALID, "pool (0, 1)");
    torch_client_begin_graph(&c, POOL, c.streams[0]);
    torch_client_end_graph(&c, POOL, c.streams[0]);
    fails(torch_end_pool(0, POOL), INVALID, "pool (0, 1)");
    fails(torch_release_pool(0, OTHER), INVALID, "pool (0, 2)");
    fails(torch_release_pool(7, POOL), INVALID, "device 7");
    release(POOL);
    fails(torch_release_pool(0, POOL), INVALID, "pool (0, 1)");
}
