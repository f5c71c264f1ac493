/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * span.c - see span.h. A sorted array, because a test has at most a few thousand spans.
 */
#include "tests/support/cuda/span.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/pool.h"

/* ---- the array ---------------------------------------------------------------------------- */

uint32_t fc_span_search(uint64_t address)
{
    uint32_t low = 0, high = fc.span_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const fc_span *span = fc.spans[middle];
        if (span->base + span->size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

fc_span *fc_span_at(uint64_t address)
{
    uint32_t at = fc_span_search(address);
    return at < fc.span_count && fc.spans[at]->base <= address ? fc.spans[at] : NULL;
}

bool fc_span_in(uint64_t base, uint64_t size)
{
    uint32_t at = fc_span_search(base);
    return at < fc.span_count && fc.spans[at]->base < base + size;
}

fc_span *fc_span_add(fc_kind kind, uint64_t base, uint64_t size)
{
    static uint64_t number;
    if (fc.span_count == fc.span_room) {
        fc.span_room = fc.span_room ? fc.span_room * 2 : 64;
        fc.spans = realloc(fc.spans, fc.span_room * sizeof(fc_span *));
    }
    fc_span *span = calloc(1, sizeof *span);
    if (!fc.spans || !span)
        abort();
    *span = (fc_span){.base = base, .size = size, .kind = kind, .number = ++number};
    uint32_t at = fc_span_search(base);
    memmove(&fc.spans[at + 1], &fc.spans[at], (fc.span_count - at) * sizeof(fc_span *));
    fc.spans[at] = span;
    fc.span_count++;
    fc.live[kind]++;
    return span;
}

void fc_span_remove(fc_span *span)
{
    uint32_t at = fc_span_search(span->base);
    fc.span_count--;
    memmove(&fc.spans[at], &fc.spans[at + 1], (fc.span_count - at) * sizeof(fc_span *));
    fc.live[span->kind]--;
    free(span);
}

void fc_span_end(fc_span *span)
{
    switch ((int)span->kind) {
    case FC_MAPPING:
        fc_addresses_clear(span->base, span->size);
        fc_memory_unuse(span->memory);
        break;
    case FC_REGISTERED:
        break;
    default:
        fc_addresses_give(span->base - span->front, span->size + span->front);
        break;
    }
    if (span->kind == FC_ALLOCATION)
        fc_give(span->device, span->size);
    if (span->kind == FC_POOLED)
        fc_pool_give(fc_pool_of(span), span->size);
    if (span->kind == FC_PINNED || span->kind == FC_MANAGED)
        fc_give(FC_HOST, span->size);
    fc_bytes_end(&span->owned);
    fc_span_remove(span);
}

/* ---- who may reach what ------------------------------------------------------------------- */

void fc_access_clear(fc_span *span)
{
    span->access = (fc_access){0};
}

static bool mapping_allows(const fc_access *access, int device, bool writes)
{
    if (device == FC_HOST)
        return writes ? access->host_writes : access->host_reads;
    return (writes ? access->write : access->read) >> device & 1;
}

/* Copies reach all memory that the driver knows, without peer access. The processor reaches only
   its own memory. */
static bool allows(const fc_span *span, int device, bool writes)
{
    if (span->kind == FC_MAPPING)
        return mapping_allows(&span->access, device, writes);
    if (span->kind == FC_POOLED && device != FC_HOST) {
        const fc_pool *pool = fc_pool_of(span);
        return (writes ? pool->writes : pool->reads) >> device & 1;
    }
    bool is_of_host = !span->bytes;
    return device != FC_HOST || is_of_host;
}

unsigned char *fc_reach(uint64_t address, int device, bool writes, uint64_t *run)
{
    fc_span *span = fc_span_at(address);
    if (!span || !allows(span, device, writes))
        return NULL;
    uint64_t inside = address - span->base;
    *run = span->size - inside;
    if (!span->bytes)
        return span->kind == FC_MAPPING ? NULL : (unsigned char *)(uintptr_t)address;
    return fc_bytes_at(span->bytes, span->offset + inside);
}

bool fc_may_reach(uint64_t address, uint64_t size, int device, bool writes)
{
    uint64_t run;
    if (size > UINT64_MAX - address)
        return false;
    for (uint64_t at = address; at < address + size; at += run)
        if (!fc_reach(at, device, writes, &run))
            return false;
    return true;
}

bool fc_host_may(const void *pointer, uint64_t size, bool writes)
{
    uint64_t address = (uintptr_t)pointer;
    if (!pointer)
        return !size;
    return !fc_span_in(address, size) || fc_may_reach(address, size, FC_HOST, writes);
}

bool fc_address_of(qi_cu_ptr address, fc_address_info *info)
{
    fc_lock();
    const fc_span *span = fc_span_at(address);
    *info = (fc_address_info){0};
    if (span) {
        info->base = span->base;
        info->size = span->size;
        info->handle = span->memory ? span->memory->object.handle : 0;
        for (int i = 0; i < fc.device_count; i++) {
            info->read |= (uint32_t)allows(span, i, false) << i;
            info->write |= (uint32_t)allows(span, i, true) << i;
        }
        info->host_reads = allows(span, FC_HOST, false);
        info->host_writes = allows(span, FC_HOST, true);
    }
    fc_unlock();
    return span != NULL;
}
