/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - access to mappings: cuMemSetAccess and cuMemGetAccess.
 */
#include "tests/support/cuda/multicast.h"
#include "tests/support/cuda/virtual.h"

/* ---- checks ------------------------------------------------------------------------------- */

/* Returns true if the range is one or more whole mappings; with ACCESS_ONE, if it is one. */
static bool is_mapped(uint64_t base, uint64_t size)
{
    uint64_t at = base;
    if (!size || size > UINT64_MAX - base)
        return false;
    for (uint32_t i = fc_span_search(base); i < fc.span_count && at < base + size; i++) {
        const fc_span *span = fc.spans[i];
        if (span->kind != FC_MAPPING || span->base != at)
            return false;
        at += span->size;
        if (fc.options.flags & FC_ACCESS_ONE && span->size != size)
            return false;
    }
    return at == base + size;
}

static bool all_are_of_host(uint64_t base, uint64_t size)
{
    for (uint32_t i = fc_span_search(base); i < fc.span_count && fc.spans[i]->base < base + size;
         i++)
        if (fc.spans[i]->device != FC_HOST)
            return false;
    return true;
}

static bool is_reachable(int device, uint64_t base, uint64_t size)
{
    for (uint32_t i = fc_span_search(base); i < fc.span_count && fc.spans[i]->base < base + size;
         i++) {
        int home = fc.spans[i]->device;
        const fc_multicast *multicast = fc.spans[i]->memory->multicast;
        if (multicast && !fc_multicast_has(multicast, device))
            return false;
        if (home != FC_HOST && home != device && !multicast &&
            !(fc.options.peers[home] >> device & 1))
            return false;
    }
    return true;
}

static qi_cu_result check_desc(const qi_cu_access_desc *desc, uint64_t base, uint64_t size)
{
    if (desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc->flags != QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return QI_CUDA_ERROR_INVALID_VALUE;
    switch (desc->location.type) {
    case QI_CU_MEM_LOCATION_TYPE_DEVICE:
        if (!fc_is_device(desc->location.id))
            return QI_CUDA_ERROR_INVALID_VALUE;
        return is_reachable(desc->location.id, base, size) ? 0 : QI_CUDA_ERROR_INVALID_DEVICE;
    case QI_CU_MEM_LOCATION_TYPE_HOST:
    case QI_CU_MEM_LOCATION_TYPE_HOST_NUMA: /* the node makes no difference */
        return all_are_of_host(base, size) ? 0 : QI_CUDA_ERROR_NOT_SUPPORTED;
    default:
        return QI_CUDA_ERROR_INVALID_VALUE;
    }
}

static bool is_inaccessible(const fc_memory *memory)
{
    return memory->prop.allocFlags.gpuDirectRDMACapable && memory->place != FC_HOST &&
           fc.devices[memory->place].model.features & FC_RDMA_INACCESSIBLE;
}

/* ---- setting ------------------------------------------------------------------------------ */

static void grant(fc_access *access, const qi_cu_access_desc *desc)
{
    bool reads = desc->flags & QI_CU_MEM_ACCESS_FLAGS_PROT_READ;
    bool writes = desc->flags == QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (desc->location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE) {
        access->host_reads = reads;
        access->host_writes = writes;
        return;
    }
    uint8_t bit = (uint8_t)(1u << desc->location.id);
    access->read = (uint8_t)(reads ? access->read | bit : access->read & ~bit);
    access->write = (uint8_t)(writes ? access->write | bit : access->write & ~bit);
}

/* Sets the real protection for the processor. */
static void protect(const fc_span *span)
{
    if (span->bytes)
        fc_addresses_allow(span->base, span->size, span->access.host_reads,
                           span->access.host_writes);
}

static void set(fc_span *span, const qi_cu_access_desc *desc, size_t count)
{
    bool host = false;
    for (size_t i = 0; i < count; i++) {
        host |= desc[i].location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE;
        grant(&span->access, &desc[i]);
    }
    if (host)
        protect(span);
}

qi_cu_result fc_MemSetAccess(qi_cu_ptr pointer, size_t size, const qi_cu_access_desc *desc,
                             size_t count)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemSetAccess);
    FC_REFUSE_IF(!desc || !count || !is_mapped(pointer, size), INVALID_VALUE);
    for (size_t i = 0; !result && i < count; i++)
        result = check_desc(&desc[i], pointer, size);
    FC_REFUSE_IF(is_inaccessible(fc_span_at(pointer)->memory), UNKNOWN);
    FC_REFUSE_IF(fc_is_busy(), NOT_READY);
    fc_check_idle(FC_CALL_MemSetAccess);
    for (uint32_t i = fc_span_search(pointer);
         !result && i < fc.span_count && fc.spans[i]->base < pointer + size; i++)
        set(fc.spans[i], desc, count);
    return fc_leave(result);
}

bool fc_is_busy(void)
{
    return fc.busy_calls && fc.busy_calls--;
}

void fc_busy(uint64_t calls)
{
    fc_lock();
    fc.busy_calls = calls;
    fc_unlock();
}

qi_cu_result fc_MemGetAccess(unsigned long long *flags, const qi_cu_location *location,
                             qi_cu_ptr pointer)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemGetAccess);
    fc_span *span = result ? NULL : fc_span_at(pointer);
    FC_REFUSE_IF(!flags || !location || !span || span->kind != FC_MAPPING, INVALID_VALUE);
    FC_REFUSE_IF(location->type == QI_CU_MEM_LOCATION_TYPE_DEVICE && !fc_is_device(location->id),
                 INVALID_DEVICE);
    FC_REFUSE_IF(location->type < QI_CU_MEM_LOCATION_TYPE_DEVICE ||
                     location->type > QI_CU_MEM_LOCATION_TYPE_HOST_NUMA,
                 INVALID_VALUE);
    if (!result) {
        const fc_access *access = &span->access;
        bool host = location->type != QI_CU_MEM_LOCATION_TYPE_DEVICE;
        bool reads = host ? access->host_reads : access->read >> location->id & 1;
        bool writes = host ? access->host_writes : access->write >> location->id & 1;
        *flags = writes  ? QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : reads ? QI_CU_MEM_ACCESS_FLAGS_PROT_READ
                         : QI_CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    return fc_leave(result);
}
