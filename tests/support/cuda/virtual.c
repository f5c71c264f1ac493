/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * virtual.c - see virtual.h: reserving, mapping, unmapping.
 */
#include "tests/support/cuda/virtual.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/multicast.h"
#include "tests/support/cuda/queue.h"

/* Every address has this alignment, so that any chunk of most devices can be mapped. */
#define LEAST_ALIGNMENT (UINT64_C(2) << 20)
#define MAX_ADDRESSES (UINT64_C(1) << 47)

/* ---- reservations ------------------------------------------------------------------------- */

/* Returns the number of the first reservation that ends after the address. */
static uint32_t search(uint64_t address)
{
    uint32_t at = 0;
    while (at < fc.reservation_count &&
           fc.reservations[at].base + fc.reservations[at].size <= address)
        at++;
    return at;
}

bool fc_is_reserved(uint64_t base, uint64_t size)
{
    uint32_t at = search(base);
    return at < fc.reservation_count && fc.reservations[at].base <= base &&
           size <= fc.reservations[at].base + fc.reservations[at].size - base;
}

fc_reservation *fc_reservation_at(uint64_t address)
{
    uint32_t at = search(address);
    bool is_in = at < fc.reservation_count && fc.reservations[at].base <= address;
    return is_in ? &fc.reservations[at] : NULL;
}

static void add(uint64_t base, uint64_t size)
{
    if (fc.reservation_count == fc.reservation_room) {
        fc.reservation_room = fc.reservation_room ? fc.reservation_room * 2 : 64;
        fc.reservations = realloc(fc.reservations, fc.reservation_room * sizeof *fc.reservations);
        if (!fc.reservations)
            abort();
    }
    uint32_t at = search(base);
    memmove(&fc.reservations[at + 1], &fc.reservations[at],
            (fc.reservation_count - at) * sizeof *fc.reservations);
    fc.reservations[at] = (fc_reservation){base, size};
    fc.reservation_count++;
    fc.live[FC_RESERVATION]++;
}

/* Memory that was unmapped, with KEEPS_MEMORY: its addresses are not free yet. */
typedef struct kept_memory {
    uint64_t base;
    fc_memory *memory;
} kept_memory;

static kept_memory *kept;
static uint32_t kept_count, kept_room;

/* Keeps what the mappings of a range use. */
static void keep(uint64_t base, uint64_t size)
{
    for (uint32_t i = fc_span_search(base); i < fc.span_count && fc.spans[i]->base < base + size;
         i++) {
        if (kept_count == kept_room) {
            kept_room = kept_room ? 2 * kept_room : 64;
            kept = realloc(kept, kept_room * sizeof *kept);
            if (!kept)
                abort();
        }
        kept[kept_count++] = (kept_memory){fc.spans[i]->base, fc.spans[i]->memory};
        fc.spans[i]->memory->uses++;
    }
}

/* Gives up what was kept for a reservation. */
static void give_up(const fc_reservation *reservation)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < kept_count; i++)
        if (kept[i].base - reservation->base < reservation->size)
            fc_memory_unuse(kept[i].memory);
        else
            kept[left++] = kept[i];
    kept_count = left;
    if (!left) {
        free(kept);
        kept = NULL;
        kept_room = 0;
    }
}

static void take_out(uint32_t at)
{
    give_up(&fc.reservations[at]);
    fc_addresses_give(fc.reservations[at].base, fc.reservations[at].size);
    fc.reservation_count--;
    memmove(&fc.reservations[at], &fc.reservations[at + 1],
            (fc.reservation_count - at) * sizeof *fc.reservations);
    fc.live[FC_RESERVATION]--;
}

void fc_reservations_end(void)
{
    while (fc.reservation_count)
        take_out(fc.reservation_count - 1);
}

static qi_cu_result reserve(qi_cu_ptr *pointer, uint64_t size, uint64_t alignment, uint64_t hint)
{
    if (!size || (size | hint) % fc_page() || alignment & (alignment - 1))
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (size > MAX_ADDRESSES || alignment > MAX_ADDRESSES)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    alignment = alignment > LEAST_ALIGNMENT ? alignment : LEAST_ALIGNMENT;
    uint64_t base = fc_addresses_take(size, alignment, hint);
    if (!base)
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    add(base, size);
    *pointer = base;
    return 0;
}

qi_cu_result fc_MemAddressReserve(qi_cu_ptr *pointer, size_t size, size_t alignment, qi_cu_ptr hint,
                                  unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemAddressReserve);
    FC_REFUSE_IF(!fc_any_device_has(FC_VMM), NOT_SUPPORTED);
    FC_REFUSE_IF(!pointer || flags, INVALID_VALUE);
    if (!result)
        result = reserve(pointer, size, alignment, hint);
    return fc_leave(result);
}

qi_cu_result fc_MemAddressFree(qi_cu_ptr pointer, size_t size)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemAddressFree);
    uint32_t at = search(pointer);
    FC_REFUSE_IF(at == fc.reservation_count || fc.reservations[at].base != pointer ||
                     fc.reservations[at].size != size || fc_span_in(pointer, size),
                 INVALID_VALUE);
    if (!result)
        take_out(at);
    return fc_leave(result);
}

/* ---- idle devices ------------------------------------------------------------------------- */

void fc_check_idle(fc_call call)
{
    if (fc.options.flags & FC_NEEDS_IDLE && fc.pending)
        fc_say("fc-not-idle", call, "work is not done");
}

/* ---- mapping ------------------------------------------------------------------------------ */

static qi_cu_result map(uint64_t base, uint64_t size, fc_memory *memory)
{
    if (!memory->multicast && !fc_bytes_map(&memory->bytes, 0, size, base))
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    fc_span *span = fc_span_add(FC_MAPPING, base, size);
    span->device = memory->place;
    span->bytes = memory->multicast ? NULL : &memory->bytes;
    span->memory = memory;
    memory->uses++;
    return 0;
}

/* Memory is mapped as a whole. Whether a multicast object is too is unknown. */
static qi_cu_result check_mapping(uint64_t base, uint64_t size, uint64_t offset,
                                  const fc_memory *memory)
{
    if (!memory || !size || (base | size | offset) % memory->granularity)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (offset || size > memory->size || (size < memory->size && !memory->multicast))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (memory->prop.allocFlags.usage & QI_CU_MEM_CREATE_USAGE_TILE_POOL)
        return QI_CUDA_ERROR_INVALID_VALUE; /* memory of tile pools is for arrays only */
    if (memory->multicast && !fc_multicast_is_complete(memory->multicast, FC_CALL_MemMap))
        return QI_CUDA_ERROR_ILLEGAL_STATE;
    return fc_is_reserved(base, size) && !fc_span_in(base, size) ? 0 : QI_CUDA_ERROR_INVALID_VALUE;
}

qi_cu_result fc_MemMap(qi_cu_ptr pointer, size_t size, size_t offset, qi_cu_handle handle,
                       unsigned long long flags)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemMap);
    fc_memory *memory = result ? NULL : fc_memory_find(FC_CALL_MemMap, handle);
    FC_REFUSE_IF(flags, INVALID_VALUE);
    if (!result)
        result = check_mapping(pointer, size, offset, memory);
    if (!result)
        fc_check_idle(FC_CALL_MemMap);
    if (!result)
        result = map(pointer, size, memory);
    return fc_leave(result);
}

/* Returns true if the range is of a reservation and cuts no mapping; with UNMAPS_ONE, if it is one
   mapping. A driver lets gaps pass, and a range without a mapping. */
static bool is_whole(uint64_t base, uint64_t size)
{
    const fc_span *first = fc_span_at(base);
    if (fc.options.flags & FC_UNMAPS_ONE && (!first || first->size != size))
        return false;
    for (uint32_t i = fc_span_search(base); i < fc.span_count; i++) {
        const fc_span *span = fc.spans[i];
        if (span->base >= base + size)
            break;
        if (span->base < base || span->size > base + size - span->base)
            return false;
    }
    return size && fc_is_reserved(base, size);
}

qi_cu_result fc_MemUnmap(qi_cu_ptr pointer, size_t size)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemUnmap);
    FC_REFUSE_IF(size > UINT64_MAX - pointer || !is_whole(pointer, size), INVALID_VALUE);
    if (!result && fc_work_touches(pointer, size))
        fc_say("fc-in-use", FC_CALL_MemUnmap, "work that is not done uses 0x%" PRIx64, pointer);
    uint32_t at = fc_span_search(pointer);
    if (!result)
        fc_check_idle(FC_CALL_MemUnmap);
    if (!result && fc.options.flags & FC_KEEPS_MEMORY)
        keep(pointer, size);
    while (!result && at < fc.span_count && fc.spans[at]->base < pointer + size)
        fc_span_end(fc.spans[at]);
    return fc_leave(result);
}

qi_cu_result fc_MemRetainAllocationHandle(qi_cu_handle *handle, void *address)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemRetainAllocationHandle);
    fc_span *span = result || !address ? NULL : fc_span_at((uintptr_t)address);
    FC_REFUSE_IF(!handle || !span || span->kind != FC_MAPPING, INVALID_VALUE);
    if (!result) {
        fc_memory_reference(span->memory);
        *handle = span->memory->object.handle;
    }
    return fc_leave(result);
}
