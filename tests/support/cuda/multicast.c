/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * multicast.c - an object is a file with the devices that joined at its start, which every process
 * that imports it maps; bindings belong to the process. See multicast.h.
 */
#include "tests/support/cuda/multicast.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/support/cuda/pool.h"

typedef struct binding {
    struct binding *next;
    int device;
    uint64_t offset, size;
    fc_memory *memory; /* NULL: memory of a pool */
    uint64_t span;     /* of the pool: its number */
} binding;

#define MARK UINT64_C(0x7473616369746c75)

/* What all processes that have the object see, at the start of its file. */
typedef struct team {
    uint64_t mark, size, granularity;
    qi_cu_handle_type types;
    uint32_t wanted;  /* number of devices that must join */
    uint32_t devices; /* bits of the devices that joined */
} team;

struct fc_multicast {
    team *team;
    binding *bindings; /* of this process */
};

static uint32_t count_bits(uint32_t bits)
{
    uint32_t count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

static uint32_t devices_of(const fc_multicast *multicast)
{
    return __atomic_load_n(&multicast->team->devices, __ATOMIC_ACQUIRE);
}

static bool is_complete(const fc_multicast *multicast)
{
    return count_bits(devices_of(multicast)) == multicast->team->wanted;
}

bool fc_multicast_has(const fc_multicast *multicast, int device)
{
    return devices_of(multicast) >> device & 1;
}

bool fc_multicast_is_complete(const fc_multicast *multicast, fc_call call)
{
    if (!is_complete(multicast))
        fc_say("fc-waits", call, "it waits until %u devices have joined", multicast->team->wanted);
    return is_complete(multicast);
}

static void unbind(binding **at)
{
    binding *gone = *at;
    *at = gone->next;
    if (gone->memory)
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

static uint64_t granularity(bool recommended)
{
    uint64_t size = 0;
    for (int i = 0; i < fc.device_count; i++) {
        const fc_model *model = &fc.devices[i].model;
        uint64_t own =
            model->multicast_granularity ? model->multicast_granularity : model->granularity;
        if (recommended && model->multicast_recommended)
            own = model->multicast_recommended;
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
    FC_REFUSE_IF(!size || option > QI_CU_MULTICAST_GRANULARITY_RECOMMENDED, INVALID_VALUE);
    if (!result)
        result = check(prop);
    if (!result)
        *size = (size_t)granularity(option == QI_CU_MULTICAST_GRANULARITY_RECOMMENDED);
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

/* The handle of an object whose team is in these bytes, which it takes over. */
static fc_memory *wrap(fc_bytes bytes)
{
    fc_multicast *multicast = calloc(1, sizeof *multicast);
    if (!multicast)
        abort();
    void *start = fc_bytes_at(&bytes, 0);
    multicast->team = start;
    fc_memory *memory =
        fc_memory_new(&(qi_cu_allocation_prop){.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .requestedHandleTypes = multicast->team->types},
                      multicast->team->size);
    memory->multicast = multicast;
    memory->bytes = bytes;
    memory->granularity = multicast->team->granularity;
    fc_memory_note_file(memory);
    return memory;
}

static qi_cu_result make(const qi_cu_multicast_prop *prop, qi_cu_handle *handle)
{
    fc_bytes bytes;
    if (!fc_bytes_make(&bytes, sizeof(team), true, 0))
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    void *start = fc_bytes_at(&bytes, 0);
    *(team *)start = (team){.mark = MARK,
                            .size = prop->size,
                            .granularity = granularity(false),
                            .types = (qi_cu_handle_type)prop->handleTypes,
                            .wanted = prop->numDevices};
    *handle = wrap(bytes)->object.handle;
    return 0;
}

qi_cu_result fc_MulticastCreate(qi_cu_handle *handle, const qi_cu_multicast_prop *prop)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastCreate);
    FC_REFUSE_IF(!handle, INVALID_VALUE);
    if (!result)
        result = check(prop);
    if (!result)
        result = check_types(prop->handleTypes);
    FC_REFUSE_IF(!prop->size || prop->size % granularity(false), INVALID_VALUE);
    if (!result)
        result = make(prop, handle);
    return fc_leave(result);
}

bool fc_multicast_is(int fd)
{
    uint64_t mark = 0;
    return pread(fd, &mark, sizeof mark, 0) == sizeof mark && mark == MARK;
}

fc_memory *fc_multicast_import(int fd)
{
    fc_bytes bytes;
    fc_bytes_adopt(&bytes, fd, fc_page());
    return wrap(bytes);
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
    else if (!result && (fc_multicast_has(multicast, device) || is_complete(multicast)))
        result = QI_CUDA_ERROR_INVALID_VALUE;
    if (!result)
        __atomic_fetch_or(&multicast->team->devices, UINT32_C(1) << device, __ATOMIC_ACQ_REL);
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

/* What is to be bound. */
typedef struct range {
    uint64_t offset, size, memory_offset, memory_size;
    unsigned long long flags;
    int device;
    bool is_shareable;
    fc_memory *memory; /* NULL: of a pool */
    uint64_t span;
} range;

static qi_cu_result check_binding(fc_call call, const fc_memory *object, const range *r)
{
    const fc_multicast *multicast = object->multicast;
    if (r->flags || r->device < 0 || !r->size ||
        (r->offset | r->size | r->memory_offset) % object->granularity ||
        r->offset > object->size || r->size > object->size - r->offset ||
        r->memory_offset > r->memory_size || r->size > r->memory_size - r->memory_offset)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (!fc_multicast_is_complete(multicast, call))
        return QI_CUDA_ERROR_ILLEGAL_STATE;
    if (!fc_multicast_has(multicast, r->device))
        return QI_CUDA_ERROR_INVALID_DEVICE;
    /* a shareable object accepts only shareable memory */
    if (multicast->team->types && !r->is_shareable)
        return QI_CUDA_ERROR_INVALID_VALUE;
    return overlaps(multicast, r->device, r->offset, r->size) ? QI_CUDA_ERROR_INVALID_VALUE : 0;
}

static void bind(fc_multicast *multicast, const range *r)
{
    binding *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = (binding){multicast->bindings, r->device, r->offset, r->size, r->memory, r->span};
    multicast->bindings = made;
    if (r->memory)
        r->memory->uses++;
}

/* A range of physical memory. A multicast object has none. */
static void set_memory(range *r, fc_memory *memory, uint64_t offset)
{
    r->device = memory && !memory->multicast ? memory->place : FC_HOST;
    if (r->device < 0)
        return;
    r->memory = memory;
    r->memory_size = memory->size;
    r->memory_offset = offset;
    r->is_shareable = memory->prop.requestedHandleTypes != 0;
}

qi_cu_result fc_MulticastBindMem(qi_cu_handle handle, size_t offset, qi_cu_handle memory_handle,
                                 size_t memory_offset, size_t size, unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastBindMem);
    fc_memory *object;
    fc_multicast *multicast = find(FC_CALL_MulticastBindMem, handle, &object, &result);
    range r = {.offset = offset, .size = size, .flags = flags};
    if (!result) {
        set_memory(&r, fc_memory_find(FC_CALL_MulticastBindMem, memory_handle), memory_offset);
        result = check_binding(FC_CALL_MulticastBindMem, object, &r);
    }
    if (!result)
        bind(multicast, &r);
    return fc_leave(result);
}

/* Memory of cuMemCreate or of a pool. An address in a pool must be a multiple itself. */
static void set_address(range *r, uint64_t pointer)
{
    const fc_span *span = fc_span_at(pointer);
    r->device = FC_HOST;
    if (span && span->kind == FC_MAPPING)
        set_memory(r, span->memory, pointer - span->base);
    if (!span || span->kind != FC_POOLED || span->flags)
        return;
    r->device = span->device;
    r->size = pointer % fc.devices[span->device].model.granularity ? 0 : r->size;
    r->memory_size = span->base + span->size - pointer;
    r->is_shareable = fc_pool_of(span)->types != 0;
    r->span = span->number;
}

qi_cu_result fc_MulticastBindAddr(qi_cu_handle handle, size_t offset, qi_cu_ptr pointer,
                                  size_t size, unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastBindAddr);
    fc_memory *object;
    fc_multicast *multicast = find(FC_CALL_MulticastBindAddr, handle, &object, &result);
    range r = {.offset = offset, .size = size, .flags = flags};
    if (!result) {
        set_address(&r, pointer);
        result = check_binding(FC_CALL_MulticastBindAddr, object, &r);
    }
    if (!result)
        bind(multicast, &r);
    return fc_leave(result);
}

bool fc_multicast_uses(uint64_t span_number)
{
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        const fc_memory *memory = (const fc_memory *)object;
        if (object->kind != FC_MEMORY || !memory->multicast)
            continue;
        for (const binding *b = memory->multicast->bindings; b; b = b->next)
            if (b->span == span_number)
                return true;
    }
    return false;
}

qi_cu_result fc_MulticastUnbind(qi_cu_handle handle, qi_cu_device device, size_t offset,
                                size_t size)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MulticastUnbind);
    fc_memory *object;
    fc_multicast *multicast = find(FC_CALL_MulticastUnbind, handle, &object, &result);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    binding **at = result ? NULL : &multicast->bindings;
    while (!result && *at &&
           ((*at)->device != device || (*at)->offset != offset || (*at)->size != size))
        at = &(*at)->next;
    FC_REFUSE_IF(!*at, INVALID_VALUE);
    if (!result)
        unbind(at);
    return fc_leave(result);
}
