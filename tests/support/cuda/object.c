/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.c - the objects of the fake CUDA driver, found by number. A number is never reused, so a
 * stale handle never names another object.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/driver.h"

static const char *const NAMES[FC_KINDS] = {
#define X(kind, name) name,
    FC_KINDS_OF_OBJECTS(X)
#undef X
};

const char *fc_kind_name(fc_kind kind)
{
    return kind < FC_KINDS ? NAMES[kind] : "(no kind)";
}

/* ---- the table: open addressing, with backward shift on removal --------------------------- */

static uint64_t place_of(uint64_t handle)
{
    return (handle * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (fc.slot_count - 1);
}

/* Returns the slot of a handle, or the free slot for it. */
static uint64_t find_slot(uint64_t handle)
{
    uint64_t at = place_of(handle);
    while (fc.slots[at].handle && fc.slots[at].handle != handle)
        at = (at + 1) & (fc.slot_count - 1);
    return at;
}

static void grow(void)
{
    fc_slot *old = fc.slots;
    uint64_t count = fc.slot_count;
    fc.slot_count = count ? count * 2 : 256;
    fc.slots = calloc(fc.slot_count, sizeof *fc.slots);
    if (!fc.slots)
        abort();
    for (uint64_t i = 0; i < count; i++)
        if (old[i].handle)
            fc.slots[find_slot(old[i].handle)] = old[i];
    free(old);
}

static void take_out(uint64_t handle)
{
    uint64_t mask = fc.slot_count - 1, hole = find_slot(handle);
    for (uint64_t at = (hole + 1) & mask; fc.slots[at].handle; at = (at + 1) & mask) {
        uint64_t home = place_of(fc.slots[at].handle);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            fc.slots[hole] = fc.slots[at];
            hole = at;
        }
    }
    fc.slots[hole] = (fc_slot){0};
    fc.slots_used--;
}

/* ---- objects ------------------------------------------------------------------------------ */

void *fc_object_new(fc_kind kind, size_t size)
{
    fc_object *object = calloc(1, size);
    if (!object)
        abort();
    object->kind = kind;
    /* unlike any value of a program: neither small nor a pointer */
    object->handle = UINT64_C(0xfc00000000000000) + fc.next_handle++;
    if (fc.slots_used * 2 >= fc.slot_count)
        grow();
    fc.slots[find_slot(object->handle)] = (fc_slot){object->handle, object};
    fc.slots_used++;
    fc.live[kind]++;
    return object;
}

void fc_object_end(fc_object *object)
{
    take_out(object->handle);
    fc.live[object->kind]--;
    free(object);
}

void fc_objects_end(void)
{
    free(fc.slots);
    fc.slots = NULL;
    fc.slot_count = fc.slots_used = 0;
}

void *fc_object_peek(fc_kind kind, uint64_t handle)
{
    if (!handle || !fc.slot_count)
        return NULL;
    fc_object *object = fc.slots[find_slot(handle)].object;
    return object && object->kind == kind ? object : NULL;
}

void *fc_object_find(fc_call call, fc_kind kind, uint64_t handle)
{
    void *object = fc_object_peek(kind, handle);
    if (!object && handle)
        fc_say("fc-handle", call, "0x%" PRIx64 " is no %s: it was ended or never made", handle,
               fc_kind_name(kind));
    return object;
}

fc_object *fc_object_next(uint64_t *index)
{
    while (*index < fc.slot_count) {
        fc_object *object = fc.slots[(*index)++].object;
        if (object)
            return object;
    }
    return NULL;
}

uint64_t fc_live(fc_kind kind)
{
    fc_lock();
    uint64_t count = fc.live[kind];
    fc_unlock();
    return count;
}

uint64_t fc_leaks(void)
{
    uint64_t count = 0;
    fc_lock();
    for (uint32_t i = 0; i < FC_KINDS; i++)
        count += fc.live[i];
    fc_unlock();
    return count;
}
