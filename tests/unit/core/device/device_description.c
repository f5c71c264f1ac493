/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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

#define INFO(member) offsetof(quire_device_info, member), sizeof(((quire_device_info *)0)->member)

/* One member of the description of the fake with another value, and two parts of the message. */
UNIT(device_description, wrong_members_are_refused)
{
    static const struct {
        size_t at, size;
        uint64_t value;
        const char *part, *other;
    } rows[] = {
        {INFO(kinds[3].heap), 2, "memory kind 3", "heap 2 of 2"},
        {INFO(heaps[1].size), 0, "heap 1", "size 0"},
        {INFO(heaps[1].flags), 0x104, "heap 1", "flags 0x104"},
        {INFO(kinds[2].flags), 0x200, "memory kind 2", "unknown flags 0x200"},
        {INFO(kinds[1].flags), QUIRE_HOST_VISIBLE | QUIRE_OBJECTS_ONLY, "memory kind 1",
         "for objects only"},
        {INFO(kinds[2].flags), QUIRE_HOST_COHERENT,
         "memory kind 2 is coherent or cached and not host-visible", "flags 0x4"},
        {INFO(kinds[2].flags), QUIRE_HOST_CACHED,
         "memory kind 2 is coherent or cached and not host-visible", "flags 0x8"},
        {INFO(kinds[2].flags), QUIRE_DEVICE_LOCAL | QUIRE_HOST_COHERENT,
         "memory kind 2 is coherent or cached and not host-visible", "flags 0x5"},
        {INFO(limits.page_granularity), 3, "page_granularity", "is 3, not a power of two"},
        {INFO(limits.page_alignment), 3, "page_alignment", "is 3, not a power of two"},
        {INFO(limits.buffer_image_granularity), 3, "buffer_image_granularity",
         "is 3, not a power of two"},
        {INFO(limits.non_coherent_atom), 3, "non_coherent_atom", "is 3, not a power of two"},
        {INFO(limits.buffer_alignment), 3, "buffer_alignment", "is 3, not a power of two"},
        {INFO(limits.image_row_alignment), 3, "image_row_alignment", "is 3, not a power of two"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_backend fake;
        const uint32_t half = (uint32_t)rows[i].value;
        unit_note("row", i);
        fake_init(&fake);
        memcpy((char *)&fake.info + rows[i].at,
               rows[i].size == sizeof half ? (const void *)&half : &rows[i].value, rows[i].size);
        expect_refused(&fake, rows[i].part, rows[i].other);
    }
}

UNIT(device_description, kinds_need_the_functions_of_their_flags)
{
    fake_backend fake;
    fake_init(&fake);
    remove_group(&fake, QUIRE_BACKEND_OBJECTS);
    fake.info.kinds[0].flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
    expect_refused(&fake, "memory kind 0", "for objects only");
    fake_init(&fake);
    remove_group(&fake, QUIRE_BACKEND_MAP);
    expect_refused(&fake, "memory kind 1", "cannot map");
    fake_init(&fake);
    remove_group(&fake, QUIRE_BACKEND_FLUSH);
    expect_refused(&fake, "memory kind 2", "cannot flush");
    fake.info.kinds[2].flags |= QUIRE_HOST_COHERENT;
    expect_accepted(&fake);
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
