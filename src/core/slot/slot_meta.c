/*
 * extra.c - see extra.h.
 */
#include "src/core/slot/slot_meta.h"

#include "src/base/result.h"

void qi_slot_meta_release(quire_memory *memory, qi_slot_meta *meta)
{
    if (!meta)
        return;
    qi_host_release_text(&memory->host, meta->name);
    qi_host_release(&memory->host, meta->image, 1, sizeof *meta->image);
    qi_host_release(&memory->host, meta, 1, sizeof *meta);
}

qi_slot_meta *qi_slot_meta_create_empty(quire_memory *memory)
{
    return qi_host_allocate(&memory->host, 1, sizeof(qi_slot_meta));
}

static bool fill(quire_memory *memory, qi_slot_meta *meta, const char *name, bool is_image)
{
    if (name)
        meta->name = qi_host_copy_text(&memory->host, name);
    if (is_image)
        meta->image = qi_host_allocate(&memory->host, 1, sizeof *meta->image);
    return (!name || meta->name) && (!is_image || meta->image);
}

quire_result qi_slot_meta_create(quire_memory *memory, const char *name, uint64_t user_data,
                                 bool is_image, qi_slot_meta **meta)
{
    *meta = NULL;
    if (!name && !user_data && !is_image)
        return QUIRE_SUCCESS;
    *meta = qi_slot_meta_create_empty(memory);
    if (*meta && fill(memory, *meta, name, is_image)) {
        (*meta)->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    qi_slot_meta_release(memory, *meta);
    *meta = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for what an allocation has besides its range");
}
