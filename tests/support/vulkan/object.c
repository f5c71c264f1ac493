/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.c - the objects of the fake driver, found by their numbers in a hash table.
 *
 * A driver uses each number only once, so that a stale handle never refers to another object.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/driver.h"

static const char *const NAMES[FV_KINDS] = {
#define X(kind, name) name,
    FV_OBJECTS(X)
#undef X
};

const char *fv_kind_name(fv_kind kind)
{
    return kind < FV_KINDS ? NAMES[kind] : "(no kind)";
}

static bool is_dispatchable(fv_kind kind)
{
    return kind <= FV_COMMAND_BUFFER;
}

static bool is_counted(fv_kind kind)
{
    return kind != FV_PHYSICAL_DEVICE && kind != FV_QUEUE;
}

/* ---- the table: open addressing, with backward shift on removal --------------------------- */

static uint64_t place_of(const fv_driver *driver, uint64_t handle)
{
    return (handle * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (driver->slot_count - 1);
}

/* Returns the slot of a handle, or the free slot where it would be. */
static uint64_t find_slot(const fv_driver *driver, uint64_t handle)
{
    uint64_t at = place_of(driver, handle);
    while (driver->slots[at].handle && driver->slots[at].handle != handle)
        at = (at + 1) & (driver->slot_count - 1);
    return at;
}

static void grow(fv_driver *driver)
{
    fv_slot *old = driver->slots;
    uint64_t count = driver->slot_count;
    driver->slot_count = count ? count * 2 : 256;
    driver->slots = calloc(driver->slot_count, sizeof *driver->slots);
    if (!driver->slots)
        abort();
    for (uint64_t i = 0; i < count; i++)
        if (old[i].handle)
            driver->slots[find_slot(driver, old[i].handle)] = old[i];
    free(old);
}

static void insert(fv_driver *driver, fv_object *object)
{
    if (driver->slots_used * 2 >= driver->slot_count)
        grow(driver);
    driver->slots[find_slot(driver, object->handle)] = (fv_slot){object->handle, object};
    driver->slots_used++;
}

static void take_out(fv_driver *driver, uint64_t handle)
{
    uint64_t mask = driver->slot_count - 1, hole = find_slot(driver, handle);
    for (uint64_t at = (hole + 1) & mask; driver->slots[at].handle; at = (at + 1) & mask) {
        uint64_t home = place_of(driver, driver->slots[at].handle);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            driver->slots[hole] = driver->slots[at];
            hole = at;
        }
    }
    driver->slots[hole] = (fv_slot){0};
    driver->slots_used--;
}

/* ---- objects ------------------------------------------------------------------------------ */

void fv_object_init(fv_object *object, fv_driver *driver, fv_device *device, fv_kind kind)
{
    set_loader_magic_value(object);
    object->driver = driver;
    object->device = device;
    object->kind = kind;
    /* unlike other values of a program: neither small nor a pointer */
    object->handle = is_dispatchable(kind) ? (uintptr_t)object
                                           : UINT64_C(0xfa00000000000000) + driver->next_handle++;
}

void *fv_object_new(fv_driver *driver, fv_device *device, fv_kind kind, size_t size)
{
    fv_object *object = calloc(1, size);
    if (!object)
        abort();
    fv_object_init(object, driver, device, kind);
    insert(driver, object);
    driver->live[kind] += is_counted(kind);
    return object;
}

void fv_object_end(fv_object *object)
{
    fv_driver *driver = object->driver;
    take_out(driver, object->handle);
    driver->live[object->kind] -= is_counted(object->kind);
    object->dead = true;
    if (is_dispatchable(object->kind)) {
        object->next = driver->past;
        driver->past = object;
    } else
        free(object);
}

void fv_objects_end(fv_driver *driver)
{
    while (driver->past) {
        fv_object *next = driver->past->next;
        free(driver->past);
        driver->past = next;
    }
    free(driver->slots);
}

fv_object *fv_object_peek(fv_driver *driver, fv_kind kind, uint64_t handle)
{
    if (!handle || !driver->slot_count)
        return NULL;
    fv_object *object = driver->slots[find_slot(driver, handle)].object;
    return object && object->kind == kind ? object : NULL;
}

fv_object *fv_object_next(fv_driver *driver, uint64_t *index)
{
    while (*index < driver->slot_count) {
        fv_object *object = driver->slots[(*index)++].object;
        if (object)
            return object;
    }
    return NULL;
}

void *fv_object_find(fv_device *device, fv_call call, fv_kind kind, uint64_t handle)
{
    fv_driver *driver = ((fv_object *)device)->driver;
    fv_object *object = driver->slot_count ? driver->slots[find_slot(driver, handle)].object : NULL;
    if (!object || !handle)
        fv_say(driver, FV_ERROR, "fv-handle", call,
               "0x%" PRIx64 " is no %s: it was destroyed or never made", handle,
               fv_kind_name(kind));
    else if (object->kind != kind)
        fv_say(driver, FV_ERROR, "fv-handle", call, "0x%" PRIx64 " is a %s and no %s", handle,
               fv_kind_name(object->kind), fv_kind_name(kind));
    else if (object->device != device)
        fv_say(driver, FV_ERROR, "fv-parent", call, "%s 0x%" PRIx64 " '%s' is another device's",
               fv_kind_name(kind), handle, object->name);
    else
        return object;
    return NULL;
}

bool fv_object_check(fv_object *object, fv_call call, fv_kind kind)
{
    if (!object)
        abort(); /* no driver exists to report it to, and a real one would crash */
    if (object->kind != kind)
        fv_say(object->driver, FV_ERROR, "fv-handle", call, "a %s is no %s",
               fv_kind_name(object->kind), fv_kind_name(kind));
    else if (object->dead)
        fv_say(object->driver, FV_ERROR, "fv-handle", call, "the %s was destroyed",
               fv_kind_name(kind));
    return object->kind == kind && !object->dead;
}

uint64_t fv_live(fv_driver *driver, fv_kind kind)
{
    pthread_mutex_lock(&driver->lock);
    uint64_t count = driver->live[kind];
    pthread_mutex_unlock(&driver->lock);
    return count;
}

void fv_name_of(fv_driver *driver, uint64_t handle, char *name, size_t room)
{
    pthread_mutex_lock(&driver->lock);
    const fv_object *object =
        driver->slot_count ? driver->slots[find_slot(driver, handle)].object : NULL;
    if (room) {
        strncpy(name, object && handle ? object->name : "", room - 1);
        name[room - 1] = 0;
    }
    pthread_mutex_unlock(&driver->lock);
}
