/*
 * extra.c - see extra.h.
 */
#include "src/memory/extra.h"

#include "src/base/result.h"

void qi_extra_release(quire_memory *memory, qi_extra *extra)
{
    if (!extra)
        return;
    qi_host_release_text(&memory->host, extra->name);
    qi_host_release(&memory->host, extra->image, 1, sizeof *extra->image);
    qi_host_release(&memory->host, extra, 1, sizeof *extra);
}

qi_extra *qi_extra_make_empty(quire_memory *memory)
{
    return qi_host_allocate(&memory->host, 1, sizeof(qi_extra));
}

static bool fill(quire_memory *memory, qi_extra *extra, const char *name, bool is_image)
{
    if (name)
        extra->name = qi_host_copy_text(&memory->host, name);
    if (is_image)
        extra->image = qi_host_allocate(&memory->host, 1, sizeof *extra->image);
    return (!name || extra->name) && (!is_image || extra->image);
}

quire_result qi_extra_make(quire_memory *memory, const char *name, uint64_t user_data,
                           bool is_image, qi_extra **extra)
{
    *extra = NULL;
    if (!name && !user_data && !is_image)
        return QUIRE_SUCCESS;
    *extra = qi_extra_make_empty(memory);
    if (*extra && fill(memory, *extra, name, is_image)) {
        (*extra)->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    qi_extra_release(memory, *extra);
    *extra = NULL;
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for what an allocation has besides its range");
}
