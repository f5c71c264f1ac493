/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - the memory of the test plugin. Device addresses lie in inaccessible address space, so
 * that a host that touches them crashes. The bytes are stored `delta` bytes after their addresses.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/plugin/inside.h"

enum { MAX_BLOCKS = 8192, BOUNDARY = 4096, DIRT = 0xdb, MAX_DIRT = 65536 };

#define MIB (UINT64_C(1) << 20)

typedef struct block {
    tp_kind kind;
    int32_t device;
    uint64_t address;
    uint64_t size;
} block;

/* The memory of one device. */
typedef struct arena {
    char *addresses; /* inaccessible address space */
    char *bytes;
    uint64_t room;
    uint64_t used;
} arena;

static arena arenas[TP_MAX_DEVICES];
static block blocks[MAX_BLOCKS]; /* sorted by address */
static uint32_t block_count;

/* ---- blocks --------------------------------------------------------------------------------- */

static uint64_t bytes_of_device(void)
{
    return tp.options.bytes ? tp.options.bytes : 1024 * MIB;
}

/* Drops all blocks. The next allocation of a device maps its memory again. */
void tp_memory_reset(void)
{
    for (uint32_t i = 0; i < block_count; i++)
        if (blocks[i].kind != TP_ON_DEVICE)
            free((void *)(uintptr_t)(blocks[i].address / BOUNDARY * BOUNDARY));
    block_count = 0;
    for (int i = 0; i < TP_MAX_DEVICES; i++) {
        if (arenas[i].room) {
            munmap(arenas[i].addresses, arenas[i].room);
            munmap(arenas[i].bytes, arenas[i].room);
        }
        arenas[i] = (arena){.room = 0};
    }
}

static bool open_arena(arena *a)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t room = 2 * bytes_of_device() + 64 * MIB;
    a->addresses = mmap(NULL, room, PROT_NONE, flags, -1, 0);
    if (a->addresses == MAP_FAILED)
        return false;
    a->bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (a->bytes == MAP_FAILED) {
        munmap(a->addresses, room);
        return false;
    }
    a->room = room;
    return true;
}

/* Finds the lowest gap of a device's addresses at the requested distance from a boundary. */
static uint64_t find_gap(int32_t device, uint64_t size)
{
    const arena *a = &arenas[device];
    uint64_t start = (uintptr_t)a->addresses, at = start + tp.options.base_offset;
    for (uint32_t i = 0; i < block_count; i++) {
        const block *b = &blocks[i];
        if (b->kind != TP_ON_DEVICE || b->device != device)
            continue;
        if (b->address >= at + size)
            break;
        at = (b->address + b->size + BOUNDARY - 1) / BOUNDARY * BOUNDARY + tp.options.base_offset;
    }
    return at + size <= start + a->room ? at : 0;
}

static bool add_block(tp_kind kind, int32_t device, uint64_t address, uint64_t size)
{
    uint32_t at = block_count;
    if (block_count == MAX_BLOCKS)
        return false;
    for (; at && blocks[at - 1].address > address; at--)
        blocks[at] = blocks[at - 1];
    blocks[at] = (block){kind, device, address, size};
    block_count++;
    return true;
}

static uint64_t place_on_device(int32_t device, uint64_t size)
{
    arena *a = &arenas[device];
    if (size > bytes_of_device() - a->used || (!a->room && !open_arena(a)))
        return 0;
    uint64_t address = find_gap(device, size);
    if (!address || !add_block(TP_ON_DEVICE, device, address, size))
        return 0;
    char *bytes = a->bytes + (address - (uintptr_t)a->addresses);
    memset(bytes, DIRT, size < MAX_DIRT ? size : MAX_DIRT);
    a->used += size;
    return address;
}

static uint64_t place_on_host(tp_kind kind, int32_t device, uint64_t size)
{
    void *bytes = NULL;
    uint64_t offset = tp.options.base_offset;
    if (size > bytes_of_device() || posix_memalign(&bytes, BOUNDARY, size + offset))
        return 0;
    if (!add_block(kind, device, (uintptr_t)bytes + offset, size)) {
        free(bytes);
        return 0;
    }
    memset((char *)bytes + offset, DIRT, size < MAX_DIRT ? size : MAX_DIRT);
    return (uintptr_t)bytes + offset;
}

/* Exhausted memory is a success without a pointer, as some plugins report it. */
static int32_t allocate(uint32_t offset, const tp_device *device, void **pointer, size_t size,
                        tp_kind kind)
{
    int32_t status;
    if (!tp_begin(offset, device, true, &status))
        return status;
    if (*pointer)
        tp_wrong("the pointer that the function at %u writes was not null", offset);
    uint64_t chunk = tp.options.sizes[TP_MIN_CHUNK];
    if (!size || (chunk && kind == TP_ON_DEVICE && size % chunk))
        return tp_end(offset, tp_wrong("%zu bytes are no multiple of min_chunk", size));
    int32_t index = tp_index(device);
    uint64_t address =
        kind == TP_ON_DEVICE ? place_on_device(index, size) : place_on_host(kind, index, size);
    *pointer = (void *)(uintptr_t)address;
    return tp_end(offset, TP_SUCCESS);
}

static int32_t give_back(const tp_device *device, void *pointer, size_t size, tp_kind kind)
{
    uint32_t at = 0;
    while (at < block_count && blocks[at].address != (uintptr_t)pointer)
        at++;
    if (at == block_count || blocks[at].kind != kind)
        return tp_wrong("%p is given back and was not taken so", pointer);
    if (blocks[at].device != tp_index(device))
        return tp_wrong("%p is given back to another device", pointer);
    if (blocks[at].size != size)
        return tp_wrong("%p is given back with %zu bytes, and was taken with %llu", pointer, size,
                        (unsigned long long)blocks[at].size);
    if (kind == TP_ON_DEVICE)
        arenas[blocks[at].device].used -= size;
    else
        free((void *)(uintptr_t)(blocks[at].address / BOUNDARY * BOUNDARY));
    block_count--;
    memmove(&blocks[at], &blocks[at + 1], (block_count - at) * sizeof *blocks);
    tp.freed++;
    return TP_SUCCESS;
}

/* A failing deallocate frees the block nevertheless, because its caller does not retry. */
static int32_t deallocate(uint32_t offset, const tp_device *device, void *pointer, size_t size,
                          tp_kind kind)
{
    int32_t status;
    bool goes = tp_begin(offset, device, true, &status);
    if (!goes)
        pthread_mutex_lock(&tp_mutex);
    int32_t given = give_back(device, pointer, size, kind);
    if (goes)
        return tp_end(offset, given);
    pthread_mutex_unlock(&tp_mutex);
    return status;
}

#define PAIR(name, taking, giving, kind)                                                           \
    static int32_t name##_allocate(tp_device *device, void **pointer, size_t size)                 \
    {                                                                                              \
        return allocate(taking, device, pointer, size, kind);                                      \
    }                                                                                              \
    static int32_t name##_deallocate(tp_device *device, void *pointer, size_t size)                \
    {                                                                                              \
        return deallocate(giving, device, pointer, size, kind);                                    \
    }

PAIR(device_memory, 216, 224, TP_ON_DEVICE)
PAIR(host_memory, 240, 248, TP_ON_HOST)
PAIR(unified_memory, 256, 264, TP_UNIFIED)

/* ---- contents ------------------------------------------------------------------------------- */

static char *bytes_at(int32_t device, uint64_t address)
{
    const arena *a = &arenas[device];
    return a->bytes + (address - (uintptr_t)a->addresses);
}

/* Device memory must be inside one live block. Host memory is any memory outside the devices. */
bool tp_can_reach(int32_t device, uint64_t address, uint64_t size)
{
    for (uint32_t i = 0; i < block_count; i++) {
        const block *b = &blocks[i];
        bool touches = address < b->address + b->size && address + size > b->address;
        if (b->kind != TP_ON_DEVICE || !touches)
            continue;
        return device == b->device && address >= b->address &&
               address + size <= b->address + b->size;
    }
    return device < 0;
}

void tp_move(int32_t to_device, void *to, int32_t from_device, const void *from, size_t size)
{
    char *target = to_device < 0 ? to : bytes_at(to_device, (uintptr_t)to);
    const char *source = from_device < 0 ? from : bytes_at(from_device, (uintptr_t)from);
    memcpy(target, source, size);
}

static int32_t copy(uint32_t offset, const tp_device *device, int32_t to_device, void *to,
                    int32_t from_device, const void *from, size_t size)
{
    int32_t status;
    if (!tp_begin(offset, device, true, &status))
        return status;
    if (!tp_can_reach(to_device, (uintptr_t)to, size) ||
        !tp_can_reach(from_device, (uintptr_t)from, size))
        return tp_end(offset, tp_wrong("the copy at %u leaves its memory", offset));
    tp_move(to_device, to, from_device, from, size);
    return tp_end(offset, TP_SUCCESS);
}

static int32_t copy_h2d(tp_device *device, void *to, const void *from, size_t size)
{
    return copy(272, device, tp_index(device), to, -1, from, size);
}

static int32_t copy_d2h(tp_device *device, void *to, const void *from, size_t size)
{
    return copy(280, device, -1, to, tp_index(device), from, size);
}

static int32_t copy_d2d(tp_device *device, void *to, const void *from, size_t size)
{
    return copy(288, device, tp_index(device), to, tp_index(device), from, size);
}

static int32_t copy_p2p(tp_device *to_device, tp_device *from_device, void *to, const void *from,
                        size_t size)
{
    return copy(296, to_device, tp_index(to_device), to, tp_index(from_device), from, size);
}

static int32_t set(tp_device *device, void *to, unsigned char value, size_t size)
{
    int32_t status;
    if (!tp_begin(232, device, true, &status))
        return status;
    if (!tp_can_reach(tp_index(device), (uintptr_t)to, size))
        return tp_end(232, tp_wrong("a fill leaves its memory"));
    memset(bytes_at(tp_index(device), (uintptr_t)to), value, size);
    return tp_end(232, TP_SUCCESS);
}

static int32_t stats(tp_device *device, size_t *total, size_t *free_bytes)
{
    int32_t status;
    if (!tp_begin(416, device, true, &status))
        return status;
    uint64_t used = arenas[tp_index(device)].used;
    *total = tp.told_bytes ? tp.told_bytes : bytes_of_device();
    *free_bytes = *total > used ? *total - used : 0;
    return tp_end(416, TP_SUCCESS);
}

void tp_memory_put(unsigned char *into)
{
    TP_PUT(into, 216, device_memory_allocate);
    TP_PUT(into, 224, device_memory_deallocate);
    TP_PUT(into, 232, set);
    TP_PUT(into, 240, host_memory_allocate);
    TP_PUT(into, 248, host_memory_deallocate);
    TP_PUT(into, 256, unified_memory_allocate);
    TP_PUT(into, 264, unified_memory_deallocate);
    TP_PUT(into, 272, copy_h2d);
    TP_PUT(into, 280, copy_d2h);
    TP_PUT(into, 288, copy_d2d);
    TP_PUT(into, 296, copy_p2p);
    TP_PUT(into, 416, stats);
}

/* ---- controls ------------------------------------------------------------------------------- */

uint64_t tp_blocks(void)
{
    return block_count;
}

uint64_t tp_bytes(uint32_t device)
{
    return arenas[device].used;
}

bool tp_look(uint64_t address, void *data, uint64_t size)
{
    bool found = false;
    pthread_mutex_lock(&tp_mutex);
    for (int32_t i = 0; i < TP_MAX_DEVICES && !found; i++) {
        found = arenas[i].room && address >= (uintptr_t)arenas[i].addresses &&
                address + size <= (uintptr_t)arenas[i].addresses + arenas[i].room;
        if (found)
            memcpy(data, bytes_at(i, address), size);
    }
    pthread_mutex_unlock(&tp_mutex);
    return found;
}
