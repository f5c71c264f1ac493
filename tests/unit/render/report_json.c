/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report_json.c - the JSON report of a memory and of a device, read back: the last refused request,
 * the pages and what lies beside their largest free ranges, the names, and what would free more.
 */
#include <jansson.h>
#include <stdio.h>

#include "src/core/checked.h"
#include "tests/support/fixture.h"
#include "tests/support/gather.h"

enum { PAGE = 4096 };

static json_t *parse(void)
{
    json_error_t error;
    json_t *root = json_loads(gathered.text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        check_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text);
    return root;
}

static json_t *report(fixture *f)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_report_json(f->memory, gather, NULL));
    return parse();
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        check_failed(__FILE__, __LINE__, "'%s' is no integer", key);
    return (uint64_t)json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value)
        check_failed(__FILE__, __LINE__, "'%s' is no text", key);
    return value;
}

static const json_t *at(const json_t *object, const char *key, size_t index)
{
    return json_array_get(json_object_get(object, key), index);
}

static size_t length(const json_t *object, const char *key)
{
    return json_array_size(json_object_get(object, key));
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

static void make(fixture *f, quire_memory_options options)
{
    options.name = "weights";
    fixture_make(f, &options);
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(report_json, name, fixture, f, make(f, (quire_memory_options){__VA_ARGS__}),           \
            fixture_end)

CASE(a_new_memory, .pages.page_size = PAGE)
{
    json_t *root = report(f);
    CHECK_EQ(number(root, "schema"), QUIRE_JSON_SCHEMA);
    CHECK_STR(text(root, "what"), "report");
    CHECK_STR(text(root, "name"), "weights");
    CHECK_STR(text(root, "device"), "fake device");
    CHECK_EQ(number(root, "kind"), 0);
    CHECK_STR(json_string_value(at(root, "flags", 0)), "DEVICE_LOCAL");
    CHECK_EQ(number(json_object_get(root, "stats"), "failures"), 0);
    CHECK_EQ(number(root, "limit"), 0);
    CHECK(is_null(root, "refusal"));
    CHECK(is_null(root, "moved_together"));
    CHECK_EQ(number(root, "page_count"), 0);
    CHECK_EQ(length(root, "pages"), 0);
    CHECK_EQ(number(root, "name_count"), 0);
    CHECK_EQ(length(root, "names"), 0);
    CHECK_EQ(number(json_object_get(root, "other_names"), "count"), 0);
    json_decref(root);
}

UNIT(report_json, the_heap_and_the_limits)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, 300 * 1024, 40 * 1024);
    fixture_open(&f, &(quire_memory_options){.pages.page_size = PAGE});
    CHECK_OK(quire_device_set_heap_limit(f.device, 0, 200 * 1024));
    CHECK_OK(quire_memory_set_limit(f.memory, 100 * 1024));
    ALLOCATE(&f, .size = 1);
    json_t *root = report(&f);
    const json_t *heap = json_object_get(root, "heap");
    CHECK_EQ(number(heap, "heap"), 0);
    CHECK_EQ(number(heap, "size"), 1 << 30);
    CHECK_EQ(number(heap, "limit"), 200 * 1024);
    CHECK_EQ(number(heap, "reserved"), PAGE);
    CHECK_EQ(number(heap, "budget"), 300 * 1024);
    CHECK_EQ(number(heap, "available"), 196 * 1024);
    CHECK_EQ(number(root, "limit"), 100 * 1024);
    json_decref(root);
    fake_fail(&f.fake, 1, true, QUIRE_ERROR_BACKEND_FAILURE);
    root = report(&f);
    CHECK(is_null(json_object_get(root, "heap"), "budget"));
    json_decref(root);
    fixture_end(&f);
}

/* ---- the last refusal ----------------------------------------------------------------------- */

CASE(the_refused_request, .pages = {.page_size = PAGE, .max_pages = 1})
{
    ALLOCATE(f, .size = 1024);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 4000, .alignment = 512, .name = "he\"ad");
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%s", quire_last_error());
    ALLOCATE(f, .size = 1024);
    json_t *root = report(f);
    const json_t *refusal = json_object_get(root, "refusal");
    CHECK_EQ(number(refusal, "number"), 1);
    CHECK_STR(text(refusal, "result"), "QUIRE_ERROR_TOO_MANY_PAGES");
    CHECK_STR(text(refusal, "sentence"), sentence);
    CHECK_STR(text(refusal, "name"), "he\"ad");
    CHECK_EQ(number(refusal, "size"), 4000);
    CHECK_EQ(number(refusal, "alignment"), 512);
    CHECK(json_is_false(json_object_get(refusal, "dedicated")));
    CHECK_EQ(length(refusal, "kinds"), 1);
    CHECK_EQ(json_integer_value(at(refusal, "kinds", 0)), 0);
    CHECK_EQ(length(refusal, "steps"), 2);
    CHECK_STR(json_string_value(at(refusal, "steps", 0)), "empty_pages");
    CHECK_STR(json_string_value(at(refusal, "steps", 1)), "full_search");
    CHECK_STR(text(json_object_get(refusal, "limit"), "of"), "memory_pages");
    CHECK_EQ(number(json_object_get(refusal, "limit"), "max"), 1);
    /* of that time, not of now */
    CHECK_EQ(number(refusal, "largest_free"), PAGE - 1024);
    CHECK_EQ(number(refusal, "free_bytes"), PAGE - 1024);
    CHECK_EQ(number(refusal, "page_count"), 1);
    json_decref(root);
}

/* Numbers above 2^53 and 2^63 are exact. */
CASE(numbers_are_exact_and_a_missing_name_is_null, .pages.page_size = PAGE)
{
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = UINT64_MAX - 7);
    json_t *root = NULL;
    gather_anew(0);
    CHECK_OK(quire_memory_write_report_json(f->memory, gather, NULL));
    CHECK_HAS(gathered.text, "\"size\":18446744073709551608,");
    CHECK_HAS(gathered.text, "\"name\":null");
    CHECK_OK(quire_memory_set_limit(f->memory, UINT64_C(1) << 53));
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = (UINT64_C(1) << 60) + 1);
    root = report(f);
    const json_t *refusal = json_object_get(root, "refusal");
    CHECK_EQ(number(root, "limit"), UINT64_C(1) << 53);
    CHECK_EQ(number(refusal, "size"), (UINT64_C(1) << 60) + 1);
    CHECK_STR(text(json_object_get(refusal, "limit"), "of"), "heap_size");
    CHECK_EQ(length(refusal, "steps"), 1);
    CHECK_STR(json_string_value(at(refusal, "steps", 0)), "full_search");
    json_decref(root);
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void expect_side(const json_t *page, const char *key, quire_allocation allocation,
                        const char *name, uint64_t offset, uint64_t size)
{
    const json_t *side = json_object_get(page, key);
    CHECK_EQ(number(side, "allocation"), allocation.id);
    CHECK_EQ(number(side, "offset"), offset);
    CHECK_EQ(number(side, "size"), size);
    CHECK_EQ(number(side, "left_padding"), 0);
    CHECK(name ? !strcmp(text(side, "name"), name) : is_null(side, "name"));
}

CASE(pages_and_what_lies_beside_their_largest_free_range, .pages.page_size = PAGE)
{
    const quire_allocation a = ALLOCATE(f, .size = 1024, .name = "a"), b = ALLOCATE(f, .size = 512),
                           c = ALLOCATE(f, .size = 512), d = ALLOCATE(f, .size = 2048);
    ALLOCATE(f, .size = 5000, .dedicated = true);
    CHECK_OK(quire_free(f->memory, b));
    json_t *root = report(f);
    CHECK_EQ(number(root, "page_count"), 2);
    const json_t *page = at(root, "pages", 0);
    CHECK_EQ(number(page, "page"), 0);
    CHECK_EQ(number(page, "bytes"), PAGE);
    CHECK_EQ(number(page, "live_bytes"), PAGE - 512);
    CHECK_EQ(number(page, "free_bytes"), 512);
    CHECK_EQ(number(page, "largest_free"), 512);
    CHECK_EQ(number(page, "largest_offset"), 1024);
    expect_side(page, "before", a, "a", 0, 1024);
    expect_side(page, "after", c, NULL, 1536, 512);
    page = at(root, "pages", 1);
    CHECK(json_is_true(json_object_get(page, "dedicated")));
    CHECK_EQ(number(page, "largest_free"), 0);
    CHECK(is_null(page, "before") && is_null(page, "after"));
    CHECK_EQ(number(json_object_get(root, "moved_together"), "largest_free"), 512);
    json_decref(root);
    CHECK_OK(quire_free(f->memory, d));
    root = report(f);
    page = at(root, "pages", 0);
    expect_side(page, "before", c, NULL, 1536, 512);
    CHECK(is_null(page, "after"));
    CHECK_EQ(number(json_object_get(root, "moved_together"), "largest_free"), 2560);
    CHECK_EQ(number(json_object_get(root, "moved_together"), "page"), 0);
    json_decref(root);
}

CASE(what_a_compaction_would_free, .pages = {.page_size = PAGE, .max_pages = 2}, .movable = true)
{
    quire_allocation made[8];
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    for (int i = 0; i < 8; i++)
        made[i] = ALLOCATE(f, .size = PAGE / 4);
    CHECK_OK(quire_free(f->memory, made[1]));
    for (int i = 5; i < 8; i++)
        CHECK_OK(quire_free(f->memory, made[i]));
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE);
    json_t *root = report(f);
    const json_t *compaction = json_object_get(root, "compaction"),
                 *refusal = json_object_get(root, "refusal");
    CHECK_EQ(number(compaction, "pages"), 1);
    CHECK_EQ(number(compaction, "page_bytes"), PAGE);
    CHECK_EQ(number(compaction, "moves"), 1);
    CHECK_EQ(number(compaction, "move_bytes"), PAGE / 4);
    CHECK_EQ(number(refusal, "compactable_pages"), 1);
    CHECK_EQ(number(refusal, "compactable_bytes"), PAGE);
    json_decref(root);
}

CASE(a_memory_that_cannot_be_compacted, .fit.algorithm = QUIRE_FIT_LINEAR)
{
    json_t *root = report(f);
    CHECK(is_null(root, "compaction"));
    json_decref(root);
}

UNIT(report_json, what_an_elastic_memory_would_return)
{
    enum { KIB = 1024 };
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.elastic = true, .pages.page_size = 64 * KIB});
    const quire_allocation first = ALLOCATE(&f, .size = 100 * KIB);
    ALLOCATE(&f, .size = 20 * KIB);
    CHECK_OK(quire_free(f.memory, first));
    json_t *root = report(&f);
    const json_t *elastic = json_object_get(root, "elastic");
    const uint64_t reserved = fixture_stats(&f).reserved_bytes;
    CHECK(json_is_true(json_object_get(elastic, "supported")));
    CHECK_EQ(number(elastic, "chunk"), 64 * KIB);
    CHECK_EQ(reserved, 128 * KIB);
    CHECK_EQ(number(elastic, "unneeded_bytes"), 64 * KIB);
    CHECK_EQ(number(elastic, "reserved_bytes"), reserved - 64 * KIB);
    json_decref(root);
    gather_anew(0); /* the text does not recommend what the memory is */
    CHECK_OK(quire_memory_write_report(f.memory, gather, NULL));
    CHECK(!strstr(gathered.text, "an elastic memory would"));
    fixture_end(&f);
}

/* Whatever is allocated: the sides touch the range, and no free range of the page is larger. */
static bool check_page(void *user, const quire_item *item)
{
    const json_t *page = user;
    if (item->page == number(page, "page") && item->is_free)
        CHECK(item->size <= number(page, "largest_free"));
    return true;
}

static void check_sides(fixture *f, const json_t *page)
{
    const json_t *before = json_object_get(page, "before"), *after = json_object_get(page, "after");
    uint64_t offset = number(page, "largest_offset");
    uint64_t end = offset + number(page, "largest_free");
    if (json_is_object(before))
        CHECK_EQ(number(before, "offset") + number(before, "size"), offset);
    else
        CHECK_EQ(offset, 0);
    if (json_is_object(after))
        CHECK_EQ(number(after, "offset") - number(after, "left_padding"), end);
    else
        CHECK_EQ(end, number(page, "bytes"));
    CHECK_OK(quire_memory_walk(f->memory, check_page, (void *)(uintptr_t)page));
}

CASE(the_sides_touch_the_range, .fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = 8 * PAGE})
{
    quire_allocation live[120];
    for (uint64_t i = 0; i < 120; i++)
        live[i] = ALLOCATE(f, .size = 1 + i * 37 % 900, .alignment = UINT64_C(1) << i % 10);
    for (uint64_t i = 0; i < 120; i += 1 + i % 3)
        CHECK_OK(quire_free(f->memory, live[i]));
    json_t *root = report(f);
    CHECK(length(root, "pages") > 1);
    for (size_t i = 0; i < length(root, "pages"); i++)
        check_sides(f, at(root, "pages", i));
    json_decref(root);
}

/* ---- names ---------------------------------------------------------------------------------- */

CASE(twenty_names_and_the_sum_of_the_rest, .pages.page_size = 1 << 20)
{
    char name[16];
    for (unsigned i = 1; i <= 30; i++) {
        snprintf(name, sizeof name, "n%u/x", i);
        ALLOCATE(f, .size = i * 256, .name = name);
    }
    ALLOCATE(f, .size = 1 << 18);
    json_t *root = report(f);
    CHECK_EQ(number(root, "name_count"), 31);
    CHECK_EQ(length(root, "names"), 20);
    CHECK(is_null(at(root, "names", 0), "name"));
    CHECK_STR(text(at(root, "names", 1), "name"), "n30");
    CHECK_EQ(number(at(root, "names", 1), "live_bytes"), 30 * 256);
    CHECK_EQ(number(at(root, "names", 1), "allocation_count"), 1);
    const json_t *others = json_object_get(root, "other_names");
    CHECK_EQ(number(others, "count"), 11);
    CHECK_EQ(number(others, "live_bytes"), 66 * 256);
    CHECK_EQ(number(others, "allocation_count"), 11);
    json_decref(root);
}

/* ---- a device ------------------------------------------------------------------------------- */

CASE(a_device_has_its_heaps_and_the_reports_of_its_memories, .pages.page_size = PAGE)
{
    quire_memory *second = NULL;
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.name = "second"}, &second));
    ALLOCATE(f, .size = 100, .name = "x");
    gather_anew(0);
    CHECK_OK(quire_device_write_report_json(f->device, gather, NULL));
    json_t *root = parse();
    CHECK_STR(text(root, "what"), "device_report");
    CHECK_STR(text(root, "backend"), "fake");
    CHECK_EQ(number(root, "schema"), QUIRE_JSON_SCHEMA);
    CHECK_EQ(length(root, "reports"), 2);
    CHECK_STR(text(at(root, "reports", 0), "name"), "weights");
    CHECK_STR(text(at(root, "reports", 1), "name"), "second");
    CHECK_EQ(length(at(root, "reports", 0), "names"), 1);
    CHECK_EQ(number(at(root, "heaps", 0), "reserved"), PAGE);
    json_decref(root);
    CHECK_OK(quire_memory_destroy(&second));
}
