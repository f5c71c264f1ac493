/*
 * device_description.c - the checks of the description that a backend returns: heaps, kinds, flags
 * and limits.
 */
#include "tests/support/device_table.h"

UNIT(device_description, a_device_has_1_to_16_heaps_and_1_to_32_kinds)
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

UNIT(device_description, a_kind_in_a_missing_heap_is_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.kinds[3].heap = 2;
    expect_refused(&fake, "memory kind 3", "heap 2 of 2");
}

UNIT(device_description, a_heap_of_size_0_is_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.heaps[1].size = 0;
    expect_refused(&fake, "heap 1", "size 0");
}

UNIT(device_description, unknown_flags_are_refused)
{
    fake_backend fake;
    fake_init(&fake);
    fake.info.heaps[1].flags = 0x104;
    expect_refused(&fake, "heap 1", "flags 0x104");
    fake_init(&fake);
    fake.info.kinds[2].flags |= 0x200;
    expect_refused(&fake, "memory kind 2", "unknown flags 0x200");
}

UNIT(device_description, kinds_for_objects_need_a_backend_with_objects_and_have_no_pointers)
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

UNIT(device_description, kinds_that_are_coherent_or_cached_but_not_visible_are_refused)
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

UNIT(device_description, host_visible_kinds_need_map_and_those_not_coherent_need_flush)
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

UNIT(device_description, limits_other_than_powers_of_two_are_refused)
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

UNIT(device_description, limits_of_0_become_limits_without_effect)
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
