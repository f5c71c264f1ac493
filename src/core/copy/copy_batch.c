/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_batch.c - writes and reads of many parts of allocations: the host copies in host-visible
 * memories. In others the backend gets lists, or one call for each part if it takes no lists (see
 * copy_batch.h).
 */
#include "src/core/copy/copy_batch.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/page/map.h"

/* Parts in one call of the backend: on the stack, and in host memory for longer batches. */
enum { FEW = 64, MANY = 4096 };

/* ---- items -------------------------------------------------------------------------------- */

typedef struct item {
    quire_allocation allocation;
    uint64_t offset;
    void *data; /* not changed by a write */
    uint64_t size;
} item;

static item item_at(const qi_copy_batch *batch, uint64_t i)
{
    if (batch->reads) {
        const quire_read_item *r = &batch->reads[i];
        return (item){r->allocation, r->offset, r->data, r->size};
    }
    const quire_write_item *w = &batch->writes[i];
    return (item){w->allocation, w->offset, (void *)(uintptr_t)w->data, w->size};
}

/* Whether an item shares the use of the item before it. */
static bool shares_use(const qi_copy_batch *batch, uint64_t i)
{
    return i && item_at(batch, i).allocation.id == item_at(batch, i - 1).allocation.id;
}

bool qi_copy_batch_next_slot(const qi_copy_batch *batch, uint64_t *i, uint32_t *slot)
{
    while (*i < batch->count && shares_use(batch, *i))
        ++*i;
    if (*i >= batch->count)
        return false;
    *slot = qi_handle_slot(item_at(batch, (*i)++).allocation.id);
    return true;
}

static void end_uses(const qi_copy_batch *batch, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!shares_use(batch, i))
            qi_slot_end_use(&batch->memory->slots, qi_handle_slot(item_at(batch, i).allocation.id));
}

static quire_result check_item(const qi_copy_batch *batch, uint64_t i)
{
    const item it = item_at(batch, i);
    uint64_t limit = qi_memory_slot(batch->memory, qi_handle_slot(it.allocation.id))->requested;
    if (!it.data && it.size)
        return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t: items[%u].data is null",
                              batch->writes ? "quire_write_batch" : "quire_read_batch", i);
    if (!qi_range_fits(it.offset, it.size, limit))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "item %u of the batch: %u byte%s at offset %u of an allocation of %u "
                            "byte%s",
                            i, it.size, it.offset, limit);
    return QUIRE_SUCCESS;
}

static bool is_mappable(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_VISIBLE) != 0;
}

quire_result qi_copy_batch_begin(const qi_copy_batch *batch)
{
    quire_memory *memory = batch->memory;
    quire_result result = qi_device_check_bytes(memory->device, memory->kind);
    uint64_t i = 0;
    for (; i < batch->count && !result; i++) {
        uint32_t slot = 0;
        if (!shares_use(batch, i))
            result = qi_slot_begin_use(&memory->slots, item_at(batch, i).allocation, QI_ACCEPT_LIVE,
                                       &slot);
        if (result)
            break;
        result = check_item(batch, i);
    }
    if (result)
        end_uses(batch, i);
    return result;
}

void qi_copy_batch_end(const qi_copy_batch *batch)
{
    end_uses(batch, batch->count);
}

/* ---- by the host -------------------------------------------------------------------------- */

static char *host_bytes(const quire_memory *memory, const item *it)
{
    uint32_t slot = qi_handle_slot(it->allocation.id);
    char *page = qi_memory_page(memory, slot)->native.host;
    return page + qi_memory_slot(memory, slot)->offset + it->offset;
}

/* Invalidates what is read, before the first byte, or flushes what was written. */
static quire_result sync_items(const qi_copy_batch *batch, qi_access_sync sync)
{
    qi_access_list list = {.memory = batch->memory, .sync = sync};
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < batch->count && !result; i++) {
        const item it = item_at(batch, i);
        if (it.size)
            result = qi_access_add(&list, qi_handle_slot(it.allocation.id), it.offset, it.size);
    }
    return result ? result : qi_access_send(&list);
}

/* The pages are mapped. */
static quire_result copy_mapped(const qi_copy_batch *batch)
{
    quire_result result =
        batch->reads ? sync_items(batch, qi_device_invalidate_many) : QUIRE_SUCCESS;
    for (uint64_t i = 0; i < batch->count && !result; i++) {
        const item it = item_at(batch, i);
        if (it.size && batch->reads)
            memcpy(it.data, host_bytes(batch->memory, &it), it.size);
        else if (it.size)
            memcpy(host_bytes(batch->memory, &it), it.data, it.size);
    }
    if (batch->writes && !result)
        result = sync_items(batch, qi_device_flush_many);
    return result;
}

/* Ends the maps of the first `count` items. Items that share a use share the map. */
static void leave_pages(const qi_copy_batch *batch, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!shares_use(batch, i))
            qi_page_map_end_slot(batch->memory, qi_handle_slot(item_at(batch, i).allocation.id));
}

static quire_result reach_pages(const qi_copy_batch *batch)
{
    quire_result result = QUIRE_SUCCESS;
    char *bytes;
    for (uint64_t i = 0; i < batch->count && !result; i++) {
        if (shares_use(batch, i))
            continue;
        uint32_t slot = qi_handle_slot(item_at(batch, i).allocation.id);
        result = qi_page_map_begin_slot(batch->memory, slot, &bytes);
        if (result)
            leave_pages(batch, i);
    }
    return result;
}

static quire_result copy_by_host(const qi_copy_batch *batch)
{
    if (!batch->memory->maps_on_demand)
        return copy_mapped(batch);
    quire_result result = reach_pages(batch);
    if (result)
        return result;
    result = copy_mapped(batch);
    leave_pages(batch, batch->count);
    return result;
}

/* ---- by the backend ----------------------------------------------------------------------- */

/* A function of the backend that takes a list, or parts of it one by one. */
typedef struct call {
    quire_result (*function)(const struct call *self, const quire_page_copy *copies,
                             uint64_t count);
    quire_memory *memory;
    /* For writes on a stream only: the native stream, and what becomes true with the first call of
       the backend that succeeds. */
    uint64_t stream;
    bool *has_submitted;
} call;

static quire_result call_write_many(const call *self, const quire_page_copy *copies, uint64_t count)
{
    return qi_device_write_many(self->memory->device, &self->memory->calls, copies, count);
}

static quire_result call_read_many(const call *self, const quire_page_copy *copies, uint64_t count)
{
    return qi_device_read_many(self->memory->device, &self->memory->calls, copies, count);
}

static quire_result call_stream_write_many(const call *self, const quire_page_copy *copies,
                                           uint64_t count)
{
    quire_result result = qi_device_stream_write_many(self->memory->device, &self->memory->calls,
                                                      self->stream, copies, count);
    *self->has_submitted |= !result;
    return result;
}

/* The part of an item, for the backend. */
static quire_page_copy copy_of(const quire_memory *memory, const item *it)
{
    uint32_t slot = qi_handle_slot(it->allocation.id);
    return (quire_page_copy){
        .page = &qi_memory_page(memory, slot)->native.native,
        .offset = qi_memory_slot(memory, slot)->offset + it->offset,
        .host = it->data,
        .size = it->size,
    };
}

/* Calls the function for all items, with lists of at most `room` parts. */
static quire_result call_with_lists(const qi_copy_batch *batch, const call *by,
                                    quire_page_copy *list, uint64_t room)
{
    uint64_t used = 0;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < batch->count && !result; i++) {
        const item it = item_at(batch, i);
        if (!it.size)
            continue;
        list[used++] = copy_of(batch->memory, &it);
        if (used < room)
            continue;
        result = by->function(by, list, used);
        used = 0;
    }
    return used && !result ? by->function(by, list, used) : result;
}

/* A long batch gets a long list. Without host memory for it the short one serves. */
static quire_result call_function(const qi_copy_batch *batch, const call *by)
{
    quire_page_copy few[FEW], *many = NULL;
    uint64_t room = batch->count < MANY ? batch->count : MANY;
    if (room > FEW)
        many = qi_host_allocate(&batch->memory->host, room, sizeof *many);
    if (!many)
        return call_with_lists(batch, by, few, FEW);
    quire_result result = call_with_lists(batch, by, many, room);
    qi_host_release(&batch->memory->host, many, room, sizeof *many);
    return result;
}

/* One call of the backend for each item. */
static quire_result copy_each(const qi_copy_batch *batch)
{
    quire_memory *memory = batch->memory;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < batch->count && !result; i++) {
        const item it = item_at(batch, i);
        if (!it.size)
            continue;
        const qi_device_page *page =
            &qi_memory_page(memory, qi_handle_slot(it.allocation.id))->native;
        uint64_t offset = copy_of(memory, &it).offset;
        result = batch->reads ? qi_device_copy_from_page(memory->device, &memory->calls, page,
                                                         offset, it.data, it.size)
                              : qi_device_copy_to_page(memory->device, &memory->calls, page, offset,
                                                       it.data, it.size);
    }
    return result;
}

/* Lists if the backend takes them, for these pages; otherwise one call for each item. */
static quire_result copy_by_backend(const qi_copy_batch *batch)
{
    const call lists = {batch->reads ? call_read_many : call_write_many, batch->memory, 0, NULL};
    if (!qi_device_offers(batch->memory->device, QUIRE_BACKEND_COPY_MANY))
        return copy_each(batch);
    qi_error before;
    qi_error_save(&before);
    quire_result result = call_function(batch, &lists);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    result = copy_each(batch);
    if (!result)
        qi_error_restore(&before);
    return result;
}

/* ---- whole batches ------------------------------------------------------------------------ */

quire_result qi_copy_batch_run(const qi_copy_batch *batch)
{
    return is_mappable(batch->memory) ? copy_by_host(batch) : copy_by_backend(batch);
}

quire_result qi_copy_batch_now(const qi_copy_batch *batch)
{
    quire_result result = qi_copy_batch_begin(batch);
    if (result)
        return result;
    result = qi_copy_batch_run(batch);
    qi_copy_batch_end(batch);
    return result;
}

/* ---- on a stream -------------------------------------------------------------------------- */

/* For backends that take no lists. */
static quire_result call_stream_copy(const call *self, const quire_page_copy *copies,
                                     uint64_t count)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < count && !result; i++) {
        const quire_copy_job job = {
            .to = copies[i].page,
            .to_offset = copies[i].offset,
            .host_from = copies[i].host,
            .size = copies[i].size,
            .rows = 1,
            .slices = 1,
            .to_row = copies[i].size,
            .to_slice = copies[i].size,
            .from_row = copies[i].size,
            .from_slice = copies[i].size,
            .to_state = self->memory->device->state,
        };
        result =
            qi_device_stream_copy(self->memory->device, &self->memory->calls, self->stream, &job);
        *self->has_submitted |= !result;
    }
    return result;
}

quire_result qi_copy_batch_submit(const qi_copy_batch *batch, uint64_t stream, bool *has_submitted)
{
    const quire_device *device = batch->memory->device;
    const call lists = {call_stream_write_many, batch->memory, stream, has_submitted};
    const call each = {call_stream_copy, batch->memory, stream, has_submitted};
    quire_result result = QUIRE_ERROR_UNSUPPORTED;
    *has_submitted = false;
    if (qi_device_offers(device, QUIRE_BACKEND_STREAM_WRITE_MANY))
        result = call_function(batch, &lists);
    if (result == QUIRE_ERROR_UNSUPPORTED && qi_device_offers(device, QUIRE_BACKEND_STREAM_COPY))
        result = call_function(batch, &each);
    return result;
}
