/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - reads and writes the bytes of a resource as the device does.
 */
#include <string.h>

#include "tests/support/vulkan/command.h"

/* The longest beginning of [offset, offset + size) that is contiguous in one memory. */
typedef struct part {
    fv_memory *memory; /* NULL: not bound */
    uint64_t offset, size;
} part;

static part bound_part(fv_resource *resource, fv_call call, uint64_t offset, uint64_t size)
{
    if (resource->memory)
        return (part){resource->memory, resource->offset + offset, size};
    fv_say(resource->object.driver, FV_ERROR, "fv-no-memory", call, "'%s' has no memory%s",
           resource->object.name, resource->bound ? ": it was freed" : "");
    return (part){NULL, 0, size};
}

static part sparse_part(fv_resource *resource, fv_call call, uint64_t offset, uint64_t size)
{
    uint64_t until = offset + size;
    for (uint32_t i = 0; i < resource->piece_count; i++) {
        const fv_piece *piece = &resource->pieces[i];
        uint64_t end = piece->offset + piece->size;
        if (piece->offset > offset) {
            until = piece->offset < until ? piece->offset : until;
            break;
        }
        if (end <= offset)
            continue;
        fv_memory *memory = fv_object_find(resource->object.device, call, FV_MEMORY, piece->memory);
        return (part){memory, piece->memory_offset + (offset - piece->offset),
                      (end < until ? end : until) - offset};
    }
    return (part){NULL, 0, until - offset}; /* not resident: reads give 0, writes are dropped */
}

static part part_at(fv_resource *resource, fv_call call, uint64_t offset, uint64_t size)
{
    return resource->sparse ? sparse_part(resource, call, offset, size)
                            : bound_part(resource, call, offset, size);
}

void fv_read(fv_resource *resource, fv_call call, uint64_t offset, void *to, uint64_t size)
{
    unsigned char *at = to;
    while (size) {
        part found = part_at(resource, call, offset, size);
        if (found.memory)
            fv_bytes_read(&found.memory->bytes, found.offset, at, found.size);
        else
            memset(at, 0, (size_t)found.size);
        offset += found.size;
        at += found.size;
        size -= found.size;
    }
}

void fv_write(fv_resource *resource, fv_call call, uint64_t offset, const void *from, uint64_t size)
{
    const unsigned char *at = from;
    while (size) {
        part found = part_at(resource, call, offset, size);
        if (found.memory)
            fv_bytes_write(&found.memory->bytes, found.offset, at, found.size);
        offset += found.size;
        at += found.size;
        size -= found.size;
    }
}
