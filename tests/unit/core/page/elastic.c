/*
 * elastic.c - the page of an elastic memory: when and by how much it grows, and what keeps its
 * offset. Shrinking is in elastic_shrink.c, several threads are in elastic_threads.c.
 */
#include "tests/support/elastic_page.h"

#define CASE(name) UNIT_ON(elastic, name, fixture, f, make(f), fixture_end)

/* ---- growing -------------------------------------------------------------------------------- */

CASE(the_free_end_and_the_growth_serve_one_request)
{
    quire_allocation_info first = fixture_info(f, ALLOCATE(f, .size = 40 * KIB));
    expect_page(f, PAGE);
    CHECK_EQ(f->fake.last_page.max_size, MAX_SIZE);
    quire_allocation_info second = fixture_info(f, ALLOCATE(f, .size = 40 * KIB));
    CHECK_EQ(second.page, first.page);
    CHECK_EQ(second.offset, first.offset + 40 * KIB);
    CHECK_EQ(second.address, first.address + 40 * KIB);
    expect_page(f, 2 * PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_RESIZE], 1);
    ALLOCATE(f, .size = 48 * KIB);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_RESIZE], 1);
}

CASE(it_grows_as_much_as_a_large_request_needs)
{
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 500 * KIB)).offset, 60 * KIB);
    expect_page(f, 560 * KIB);
}

CASE(alignment_is_counted_from_the_start_of_the_free_end)
{
    ALLOCATE(f, .size = 33 * KIB);
    quire_allocation_info info =
        fixture_info(f, ALLOCATE(f, .size = 100 * KIB, .alignment = 32 * KIB));
    CHECK_EQ(info.offset, 64 * KIB);
    CHECK_EQ(info.address % (32 * KIB), 0);
    expect_page(f, 164 * KIB);
}

UNIT_PREPARED(elastic, the_native_address_is_aligned, f)
{
    fake_offer_growth(&f->fake);
    f->fake.address_step = 4096 + 64;
    f->fake.info.limits.page_alignment = 64;
    fixture_open(f, &(quire_memory_options){
                        .contiguous = true, .address_space = MAX_SIZE, .pages.page_size = PAGE});
    ALLOCATE(f, .size = 40 * KIB);
    for (uint64_t i = 0; i < 20; i++) {
        quire_allocation before = ALLOCATE(f, .size = 1 + i * 512);
        quire_allocation made = ALLOCATE(f, .size = 200 * KIB, .alignment = 8 * KIB);
        CHECK_EQ(fixture_info(f, made).address % (8 * KIB), 0);
        CHECK_EQ(stats_of(f).page_count, 1);
        CHECK_OK(quire_free(f->memory, made));
        CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
        CHECK_OK(quire_free(f->memory, before));
    }
}

#define CASE_WITH(name, ...)                                                                       \
    UNIT_ON(elastic, name, fixture, f, make_with(f, __VA_ARGS__), fixture_end)

CASE_WITH(within_a_limit_it_grows_by_less, &(quire_memory_options){.limit = 100 * KIB})
{
    ALLOCATE(f, .size = 40 * KIB);
    ALLOCATE(f, .size = 40 * KIB);
    expect_page(f, 96 * KIB); /* not 128: growth by half of the step */
    quire_allocation none;
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 24 * KIB}, &none),
                QUIRE_ERROR_OVER_BUDGET);
    expect_page(f, 96 * KIB);
    ALLOCATE(f, .size = 20 * KIB); /* the rest of the limit */
    expect_page(f, 100 * KIB);
}

CASE_WITH(growth_ends_at_the_last_address, &(quire_memory_options){.address_space = 100 * KIB})
{
    quire_allocation none;
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 41 * KIB}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "100 KiB");
    expect_page(f, PAGE);
    ALLOCATE(f, .size = 40 * KIB);
    expect_page(f, 100 * KIB);
}

CASE_WITH(a_first_request_above_the_address_space_gets_a_page_that_holds_it,
          &(quire_memory_options){.address_space = 32 * KIB})
{
    ALLOCATE(f, .size = 200 * KIB);
    expect_page(f, 200 * KIB);
    CHECK_EQ(f->fake.last_page.max_size, 200 * KIB);
}

UNIT(elastic, it_works_with_every_option_of_every_fit)
{
    static const quire_memory_options CASES[] = {{.fit.algorithm = QUIRE_FIT_FIRST},
                                                 {.fit.slabs = true},
                                                 {.fit.least_fragmentation = true},
                                                 {.fit.granule = 4096}};
    for (size_t n = 0; n < sizeof CASES / sizeof *CASES; n++) {
        fixture f;
        quire_allocation all[64];
        make_with(&f, &CASES[n]);
        for (uint64_t i = 0; i < 64; i++)
            all[i] = ALLOCATE(&f, .size = 1 + i * i * 3);
        for (int i = 0; i < 64; i += 2)
            CHECK_OK(quire_free(f.memory, all[i]));
        for (int i = 0; i < 64; i += 2)
            all[i] = ALLOCATE(&f, .size = 10 * KIB);
        CHECK_EQ(stats_of(&f).page_count, 1);
        for (int i = 0; i < 64; i++)
            CHECK_OK(quire_free(f.memory, all[i]));
        CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
        CHECK_EQ(stats_of(&f).page_count, 0);
        fixture_end(&f);
    }
}

CASE(dedicated_pages_are_apart_from_it)
{
    ALLOCATE(f, .size = 40 * KIB);
    quire_allocation other = ALLOCATE(f, .size = 100 * KIB, .dedicated = true);
    CHECK_EQ(fixture_info(f, other).page, 1);
    CHECK_EQ(f->fake.last_page.max_size, 0);
    quire_memory_stats stats = stats_of(f);
    CHECK_EQ(stats.page_count, 2);
    CHECK_EQ(stats.reserved_bytes, 140 * KIB); /* the page released its free end for it */
}

/* ---- failures ------------------------------------------------------------------------------- */

CASE(a_failing_backend_changes_nothing)
{
    quire_allocation none;
    ALLOCATE(f, .size = 60 * KIB);
    f->fake.fail_at = f->fake.fallible_calls + 1;
    f->fake.fail_from_then = true;
    f->fake.fail_with = QUIRE_ERROR_BACKEND_FAILURE;
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 8 * KIB}, &none),
                QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(f->fake.failed_call, FAKE_PAGE_RESIZE);
    f->fake.fail_at = 0;
    expect_page(f, PAGE);
    ALLOCATE(f, .size = 8 * KIB);
    expect_page(f, 2 * PAGE);
}

UNIT(elastic, without_host_memory_the_size_stays)
{
    for (uint64_t at = 1;; at++) {
        fixture f;
        quire_allocation made;
        make(&f);
        for (int i = 0; i < 15; i++)
            ALLOCATE(&f, .size = 4 * KIB + 1);
        uint64_t before = stats_of(&f).reserved_bytes;
        test_memory_fail(unit_memory_state(), at, true);
        quire_result result =
            quire_allocate(f.memory, &(quire_allocation_options){.size = 800 * KIB}, &made);
        bool failed = unit_memory_state()->calls >= at;
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_EQ(f.fake.page_bytes, before);
            CHECK_EQ(stats_of(&f).reserved_bytes, before);
        }
        fixture_end(&f);
        if (!failed)
            break;
        CHECK(at < 100);
    }
}

/* ---- reports -------------------------------------------------------------------------------- */

typedef struct resize_log {
    uint64_t sizes[8];
    uint32_t count;
} resize_log;

static void log_size(void *user, quire_memory *memory, const quire_event *event)
{
    resize_log *t = user;
    (void)memory;
    if (t->count < 8)
        t->sizes[t->count++] = event->size;
}

UNIT(elastic, the_hook_receives_each_size)
{
    fixture f;
    resize_log t = {.count = 0};
    make(&f);
    const quire_hook hook = {.event = log_size, .user = &t, .kinds = QUIRE_EVENT_PAGE_RESIZED};
    CHECK_OK(quire_memory_set_hook(f.memory, &hook));
    ALLOCATE(&f, .size = 60 * KIB);
    CHECK_EQ(t.count, 0);
    CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = 20 * KIB)));
    CHECK_OK(quire_memory_preallocate(f.memory, 3 * PAGE));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    CHECK_EQ(t.count, 3);
    CHECK_EQ(t.sizes[0], 2 * PAGE);
    CHECK_EQ(t.sizes[1], 3 * PAGE);
    CHECK_EQ(t.sizes[2], 60 * KIB);
    fixture_end(&f);
}

UNIT(elastic, the_info_reports_how_far_the_page_may_grow)
{
    fixture f;
    quire_memory_info info;
    make(&f);
    CHECK_OK(quire_memory_get_info(f.memory, &info));
    CHECK_EQ(info.address_space, MAX_SIZE);
    fixture_end(&f);
    fixture_make(&f, NULL);
    CHECK_OK(quire_memory_get_info(f.memory, &info));
    CHECK_EQ(info.address_space, 0);
    fixture_end(&f);
}

UNIT(elastic, options_that_exclude_elastic_pages_are_refused)
{
    static const struct {
        quire_memory_options options;
        quire_result result;
        const char *text;
    } CASES[] = {
        {{.contiguous = true, .shards = 2}, QUIRE_ERROR_UNSUPPORTED, "shards"},
        {{.contiguous = true, .fit.algorithm = QUIRE_FIT_BUDDY}, QUIRE_ERROR_UNSUPPORTED, "buddy"},
        {{.contiguous = true, .fit.algorithm = QUIRE_FIT_LINEAR},
         QUIRE_ERROR_UNSUPPORTED,
         "linear"},
        {{.address_space = 1}, QUIRE_ERROR_INVALID_ARGUMENT, "address_space"},
    };
    fixture f;
    quire_memory *none = NULL;
    make(&f);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK_FAILS(quire_memory_create(f.device, &CASES[i].options, &none), CASES[i].result);
        CHECK_HAS(quire_last_error(), CASES[i].text);
        CHECK(!none);
    }
    fixture_end(&f);
    fixture_make(&f, NULL);
    CHECK_FAILS(quire_memory_create(f.device, &(quire_memory_options){.contiguous = true}, &none),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot grow");
    fixture_end(&f);
}

/* ---- on existing memory --------------------------------------------------------------------- */

UNIT(elastic, bytes_and_pointers_stay_valid_on_the_host)
{
    enum { COUNT = 200 };
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    quire_allocation all[COUNT];
    unsigned char *pointers[COUNT];
    CHECK_OK(quire_host_open(NULL, &device));
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .contiguous = true,
                                          .address_space =
                                              64 * MAX_SIZE, /* small enough for valgrind */
                                          .pages = {.page_size = PAGE}};
    CHECK_OK(quire_memory_create(device, &options, &memory));
    for (int i = 0; i < COUNT; i++) {
        void *pointer = NULL;
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 10 * KIB}, &all[i]));
        CHECK_OK(quire_map(memory, all[i], &pointer));
        pointers[i] = pointer;
        memset(pointer, i, 10 * KIB);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(pointers[i][0], i);
        CHECK_EQ(pointers[i][10 * KIB - 1], i);
        CHECK_OK(quire_unmap(memory, all[i]));
    }
    for (int i = COUNT / 2; i < COUNT; i++)
        CHECK_OK(quire_free(memory, all[i]));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    for (int i = 0; i < COUNT / 2; i++)
        CHECK_EQ(pointers[i][5000], i);
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.page_count, 1);
    CHECK(stats.reserved_bytes < 10 * KIB * COUNT / 2 + PAGE);
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}
