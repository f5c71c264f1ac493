/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma.c - the JSON of the Vulkan Memory Allocator, read back: its parts and its sums.
 * tests/tool/exports.py checks its form on whole traces.
 */
#include "quire/export.h"

#include <jansson.h>

#include "tests/support/fixture.h"
#include "tests/support/gather.h"
#include "tests/support/lazy.h"

static json_t *parse(void)
{
    json_error_t error;
    json_t *root = json_loads(gathered.text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        check_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text);
    return root;
}

static json_t *dump(quire_memory *memory)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_vma(memory, gather, NULL));
    return parse();
}

static uint64_t number(const json_t *object, const char *key)
{
    CHECK(json_is_integer(json_object_get(object, key)));
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The first pool of a kind. */
static json_t *pool_of(const json_t *root, const char *kind)
{
    return json_array_get(json_object_get(json_object_get(root, "CustomPools"), kind), 0);
}

UNIT(vma, a_range_has_its_name_its_data_and_its_padding)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.name = "frames",
                                             .kind.mask = 1,
                                             .fit.algorithm = QUIRE_FIT_FIRST,
                                             .pages = {.page_size = 4096}});
    ALLOCATE(&f, .size = 10, .name = "a", .user_data = 0xabc);
    ALLOCATE(&f, .size = 100, .alignment = 256);
    ALLOCATE(&f, .size = 64, .dedicated = true, .name = "alone");
    quire_memory_stats stats = fixture_stats(&f);
    json_t *root = dump(f.memory), *pool = pool_of(root, "Type 0");
    CHECK_STR(text(pool, "Name"), "0 - frames");
    const json_t *block = json_object_get(json_object_get(pool, "Blocks"), "0");
    const json_t *ranges = json_object_get(block, "Suballocations");
    const json_t *first = json_array_get(ranges, 0), *second = json_array_get(ranges, 1);
    CHECK_STR(text(first, "CustomData"), "0000000000000ABC");
    CHECK_STR(text(first, "Name"), "a");
    CHECK_STR(text(first, "Type"), "UNKNOWN");
    CHECK_EQ(number(second, "Offset"), number(first, "Size"));
    CHECK_EQ(number(second, "Offset") + number(second, "Size"), 356);
    CHECK(!json_object_get(second, "Name") && !json_object_get(second, "CustomData"));
    CHECK_STR(text(json_array_get(ranges, 2), "Type"), "FREE");
    CHECK_EQ(number(block, "TotalBytes"), 4096);
    const json_t *alone = json_object_get(pool, "DedicatedAllocations");
    CHECK_EQ(json_array_size(alone), 1);
    CHECK_STR(text(json_array_get(alone, 0), "Name"), "alone");
    const json_t *total = json_object_get(root, "Total");
    CHECK_EQ(number(total, "BlockCount"), stats.page_count);
    CHECK_EQ(number(total, "BlockBytes"), stats.reserved_bytes);
    CHECK_EQ(number(total, "AllocationBytes"), stats.live_bytes);
    CHECK_EQ(number(total, "AllocationCount"), 3);
    json_decref(root);
    fixture_end(&f);
}

UNIT(vma, objects_have_their_types)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.kind.mask = 1});
    BUFFER(&f, .size = 64);
    IMAGE(&f, .width = 16, .height = 16);
    json_t *root = dump(f.memory);
    gathered.text[gathered.length] = '\0';
    CHECK_HAS(gathered.text, "\"BUFFER\"");
    CHECK_HAS(gathered.text, "\"IMAGE_UNKNOWN\"");
    json_decref(root);
    fixture_end(&f);
}

UNIT(vma, each_stretch_of_an_elastic_page_is_a_block)
{
    enum { CHUNK = 16384 };
    fixture f;
    quire_allocation made[5];
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.kind.mask = 1,
                                             .elastic = true,
                                             .address_space = 64 * CHUNK,
                                             .pages = {.page_size = CHUNK}});
    for (int i = 0; i < 5; i++)
        made[i] = ALLOCATE(&f, .size = CHUNK);
    CHECK_OK(quire_free(f.memory, made[1]));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    json_t *root = dump(f.memory);
    const json_t *blocks = json_object_get(pool_of(root, "Type 0"), "Blocks");
    CHECK_EQ(json_object_size(blocks), 2);
    CHECK_EQ(number(json_object_get(blocks, "0"), "TotalBytes"), CHUNK);
    CHECK_EQ(number(json_object_get(blocks, "1"), "TotalBytes"), 3 * CHUNK);
    CHECK_EQ(number(json_object_get(blocks, "1"), "UnusedBytes"), 0);
    json_decref(root);
    fixture_end(&f);
}

UNIT(vma, a_lazy_allocation_has_the_bytes_with_memory)
{
    fixture f;
    lazy_begin(&f);
    json_t *root = dump(f.memory);
    const json_t *all = json_object_get(root, "Total");
    CHECK_EQ(number(all, "AllocationCount"), 2); /* not the one without memory */
    CHECK_EQ(number(all, "AllocationBytes"), LAZY_HELD);
    CHECK_EQ(number(all, "BlockBytes"), fixture_stats(&f).reserved_bytes);
    CHECK(!strstr(gathered.text, "cache/b"));
    json_decref(root);
    fixture_end(&f);
}

UNIT(vma, a_device_lists_its_memories_by_kind)
{
    fixture f;
    quire_memory *second = NULL;
    quire_allocation range;
    fixture_make(&f, &(quire_memory_options){.name = "one", .kind.mask = 1});
    CHECK_OK(quire_memory_create(f.device, &(quire_memory_options){.name = "two", .kind.mask = 2},
                                 &second));
    CHECK_OK(quire_allocate(second, &(quire_allocation_options){.size = 64}, &range));
    ALLOCATE(&f, .size = 16);
    gather_anew(0);
    CHECK_OK(quire_device_write_vma(f.device, gather, NULL));
    json_t *root = parse();
    CHECK_STR(text(pool_of(root, "Type 0"), "Name"), "0 - one");
    CHECK_STR(text(pool_of(root, "Type 1"), "Name"), "1 - two");
    CHECK_EQ(number(json_object_get(root, "Total"), "AllocationCount"), 2);
    json_decref(root);
    root = dump(second); /* the other memory is left out */
    CHECK(!pool_of(root, "Type 0"));
    CHECK_STR(text(pool_of(root, "Type 1"), "Name"), "1 - two");
    CHECK_EQ(number(json_object_get(root, "Total"), "AllocationCount"), 1);
    json_decref(root);
    CHECK_OK(quire_free(second, range));
    CHECK_OK(quire_memory_destroy(&second));
    fixture_end(&f);
}
