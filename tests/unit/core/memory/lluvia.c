/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lluvia.c - the first fit places and pads exactly as Lluvia's free-space manager and page scan do:
 * every scenario with its numbers (L2). For the manager's defects (D3 to D6) the fit returns error
 * codes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/unit.h"

enum { MAX_COUNT = 16, MAX_TEXT = 200 };

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

/* Appends "OFFSET:SIZE " of each free range to a text. */
static bool list_free(void *user, const quire_space_item *item)
{
    char *text = user;
    size_t length = strlen(text);
    if (item->is_free)
        snprintf(text + length, MAX_TEXT - length, "%" PRIu64 ":%" PRIu64 " ", item->offset,
                 item->size);
    return true;
}

static void expect_free(manager *m, const char *expected)
{
    char text[MAX_TEXT] = "";
    CHECK_OK(quire_space_walk(m->space, list_free, text));
    CHECK_STR(text, expected);
}

/*
 * Steps: "256/8>512+6" allocates 256 bytes with the alignment 8, which must lie at 512 with 6 bytes
 * of padding; "-AC" releases the first and the third; "=" ends them.
 */
static void play(manager *m, const char *steps)
{
    for (int length = 0; sscanf(steps, " %n", &length), steps += length, *steps != '=';) {
        uint64_t size, alignment, offset, padding;
        char letters[MAX_COUNT + 1];
        if (sscanf(steps, "-%16[A-P]%n", letters, &length) == 1)
            release(m, letters);
        else if (sscanf(steps, "%" SCNu64 "/%" SCNu64 ">%" SCNu64 "+%" SCNu64 "%n", &size,
                        &alignment, &offset, &padding, &length) == 4)
            expect_at(m, size, alignment, offset, padding);
        else
            check_failed(__FILE__, __LINE__, "no step: '%s'", steps);
        steps += length;
    }
}

/* Lluvia's tests of its manager (A allocates, R releases), and three more. */
UNIT(lluvia, places_paddings_and_free_ranges_are_those_of_the_manager)
{
#define AAA "256/1>0+0 512/1>256+0 128/1>768+0 "
#define OFFSET_AAA "10/8>0+0 20/8>16+6 30/8>40+4 "
    static const struct {
        const char *name;
        const char *steps, *free;
    } rows[] = {
        {"NoInsertions", "=", "0:1024 "},
        {"A", "256/1>0+0 =", "256:768 "},
        /* Lluvia keeps an interval of size 0 here: D6 */
        {"A_fullSize", "1024/1>0+0 =", ""},
        {"AR_fullSize", "1024/1>0+0 -A =", "0:1024 "},
        {"AAA", AAA "=", "896:128 "},
        {"AAARRR", AAA "-ABC =", "0:1024 "},
        {"AAARRR", AAA "-CBA =", "0:1024 "},
        {"AAARRR", AAA "-ACB =", "0:1024 "},
        {"AAARRR", AAA "-BAC =", "0:1024 "},
        {"AAARRR", AAA "-BCA =", "0:1024 "},
        {"AAARRR", AAA "-CAB =", "0:1024 "},
        {"AARA", "256/1>0+0 512/1>256+0 -A 128/1>0+0 =", "128:128 768:256 "},
        {"AARAR", "256/1>0+0 512/1>256+0 -A 128/1>0+0 -B =", "128:896 "},
        {"offset_A", "10/8>0+0 =", "10:1014 "},
        {"offset_AA", "10/8>0+0 20/8>16+6 =", "36:988 "},
        /* the padding is free again: L5 */
        {"offset_AAR", "10/8>0+0 20/8>16+6 -B =", "10:1014 "},
        {"offset_AAA", OFFSET_AAA "=", "70:954 "},
        {"offset_AAARRR_fifo", OFFSET_AAA "-ABC =", "0:1024 "},
        {"offset_AAARRR_lifo", OFFSET_AAA "-CBA =", "0:1024 "},
        {"offset_AARAR", "30/8>0+0 20/8>32+2 -A 10/8>0+0 -B =", "10:1014 "},
        {"X1_the_free_range_is_reused",
         "256/1>0+0 256/1>256+0 256/1>512+0 -B 256/1>256+0 =", "768:256 "},
        {"X2_mixed_alignments", "10/8>0+0 100/256>256+246 100/8>360+4 -B =", "10:346 460:564 "},
        {"X4_a_large_alignment", "1024/4096>0+0 =", ""},
        {"X2_all_released", "10/8>0+0 100/256>256+246 100/8>360+4 -BAC =", "0:1024 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        manager m = make_manager(1024);
        printf("# %s\n", rows[i].name);
        play(&m, rows[i].steps);
        expect_free(&m, rows[i].free);
        end_manager(&m);
    }
}

UNIT(lluvia, X3_every_other_one_released)
{
    manager m = make_manager(4096);
    for (int i = 0; i < 16; i++)
        expect_at(&m, 100, 64, (uint64_t)i * 128, i ? 28 : 0);
    release(&m, "ACEGIKMO");
    expect_free(&m, "0:100 228:128 484:128 740:128 996:128 1252:128 1508:128 1764:128 2020:2076 ");
    release(&m, "BDFHJLNP");
    expect_free(&m, "0:4096 ");
    end_manager(&m);
}

/* ---- defects of Lluvia's manager, for which the fit returns errors ------------------------- */

UNIT(lluvia, D3_D4_D6_wrong_sizes_and_alignments_are_refused)
{
    static const struct {
        uint64_t size, alignment;
        quire_result code;
    } rows[] = {
        {10, 96, QUIRE_ERROR_INVALID_ARGUMENT},     /* D3 */
        {UINT64_MAX - 2, 16, QUIRE_ERROR_NO_SPACE}, /* D4 */
        {0, 1, QUIRE_ERROR_INVALID_ARGUMENT},       /* D6 */
        {1025, 1, QUIRE_ERROR_NO_SPACE},
    };
    manager m = make_manager(1024);
    quire_placement at;
    expect_at(&m, 10, 1, 0, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_FAILS(quire_space_allocate(m.space, rows[i].size, rows[i].alignment, 0, &at),
                    rows[i].code);
    expect_free(&m, "10:1014 ");
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
    expect_free(&m, "0:1024 ");
    end_manager(&m);
    end_manager(&other);
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

/* Two buffers are mapped at the same time; within a page the pointers are as far apart as they. */
UNIT(lluvia, buffers_of_different_pages_and_of_one_page_are_mapped)
{
    static const struct {
        uint64_t page_size, size;
        uint32_t page;
        uint64_t offset, padding;
    } rows[] = {
        {256, 256, 1, 0, 0},
        {1024, 512, 0, 512, 0},  /* D9 */
        {4096, 100, 0, 128, 28}, /* D1: Lluvia adds the padding again */
    };
    for (int i = 0; i < 3; i++) {
        bench b = make_memory(rows[i].page_size, QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT);
        quire_buffer first = expect_buffer(&b, rows[i].size, 0, 0, 0);
        quire_buffer second =
            expect_buffer(&b, rows[i].size, rows[i].page, rows[i].offset, rows[i].padding);
        void *one = NULL, *two = NULL;
        CHECK_OK(quire_map(b.memory, first.allocation, &one));
        CHECK_OK(quire_map(b.memory, second.allocation, &two));
        CHECK(one != two);
        if (!rows[i].page)
            CHECK_EQ((char *)two - (char *)one, rows[i].offset);
        end_memory(&b);
    }
}
