/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * movable_items.h - shared by tests with threads in a memory whose allocations move or leave: items
 * of which a thread takes one at a time, and requests for raw ranges and buffers.
 */
#ifndef QUIRE_TESTS_SUPPORT_MOVABLE_ITEMS_H
#define QUIRE_TESTS_SUPPORT_MOVABLE_ITEMS_H

#include <stdatomic.h>

#include "quire/quire.h"
#include "tests/support/random.h"

enum { ITEMS = 600 };

/* One of so many allocations is not movable. It keeps its page, which has about 60. */
enum { STAYING = 200 };

/* What the identifier of an item says if a thread has it. */
static const uint64_t TAKEN = UINT64_MAX;

/* The other fields belong to the thread that has taken the item. */
typedef struct item {
    atomic_uint_fast64_t id; /* of the allocation; 0: none; or TAKEN */
    uint64_t size, key;
} item;

static item items[ITEMS];

/* Takes a random item. Returns NULL if another thread has it. */
static item *take(test_random *r, quire_allocation *handle)
{
    item *i = &items[random_below(r, ITEMS)];
    handle->id = atomic_exchange(&i->id, TAKEN);
    return handle->id == TAKEN ? NULL : i;
}

static void put_back(item *i, quire_allocation handle)
{
    atomic_store(&i->id, handle.id);
}

/* A raw range, or a buffer. */
static quire_result request(quire_memory *memory, test_random *r, uint64_t size,
                            quire_allocation *made)
{
    const quire_allocation_options options = {.size = size,
                                              .alignment = UINT64_C(1) << random_below(r, 9),
                                              .movable = random_below(r, STAYING) != 0,
                                              .name = random_below(r, 8) ? NULL : "named"};
    if (random_below(r, 4))
        return quire_allocate(memory, &options, made);
    quire_buffer buffer = {{0}};
    const quire_buffer_options as_buffer = {.size = size,
                                            .alignment = options.alignment,
                                            .movable = options.movable,
                                            .name = options.name};
    quire_result result = quire_buffer_create(memory, &as_buffer, &buffer);
    *made = buffer.allocation;
    return result;
}

#endif
