/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_sleep.c - the adapter for torch with tags: what sleeps and wakes in an elastic memory, with
 * which contents, what is refused, and what happens when calls of the driver fail meanwhile.
 */
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/child.h"
#include "tests/support/torch_client.h"
#include "tests/support/unit.h"

#define MIB (INT64_C(1) << 20)
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

static torch_client c;
static const torch_pool_id POOL = {7, 9};

static void fails(quire_result result, quire_result expected, const char *part)
{
    CHECK_EQ(result, expected);
    CHECK_HAS(torch_message(), part);
}

/* The user chooses an elastic memory. */
static void begin_elastic(void)
{
    CHECK_EQ(setenv("QUIRE_OPTIONS", "elastic", 1), 0);
    torch_client_begin(&c, 1);
}

static void end_elastic(void)
{
    torch_client_end(&c);
    CHECK_EQ(unsetenv("QUIRE_OPTIONS"), 0);
}

#define CASE(name) UNIT_WITHIN(torch_sleep, name, begin_elastic(), end_elastic())

static void *allocate_tagged(const char *tag, int64_t size, void *stream)
{
    CHECK_EQ(torch_set_tag(tag), 0);
    void *pointer = torch_client_allocate(size, stream);
    CHECK_EQ(torch_set_tag(NULL), 0);
    return pointer;
}

static uint64_t put_to_sleep(const char *prefix, bool keep)
{
    uint64_t bytes = 1;
    if (torch_sleep(0, prefix, keep, &bytes))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
    return bytes;
}

static uint64_t wake(const char *prefix)
{
    uint64_t bytes = 1;
    if (torch_wake(0, prefix, &bytes))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
    return bytes;
}

/* Whether the first and the last byte are those of torch_client_work. */
static bool has_work(const void *pointer, int64_t size)
{
    unsigned char first = 0, last = 0;
    const uintptr_t at = (uintptr_t)pointer;
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemcpyDtoH, 3020)(&first, at, 1), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemcpyDtoH, 3020)(&last, at + (uintptr_t)size - 1, 1), 0);
    return first == 1 && last == 1;
}

/* ---- tags ----------------------------------------------------------------------------------- */

static void *see_no_tag(void *unused)
{
    CHECK(!torch_tag());
    CHECK_EQ(torch_set_tag("of another thread"), 0);
    return unused;
}

UNIT(torch_sleep, a_tag_belongs_to_its_thread)
{
    pthread_t thread;
    CHECK(!torch_tag());
    CHECK_EQ(torch_set_tag("weights"), 0);
    CHECK(!pthread_create(&thread, NULL, see_no_tag, NULL));
    CHECK(!pthread_join(thread, NULL));
    CHECK_STR(torch_tag(), "weights");
    CHECK_EQ(torch_set_tag(torch_tag()), 0);
    CHECK_STR(torch_tag(), "weights");
    CHECK_EQ(torch_set_tag(NULL), 0);
    CHECK(!torch_tag());
}

UNIT(torch_sleep, a_tag_that_is_no_name_is_refused_and_the_old_one_stays)
{
    char longest[QUIRE_MAX_NAME + 2];
    memset(longest, 'x', sizeof longest);
    longest[QUIRE_MAX_NAME + 1] = 0;
    CHECK_EQ(torch_set_tag("old"), 0);
    fails(torch_set_tag(""), INVALID, "empty");
    fails(torch_set_tag(longest), INVALID, "256 bytes; at most 255");
    CHECK_STR(torch_tag(), "old");
    longest[QUIRE_MAX_NAME] = 0;
    CHECK_EQ(torch_set_tag(longest), 0);
    CHECK_STR(torch_tag(), longest);
    CHECK_EQ(torch_set_tag(NULL), 0);
}

/* ---- what sleeps ---------------------------------------------------------------------------- */

CASE(a_tag_sleeps_after_the_work_and_wakes_with_its_bytes)
{
    void *a = allocate_tagged("a.weights", 8 * MIB, c.streams[0]);
    void *other = allocate_tagged("b.weights", 4 * MIB, c.streams[0]);
    torch_client_work(&c, a, 8 * MIB, c.streams[0]);
    torch_client_work(&c, other, 4 * MIB, c.streams[1]);
    CHECK(c.b.fc->pending() > 0);
    CHECK_EQ(put_to_sleep("a.", true), 8 * MIB);
    CHECK_EQ(c.b.fc->pending(), 0);
    CHECK_EQ(torch_client_bytes(&c), 4 * MIB);
    CHECK(has_work(other, 4 * MIB));
    CHECK_EQ(put_to_sleep("a.", true), 0);
    CHECK_EQ(wake("b."), 0);
    CHECK_EQ(wake("a."), 8 * MIB);
    CHECK_EQ(torch_client_bytes(&c), 12 * MIB);
    CHECK(has_work(a, 8 * MIB));
    torch_client_free(a, c.streams[0]);
    torch_client_free(other, c.streams[0]);
}

CASE(without_a_tag_everything_sleeps)
{
    void *a = allocate_tagged("cache", 2 * MIB, NULL), *b = torch_client_allocate(6 * MIB, NULL);
    CHECK_EQ(put_to_sleep("no such tag", true), 0);
    CHECK_EQ(put_to_sleep(NULL, false), 8 * MIB);
    CHECK_EQ(torch_client_bytes(&c), 0);
    CHECK_EQ(wake(NULL), 8 * MIB);
    torch_client_work(&c, a, 2 * MIB, NULL);
    torch_client_work(&c, b, 6 * MIB, NULL);
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, CtxSynchronize, 2000)(), 0);
    torch_client_free(a, NULL);
    torch_client_free(b, NULL);
}

/* What was freed before sleeps with nobody: it is collected first. */
CASE(what_waits_for_a_stream_is_collected_first)
{
    void *a = allocate_tagged("a", 4 * MIB, c.streams[0]);
    void *b = allocate_tagged("a", 4 * MIB, c.streams[0]);
    CHECK_EQ(torch_record_stream(a, c.streams[1]), 0);
    torch_client_work(&c, a, MIB, c.streams[1]);
    torch_client_free(a, c.streams[0]);
    CHECK_EQ(put_to_sleep("a", false), 4 * MIB);
    CHECK_EQ(wake("a"), 4 * MIB);
    torch_client_free(b, c.streams[0]);
}

CASE(what_sleeps_can_be_freed_on_any_stream)
{
    void *of[4];
    for (int i = 0; i < 4; i++)
        of[i] = allocate_tagged("a", 2 * MIB, c.streams[i % 2]);
    CHECK_EQ(put_to_sleep("a", true), 8 * MIB);
    fails(torch_record_stream(of[0], c.streams[3]), QUIRE_ERROR_WRONG_STATE, "asleep");
    torch_client_free(of[0], c.streams[0]);
    CHECK_EQ(torch_free_segment(of[1], 0, c.streams[1]), 0);
    torch_client_begin_graph(&c, POOL, c.streams[2]);
    torch_client_free(of[2], c.streams[2]);
    torch_client_end_graph(&c, POOL, c.streams[2]);
    CHECK_EQ(torch_release_pool(0, POOL), 0);
    CHECK_EQ(wake("a"), 2 * MIB);
    torch_client_free(of[3], c.streams[1]);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
}

/* ---- memory that is short ------------------------------------------------------------------- */

CASE(others_use_the_memory_until_the_tag_wakes)
{
    uint64_t bytes = 1;
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    void *a = allocate_tagged("a", 40 * MIB, NULL);
    torch_client_work(&c, a, 40 * MIB, NULL);
    CHECK_EQ(put_to_sleep("a", true), 40 * MIB);
    void *b = torch_client_allocate(40 * MIB, NULL);
    fails(torch_wake(0, "a", &bytes), QUIRE_ERROR_OVER_BUDGET, "wake: a new page of 40 MiB");
    CHECK_EQ(bytes, 0);
    CHECK_EQ(torch_client_bytes(&c), 40 * MIB);
    torch_client_free(b, NULL);
    CHECK_EQ(wake("a"), 40 * MIB);
    CHECK(has_work(a, 40 * MIB));
    torch_client_free(a, NULL);
}

/* ---- refusals ------------------------------------------------------------------------------- */

UNIT(torch_sleep, another_memory_than_an_elastic_one_is_refused)
{
    uint64_t bytes = 1;
    torch_client_begin(&c, 1);
    void *a = allocate_tagged("a", MIB, NULL);
    fails(torch_sleep(0, "a", true, &bytes), QUIRE_ERROR_UNSUPPORTED, "elastic");
    CHECK_EQ(bytes, 0);
    CHECK_OK(torch_wake(0, "a", &bytes)); /* nothing sleeps */
    CHECK_EQ(bytes, 0);
    torch_client_free(a, NULL);
    torch_client_end(&c);
}

CASE(bad_arguments_are_refused)
{
    uint64_t bytes = 1;
    fails(torch_sleep(0, NULL, true, &bytes), INVALID, "device 0 has no allocation");
    fails(torch_wake(0, NULL, &bytes), INVALID, "device 0 has no allocation");
    fails(torch_sleep(-1, NULL, true, &bytes), INVALID, "device -1");
    void *a = torch_client_allocate(MIB, NULL);
    fails(torch_sleep(0, "", true, &bytes), INVALID, "empty");
    fails(torch_wake(0, "", &bytes), INVALID, "empty");
    torch_client_free(a, NULL);
}

CASE(a_capture_is_not_disturbed)
{
    uint64_t bytes = 1;
    void *a = allocate_tagged("a", 2 * MIB, c.streams[0]);
    torch_client_begin_graph(&c, POOL, c.streams[1]);
    fails(torch_sleep(0, "a", true, &bytes), QUIRE_ERROR_BUSY, "device 0");
    fails(torch_wake(0, "a", &bytes), QUIRE_ERROR_BUSY, "device 0");
    void *own = allocate_tagged("a", 2 * MIB, c.streams[1]);
    torch_client_end_graph(&c, POOL, c.streams[1]);
    CHECK_EQ(put_to_sleep("a", true), 2 * MIB); /* what lies in the pool stays awake */
    CHECK_EQ(wake("a"), 2 * MIB);
    torch_client_free(own, c.streams[1]);
    CHECK_EQ(torch_release_pool(0, POOL), 0);
    torch_client_free(a, c.streams[0]);
}

CASE(a_forked_child_puts_nothing_to_sleep)
{
    void *a = allocate_tagged("a", MIB, NULL);
    pid_t child = fork();
    if (!child) {
        uint64_t bytes = 1;
        child_end(torch_sleep(0, "a", true, &bytes) == QUIRE_ERROR_NOT_PERMITTED && !bytes &&
                  torch_wake(0, "a", &bytes) == QUIRE_ERROR_NOT_PERMITTED);
    }
    CHECK(child_was_well(child));
    torch_client_free(a, NULL);
}

/* ---- calls of the driver that fail ---------------------------------------------------------- */

/* Returns whether the call failed, that is, whether there are that many. In each case the bytes
   come back once the driver works again. */
static bool fail_at(uint64_t call, bool from_then)
{
    uint64_t bytes = 1;
    begin_elastic();
    void *a = allocate_tagged("a", 4 * MIB, NULL);
    torch_client_work(&c, a, 4 * MIB, NULL);
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, CtxSynchronize, 2000)(), 0);
    CHECK(c.b.fc->fail(&(fc_fault){.call = call, .from_then = from_then}));
    if (torch_sleep(0, "a", true, &bytes))
        CHECK(*torch_message() && !bytes);
    if (torch_wake(0, "a", &bytes))
        CHECK(*torch_message() && !bytes);
    bool has_failed = c.b.fc->failed().times > 0;
    c.b.fc->heal();
    wake("a");
    CHECK(has_work(a, 4 * MIB));
    torch_client_free(a, NULL);
    for (int i = 0; i < 2; i++) /* the second one retries what the driver refused to release */
        CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
    end_elastic();
    return has_failed;
}

UNIT(torch_sleep, each_call_of_the_driver_fails_once)
{
    uint64_t call = 1;
    while (fail_at(call, false))
        call++;
    CHECK(call > 10);
}

UNIT(torch_sleep, each_call_and_all_after_it_fail)
{
    uint64_t call = 1;
    while (fail_at(call, true))
        call++;
    CHECK(call > 10);
}
