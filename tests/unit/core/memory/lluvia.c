/*
 * lluvia.c - the first fit places and pads exactly as Lluvia's free-space manager and page scan do:
 * every scenario with its numbers (L2). For the manager's defects (D3 to D6) the fit returns error
 * codes.
 */
#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/unit.h"

enum { MAX_COUNT = 16 };

/* One manager: a space with one region, and its live ranges by letter. */
typedef struct manager {
    quire_space *space;
    quire_placement live[MAX_COUNT];
    int count;
} manager;

static manager make_manager(uint64_t size)
{
    manager m = {0};
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_FIRST, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &m.space));
    return m;
}

static void end_manager(manager *m)
{
    CHECK_OK(quire_space_check(m->space));
    quire_space_destroy(&m->space);
}

/* Allocates the next letter and compares its place. */
static void expect_at(manager *m, uint64_t size, uint64_t alignment, uint64_t offset,
                      uint64_t padding)
{
    quire_placement *at = &m->live[m->count++];
    CHECK_OK(quire_space_allocate(m->space, size, alignment, 0, at));
    CHECK_EQ(at->offset, offset);
    CHECK_EQ(at->left_padding, padding);
    CHECK_EQ(at->size, size);
}

static void release(manager *m, const char *letters)
{
    for (; *letters; letters++)
        CHECK_OK(quire_space_free(m->space, m->live[*letters - 'A'].range));
}

typedef struct interval {
    uint64_t offset, size;
} interval;

typedef struct listing {
    const interval *expected;
    int count, seen;
} listing;

static bool compare_free(void *user, const quire_space_item *item)
{
    listing *l = user;
    if (!item->is_free)
        return true;
    CHECK(l->seen < l->count);
    CHECK_EQ(item->offset, l->expected[l->seen].offset);
    CHECK_EQ(item->size, l->expected[l->seen].size);
    l->seen++;
    return true;
}

#define EXPECT_FREE(m, ...)                                                                        \
    expect_free((m), (const interval[]){__VA_ARGS__},                                              \
                (int)(sizeof((const interval[]){__VA_ARGS__}) / sizeof(interval)))

static void expect_free(manager *m, const interval *expected, int count)
{
    listing l = {.expected = expected, .count = count};
    CHECK_OK(quire_space_walk(m->space, compare_free, &l));
    CHECK_EQ(l.seen, count);
}

UNIT(lluvia, NoInsertions)
{
    manager m = make_manager(1024);
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
}

UNIT(lluvia, A)
{
    manager m = make_manager(1024);
    expect_at(&m, 256, 1, 0, 0);
    EXPECT_FREE(&m, {256, 768});
    end_manager(&m);
}

UNIT(lluvia, AR_fullSize)
{
    manager m = make_manager(1024);
    expect_at(&m, 1024, 1, 0, 0);
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(m.space, &stats));
    CHECK_EQ(stats.free_bytes, 0); /* Lluvia keeps an interval of size 0 here: D6 */
    CHECK_EQ(stats.free_count, 0);
    release(&m, "A");
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
}

static manager make_AAA(void)
{
    manager m = make_manager(1024);
    expect_at(&m, 256, 1, 0, 0);
    expect_at(&m, 512, 1, 256, 0);
    expect_at(&m, 128, 1, 768, 0);
    EXPECT_FREE(&m, {896, 128});
    return m;
}

UNIT(lluvia, AAA)
{
    manager m = make_AAA();
    end_manager(&m);
}

UNIT(lluvia, AAARRR_in_every_order)
{
    static const char *const orders[] = {"ABC", "CBA", "ACB", "BAC", "BCA", "CAB"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        manager m = make_AAA();
        release(&m, orders[i]);
        EXPECT_FREE(&m, {0, 1024});
        end_manager(&m);
    }
}

UNIT(lluvia, AARA_and_AARAR)
{
    manager m = make_manager(1024);
    expect_at(&m, 256, 1, 0, 0);
    expect_at(&m, 512, 1, 256, 0);
    release(&m, "A");
    expect_at(&m, 128, 1, 0, 0);
    EXPECT_FREE(&m, {128, 128}, {768, 256});
    release(&m, "B");
    EXPECT_FREE(&m, {128, 896});
    end_manager(&m);
}

UNIT(lluvia, offset_A)
{
    manager m = make_manager(1024);
    expect_at(&m, 10, 8, 0, 0);
    EXPECT_FREE(&m, {10, 1014});
    end_manager(&m);
}

UNIT(lluvia, offset_AA_and_AAR)
{
    manager m = make_manager(1024);
    expect_at(&m, 10, 8, 0, 0);
    expect_at(&m, 20, 8, 16, 6);
    EXPECT_FREE(&m, {36, 988});
    release(&m, "B"); /* the padding is free again: L5 */
    EXPECT_FREE(&m, {10, 1014});
    end_manager(&m);
}

static manager make_offset_AAA(void)
{
    manager m = make_manager(1024);
    expect_at(&m, 10, 8, 0, 0);
    expect_at(&m, 20, 8, 16, 6);
    expect_at(&m, 30, 8, 40, 4);
    EXPECT_FREE(&m, {70, 954});
    return m;
}

UNIT(lluvia, offset_AAARRR_fifo_and_lifo)
{
    static const char *const orders[] = {"ABC", "CBA"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        manager m = make_offset_AAA();
        release(&m, orders[i]);
        EXPECT_FREE(&m, {0, 1024});
        end_manager(&m);
    }
}

UNIT(lluvia, offset_AARAR)
{
    manager m = make_manager(1024);
    expect_at(&m, 30, 8, 0, 0);
    expect_at(&m, 20, 8, 32, 2);
    release(&m, "A");
    expect_at(&m, 10, 8, 0, 0);
    release(&m, "B");
    EXPECT_FREE(&m, {10, 1014});
    end_manager(&m);
}

UNIT(lluvia, X1_the_free_range_is_reused)
{
    manager m = make_manager(1024);
    expect_at(&m, 256, 1, 0, 0);
    expect_at(&m, 256, 1, 256, 0);
    expect_at(&m, 256, 1, 512, 0);
    release(&m, "B");
    expect_at(&m, 256, 1, 256, 0);
    EXPECT_FREE(&m, {768, 256});
    end_manager(&m);
}

UNIT(lluvia, X2_mixed_alignments)
{
    manager m = make_manager(1024);
    expect_at(&m, 10, 8, 0, 0);
    expect_at(&m, 100, 256, 256, 246);
    expect_at(&m, 100, 8, 360, 4);
    release(&m, "B");
    EXPECT_FREE(&m, {10, 346}, {460, 564});
    release(&m, "AC");
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
}

UNIT(lluvia, X3_every_other_one_released)
{
    manager m = make_manager(4096);
    for (int i = 0; i < 16; i++)
        expect_at(&m, 100, 64, (uint64_t)i * 128, i ? 28 : 0);
    for (int i = 0; i < 16; i += 2)
        CHECK_OK(quire_space_free(m.space, m.live[i].range));
    EXPECT_FREE(&m, {0, 100}, {228, 128}, {484, 128}, {740, 128}, {996, 128}, {1252, 128},
                {1508, 128}, {1764, 128}, {2020, 2076});
    for (int i = 1; i < 16; i += 2)
        CHECK_OK(quire_space_free(m.space, m.live[i].range));
    EXPECT_FREE(&m, {0, 4096});
    end_manager(&m);
}

UNIT(lluvia, X4_too_large_and_large_alignment)
{
    manager m = make_manager(1024);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(m.space, 1025, 1, 0, &at), QUIRE_ERROR_NO_SPACE);
    expect_at(&m, 1024, 4096, 0, 0);
    end_manager(&m);
}

/* ---- defects of Lluvia's manager, for which the fit returns errors ------------------------- */

UNIT(lluvia, D3_an_alignment_of_96_is_refused)
{
    manager m = make_manager(1024);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(m.space, 10, 96, 0, &at), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "96");
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
}

UNIT(lluvia, D4_a_size_near_two_to_the_64_is_refused)
{
    manager m = make_manager(1024);
    quire_placement at;
    expect_at(&m, 10, 1, 0, 0);
    CHECK_FAILS(quire_space_allocate(m.space, UINT64_MAX - 2, 16, 0, &at), QUIRE_ERROR_NO_SPACE);
    EXPECT_FREE(&m, {10, 1014});
    end_manager(&m);
}

UNIT(lluvia, D5_double_and_foreign_release_are_refused)
{
    manager m = make_manager(1024), other = make_manager(1024);
    expect_at(&m, 256, 1, 0, 0);
    release(&m, "A");
    CHECK_FAILS(quire_space_free(m.space, m.live[0].range), QUIRE_ERROR_STALE_HANDLE);
    expect_at(&other, 256, 1, 0, 0);
    CHECK_FAILS(quire_space_free(m.space, other.live[0].range), QUIRE_ERROR_FOREIGN_HANDLE);
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
    end_manager(&other);
}

UNIT(lluvia, D6_size_0_is_refused)
{
    manager m = make_manager(1024);
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(m.space, 0, 1, 0, &at), QUIRE_ERROR_INVALID_ARGUMENT);
    EXPECT_FREE(&m, {0, 1024});
    end_manager(&m);
}

/* ---- pages: Lluvia's Vulkan tests, with lavapipe's buffer alignment of 64 ------------------- */

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
} bench;

static bench make_memory(uint64_t page_size, quire_memory_flags flags)
{
    bench b = {0};
    quire_host_options host = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b.device));
    quire_memory_options options = {.fit.algorithm = QUIRE_FIT_FIRST,
                                    .kind.required = flags,
                                    .pages = {.page_size = page_size}};
    CHECK_OK(quire_memory_create(b.device, &options, &b.memory));
    return b;
}

static void end_memory(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
}

static quire_buffer expect_buffer(const bench *b, uint64_t size, uint32_t page, uint64_t offset,
                                  uint64_t padding)
{
    quire_buffer buffer;
    quire_buffer_info info;
    CHECK_OK(quire_buffer_create(b->memory, &(quire_buffer_options){.size = size}, &buffer));
    CHECK_OK(quire_buffer_get_info(b->memory, buffer, &info));
    CHECK_EQ(info.size, size);
    CHECK_EQ(info.place.page, page);
    CHECK_EQ(info.place.offset, offset);
    CHECK_EQ(info.place.left_padding, padding);
    CHECK_EQ(info.place.size, size);
    return buffer;
}

UNIT(lluvia, BufferSizeEqualPageSize)
{
    bench b = make_memory(4096, QUIRE_DEVICE_LOCAL);
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b.memory, &info));
    CHECK_EQ(info.page_count, 0);
    expect_buffer(&b, 128, 0, 0, 0);
    expect_buffer(&b, 32, 0, 128, 0);
    expect_buffer(&b, 768, 0, 192, 32);
    expect_buffer(&b, 2048, 0, 960, 0);
    expect_buffer(&b, 4096, 1, 0, 0);
    CHECK_OK(quire_memory_get_info(b.memory, &info));
    CHECK_EQ(info.page_count, 2);
    end_memory(&b);
}

UNIT(lluvia, an_object_larger_than_a_page_gets_a_page_whose_rest_is_used)
{
    bench b = make_memory(1024, QUIRE_DEVICE_LOCAL);
    expect_buffer(&b, 512, 0, 0, 0);
    quire_buffer large = expect_buffer(&b, 4000, 1, 0, 0);
    quire_page_info page;
    CHECK_OK(quire_page_get_info(b.memory, 1, &page));
    CHECK_EQ(page.size, 4096);
    expect_buffer(&b, 512, 0, 512, 0);
    expect_buffer(&b, 64, 1, 4032, 32); /* after the large one */
    CHECK_OK(quire_free(b.memory, large.allocation));
    expect_buffer(&b, 1000, 1, 0, 0); /* and in its place */
    end_memory(&b);
}

UNIT(lluvia, mapping_different_pages)
{
    bench b = make_memory(256, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
    quire_buffer first = expect_buffer(&b, 256, 0, 0, 0), second = expect_buffer(&b, 256, 1, 0, 0);
    void *one = NULL, *two = NULL;
    CHECK_OK(quire_map(b.memory, first.allocation, &one));
    CHECK_OK(quire_map(b.memory, second.allocation, &two));
    CHECK(one != two);
    end_memory(&b);
}

UNIT(lluvia, D9_mapping_two_objects_of_one_page)
{
    bench b = make_memory(1024, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
    quire_buffer first = expect_buffer(&b, 512, 0, 0, 0),
                 second = expect_buffer(&b, 512, 0, 512, 0);
    void *one = NULL, *two = NULL;
    CHECK_OK(quire_map(b.memory, first.allocation, &one));
    CHECK_OK(quire_map(b.memory, second.allocation, &two));
    CHECK_EQ((char *)two - (char *)one, 512);
    end_memory(&b);
}

UNIT(lluvia, D1_the_pointer_is_base_plus_offset)
{
    bench b = make_memory(4096, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
    quire_buffer first = expect_buffer(&b, 100, 0, 0, 0),
                 second = expect_buffer(&b, 100, 0, 128, 28);
    void *one = NULL, *two = NULL;
    CHECK_OK(quire_map(b.memory, first.allocation, &one));
    CHECK_OK(quire_map(b.memory, second.allocation, &two));
    CHECK_EQ((char *)two - (char *)one, 128); /* Lluvia adds the padding again: 156 */
    end_memory(&b);
}
