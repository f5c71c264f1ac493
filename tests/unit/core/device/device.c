/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - devices: the checks of a backend's table, and who owns the state. The description is
 * in device_description.c, closing and log lines are in device_end.c.
 */
#include "tests/support/device_table.h"

/* ---- the table ---------------------------------------------------------------------------- */

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
        remove_group(&fake, GROUPS[i].bit);
        if (GROUPS[i].bit == QUIRE_BACKEND_STREAMS) /* the other groups need streams */
            fake_leave_out(&fake, QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY |
                                      QUIRE_BACKEND_STREAM_FILL | QUIRE_BACKEND_STREAM_WRITE_MANY);
        expect_accepted(&fake);
    }
}

UNIT(device, incomplete_and_unknown_tables_are_refused)
{
    static const size_t sizes[] = {0, sizeof(size_t), AT(destroy) - 1};
    static const size_t required[] = {AT(describe), AT(page_create), AT(page_destroy)};
    static const char *const names[] = {NULL, ""};
    fake_backend fake;
    char says[64];
    for (int i = 0; i < 3; i++) {
        fake_init(&fake);
        fake.table.size = sizes[i];
        snprintf(says, sizeof says, "says it has %zu bytes", sizes[i]);
        expect_refused(&fake, says, "too few");
        fake_init(&fake);
        remove_function(&fake.table, required[i]);
        expect_refused(&fake, "'fake'", "lacks describe, page_create or page_destroy");
    }
    for (int i = 0; i < 2; i++) {
        fake_init(&fake);
        fake.table.name = names[i];
        expect_refused(&fake, "no name", "");
    }
    for (int bit = 22; bit < 64; bit++) {
        fake_init(&fake);
        fake.table.features |= UINT64_C(1) << bit;
        expect_refused(&fake, "'fake'", "features this version does not know");
    }
    fake_init(&fake);
    fake.table.size = AT(object_destroy); /* an older table with features beyond its size */
    expect_refused(&fake, "lacks some of", "object_destroy");
    fake_init(&fake);
    fake.table.features |= QUIRE_BACKEND_ROWS;
    expect_refused(&fake, "'fake'", "announces rows");
    fake.table.features |= QUIRE_BACKEND_STAGES;
    fake.table.features &= ~QUIRE_BACKEND_ROWS;
    expect_accepted(&fake);
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

UNIT(device, incomplete_options_are_refused)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = (quire_device *)&fake;
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

UNIT(device, a_device_returns_its_table_and_state)
{
    fake_backend fake;
    fake_init(&fake);
    quire_device *device = NULL;
    CHECK_OK(fake_open(&fake, unit_memory(), &device));
    CHECK(quire_device_backend(device) == &fake.table);
    CHECK(quire_device_state(device) == &fake);
    CHECK_OK(quire_device_destroy(&device));
}
