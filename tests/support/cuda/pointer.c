/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pointer.c - what the fake CUDA driver reports about an address.
 */
#include <string.h>

#include "tests/support/cuda/virtual.h"

qi_cu_result fc_MemGetAddressRange_v2(qi_cu_ptr *base, size_t *size, qi_cu_ptr pointer)
{
    qi_cu_result result = fc_enter(FC_CALL_MemGetAddressRange_v2);
    const fc_span *span = result ? NULL : fc_span_at(pointer);
    FC_REFUSE_IF(!span, NOT_FOUND);
    if (!result && base)
        *base = span->base;
    if (!result && size)
        *size = (size_t)span->size;
    return fc_leave(result);
}

static void put(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

static void put_word(void *to, unsigned value)
{
    put(to, &value, sizeof value);
}

static void put_address(void *to, uint64_t value)
{
    put(to, &value, sizeof value);
}

static unsigned access_flags(const fc_span *span)
{
    if (span->kind != FC_MAPPING)
        return QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const fc_access *access = &span->access;
    return access->write  ? QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : access->read ? QI_CU_MEM_ACCESS_FLAGS_PROT_READ
                          : QI_CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static bool is_of_host(const fc_span *span)
{
    return span->kind == FC_PINNED || span->kind == FC_REGISTERED;
}

static qi_cu_result tell(const fc_span *span, uint64_t address, qi_cu_pointer_attribute attribute,
                         void *value)
{
    switch (attribute) {
    case QI_CU_POINTER_ATTRIBUTE_CONTEXT:
        put_address(value, span->context);
        return span->context ? 0 : QI_CUDA_ERROR_INVALID_VALUE;
    case QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_word(value, is_of_host(span) || span->device == FC_HOST ? QI_CU_MEMORYTYPE_HOST
                                                                    : QI_CU_MEMORYTYPE_DEVICE);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_address(value, address);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_HOST_POINTER:
        put_address(value, span->bytes ? 0 : address);
        return span->bytes ? QI_CUDA_ERROR_INVALID_VALUE : 0;
    case QI_CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put_word(value, span->kind == FC_MANAGED);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_word(value, (unsigned)(span->device < 0 ? 0 : span->device));
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        put_word(value, span->kind == FC_ALLOCATION);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: /* of the addresses that can be mapped */
        put_address(value,
                    fc_reservation_at(address) ? fc_reservation_at(address)->base : span->base);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        put_address(value,
                    fc_reservation_at(address) ? fc_reservation_at(address)->size : span->size);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put_address(value, span->base);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put_address(value, span->size);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_MAPPED:
        put_word(value, 1);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_address(value, span->memory ? span->memory->prop.requestedHandleTypes : 0);
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_word(value, access_flags(span));
        return 0;
    case QI_CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        put_address(value, span->memory ? span->memory->object.handle : span->number);
        return 0;
    default:
        return QI_CUDA_ERROR_INVALID_VALUE;
    }
}

qi_cu_result fc_PointerGetAttribute(void *value, qi_cu_pointer_attribute attribute,
                                    qi_cu_ptr pointer)
{
    qi_cu_result result = fc_enter(FC_CALL_PointerGetAttribute);
    const fc_span *span = result ? NULL : fc_span_at(pointer);
    if (!result && !value)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    else if (!result && span)
        result = tell(span, pointer, attribute, value);
    else if (!result && attribute == QI_CU_POINTER_ATTRIBUTE_MAPPED && fc_is_reserved(pointer, 1))
        put_word(value, 0);
    else if (!result)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    return fc_leave(result);
}
