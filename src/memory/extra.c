/*
 * extra.c - see extra.h.
 */
#include "src/memory/extra.h"

#include "src/base/result.h"

static size_t extra_size(quire_object object)
{
    const qi_extra *extra = NULL;
    switch (object) {
    case QUIRE_OBJECT_BUFFER:
        return offsetof(qi_extra, info) + sizeof extra->info.buffer;
    case QUIRE_OBJECT_IMAGE:
        return sizeof *extra;
    default:
        return offsetof(qi_extra, info);
    }
}

void qi_extra_release(quire_memory *memory, qi_extra *extra)
{
    if (extra)
        qi_host_release_text(&memory->host, extra->name);
    qi_host_release(&memory->host, extra, 1, extra ? extra_size(extra->object) : 0);
}

qi_extra *qi_extra_make_empty(quire_memory *memory)
{
    return qi_host_allocate(&memory->host, 1, extra_size(QUIRE_OBJECT_NONE));
}

quire_result qi_extra_make(quire_memory *memory, const char *name, quire_object object,
                           qi_extra **extra)
{
    *extra = NULL;
    if (!name && object == QUIRE_OBJECT_NONE)
        return QUIRE_SUCCESS;
    *extra = qi_host_allocate(&memory->host, 1, extra_size(object));
    if (*extra)
        (*extra)->object = object;
    if (*extra && name)
        (*extra)->name = qi_host_copy_text(&memory->host, name);
    if (*extra && (!name || (*extra)->name))
        return QUIRE_SUCCESS;
    qi_extra_release(memory, *extra);
    *extra = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an allocation's name");
}
