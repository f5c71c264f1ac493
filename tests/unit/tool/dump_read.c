/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * dump_read.c - the JSON of a memory or a device becomes a course of one moment. What it cannot
 * contain is refused with its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/tool/dump/dump.h"
#include "tests/support/unit.h"

#define MEMORY_HEAD                                                                                \
    "{\"schema\":1,\"what\":\"memory\",\"name\":\"m\",\"kind\":2,\"flags\":[\"A\",\"B\"],\"fit\":" \
    "\"first\",\"granule\":16,\"page_size\":64,\n\"stats\":{\"live_bytes\":30,\"other\":[1],"      \
    "\"fragmentation\":{\"reserved\":0.25,\"free\":null,\"split\":7}},\"pages\":["
#define MEMORY(pages) MEMORY_HEAD pages "]}"

#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char ONE_MEMORY[] =
    MEMORY("\n{\"page\":7,\"size\":64,\"bytes\":64,\"dedicated\":false,\"ranges\":["
           "{\"offset\":8,\"size\":16,\"kind\":\"buffer\",\"left_padding\":8,\"requested\":15,"
           "\"allocation\":18446744073709551615,\"user_data\":1,\"name\":\"a\\nb\"},"
           "{\"offset\":24,\"size\":26,\"kind\":\"free\"},"
           "{\"offset\":50,\"size\":14,\"kind\":\"image\",\"left_padding\":0,\"requested\":14,"
           "\"allocation\":2,\"user_data\":0,\"name\":null}]},\n"
           "{\"page\":3,\"size\":90,\"bytes\":70,\"dedicated\":true,\"ranges\":["
           "{\"offset\":0,\"size\":30,\"kind\":\"free\"},{\"offset\":30,\"size\":10,\"kind\":"
           "\"free\"},{\"offset\":60,\"size\":30,\"kind\":\"free\"}]}");

static const char DEVICE[] = "{\"schema\":1,\"what\":\"device\",\"name\":\"d\",\"backend\":\"b\","
                             "\"stats\":{\"memory_count\":2},\"heaps\":[{\"size\":"
                             "18446744073709551615,\"limit\":0,\"budget\":null}],\n\"memories\":"
                             "[" MEMORY("") ",\n" MEMORY("") "]}";

typedef struct reading {
    dump dump;
    bool is_good;
    char sentence[IMPORT_MAX_SENTENCE];
} reading;

/* The caller ends the dump. */
static reading *read_text(const char *text, size_t size)
{
    static reading result;
    static import_source source;
    FILE *file = size ? fmemopen((void *)(uintptr_t)text, size, "rb") : fopen("/dev/null", "rb");
    CHECK(file);
    import_begin(&source, file);
    result.is_good = dump_read(&result.dump, &source);
    CHECK_EQ(result.is_good, !source.sentence[0]);
    memcpy(result.sentence, source.sentence, sizeof result.sentence);
    fclose(file);
    return &result;
}

static void refuses(const char *text, const char *sentence)
{
    reading *r = read_text(text, strlen(text));
    CHECK_STR(r->sentence, sentence);
    dump_end(&r->dump);
}

UNIT(dump_read, a_memory_has_its_pages_ranges_and_statistics)
{
    reading *r = read_text(ONE_MEMORY, strlen(ONE_MEMORY));
    const course *c = &r->dump.course;
    const dump_memory *m = r->dump.memories;
    CHECK_STR(r->sentence, "");
    CHECK(!r->dump.is_device);
    CHECK_EQ(r->dump.memory_count, 1);
    CHECK_STR(m->name, "m");
    CHECK_STR(m->flags, "A|B");
    CHECK_STR(m->fit, "first");
    CHECK_EQ(m->kind + m->granule + m->page_size, 2 + 16 + 64);
    CHECK_EQ(m->stats[0].number, 30);
    CHECK(m->stats[8].is_there && m->stats[8].share > 0.24 && m->stats[8].share < 0.26);
    CHECK(!m->stats[9].is_there && !m->stats[10].is_there);
    CHECK_EQ(m->stats[11].number, 7);
    CHECK_EQ(m->held, 30);
    CHECK_EQ(m->reserved, 134);
    CHECK_EQ(c->last, 0);
    CHECK_EQ(c->range_count, 2);
    CHECK_EQ(c->ranges[0].offset, 8);
    CHECK_EQ(c->ranges[0].requested, 15);
    CHECK_EQ(c->ranges[1].page, 0);
    CHECK(c->ranges[1].end == COURSE_ALWAYS && !c->ranges[1].begin);
    CHECK_STR(c->names[c->ranges[0].name], "a?b");
    CHECK_STR(c->names[c->ranges[1].name], "");
    CHECK_EQ(c->page_count, 2);
    CHECK_EQ(c->pages[0].number, 7);
    CHECK(!c->pages[0].is_elastic && !c->pages[0].is_dedicated);
    CHECK(c->pages[1].is_elastic && c->pages[1].is_dedicated);
    CHECK_EQ(c->memory_count, 0);
    dump_end(&r->dump);
}

UNIT(dump_read, an_elastic_page_has_the_stretches_of_its_ranges)
{
    reading *r = read_text(ONE_MEMORY, strlen(ONE_MEMORY));
    const course *c = &r->dump.course;
    CHECK_EQ(c->stretch_count, 2);
    CHECK_EQ(c->stretches[0].page, 1);
    CHECK_EQ(c->stretches[0].begin, 0);
    CHECK_EQ(c->stretches[0].end, 40);
    CHECK_EQ(c->stretches[1].begin, 60);
    CHECK_EQ(c->stretches[1].end, 90);
    dump_end(&r->dump);
}

#define LAZY(bytes, backed)                                                                        \
    MEMORY("{\"page\":0,\"size\":90,\"bytes\":" bytes ",\"dedicated\":false,\"ranges\":["          \
           "{\"offset\":0,\"size\":10,\"kind\":\"free\"},"                                         \
           "\n{\"offset\":20,\"size\":60,\"kind\":\"range\",\"left_padding\":0,"                   \
           "\"requested\":55,\"backed\":" backed ",\"allocation\":2,\"user_data\":0,"              \
           "\"name\":\"l\"},"                                                                      \
           "{\"offset\":80,\"size\":10,\"kind\":\"free\"}]}")

UNIT(dump_read, a_lazy_allocation_holds_what_has_memory)
{
    reading *r = read_text(LAZY("60", "40"), strlen(LAZY("60", "40")));
    const course *c = &r->dump.course;
    CHECK_STR(r->sentence, "");
    CHECK_EQ(r->dump.memories->held, 40);
    CHECK_EQ(c->range_count, 1);
    CHECK_EQ(c->ranges[0].size, 60);
    CHECK_EQ(c->ranges[0].unbacked, 20);
    CHECK_EQ(c->ranges[0].requested, 40);
    CHECK_EQ(c->stretch_count, 2); /* it is not known where it has memory */
    CHECK_EQ(c->stretches[0].end, 10);
    CHECK_EQ(c->stretches[1].begin, 80);
    dump_end(&r->dump);
    r = read_text(LAZY("80", "60"), strlen(LAZY("80", "60")));
    CHECK_STR(r->sentence, "");
    CHECK_EQ(r->dump.course.ranges[0].unbacked, 0);
    CHECK_EQ(r->dump.course.ranges[0].requested, 55);
    CHECK_EQ(r->dump.course.stretch_count, 2);
    dump_end(&r->dump);
    refuses(LAZY("90", "61"), "3:1: the range has 61 bytes with memory, of 60");
    refuses(LAZY("59", "40"), "2:104: the ranges have 60 bytes, more than the page, 59");
    refuses(LAZY("90", "-1"), "3:80: the number must be an integer from 0 to 2^64 - 1");
}

UNIT(dump_read, a_device_has_its_memories_and_heaps)
{
    reading *r = read_text(DEVICE, strlen(DEVICE));
    CHECK_STR(r->sentence, "");
    CHECK(r->dump.is_device);
    CHECK_STR(r->dump.name, "d");
    CHECK_STR(r->dump.backend, "b");
    CHECK_EQ(r->dump.heap_count, 1);
    CHECK_EQ(r->dump.heaps[0].values[0].number, UINT64_MAX);
    CHECK(r->dump.heaps[0].values[1].is_there && !r->dump.heaps[0].values[2].is_there &&
          !r->dump.heaps[0].values[3].is_there);
    CHECK_EQ(r->dump.course.memory_count, 2);
    CHECK_STR(r->dump.course.memories[1], "1: m");
    dump_end(&r->dump);
}

UNIT(dump_read, the_json_of_something_else_is_named)
{
    refuses("{\"a\":[{}]}", "1:1: a dump of a memory or a device needs \"schema\"");
    refuses("{\"schema\":1}", "1:1: a dump of a memory or a device needs \"what\"");
    refuses("{\"schema\":2}", "1:11: the dump has schema 2; this version reads 1");
    refuses("{\"schema\":1,\n\"what\":\"space\"}",
            "2:8: this is the JSON of a space, not of a memory or a device");
    refuses("{\"schema\":1,\"what\":\"memory\"}", "1:1: a memory needs \"name\"");
    refuses("{\"schema\":1,\"what\":\"device\"}", "1:1: a device needs \"name\"");
    refuses("{\"schema\":1,\"what\":\"device\",\"name\":\"\",\"backend\":\"\",\"stats\":{},"
            "\"heaps\":[],\n\"memories\":[{\"schema\":1,\"what\":\"device\"}]}",
            "2:32: there must be a memory, not 'device'");
    refuses("{\"schema\":1,\"schema\":1}", "1:22: \"schema\" is there twice");
    refuses("[]", "1:1: there must be an object, not '['");
}

UNIT(dump_read, no_text_is_cut)
{
    refuses("{\"schema\":1,\"what\":\"memory\",\"fit\":\"0123456789abcdef\"}",
            "1:35: the text has 16 bytes, which is too long here");
    refuses("{\"schema\":1,\"what\":\"memory\",\"flags\":[\"" LONG "\",\"" LONG "\"]}",
            "1:105: the text has 64 bytes, which is too long here");
}

/* A memory with one page. */
static void refuses_page(const char *page, const char *sentence)
{
    char text[1024];
    snprintf(text, sizeof text, "%s\n%s]}", MEMORY_HEAD, page);
    refuses(text, sentence);
}

#define PAGE "{\"page\":0,\"size\":64,\"bytes\":64,\"dedicated\":false,\"ranges\":[\n"
#define LIVE "\"kind\":\"range\",\"requested\":1,\"name\":\"\""

UNIT(dump_read, a_page_needs_memory_and_sizes)
{
    refuses_page("{\"size\":64}", "3:1: a page needs \"page\"");
    refuses_page("{\"page\":4294967296}", "3:9: the number of a page is at most 4294967295");
    refuses_page("{\"dedicated\":0}", "3:14: there must be true or false");
    refuses_page("{\"page\":0,\"size\":64,\"bytes\":65,\"dedicated\":false,\"ranges\":[]}",
                 "3:1: the page has 65 bytes with memory, of 64");
    refuses_page("{\"page\":0,\"size\":64,\"bytes\":0,\"dedicated\":false,\"ranges\":[]}",
                 "3:1: the page has 0 bytes with memory, of 64");
    refuses_page(
        "{\"page\":0,\"size\":18446744073709551615,\"bytes\":18446744073709551615,"
        "\"dedicated\":false,\"ranges\":[]},\n{\"page\":1,\"size\":1,\"bytes\":1,\"dedicated\":"
        "false,\"ranges\":[]}",
        "4:1: all pages together have 2^64 bytes or more");
    refuses_page("{\"page\":0,\"size\":18446744073709551616}",
                 "3:18: the number must be an integer from 0 to 2^64 - 1");
}

UNIT(dump_read, ranges_lie_in_their_page_in_order)
{
    refuses_page(PAGE "{\"offset\":0}]}", "4:1: a range needs \"size\"");
    refuses_page(PAGE "{\"offset\":0,\"size\":1,\"kind\":\"what\"}]}",
                 "4:29: a range is free, range, buffer or image, not 'what'");
    refuses_page(PAGE "{\"offset\":0,\"size\":1," LIVE "}]}",
                 "4:1: a range that is not free needs \"left_padding\"");
    refuses_page(PAGE "{\"offset\":0,\"size\":0,\"kind\":\"free\"}]}",
                 "4:1: the range has no bytes");
    refuses_page(PAGE "{\"offset\":0,\"size\":9,\"left_padding\":1," LIVE "}]}",
                 "4:1: the left padding begins before the page");
    refuses_page(PAGE "{\"offset\":2,\"size\":18446744073709551615,\"kind\":\"free\"}]}",
                 "4:1: the range ends beyond 2^64 bytes");
    refuses_page(PAGE "{\"offset\":0,\"size\":9,\"kind\":\"free\"},\n"
                      "{\"offset\":9,\"size\":9,\"left_padding\":1," LIVE "}]}",
                 "5:1: the range begins at 8, before the end of the one before it, 9");
    refuses_page(PAGE "{\"offset\":60,\"size\":5,\"kind\":\"free\"}]}",
                 "4:1: a range ends at 65, outside its page of 64 bytes");
    refuses_page("{\"ranges\":[\n{\"offset\":60,\"size\":5,\"kind\":\"free\"}],\"dedicated\":false,"
                 "\"size\":64,\"bytes\":64,\"page\":0}",
                 "3:1: a range ends at 65, outside its page of 64 bytes");
    refuses_page("{\"page\":0,\"size\":64,\"bytes\":8,\"dedicated\":false,\"ranges\":[\n"
                 "{\"offset\":50,\"size\":9,\"kind\":\"free\"}]}",
                 "3:1: the ranges have 9 bytes, more than the page, 8");
}

UNIT(dump_read, a_device_has_at_most_as_many_heaps_as_the_library)
{
    char text[1024] = "{\"schema\":1,\"what\":\"device\",\"heaps\":[";
    for (int i = 0; i < QUIRE_MAX_HEAPS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "{},");
    snprintf(text + strlen(text), sizeof text - strlen(text), "\n{}]}");
    refuses(text, "2:1: a device has at most 16 heaps");
}

/* The members of any object may come in any order: what the file is comes last here. */
UNIT(dump_read, the_order_of_members_does_not_matter)
{
    static const char text[] =
        "{\"pages\":[{\"ranges\":[{\"kind\":\"range\",\"left_padding\":0,\"name\":\"x\","
        "\"requested\":3,\"size\":4,\"offset\":5}],\"dedicated\":false,\"bytes\":9,\"size\":9,"
        "\"page\":1}],\"stats\":{},\"page_size\":1,\"granule\":1,\"fit\":\"buddy\",\"flags\":[],"
        "\"kind\":0,\"name\":\"n\",\"what\":\"memory\",\"schema\":1}";
    reading *r = read_text(text, strlen(text));
    CHECK_STR(r->sentence, "");
    CHECK_EQ(r->dump.course.range_count, 1);
    CHECK_EQ(r->dump.course.ranges[0].offset, 5);
    dump_end(&r->dump);
}

static void read_all_beginnings(const char *text)
{
    const size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        char *part = malloc(i + 1); /* so that reading beyond it is seen */
        CHECK(part);
        memcpy(part, text, i);
        reading *r = read_text(part, i);
        CHECK(!r->is_good);
        dump_end(&r->dump);
        free(part);
    }
}

UNIT(dump_read, a_file_that_ends_early_is_refused)
{
    read_all_beginnings(ONE_MEMORY);
    read_all_beginnings(DEVICE);
}
