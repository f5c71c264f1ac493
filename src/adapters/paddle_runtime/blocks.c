/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * blocks.c - the blocks that the host program holds, by address: records in an array, found by a
 * hash table. The mutex of runtime_blocks protects both.
 */
#include "src/adapters/paddle_runtime/runtime.h"

#include "src/base/result.h"

enum { FIRST_CAPACITY = 64 };

static const uint32_t NONE = UINT32_MAX;

bool runtime_blocks_init(runtime_blocks *blocks)
{
    *blocks = (runtime_blocks){.first_free = NONE};
    if (qi_host_init(&blocks->host, NULL))
        return false;
    return !pthread_mutex_init(&blocks->mutex, NULL);
}

void runtime_blocks_finish(runtime_blocks *blocks)
{
    qi_id_map_finish(&blocks->by_address, &blocks->host);
    qi_host_release(&blocks->host, blocks->records, blocks->room, sizeof *blocks->records);
    pthread_mutex_destroy(&blocks->mutex);
}

/* Requires the mutex. Returns the number of an unused record; NONE if host memory is exhausted. */
static uint32_t acquire_record(runtime_blocks *b)
{
    if (b->first_free != NONE) {
        uint32_t number = b->first_free;
        b->first_free = b->records[number].next_free;
        return number;
    }
    if (b->used == b->room) {
        uint32_t room = b->room ? 2 * b->room : FIRST_CAPACITY;
        runtime_block *records =
            room > b->room ? qi_host_resize(&b->host, b->records, b->room, room, sizeof *records)
                           : NULL;
        if (!records)
            return NONE;
        b->records = records;
        b->room = room;
    }
    return b->used++;
}

/* Requires the mutex. */
static void release_record(runtime_blocks *b, uint32_t number)
{
    b->records[number].next_free = b->first_free;
    b->first_free = number;
}

/* Requires the mutex. Returns false if host memory is exhausted; nothing is added then. */
static bool add(runtime_blocks *b, uint64_t address, const runtime_block *block)
{
    uint32_t number = acquire_record(b);
    if (number == NONE)
        return false;
    if (!qi_id_map_add(&b->by_address, &b->host, address, number)) {
        release_record(b, number);
        return false;
    }
    b->records[number] = *block;
    return true;
}

bool runtime_blocks_add(runtime_blocks *blocks, uint64_t address, const runtime_block *block)
{
    pthread_mutex_lock(&blocks->mutex);
    bool added = add(blocks, address, block);
    pthread_mutex_unlock(&blocks->mutex);
    return added;
}

/* Compares and removes under the mutex, so that two frees of one block cannot both succeed. */
bool runtime_blocks_remove(runtime_blocks *blocks, uint64_t address, uint64_t size,
                           runtime_role role, runtime_block *taken)
{
    pthread_mutex_lock(&blocks->mutex);
    const uint32_t *found = qi_id_map_find(&blocks->by_address, address);
    const runtime_block *block = found ? &blocks->records[*found] : NULL;
    bool is_it = block && block->size == size && block->role == role;
    if (is_it) {
        uint32_t number = *found;
        *taken = *block;
        qi_id_map_remove(&blocks->by_address, address);
        release_record(blocks, number);
    }
    pthread_mutex_unlock(&blocks->mutex);
    return is_it;
}
