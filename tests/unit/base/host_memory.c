/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host_memory.c - host memory for the library's records: zeroed, aligned, counted, and NULL if a
   size overflows. */
#include "src/base/host_memory.h"

#include <pthread.h>

#include "tests/support/unit.h"

static qi_host make_host(void)
{
    qi_host host;
    CHECK_OK(qi_host_init(&host, unit_memory()));
    return host;
}

static void expect_counters(const qi_host *host, uint64_t bytes, uint64_t peak)
{
    CHECK_EQ(qi_atomic_load_u64(&host->bytes), bytes);
    CHECK_EQ(qi_atomic_load_u64(&host->peak), peak);
}

static bool is_filled(const void *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)bytes)[i] != value)
            return false;
    return true;
}

/* ---- callbacks that return dirty memory, or NULL, and record their arguments ---------------- */

typedef struct dirty {
    _Alignas(64) unsigned char room[512];
    size_t size, alignment;
    int allocations, releases;
    bool refuses;
} dirty;

static void *dirty_allocate(void *user, size_t size, size_t alignment)
{
    dirty *d = user;
    d->allocations++;
    d->size = size;
    d->alignment = alignment;
    if (d->refuses)
        return NULL;
    memset(d->room, 0xaa, sizeof d->room);
    return d->room;
}

static void dirty_release(void *user, void *pointer, size_t size, size_t alignment)
{
    dirty *d = user;
    CHECK(pointer == d->room && size == d->size && alignment == d->alignment);
    d->releases++;
}

static qi_host make_dirty_host(dirty *d)
{
    qi_host host;
    *d = (dirty){0};
    CHECK_OK(qi_host_init(&host, &(quire_host_memory){dirty_allocate, dirty_release, d}));
    return host;
}

/* ---- the callbacks ------------------------------------------------------------------------- */

UNIT(host_memory, incomplete_callbacks_are_rejected)
{
    qi_host host;
    quire_host_memory no_release = {.allocate = dirty_allocate};
    quire_host_memory no_allocate = {.release = dirty_release};
    CHECK_FAILS(qi_host_init(&host, &no_release), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "both allocate and release");
    CHECK_FAILS(qi_host_init(&host, &no_allocate), QUIRE_ERROR_INVALID_ARGUMENT);
}

UNIT(host_memory, null_callbacks_mean_libc)
{
    const quire_host_memory empty = {0}, *const choices[] = {NULL, &empty};
    for (int i = 0; i < 2; i++) {
        qi_host host;
        CHECK_OK(qi_host_init(&host, choices[i]));
        for (size_t size = 1; size < 200; size++) {
            void *block = qi_host_allocate(&host, 1, size);
            CHECK(block != NULL);
            CHECK_EQ((uintptr_t)block % (size < 64 ? 16 : 64), 0);
            CHECK(is_filled(block, size, 0));
            memset(block, 0xff, size); /* every byte is usable */
            qi_host_release(&host, block, 1, size);
        }
        expect_counters(&host, 0, 199);
    }
}

UNIT(host_memory, the_callbacks_get_user_size_and_cache_line_alignment)
{
    dirty d;
    qi_host host = make_dirty_host(&d);
    void *block = qi_host_allocate(&host, 5, 24);
    CHECK(block == d.room);
    CHECK_EQ(d.size, 120);
    CHECK_EQ(d.alignment, 64);
    qi_host_release(&host, block, 5, 24);
    CHECK_EQ(d.releases, 1);
}

UNIT(host_memory, dirty_memory_is_zeroed_up_to_its_end)
{
    dirty d;
    qi_host host = make_dirty_host(&d);
    unsigned char *block = qi_host_allocate(&host, 3, 33);
    CHECK(is_filled(block, 99, 0));
    CHECK(is_filled(block + 99, sizeof d.room - 99, 0xaa));
    qi_host_release(&host, block, 3, 33);
}

/* ---- rejected requests --------------------------------------------------------------------- */

UNIT(host_memory, a_product_that_overflows_never_reaches_the_callbacks)
{
    dirty d;
    qi_host host = make_dirty_host(&d);
    d.refuses = true;
    CHECK(!qi_host_allocate(&host, UINT64_MAX, 2));
    CHECK(!qi_host_allocate(&host, (UINT64_C(1) << 32) + 1, UINT64_C(1) << 32));
    CHECK(!qi_host_allocate(&host, UINT64_MAX, UINT64_MAX));
    CHECK(!qi_host_allocate(&host, 1, (size_t)PTRDIFF_MAX + 1));
    CHECK_EQ(d.allocations, 0);
    CHECK(!qi_host_allocate(&host, 1, PTRDIFF_MAX)); /* the callback returns NULL */
    CHECK_EQ(d.allocations, 1);
    CHECK_EQ(d.size, PTRDIFF_MAX);
    expect_counters(&host, 0, 0);
}

UNIT(host_memory, a_count_of_0_returns_null)
{
    dirty d;
    qi_host host = make_dirty_host(&d);
    CHECK(!qi_host_allocate(&host, 0, 8));
    CHECK_EQ(d.allocations, 0);
}

UNIT(host_memory, releasing_nothing_does_nothing)
{
    dirty d;
    qi_host host = make_dirty_host(&d);
    qi_host_release(&host, NULL, 100, 8);
    qi_host_release_text(&host, NULL);
    CHECK_EQ(d.releases, 0);
    expect_counters(&host, 0, 0);
}

UNIT(host_memory, a_failed_callback_is_not_counted)
{
    qi_host host = make_host();
    test_memory_fail(unit_memory_state(), 1, false);
    CHECK(!qi_host_allocate(&host, 10, 10));
    expect_counters(&host, 0, 0);
    void *block = qi_host_allocate(&host, 10, 10);
    CHECK(block != NULL);
    expect_counters(&host, 100, 100);
    qi_host_release(&host, block, 10, 10);
}

/* ---- the counters -------------------------------------------------------------------------- */

UNIT(host_memory, bytes_follow_frees_and_the_peak_stays)
{
    qi_host host = make_host();
    void *a = qi_host_allocate(&host, 10, 8);
    expect_counters(&host, 80, 80);
    void *b = qi_host_allocate(&host, 1, 20);
    expect_counters(&host, 100, 100);
    qi_host_release(&host, a, 10, 8);
    expect_counters(&host, 20, 100);
    void *c = qi_host_allocate(&host, 79, 1);
    expect_counters(&host, 99, 100);
    qi_host_release(&host, b, 1, 20);
    qi_host_release(&host, c, 79, 1);
    expect_counters(&host, 0, 100);
}

static void *churn(void *host)
{
    for (size_t i = 0; i < 5000; i++) {
        size_t size = 1 + i % 100;
        void *block = qi_host_allocate(host, 1, size);
        if (block)
            qi_host_release(host, block, 1, size);
    }
    return NULL;
}

UNIT(host_memory, counts_are_exact_with_several_threads)
{
    qi_host host = make_host();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, churn, &host), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
    uint64_t peak = qi_atomic_load_u64(&host.peak);
    CHECK(peak >= 100 && peak <= 400);
}

/* ---- resizing ------------------------------------------------------------------------------ */

static uint32_t *numbered(qi_host *host, uint32_t count)
{
    uint32_t *numbers = qi_host_allocate(host, count, sizeof *numbers);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i + 1;
    return numbers;
}

UNIT(host_memory, growing_keeps_the_bytes_and_zeroes_the_rest)
{
    qi_host host = make_host();
    uint32_t *numbers = qi_host_resize(&host, numbered(&host, 10), 10, 25, sizeof *numbers);
    for (uint32_t i = 0; i < 25; i++)
        CHECK_EQ(numbers[i], i < 10 ? i + 1 : 0);
    expect_counters(&host, 100, 140); /* both blocks exist for a moment */
    qi_host_release(&host, numbers, 25, sizeof *numbers);
}

UNIT(host_memory, shrinking_keeps_the_first_bytes)
{
    qi_host host = make_host();
    uint32_t *numbers = qi_host_resize(&host, numbered(&host, 25), 25, 10, sizeof *numbers);
    for (uint32_t i = 0; i < 10; i++)
        CHECK_EQ(numbers[i], i + 1);
    expect_counters(&host, 40, 140);
    qi_host_release(&host, numbers, 10, sizeof *numbers);
}

UNIT(host_memory, resizing_null_allocates)
{
    qi_host host = make_host();
    uint32_t *numbers = qi_host_resize(&host, NULL, 0, 7, sizeof *numbers);
    CHECK(is_filled(numbers, 28, 0));
    qi_host_release(&host, numbers, 7, sizeof *numbers);
}

UNIT(host_memory, a_resize_that_fails_leaves_the_old_array)
{
    qi_host host = make_host();
    uint32_t *numbers = numbered(&host, 10);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK(!qi_host_resize(&host, numbers, 10, 20, sizeof *numbers));
    CHECK(!qi_host_resize(&host, numbers, 10, UINT64_MAX, sizeof *numbers));
    CHECK(!qi_host_resize(&host, numbers, 10, 0, sizeof *numbers));
    for (uint32_t i = 0; i < 10; i++)
        CHECK_EQ(numbers[i], i + 1);
    expect_counters(&host, 40, 40);
    qi_host_release(&host, numbers, 10, sizeof *numbers);
}

/* ---- texts --------------------------------------------------------------------------------- */

UNIT(host_memory, a_copied_text_is_a_separate_block)
{
    qi_host host = make_host();
    char original[] = "label";
    char *copy = qi_host_copy_text(&host, original), *empty = qi_host_copy_text(&host, "");
    expect_counters(&host, 7, 7);
    original[0] = 'x';
    CHECK_STR(copy, "label");
    CHECK_STR(empty, "");
    qi_host_release_text(&host, copy);
    qi_host_release_text(&host, empty);
    expect_counters(&host, 0, 7);
}

UNIT(host_memory, a_text_copy_without_host_memory_is_null)
{
    qi_host host = make_host();
    test_memory_fail(unit_memory_state(), 1, false);
    CHECK(!qi_host_copy_text(&host, "label"));
    expect_counters(&host, 0, 0);
}
