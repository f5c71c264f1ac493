/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device_table.h - shared by the unit tests of devices: tables and descriptions of a fake backend
 * that the core must accept or refuse.
 */
#ifndef QUIRE_TESTS_SUPPORT_DEVICE_TABLE_H
#define QUIRE_TESTS_SUPPORT_DEVICE_TABLE_H

#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include <stdio.h>

#include "quire/quire.h"

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
    {QUIRE_BACKEND_ELASTIC, "page_back, page_unback", {AT(page_back), AT(page_unback)}, 2},
    {QUIRE_BACKEND_FORK,
     "fork_prepare, fork_done, fork_child",
     {AT(fork_prepare), AT(fork_done), AT(fork_child)},
     3},
    {QUIRE_BACKEND_DEVICE_ADDRESS, "device_address", {AT(device_address)}, 1},
    {QUIRE_BACKEND_COPY_MANY, "write_many, read_many", {AT(write_many), AT(read_many)}, 2},
    {QUIRE_BACKEND_STREAM_WRITE_MANY, "stream_write_many", {AT(stream_write_many)}, 1},
};
enum { GROUP_COUNT = sizeof GROUPS / sizeof *GROUPS };

static inline void remove_function(quire_backend *table, size_t offset)
{
    memset((char *)table + offset, 0, sizeof table->describe);
}

/* Removes a group as a whole: its bit and its functions. */
static inline void remove_group(fake_backend *fake, quire_backend_features bit)
{
    fake->table.features &= ~bit;
    for (size_t i = 0; i < GROUP_COUNT; i++)
        for (size_t k = 0; k < GROUPS[i].count && GROUPS[i].bit == bit; k++)
            remove_function(&fake->table, GROUPS[i].functions[k]);
}

/* A fake whose kinds need neither map nor flush. */
static inline void init_device_only(fake_backend *fake)
{
    fake_init(fake);
    fake_offer_budget(fake);
    fake_offer_flush_many(fake);
    fake_offer_fill(fake);
    fake_offer_copies(fake);
    fake_offer_streams(fake);
    fake_offer_batches(fake);
    fake_offer_fork(fake);
    fake_offer_device_address(fake);
    fake->info.kind_count = 1;
    fake_offer_growth(fake);
}

/*
 * Opening is refused with a message that has both parts. It creates no device and does not close
 * the state.
 */
static __attribute__((noinline, unused)) void expect_refused(fake_backend *fake, const char *part,
                                                             const char *other)
{
    quire_device *device = (quire_device *)fake;
    CHECK_FAILS(fake_open(fake, unit_memory(), &device), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), part);
    CHECK_HAS(quire_last_error(), other);
    CHECK(device == NULL);
    CHECK(!fake->ended);
}

static inline void expect_accepted(fake_backend *fake)
{
    quire_device *device = NULL;
    if (!(fake->table.features & QUIRE_BACKEND_ELASTIC))
        fake->info.limits.elastic_kinds = 0;
    CHECK_OK(fake_open(fake, unit_memory(), &device));
    CHECK_OK(quire_device_destroy(&device));
    CHECK(device == NULL);
    CHECK(fake->ended);
}

#endif
