/*
 * device.c - devices: the checks of a backend's table and description, and who owns the state.
 * Closing and log lines are in device_end.c.
 */
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include <stdio.h>

#include "quire/quire.h"

/* ---- the table ---------------------------------------------------------------------------- */

/* A feature bit and the offsets of its functions in the table. */
typedef struct group {
    quire_backend_features bit;
    const char *names;
    size_t functions[5];
    size_t count;
} group;

#define AT(function) offsetof(quire_backend, function)

static const group GROUPS[] = {
    {QUIRE_BACKEND_MAP, "map, unmap", {AT(map), AT(unmap)}, 2},
    {QUIRE_BACKEND_FLUSH, "flush, invalidate", {AT(flush), AT(invalidate)}, 2},
    {QUIRE_BACKEND_COPY_TO_PAGE, "copy_to_page", {AT(copy_to_page)}, 1},
    {QUIRE_BACKEND_COPY_FROM_PAGE, "copy_from_page", {AT(copy_from_page)}, 1},
    {QUIRE_BACKEND_IMAGES, "image_requirements", {AT(image_requirements)}, 1},
    {QUIRE_BACKEND_OBJECTS,
     "object_create, object_bind, object_destroy",
     {AT(object_create), AT(object_bind), AT(object_destroy)},
     3},
    {QUIRE_BACKEND_BUDGET, "heap_budget", {AT(heap_budget)}, 1},
    {QUIRE_BACKEND_FLUSH_MANY,
     "flush_many, invalidate_many",
     {AT(flush_many), AT(invalidate_many)},
     2},
    {QUIRE_BACKEND_FILL, "fill_page", {AT(fill_page)}, 1},
    {QUIRE_BACKEND_COPY_PAGES, "copy_pages", {AT(copy_pages)}, 1},
    {QUIRE_BACKEND_COPY_PEER, "copy_peer", {AT(copy_peer)}, 1},
    {QUIRE_BACKEND_STREAMS,
     "stream_create, stream_destroy, stream_mark, stream_passed, stream_await",
     {AT(stream_create), AT(stream_destroy), AT(stream_mark), AT(stream_passed), AT(stream_await)},
     5},
    {QUIRE_BACKEND_STREAM_ORDER, "stream_order", {AT(stream_order)}, 1},
    {QUIRE_BACKEND_STREAM_COPY, "stream_copy", {AT(stream_copy)}, 1},
    {QUIRE_BACKEND_STREAM_FILL, "stream_fill", {AT(stream_fill)}, 1},
    {QUIRE_BACKEND_ELASTIC, "page_resize", {AT(page_resize)}, 1},
    {QUIRE_BACKEND_FORK,
     "fork_prepare, fork_done, fork_child",
     {AT(fork_prepare), AT(fork_done), AT(fork_child)},
     3},
    {QUIRE_BACKEND_DEVICE_ADDRESS, "device_address", {AT(device_address)}, 1},
};
enum { GROUP_COUNT = sizeof GROUPS / sizeof *GROUPS };

static void remove_function(quire_backend *table, size_t offset)
{
    memset((char *)table + offset, 0, sizeof table->describe);
}

/* A fake whose kinds need neither map nor flush. */
static void init_device_only(fake_backend *fake)
{
    fake_init(fake);
    fake_offer_budget(fake);
    fake_offer_flush_many(fake);
    fake_offer_fill(fake);
    fake_offer_copies(fake);
    fake_offer_streams(fake);
    fake_offer_fork(fake);
    fake_offer_device_address(fake);
    fake->info.kind_count = 1;
    fake_offer_growth(fake);
}

/*
 * Opening is refused with a message that has both parts. It creates no device and does not close
 * the state.
 */
static void expect_refused(fake_backend *fake, const char *part, const char *other)
{
    quire_device *device = (quire_device *)fake;
    CHECK_FAILS(fake_open(fake, unit_memory(), &device), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), part);
    CHECK_HAS(quire_last_error(), other);
    CHECK(device == NULL);
    CHECK(!fake->ended);
}

static void expect_accepted(fake_backend *fake)
{
    quire_device *device = NULL;
    if (!(fake->table.features & QUIRE_BACKEND_ELASTIC))
        fake->info.limits.elastic_kinds = 0;
    CHECK_OK(fake_open(fake, unit_memory(), &device));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(device == NULL);
    CHECK(fake->ended);
}

UNIT(device, a_feature_bit_without_one_of_its_functions_is_refused)
{
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (size_t k = 0; k < GROUPS[i].count; k++) {
            fake_backend fake;
            init_device_only(&fake);
            remove_function(&fake.table, GROUPS[i].functions[k]);
            expect_refused(&fake, "'fake' lacks some of", GROUPS[i].names);
        }
}

UNIT(device, a_function_without_its_feature_bit_is_refused)
{
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (size_t k = 0; k <= GROUPS[i].count; k++) {
            fake_backend fake;
            init_device_only(&fake);
            fake.table.features &= ~GROUPS[i].bit;
            for (size_t f = 0; f < GROUPS[i].count; f++) /* all of them, then each one alone */
                if (k < GROUPS[i].count && f != k)
                    remove_function(&fake.table, GROUPS[i].functions[f]);
            expect_refused(&fake, "'fake' has some of", GROUPS[i].names);
        }
}

UNIT(device, every_group_may_be_missing_as_a_whole)
{
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        fake_backend fake;
        init_device_only(&fake);
        fake.table.features &= ~GROUPS[i].bit;
        for (size_t f = 0; f < GROUPS[i].count; f++)
            remove_function(&fake.table, GROUPS[i].functions[f]);
        if (GROUPS[i].bit == QUIRE_BACKEND_STREAMS) /* the other groups need streams */
            fake_leave_out(&fake, QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY |
                                      QUIRE_BACKEND_STREAM_FILL);
        expect_accepted(&fake);
    }
}

UNIT(device, unknown_feature_bits_are_refused)
{
    for (int bit = 20; bit < 64; bit++) {
        fake_backend fake;
        fake_init(&fake);
        fake.table.features |= UINT64_C(1) << bit;
        expect_refused(&fake, "'fake'", "features this version does not know");
    }
}

UNIT(device, copied_rows_without_a_copy_function_are_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.table.features |= QUIRE_BACKEND_ROWS;
    expect_refused(&fake, "'fake'", "announces rows");
    fake.table.features |= QUIRE_BACKEND_STAGES;
    fake.table.features &= ~QUIRE_BACKEND_ROWS;
    expect_accepted(&fake);
}

UNIT(device, a_table_without_a_required_function_is_refused)
{
    static const size_t required[] = {AT(describe), AT(page_create), AT(page_destroy)};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        fake_backend fake;
        fake_init(&fake);
        remove_function(&fake.table, required[i]);
        expect_refused(&fake, "'fake'", "lacks describe, page_create or page_destroy");
    }
}

UNIT(device, a_table_without_a_name_is_refused)
{
    static const char *const names[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        fake_backend fake;
        fake_init(&fake);
        fake.table.name = names[i];
        expect_refused(&fake, "no name", "");
    }
}

UNIT(device, a_table_too_small_for_what_is_required_is_refused)
{
    static const size_t sizes[] = {0, sizeof(size_t), AT(destroy) - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fake_backend fake;
        fake_init(&fake);
        fake.table.size = sizes[i];
        char says[64];
        snprintf(says, sizeof says, "says it has %zu bytes", sizes[i]);
        expect_refused(&fake, says, "too few");
    }
}

UNIT(device, the_smallest_table_opens_and_needs_no_close)
{
    fake_backend fake;
    init_device_only(&fake);
    fake.table.size = AT(destroy); /* later members do not belong to the table */
    fake.table.features = 0;
    fake.info.limits.elastic_kinds = 0;
    quire_device *device = NULL;
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(!fake.ended);
}

UNIT(device, functions_after_the_end_of_an_older_table_are_absent)
{
    fake_backend fake;
    fake_init(&fake);
    fake.table.size = AT(image_requirements);
    fake.table.features &= ~(QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_OBJECTS);
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK_OK(quire_memory_create(device, NULL, &memory));
    quire_buffer buffer;
    quire_image image;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 100}, &buffer));
    CHECK_EQ(fake.objects, 0);
    CHECK_FAILS(quire_image_create(memory, &(quire_image_options){.width = 1}, &image),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(fake.calls[FAKE_IMAGE_REQUIREMENTS] + fake.calls[FAKE_OBJECT_CREATE], 0);
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
    CHECK(fake.ended);
}

UNIT(device, an_older_table_with_features_beyond_its_size_is_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.table.size = AT(object_destroy);
    expect_refused(&fake, "lacks some of", "object_destroy");
}

UNIT(device, a_newer_and_larger_table_opens)
{
    struct {
        fake_backend fake;
        uint64_t more[8];
    } newer = {.more = {1, 2, 3}};
    fake_init(&newer.fake);
    newer.fake.table.size = sizeof(quire_backend) + sizeof newer.more;
    expect_accepted(&newer.fake);
}

/* ---- the description ---------------------------------------------------------------------- */

UNIT(device, a_device_has_1_to_16_heaps_and_1_to_32_kinds)
{
    static const uint32_t counts[][2] = {{0, 4}, {2, 0}, {17, 4}, {2, 33}, {UINT32_MAX, 4}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fake_backend fake;
        fake_init(&fake);
        fake.info.heap_count = counts[i][0];
        fake.info.kind_count = counts[i][1];
        char says[64];
        snprintf(says, sizeof says, "%u heaps and %u memory kinds", counts[i][0], counts[i][1]);
        expect_refused(&fake, says, "1 to 16 and 1 to 32");
    }
    fake_backend fake;
    fake_init(&fake);
    fake.info.heap_count = QUIRE_MAX_HEAPS;
    fake.info.kind_count = QUIRE_MAX_KINDS;
    for (int i = 0; i < QUIRE_MAX_HEAPS; i++)
        fake.info.heaps[i].size = 1;
    for (int i = 0; i < QUIRE_MAX_KINDS; i++)
        fake.info.kinds[i] = (quire_kind){.flags = QUIRE_DEVICE_LOCAL, .heap = 15};
    expect_accepted(&fake);
}

UNIT(device, a_kind_in_a_missing_heap_is_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.kinds[3].heap = 2;
    expect_refused(&fake, "memory kind 3", "heap 2 of 2");
}

UNIT(device, a_heap_of_size_0_is_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.heaps[1].size = 0;
    expect_refused(&fake, "heap 1", "size 0");
}

UNIT(device, unknown_flags_are_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.heaps[1].flags = 0x104;
    expect_refused(&fake, "heap 1", "flags 0x104");
    fake_init(&fake);
    fake.info.kinds[2].flags |= 0x200;
    expect_refused(&fake, "memory kind 2", "unknown flags 0x200");
}

UNIT(device, kinds_for_objects_need_a_backend_with_objects_and_have_no_pointers)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.kinds[1].flags |= QUIRE_HOST_VISIBLE | QUIRE_OBJECTS_ONLY;
    expect_refused(&fake, "memory kind 1", "for objects only");
    fake_init(&fake);
    fake.table.features &= ~QUIRE_BACKEND_OBJECTS;
    fake.table.object_create = NULL;
    fake.table.object_bind = NULL;
    fake.table.object_destroy = NULL;
    fake.info.kinds[0].flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
    expect_refused(&fake, "memory kind 0", "for objects only");
}

UNIT(device, kinds_that_are_coherent_or_cached_but_not_visible_are_refused)
{
    static const quire_memory_flags flags[] = {QUIRE_HOST_COHERENT, QUIRE_HOST_CACHED,
                                               QUIRE_DEVICE_LOCAL | QUIRE_HOST_COHERENT};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        fake_backend fake;
        fake_init(&fake);
        fake.info.kinds[2].flags = flags[i];
        char says[32];
        snprintf(says, sizeof says, "flags 0x%x", flags[i]);
        expect_refused(&fake, "memory kind 2 is coherent or cached and not host-visible", says);
    }
}

UNIT(device, host_visible_kinds_need_map_and_those_not_coherent_need_flush)
{
    fake_backend fake;
    fake_init(&fake);
    fake.table.features &= ~QUIRE_BACKEND_MAP;
    fake.table.map = NULL;
    fake.table.unmap = NULL;
    expect_refused(&fake, "memory kind 1", "cannot map");
    fake_init(&fake);
    fake.table.features &= ~QUIRE_BACKEND_FLUSH;
    fake.table.flush = NULL;
    fake.table.invalidate = NULL;
    expect_refused(&fake, "memory kind 2", "cannot flush");
    fake.info.kinds[2].flags |= QUIRE_HOST_COHERENT;
    expect_accepted(&fake);
}

UNIT(device, limits_other_than_powers_of_two_are_refused)
{
    static const struct {
        const char *name;
        size_t offset;
    } limits[] = {
        {"page_granularity", offsetof(quire_limits, page_granularity)},
        {"page_alignment", offsetof(quire_limits, page_alignment)},
        {"buffer_image_granularity", offsetof(quire_limits, buffer_image_granularity)},
        {"non_coherent_atom", offsetof(quire_limits, non_coherent_atom)},
        {"buffer_alignment", offsetof(quire_limits, buffer_alignment)},
        {"image_row_alignment", offsetof(quire_limits, image_row_alignment)},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        fake_backend fake;
        fake_init(&fake);
        memcpy((char *)&fake.info.limits + limits[i].offset, &(uint64_t){3}, sizeof(uint64_t));
        expect_refused(&fake, limits[i].name, "is 3, not a power of two");
    }
}

UNIT(device, limits_of_0_become_limits_without_effect)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.limits = (quire_limits){.max_page = 3000, .max_pages = 7};
    memset(fake.info.name, 'n', sizeof fake.info.name); /* not terminated */
    quire_device *device = NULL;
    quire_device_info info;
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK_OK(quire_device_get_info(device, &info));
    CHECK_EQ(info.limits.page_granularity, 1);
    CHECK_EQ(info.limits.buffer_image_granularity, 1);
    CHECK_EQ(info.limits.non_coherent_atom, 1);
    CHECK_EQ(info.limits.buffer_alignment, 1);
    CHECK_EQ(info.limits.image_row_alignment, 1);
    CHECK_EQ(info.limits.max_page, 3000);
    CHECK_EQ(info.limits.max_pages, 7);
    CHECK_EQ(strlen(info.name), sizeof info.name - 1);
    CHECK_STR(info.backend, "fake");
    CHECK_EQ(info.heap_count, 2);
    CHECK_EQ(info.kind_count, 4);
    CHECK_EQ(info.kinds[3].flags, fake.info.kinds[3].flags);
    CHECK_EQ(info.heaps[1].size, fake.info.heaps[1].size);
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- ownership and failures --------------------------------------------------------------- */

UNIT(device, errors_of_describe_are_returned_and_the_caller_keeps_the_state)
{
    fake_backend fake;
    fake_init(&fake);
    fake_fail(&fake, 1, false, QUIRE_ERROR_DEVICE_LOST);
    quire_device *device = NULL;
    CHECK_FAILS(fake_open(&fake, unit_memory(), &device), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(quire_last_native_code(), -13);
    CHECK(device == NULL && !fake.ended);
}

UNIT(device, without_host_memory_the_caller_keeps_the_state)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(fake_open(&fake, unit_memory(), &device), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(device == NULL && !fake.ended);
    CHECK_EQ(quire_last_native_code(), 0);
}

UNIT(device, null_arguments_and_incomplete_options_are_refused)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = (quire_device *)&fake;
    CHECK_FAILS(quire_device_create(NULL, &fake, NULL, &device), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(device == NULL);
    CHECK_FAILS(quire_device_create(&fake.table, &fake, NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    quire_host_memory half = *unit_memory();
    half.release = NULL;
    CHECK_FAILS(fake_open(&fake, &half, &device), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "both allocate and release");
    quire_device_options options = {.host_memory = unit_memory(), .unused = {0, 0, 0, 1}};
    CHECK_FAILS(quire_device_create(&fake.table, &fake, &options, &device),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "quire_device_options.unused[3]");
    CHECK_EQ(fake.calls[FAKE_DESCRIBE], 0);
}

UNIT(device, queries_need_a_device_and_zero_missing_values)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    quire_device_info info = {.kind_count = 3};
    CHECK_FAILS(quire_device_get_info(NULL, &info), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(info.kind_count, 0);
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK_FAILS(quire_device_get_info(device, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(quire_device_backend(device) == &fake.table);
    CHECK(quire_device_state(device) == &fake);
    CHECK(quire_device_backend(NULL) == NULL && quire_device_state(NULL) == NULL);
    CHECK_OK(quire_device_destroy(&device));
}
