/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - see memory.h.
 */
#include "tests/support/cuda/memory.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/cuda/context.h"
#include "tests/support/cuda/multicast.h"
#include "tests/support/cuda/share.h"

/* ---- life --------------------------------------------------------------------------------- */

void fc_memory_note_file(fc_memory *memory)
{
    struct stat status;
    if (memory->bytes.alone && !fstat(memory->bytes.fd, &status)) {
        memory->file_system = status.st_dev;
        memory->file = status.st_ino;
    }
}

fc_memory *fc_memory_new(const qi_cu_allocation_prop *prop, uint64_t size)
{
    fc_memory *memory = fc_object_new(FC_MEMORY, sizeof *memory);
    memory->prop = *prop;
    memory->size = size;
    memory->granularity = fc_granularity(prop, false);
    memory->place =
        prop->location.type == QI_CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : FC_HOST;
    fc_memory_reference(memory);
    return memory;
}

void fc_memory_reference(fc_memory *memory)
{
    memory->references++;
    fc.live[FC_REFERENCE]++;
}

void fc_memory_end(fc_memory *memory)
{
    fc.live[FC_REFERENCE] -= memory->references;
    if (memory->charged)
        fc_give(memory->place, memory->size);
    if (memory->multicast)
        fc_multicast_end(memory->multicast);
    fc_bytes_end(&memory->bytes);
    fc_object_end(&memory->object);
}

static void end_unused(fc_memory *memory)
{
    if (!memory->references && !memory->uses)
        fc_memory_end(memory);
}

void fc_memory_unreference(fc_memory *memory)
{
    memory->references--;
    fc.live[FC_REFERENCE]--;
    end_unused(memory);
}

void fc_memory_unuse(fc_memory *memory)
{
    memory->uses--;
    end_unused(memory);
}

fc_memory *fc_memory_find(fc_call call, qi_cu_handle handle)
{
    fc_memory *memory = fc_object_find(call, FC_MEMORY, handle);
    if (memory && memory->references)
        return memory;
    if (memory)
        fc_say("fc-handle", call, "0x%" PRIx64 " was released", handle);
    return NULL;
}

qi_cu_result fc_enter_virtual(fc_call call)
{
    qi_cu_result result = fc_enter(call);
    FC_REFUSE_IF(fc.options.flags & FC_NEEDS_CONTEXT && !fc_context_peek(), INVALID_CONTEXT);
    return result;
}

/* ---- creation ----------------------------------------------------------------------------- */

/* Compression is a preference; the caller reads back whether it was granted. */
static void grant(qi_cu_allocation_prop *prop)
{
    bool on_device = prop->location.type == QI_CU_MEM_LOCATION_TYPE_DEVICE;
    uint32_t features = on_device ? fc.devices[prop->location.id].model.features : 0;
    if (!(features & FC_COMPRESSES))
        prop->allocFlags.compressionType = QI_CU_MEM_ALLOCATION_COMP_NONE;
    if (features & FC_RDMA_UNGRANTED)
        prop->allocFlags.gpuDirectRDMACapable = 0;
}

static qi_cu_result make(const qi_cu_allocation_prop *prop, uint64_t size, qi_cu_handle *handle)
{
    fc_memory *memory = fc_memory_new(prop, size);
    bool shared = prop->requestedHandleTypes != 0;
    memory->charged = fc_take(memory->place, size);
    if (!memory->charged ||
        !fc_bytes_make(&memory->bytes, size, shared, shared ? FC_TRAILER_SIZE : 0)) {
        fc_memory_unreference(memory);
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    }
    grant(&memory->prop);
    fc_memory_note_file(memory);
    if (shared)
        fc_share_prepare(memory);
    if (fc.options.flags & FC_DIRTY && memory->place != FC_HOST)
        fc_bytes_dirty(&memory->bytes);
    *handle = memory->object.handle;
    return 0;
}

qi_cu_result fc_MemCreate(qi_cu_handle *handle, size_t size, const qi_cu_allocation_prop *prop,
                          unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemCreate);
    FC_REFUSE_IF(!handle || !prop || !size || flags, INVALID_VALUE);
    if (!result)
        result = fc_properties_check(prop);
    FC_REFUSE_IF(size % fc_granularity(prop, false), INVALID_VALUE);
    FC_REFUSE_IF(fc.options.max_handles && fc.live[FC_MEMORY] >= fc.options.max_handles,
                 OUT_OF_MEMORY);
    if (!result && fc.options.flags & FC_CRASHES_AT_NODE &&
        prop->location.type == QI_CU_MEM_LOCATION_TYPE_HOST_NUMA)
        raise(SIGSEGV);
    if (!result)
        result = make(prop, size, handle);
    return fc_leave(result);
}

qi_cu_result fc_MemRelease(qi_cu_handle handle)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemRelease);
    fc_memory *memory = result ? NULL : fc_memory_find(FC_CALL_MemRelease, handle);
    FC_REFUSE_IF(!memory, INVALID_VALUE);
    if (!result)
        fc_memory_unreference(memory);
    return fc_leave(result);
}

qi_cu_result fc_MemGetAllocationPropertiesFromHandle(qi_cu_allocation_prop *prop,
                                                     qi_cu_handle handle)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemGetAllocationPropertiesFromHandle);
    fc_memory *memory =
        result ? NULL : fc_memory_find(FC_CALL_MemGetAllocationPropertiesFromHandle, handle);
    FC_REFUSE_IF(!memory || !prop, INVALID_VALUE);
    if (!result)
        *prop = memory->prop;
    return fc_leave(result);
}
