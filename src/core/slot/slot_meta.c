/*
 * slot_meta.c - creates and releases the meta records of slots: names, image data, user data.
 */
#include "src/core/slot/slot_meta.h"

#include "src/base/result.h"

void qi_slot_meta_release(qi_host *host, qi_slot_meta *meta)
{
    if (!meta)
        return;
    qi_host_release_text(host, meta->name);
    qi_host_release(host, meta->image, 1, sizeof *meta->image);
    qi_host_release(host, meta, 1, sizeof *meta);
}

qi_slot_meta *qi_slot_meta_create_empty(qi_host *host)
{
    return qi_host_allocate(host, 1, sizeof(qi_slot_meta));
}

/* Returns false if host memory is exhausted; what was allocated stays in the record. */
static bool fill(qi_host *host, qi_slot_meta *meta, const char *name, bool is_image)
{
    if (name)
        meta->name = qi_host_copy_text(host, name);
    if (is_image)
        meta->image = qi_host_allocate(host, 1, sizeof *meta->image);
    return (!name || meta->name) && (!is_image || meta->image);
}

quire_result qi_slot_meta_create_some(qi_host *host, const char *name, uint64_t user_data,
                                      bool is_image, qi_slot_meta **meta)
{
    *meta = qi_slot_meta_create_empty(host);
    if (*meta && fill(host, *meta, name, is_image)) {
        (*meta)->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    qi_slot_meta_release(host, *meta);
    *meta = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for the name, image or user data of an allocation");
}
