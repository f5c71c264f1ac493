/*
 * other_memories.c - visits the memories of a device and takes their empty pages. No lock is held
 * between two memories.
 */
#include "src/core/page/other_memories.h"

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/state/visitors.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/elastic_shrink.h"
#include "src/core/page/page_number.h"

enum { MAX_TURNS = 2 };

/* Requires the shard's lock. Whether the limits of the memory itself allow a page of the needed
   bytes, so that only the device has no room for it. */
static bool is_device_full(const qi_shard *shard, quire_result refusal, uint64_t needed,
                           bool dedicated)
{
    quire_memory *memory = shard->memory;
    const qi_page *elastic = dedicated ? NULL : qi_elastic_page(shard);
    if (elastic && elastic->native.native.size - elastic->native.size < needed)
        return false;
    if (refusal == QUIRE_ERROR_TOO_MANY_PAGES) {
        uint32_t max = memory->policy.max_pages, max_shared = qi_page_max_shared(shard);
        qi_lock_acquire(&memory->pages.lock);
        bool may_have_more = !max || memory->pages.in_use < max;
        qi_lock_release(&memory->pages.lock);
        return may_have_more && (dedicated || !max_shared || shard->shared < max_shared);
    }
    uint64_t max = qi_account_max(&memory->account), used = qi_account_used(&memory->account);
    return qi_is_out_of_memory(refusal) && used <= max && needed <= max - used;
}

static uint32_t heap_of(const quire_memory *memory)
{
    return memory->device->info.kinds[memory->kind].heap;
}

/* Requires no lock. The events of each memory are reported before the next one is visited. Returns
   the bytes given back. */
static uint64_t take(const quire_memory *memory, bool of_any_heap, uint64_t bytes)
{
    quire_device *device = memory->device;
    uint64_t given = 0;
    quire_memory *other = qi_visitors_next(device, NULL);
    for (; other && given < bytes; other = qi_visitors_next(device, other)) {
        qi_page_events events = {.gone = NULL};
        if (other == memory || (heap_of(other) != heap_of(memory) && !of_any_heap))
            continue;
        given += qi_pages_give_back_empty(other, bytes - given, &events);
        qi_page_events_report(other, &events, "");
    }
    if (other)
        qi_visitors_leave(other);
    return given;
}

/* A thread with a page under way may call no hook, also not one of another memory. */
bool qi_pages_take_from_others(qi_shard *shard, quire_result refusal, uint64_t needed,
                               bool dedicated, uint32_t *turns)
{
    if (*turns == MAX_TURNS || qi_transit_is_on() ||
        !is_device_full(shard, refusal, needed, dedicated))
        return false;
    bool of_any_heap = refusal == QUIRE_ERROR_TOO_MANY_PAGES; /* one page is enough */
    uint64_t bytes = of_any_heap ? 1 : *turns ? UINT64_MAX : needed;
    qi_error error;
    ++*turns;
    qi_error_save(&error);
    qi_lock_release(&shard->lock);
    uint64_t given = take(shard->memory, of_any_heap, bytes);
    qi_lock_acquire(&shard->lock);
    qi_error_restore(&error);
    return given != 0;
}
