/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * dump.c - the JSON of a memory and of a space, read back: its sums match the statistics, its
 * numbers are exact, its texts are valid JSON for any input.
 */
#include "tests/support/fixture.h"
#include "tests/support/gather.h"
#include "tests/support/lazy.h"

#include <jansson.h>
#include <stdio.h>

static json_t *parse(void)
{
    json_error_t error;
    json_t *root = json_loads(gathered.text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        check_failed(__FILE__, __LINE__, "line %d: %s", error.line, error.text);
    CHECK_EQ(gathered.text[gathered.length - 1], '\n');
    return root;
}

static json_t *dump(quire_memory *memory)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_json(memory, gather, NULL));
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
    return json_string_value(json_object_get(object, key));
}

#define CASE(name, ...) UNIT_MEMORY(dump, name, b, __VA_ARGS__)

/* ---- a memory ----------------------------------------------------------------------------- */

UNIT(dump, a_memory_states_its_options)
{
    fixture b;
    fixture_make(&b, &(quire_memory_options){.name = "frames",
                                             .kind.mask = 8,
                                             .fit.algorithm = QUIRE_FIT_FIRST,
                                             .pages = {.page_size = 4096}});
    json_t *root = dump(b.memory);
    CHECK_EQ(number(root, "schema"), QUIRE_JSON_SCHEMA);
    CHECK_STR(text(root, "what"), "memory");
    CHECK_STR(text(root, "name"), "frames");
    CHECK_STR(text(root, "fit"), "first");
    CHECK_EQ(number(root, "kind"), 3);
    CHECK_EQ(number(root, "granule"), 1);
    CHECK_EQ(number(root, "page_size"), 4096);
    const json_t *flags = json_object_get(root, "flags");
    CHECK_EQ(json_array_size(flags), 3);
    CHECK_STR(json_string_value(json_array_get(flags, 0)), "DEVICE_LOCAL");
    CHECK_STR(json_string_value(json_array_get(flags, 2)), "HOST_COHERENT");
    CHECK_EQ(json_array_size(json_object_get(root, "pages")), 0);
    json_decref(root);
    fixture_end(&b);
}

/* Sums over one page's ranges. */
typedef struct sums {
    uint64_t live, requested, free, count, bytes;
} sums;

static void add_page(const json_t *page, sums *s)
{
    uint64_t at = 0;
    size_t i;
    const json_t *range;
    json_array_foreach(json_object_get(page, "ranges"), i, range)
    {
        uint64_t size = number(range, "size");
        if (!strcmp(text(range, "kind"), "free")) {
            CHECK_EQ(number(range, "offset"), at);
            s->free += size;
        } else {
            CHECK_EQ(number(range, "offset") - number(range, "left_padding"), at);
            s->live += size + number(range, "left_padding");
            s->requested += number(range, "requested");
            s->count++;
        }
        at = number(range, "offset") + size;
    }
    CHECK_EQ(at, number(page, "size"));
    s->bytes += at;
}

UNIT(dump, the_ranges_add_up_to_the_statistics)
{
    fixture b;
    fixture_make(&b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST,
                                             .pages = {.page_size = 4096}});
    quire_allocation live[60];
    for (uint64_t i = 0; i < 60; i++)
        live[i] =
            fixture_allocate(&b, &(quire_allocation_options){.size = 1 + i * 41,
                                                             .alignment = UINT64_C(1) << i % 9,
                                                             .dedicated = i % 9 == 0});
    for (int i = 0; i < 60; i += 4)
        CHECK_OK(quire_free(b.memory, live[i]));
    json_t *root = dump(b.memory);
    const json_t *stats = json_object_get(root, "stats"), *page;
    sums s = {0};
    size_t i;
    json_array_foreach(json_object_get(root, "pages"), i, page) add_page(page, &s);
    CHECK_EQ(i, number(stats, "page_count"));
    CHECK_EQ(s.live, number(stats, "live_bytes"));
    CHECK_EQ(s.requested, number(stats, "requested_bytes"));
    CHECK_EQ(s.free, number(stats, "free_bytes"));
    CHECK_EQ(s.count, number(stats, "allocation_count"));
    CHECK_EQ(s.bytes, number(stats, "reserved_bytes"));
    json_decref(root);
    fixture_end(&b);
}

UNIT(dump, a_lazy_allocation_says_how_many_bytes_have_memory)
{
    fixture f;
    lazy_begin(&f);
    json_t *root = dump(f.memory), *range;
    const json_t *page = json_array_get(json_object_get(root, "pages"), 0);
    uint64_t lazy = 0;
    size_t i;
    json_array_foreach(json_object_get(page, "ranges"), i, range)
    {
        const char *name = text(range, "name");
        if (!name || strncmp(name, "cache/", 6)) {
            CHECK(!json_object_get(range, "backed"));
            continue;
        }
        CHECK_EQ(number(range, "backed"), name[6] == 'a' ? 3 * LAZY_CHUNK : 0);
        CHECK_EQ(number(range, "size"), (name[6] == 'a' ? 8 : 4) * LAZY_CHUNK);
        lazy++;
    }
    CHECK_EQ(lazy, 2);
    json_decref(root);
    CHECK_OK(quire_memory_sleep(f.memory, "plain", QUIRE_SLEEP_KEEP, NULL, NULL));
    root = dump(f.memory);
    page = json_array_get(json_object_get(root, "pages"), 0);
    json_array_foreach(json_object_get(page, "ranges"), i, range)
    {
        const bool is_plain = text(range, "name") && !strcmp(text(range, "name"), "plain");
        CHECK_EQ(json_is_true(json_object_get(range, "asleep")), is_plain);
    }
    CHECK_EQ(number(json_object_get(root, "stats"), "asleep_count"), 1);
    json_decref(root);
    fixture_end(&f);
}

static bool add_item(void *user, const quire_item *item)
{
    sums *s = user;
    CHECK(item->backed <= item->size);
    *(item->is_free ? &s->free : &s->live) += item->backed + item->left_padding;
    return true;
}

UNIT(dump, what_has_memory_in_a_walk_is_what_is_reserved)
{
    fixture f;
    sums s = {0};
    lazy_begin(&f);
    const quire_memory_stats stats = fixture_stats(&f);
    CHECK_OK(quire_memory_walk(f.memory, add_item, &s));
    CHECK_EQ(s.live, stats.live_bytes);
    CHECK_EQ(s.free, stats.free_bytes);
    fixture_end(&f);
}

CASE(every_number_matches_a_direct_query, .pages = {.page_size = 4096, .max_pages = 2})
{
    quire_allocation first = fixture_allocate(b, &(quire_allocation_options){.size = 3000}), none;
    fixture_allocate(b, &(quire_allocation_options){.size = 3000});
    CHECK_FAILS(quire_allocate(b->memory, &(quire_allocation_options){.size = 3000}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_OK(quire_free(b->memory, first));
    quire_memory_stats s;
    CHECK_OK(quire_memory_get_stats(b->memory, &s));
    json_t *root = dump(b->memory);
    const json_t *stats = json_object_get(root, "stats");
    const struct {
        const char *key;
        uint64_t value;
    } fields[] = {
        {"live_bytes", s.live_bytes},
        {"requested_bytes", s.requested_bytes},
        {"reserved_bytes", s.reserved_bytes},
        {"free_bytes", s.free_bytes},
        {"empty_bytes", s.empty_bytes},
        {"largest_free", s.largest_free},
        {"allocation_count", s.allocation_count},
        {"page_count", s.page_count},
        {"peak_live_bytes", s.peak_live_bytes},
        {"peak_requested_bytes", s.peak_requested_bytes},
        {"peak_reserved_bytes", s.peak_reserved_bytes},
        {"peak_allocation_count", s.peak_allocation_count},
        {"peak_page_count", s.peak_page_count},
        {"allocations", s.allocations},
        {"frees", s.frees},
        {"failures", s.failures},
        {"pages_created", s.pages_created},
        {"pages_destroyed", s.pages_destroyed},
        {"pages_over_budget", s.pages_over_budget},
        {"backend_calls", s.backend_calls},
        {"full_passes", s.full_passes},
        {"full_pass_hits", s.full_pass_hits},
        {"backend_nanoseconds", s.backend_nanoseconds},
        {"metadata_bytes", s.metadata_bytes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        CHECK_EQ(number(stats, fields[i].key), fields[i].value);
    const json_t *fragmentation = json_object_get(stats, "fragmentation");
    CHECK_EQ(number(fragmentation, "internal"), s.fragmentation.internal);
    CHECK_EQ(number(fragmentation, "split"), s.fragmentation.split);
    double reserved = json_number_value(json_object_get(fragmentation, "reserved"));
    CHECK(reserved > s.fragmentation.reserved - 1e-5 && reserved < s.fragmentation.reserved + 1e-5);
    json_decref(root);
}

CASE(a_range_states_its_fields_with_exact_numbers, .pages = {.page_size = 4096})
{
    quire_buffer buffer;
    quire_image image;
    quire_allocation range = fixture_allocate(
        b, &(quire_allocation_options){.size = 100, .name = "layer", .user_data = 12});
    CHECK_OK(quire_buffer_create(b->memory, &(quire_buffer_options){.size = 1}, &buffer));
    CHECK_OK(quire_image_create(b->memory, &(quire_image_options){.width = 1}, &image));
    json_t *root = dump(b->memory);
    const json_t *page = json_array_get(json_object_get(root, "pages"), 0);
    const json_t *ranges = json_object_get(page, "ranges"), *first = json_array_get(ranges, 0);
    CHECK_EQ(number(page, "page"), 0);
    CHECK_EQ(number(page, "size"), 4096);
    CHECK(json_is_false(json_object_get(page, "dedicated")));
    CHECK_EQ(json_array_size(ranges), 4);
    CHECK_EQ(number(first, "allocation"), range.id);
    CHECK_EQ(number(first, "size"), 256);
    CHECK_EQ(number(first, "requested"), 100);
    CHECK_EQ(number(first, "user_data"), 12);
    CHECK_STR(text(first, "name"), "layer");
    static const char *const kinds[] = {"range", "buffer", "image", "free"};
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(text(json_array_get(ranges, i), "kind"), kinds[i]);
    json_decref(root);
    /* above jansson's limit: searched in the text */
    CHECK_OK(quire_allocation_set_user_data(b->memory, range, UINT64_MAX));
    gather_anew(0);
    CHECK_OK(quire_memory_write_json(b->memory, gather, NULL));
    CHECK_HAS(gathered.text, "\"user_data\":18446744073709551615,");
}

/* ---- a space ------------------------------------------------------------------------------ */

UNIT(dump, a_space_states_its_statistics_and_ranges)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit.algorithm = QUIRE_FIT_FIRST, .size = 1000};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    quire_placement at;
    uint32_t region = 0;
    CHECK_OK(quire_space_add_region(space, 500, 0, &region));
    CHECK_OK(quire_space_allocate(space, 10, 1, 1, &at));
    CHECK_OK(quire_space_allocate(space, 100, 64, 77, &at));
    gather_anew(0);
    CHECK_OK(quire_space_write_json(space, gather, NULL));
    json_t *root = parse();
    CHECK_STR(text(root, "what"), "space");
    CHECK_EQ(number(root, "schema"), QUIRE_JSON_SCHEMA);
    CHECK_EQ(number(root, "region_bytes"), 1500);
    CHECK_EQ(number(root, "live_bytes"), 110);
    CHECK_EQ(number(root, "padding_bytes"), 54);
    CHECK_EQ(number(root, "free_bytes"), 1336);
    CHECK_EQ(number(root, "live_count"), 2);
    const json_t *regions = json_object_get(root, "regions");
    CHECK_EQ(json_array_size(regions), 2);
    const json_t *first = json_array_get(regions, 0), *ranges = json_object_get(first, "ranges");
    CHECK_EQ(number(first, "region"), 0);
    CHECK_EQ(json_array_size(ranges), 3);
    const json_t *range = json_array_get(ranges, 1);
    CHECK_EQ(number(range, "offset"), 64);
    CHECK_EQ(number(range, "left_padding"), 54);
    CHECK_EQ(number(range, "size"), 100);
    CHECK_EQ(number(range, "user"), 77);
    CHECK_EQ(number(range, "range"), at.range.id);
    CHECK_STR(text(json_array_get(ranges, 2), "kind"), "free");
    json_decref(root);
    quire_space_destroy(&space);
}

/* ---- hostile texts ------------------------------------------------------------------------ */

UNIT(dump, names_of_any_bytes_give_valid_json)
{
    static const struct {
        const char *given, *back;
    } names[] = {
        {"\"quoted\" and \\ back", "\"quoted\" and \\ back"},
        {"line\nend\r\ttab", "line\nend\r\ttab"},
        {"\x01\x02\x1b[31m\x1f\x7f", "\x01\x02\x1b[31m\x1f\x7f"},
        {"na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x88",
         "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x88"},
        {"lone \xff and \x80", "lone \xef\xbf\xbd and \xef\xbf\xbd"},
        {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
        {"overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"</script><!-- ]]> {}[],:", "</script><!-- ]]> {}[],:"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fixture b;
        fixture_make(&b, &(quire_memory_options){.name = names[i].given});
        fixture_allocate(&b, &(quire_allocation_options){.size = 1, .name = names[i].given});
        json_t *root = dump(b.memory);
        const json_t *page = json_array_get(json_object_get(root, "pages"), 0);
        CHECK_STR(text(root, "name"), names[i].back);
        CHECK_STR(text(json_array_get(json_object_get(page, "ranges"), 0), "name"), names[i].back);
        json_decref(root);
        fixture_end(&b);
    }
}

/* ---- errors ------------------------------------------------------------------------------- */

UNIT(dump, every_fit_has_its_name)
{
    static const char *const names[] = {[QUIRE_FIT_SEGREGATED] = "segregated",
                                        [QUIRE_FIT_FIRST] = "first",
                                        [QUIRE_FIT_BUDDY] = "buddy",
                                        [QUIRE_FIT_LINEAR] = "linear"};
    for (uint32_t fit = 0; fit < sizeof names / sizeof *names; fit++) {
        fixture b;
        fixture_make(&b, &(quire_memory_options){.fit.algorithm = (quire_fit)fit});
        json_t *root = dump(b.memory);
        CHECK_STR(text(root, "fit"), names[fit]);
        json_decref(root);
        fixture_end(&b);
    }
}

/* ---- a device ----------------------------------------------------------------------------- */

static json_t *dump_device(fixture *f)
{
    gather_anew(0);
    CHECK_OK(quire_device_write_json(f->device, gather, NULL));
    return parse();
}

CASE(a_device_has_its_heaps_and_the_objects_of_its_memories, .name = "first",
     .pages = {.page_size = 4096})
{
    quire_memory *second;
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.name = "second"}, &second));
    ALLOCATE(b, .size = 100);
    CHECK_OK(quire_device_set_heap_limit(b->device, 1, 12345));
    json_t *own = dump(b->memory), *root = dump_device(b);
    CHECK_EQ(number(root, "schema"), QUIRE_JSON_SCHEMA);
    CHECK_STR(text(root, "what"), "device");
    CHECK_STR(text(root, "name"), "fake device");
    CHECK_STR(text(root, "backend"), "fake");
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    const json_t *totals = json_object_get(root, "stats"), *heaps = json_object_get(root, "heaps");
    CHECK_EQ(number(totals, "requested_bytes"), 100);
    CHECK_EQ(number(totals, "memory_count"), 2);
    CHECK_EQ(number(totals, "reserved_bytes"), stats.reserved_bytes);
    CHECK_EQ(number(totals, "metadata_bytes"), stats.metadata_bytes);
    CHECK_EQ(json_array_size(heaps), b->fake.info.heap_count);
    for (uint32_t i = 0; i < b->fake.info.heap_count; i++) {
        const json_t *heap = json_array_get(heaps, i);
        quire_budget_info budget;
        CHECK_OK(quire_device_get_budget(b->device, i, &budget));
        CHECK_EQ(number(heap, "size"), budget.size);
        CHECK_EQ(number(heap, "limit"), i == 1 ? 12345 : 0);
        CHECK_EQ(number(heap, "reserved"), budget.reserved);
        CHECK_EQ(number(heap, "budget"), budget.budget);
        CHECK_EQ(number(heap, "usage"), budget.usage);
        CHECK_EQ(number(heap, "available"), budget.available);
    }
    const json_t *memories = json_object_get(root, "memories");
    CHECK_EQ(json_array_size(memories), 2);
    json_object_del(json_object_get(own, "stats"), "backend_nanoseconds");
    json_object_del(json_object_get(json_array_get(memories, 0), "stats"), "backend_nanoseconds");
    CHECK(json_equal(json_array_get(memories, 0), own));
    CHECK_STR(text(json_array_get(memories, 1), "name"), "second");
    json_decref(own);
    json_decref(root);
    CHECK_OK(quire_memory_destroy(&second));
}

UNIT(dump, a_device_whose_backend_fails_has_no_budgets)
{
    fixture b;
    fixture_prepare(&b);
    fake_offer_budget(&b.fake);
    fixture_open(&b, &(quire_memory_options){.name = "first"});
    fake_fail(&b.fake, 1, true, QUIRE_ERROR_BACKEND_FAILURE);
    json_t *root = dump_device(&b);
    const json_t *heap = json_array_get(json_object_get(root, "heaps"), 0);
    CHECK_EQ(number(heap, "size"), b.fake.info.heaps[0].size);
    CHECK(json_is_null(json_object_get(heap, "budget")));
    CHECK(json_is_null(json_object_get(heap, "usage")));
    CHECK(json_is_null(json_object_get(heap, "available")));
    json_decref(root);
    fake_fail(&b.fake, 0, false, QUIRE_SUCCESS);
    fixture_end(&b);
}
