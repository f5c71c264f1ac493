/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backend.c - the public functions that backends call (quire/backend_core.h), except those of
 * devices (device.c), objects (resource.c) and native handles (access.c).
 */
#include "quire/backend.h"

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/deferred/stream.h"
#include "src/core/memory/memory.h"

quire_result quire_page_adopt(quire_memory *memory, const void *description,
                              const quire_allocation_options *options, quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    quire_result result = !memory || !description || !options || !allocation
                              ? qi_fail_null("quire_page_adopt", !memory        ? "memory"
                                                                 : !description ? "description"
                                                                 : !options     ? "options"
                                                                                : "allocation")
                              : qi_allocation_adopt(memory, description, options, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_allocation_get_map_count(const quire_memory *memory, quire_allocation allocation,
                                            uint32_t *count)
{
    if (count)
        *count = 0;
    if (!memory || !count)
        return qi_fail_null("quire_allocation_get_map_count", !memory ? "memory" : "count");
    return qi_allocation_get_map_count(qi_memory_queried(memory), allocation, count);
}

quire_result quire_stream_wrap(quire_device *device, const void *description, const char *name,
                               quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!device || !description || !stream)
        return qi_fail_null("quire_stream_wrap", !device        ? "device"
                                                 : !description ? "description"
                                                                : "stream");
    return qi_stream_create(device, description, name, false, stream);
}

uint64_t quire_stream_native(const quire_stream *stream)
{
    return stream ? stream->native : 0;
}

void quire_memory_attach(quire_memory *memory, quire_attachment *attachment)
{
    if (memory && attachment)
        qi_attachment_add(memory, attachment);
}

void quire_memory_detach(quire_memory *memory, quire_attachment *attachment)
{
    if (memory && attachment)
        qi_attachment_remove(memory, attachment);
}
