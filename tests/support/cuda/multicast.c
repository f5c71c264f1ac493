/*
 * multicast.c - see multicast.h.
 */
#include "tests/support/cuda/multicast.h"

#include <stdlib.h>

#include "tests/support/cuda/span.h"

typedef struct binding {
    struct binding *next;
    int device;
    uint64_t offset, size;
    fc_memory *memory;
} binding;

struct fc_multicast {
    uint32_t devices; /* bits of the devices that joined */
    uint32_t wanted;  /* number of devices that must join */
    qi_cu_handle_type types;
    binding *bindings;
};

static uint32_t count_bits(uint32_t bits)
{
    uint32_t count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

static bool is_complete(const fc_multicast *multicast)
{
    return count_bits(multicast->devices) == multicast->wanted;
}

bool fc_multicast_is_complete(const fc_multicast *multicast, fc_call call)
{
    if (!is_complete(multicast))
        fc_say("fc-waits", call, "it waits until %u devices have joined", multicast->wanted);
    return is_complete(multicast);
}

static void unbind(binding **at)
{
    binding *gone = *at;
    *at = gone->next;
    fc_memory_unuse(gone->memory);
    free(gone);
}

void fc_multicast_end(fc_multicast *multicast)
{
    while (multicast->bindings)
        unbind(&multicast->bindings);
    free(multicast);
}

/* ---- making ------------------------------------------------------------------------------- */

static uint64_t granularity(void)
{
    uint64_t size = 0;
    for (int i = 0; i < fc.device_count; i++) {
        const fc_model *model = &fc.devices[i].model;
        uint64_t own =
            model->multicast_granularity ? model->multicast_granularity : model->granularity;
        size = own > size ? own : size;
    }
    return size;
}

static qi_cu_result check(const qi_cu_multicast_prop *prop)
{
    if (!prop || !prop->numDevices || prop->flags || prop->handleTypes > 0x0f)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!fc_any_device_has(FC_MULTICAST))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    return prop->numDevices > (unsigned)fc.device_count ? QI_CUDA_ERROR_INVALID_VALUE : 0;
}

qi_cu_result fc_MulticastGetGranularity(size_t *size, const qi_cu_multicast_prop *prop,
                                        qi_cu_multicast_granularity option)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastGetGranularity);
    if (!result && (!size || option > QI_CU_MULTICAST_GRANULARITY_RECOMMENDED))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = check(prop);
    if (!result)
        *size = (size_t)granularity();
    return fc_leave(result);
}

static qi_cu_result check_types(unsigned long long types)
{
    if (types & QI_CU_MEM_HANDLE_TYPE_FABRIC && !fc_any_device_has(FC_FABRIC))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (types & QI_CU_MEM_HANDLE_TYPE_FABRIC && !fc_any_device_has(FC_FABRIC_PERMITTED))
        return QI_CUDA_ERROR_NOT_PERMITTED;
    return types & (QI_CU_MEM_HANDLE_TYPE_WIN32 | QI_CU_MEM_HANDLE_TYPE_WIN32_KMT)
               ? QI_CUDA_ERROR_NOT_SUPPORTED
               : 0;
}

qi_cu_result fc_MulticastCreate(qi_cu_handle *handle, const qi_cu_multicast_prop *prop)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastCreate);
    if (!result && !handle)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = check(prop);
    if (!result)
        result = check_types(prop->handleTypes);
    if (!result && (!prop->size || prop->size % granularity()))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        fc_multicast *multicast = calloc(1, sizeof *multicast);
        if (!multicast)
            abort();
        multicast->wanted = prop->numDevices;
        multicast->types = (qi_cu_handle_type)prop->handleTypes;
        fc_memory *memory = fc_memory_new(
            &(qi_cu_allocation_prop){.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED}, prop->size);
        memory->multicast = multicast;
        memory->granularity = granularity();
        *handle = memory->object.handle;
    }
    return fc_leave(result);
}

static fc_multicast *find(fc_call call, qi_cu_handle handle, fc_memory **memory,
                          qi_cu_result *result)
{
    *memory = *result ? NULL : fc_memory_find(call, handle);
    if (!*result && (!*memory || !(*memory)->multicast))
        *result = QI_CUDA_ERROR_INVALID_VALUE;
    return *result ? NULL : (*memory)->multicast;
}

qi_cu_result fc_MulticastAddDevice(qi_cu_handle handle, qi_cu_device device)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastAddDevice);
    fc_memory *memory;
    fc_multicast *multicast = find(FC_CALL_MulticastAddDevice, handle, &memory, &result);
    if (!result && !fc_is_device(device))
        result = QI_CUDA_ERROR_INVALID_DEVICE;
    else if (!result && !(fc.devices[device].model.features & FC_MULTICAST))
        result = QI_CUDA_ERROR_NOT_SUPPORTED;
    else if (!result && (multicast->devices >> device & 1 || is_complete(multicast)))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        multicast->devices |= UINT32_C(1) << device;
    return fc_leave(result);
}

/* ---- binding ------------------------------------------------------------------------------ */

static bool overlaps(const fc_multicast *multicast, int device, uint64_t offset, uint64_t size)
{
    for (const binding *b = multicast->bindings; b; b = b->next)
        if (b->device == device && b->offset < offset + size && offset < b->offset + b->size)
            return true;
    return false;
}

typedef struct range {
    uint64_t offset, size, memory_offset;
    unsigned long long flags;
} range;

static qi_cu_result check_binding(fc_call call, const fc_memory *object, const fc_memory *memory,
                                  const range *r)
{
    const fc_multicast *multicast = object->multicast;
    if (r->flags || !memory || memory->multicast || memory->place < 0 || !r->size ||
        (r->offset | r->size | r->memory_offset) % object->granularity ||
        r->offset > object->size || r->size > object->size - r->offset ||
        r->memory_offset > memory->size || r->size > memory->size - r->memory_offset)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!fc_multicast_is_complete(multicast, call))
        return QI_CUDA_ERROR_ILLEGAL_STATE;
    if (!(multicast->devices >> memory->place & 1))
        return QI_CUDA_ERROR_INVALID_DEVICE;
    /* a shareable object accepts only shareable memory */
    if (multicast->types && !memory->prop.requestedHandleTypes)
        return QI_CUDA_ERROR_INVALID_VALUE;
    return overlaps(multicast, memory->place, r->offset, r->size) ? QI_CUDA_ERROR_INVALID_VALUE : 0;
}

static void bind(fc_multicast *multicast, fc_memory *memory, const range *r)
{
    binding *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = (binding){multicast->bindings, memory->place, r->offset, r->size, memory};
    multicast->bindings = made;
    memory->uses++;
}

qi_cu_result fc_MulticastBindMem(qi_cu_handle handle, size_t offset, qi_cu_handle memory_handle,
                                 size_t memory_offset, size_t size, unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastBindMem);
    fc_memory *object, *memory = NULL;
    fc_multicast *multicast = find(FC_CALL_MulticastBindMem, handle, &object, &result);
    range r = {offset, size, memory_offset, flags};
    if (!result) {
        memory = fc_memory_find(FC_CALL_MulticastBindMem, memory_handle);
        result = check_binding(FC_CALL_MulticastBindMem, object, memory, &r);
    }
    if (!result)
        bind(multicast, memory, &r);
    return fc_leave(result);
}

qi_cu_result fc_MulticastBindAddr(qi_cu_handle handle, size_t offset, qi_cu_ptr pointer,
                                  size_t size, unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastBindAddr);
    fc_memory *object;
    fc_multicast *multicast = find(FC_CALL_MulticastBindAddr, handle, &object, &result);
    const fc_span *span = result ? NULL : fc_span_at(pointer);
    range r = {offset, size, span ? pointer - span->base : 0, flags};
    if (!result)
        result = check_binding(FC_CALL_MulticastBindAddr, object, span ? span->memory : NULL, &r);
    if (!result)
        bind(multicast, span->memory, &r);
    return fc_leave(result);
}

qi_cu_result fc_MulticastUnbind(qi_cu_handle handle, qi_cu_device device, size_t offset,
                                size_t size)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastUnbind);
    fc_memory *object;
    fc_multicast *multicast = find(FC_CALL_MulticastUnbind, handle, &object, &result);
    if (!result && !fc_is_device(device))
        result = QI_CUDA_ERROR_INVALID_DEVICE;
    binding **at = result ? NULL : &multicast->bindings;
    while (!result && *at &&
           ((*at)->device != device || (*at)->offset != offset || (*at)->size != size))
        at = &(*at)->next;
    if (!result && !*at)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        unbind(at);
    return fc_leave(result);
}
