/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork.c - acquires every lock in the order of the ranks before a fork, and completes or drops in
 * the child what threads had in progress that do not exist there (list in fork.h).
 */
#include "src/core/memory/fork.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/deferred/stream.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/find/addresses.h"
#include "src/core/memory/memory.h"
#include "src/core/page/backing.h"
#include "src/core/page/lazy.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/slot/slot.h"
#include "src/core/state/event.h"

/* ---- in the child ------------------------------------------------------------------------- */

/*
 * The child has one thread, and the fork handlers have released the locks: the functions change
 * records that locks protect without taking them.
 */

/* ---- pages -------------------------------------------------------------------------------- */

/* Whether an object belongs to a thread that does not exist in the child. */
static bool is_gone(const void *thread)
{
    return thread && thread != qi_thread_self();
}

/* Frees the number of a page that is in no space. */
static void forget_page(qi_pages *pages, qi_page *page)
{
    pages->leaving -= page->phase == QI_PAGE_LEAVING || page->phase == QI_PAGE_ENDING;
    pages->in_use--;
    qi_page_free_number(pages, page);
}

static void forget_being_made(qi_pages *pages, qi_page *page)
{
    qi_page **link = &pages->being_made;
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    qi_page_history_change(page, page->wanted, 0);
    forget_page(pages, page);
}

/* A page between two shards is in no space, but the statistics count it. */
static void forget_moving(qi_pages *pages, qi_page *page)
{
    qi_addresses_leave_page(page->shard->memory, page);
    pages->moving--;
    pages->stats.pages_destroyed++;
    pages->stats.page_count--;
    pages->stats.reserved_bytes -= page->native.bytes;
    qi_page_history_change(page, page->native.bytes, 0);
    forget_page(pages, page);
}

/*
 * Settles the record of a page that a vanished thread had in progress. A page that needs a call of
 * the backend is put at the front of the list. Returns the list.
 */
static qi_page *settle_page(quire_memory *memory, qi_page *page, qi_page *list)
{
    qi_pages *pages = &memory->pages;
    switch (page->phase) {
    case QI_PAGE_MAKING:
        forget_being_made(pages, page);
        return list;
    case QI_PAGE_MOVING:
        forget_moving(pages, page);
        break;
    case QI_PAGE_LEAVING:
        forget_page(pages, page);
        break;
    case QI_PAGE_ENDING:
        forget_page(pages, page);
        return list;
    case QI_PAGE_LIVE:
        page->sleeper = NULL;
        if (page->resizing || page->waking_bytes)
            break;
        return list;
    case QI_PAGE_GONE: /* no longer counted; its end is not reported any more */
        qi_page_free_number(pages, page);
        return list;
    case QI_PAGE_NONE:
    default:
        return list;
    }
    page->next = list;
    return page;
}

/*
 * Takes the memory that no allocation of an elastic page uses, or destroys the page. The device
 * survives the fork. Calls the table directly, without counting: recount sets the accounts
 * afterwards.
 */
static void finish_page(quire_memory *memory, qi_page *page)
{
    const quire_device *device = memory->device;
    const qi_device_page *native = &page->native;
    if (page->phase == QI_PAGE_LIVE) {
        page->resizing = false;
        page->to_give = 0;
        page->waking_bytes = 0;
        if (page->elastic)
            qi_backing_settle(page);
        return;
    }
    qi_checked_page_leaving(page);
    if (native->host)
        device->table.unmap(device->state, &native->native);
    device->table.page_destroy(device->state, &native->native);
}

/* No backend is called before all records are settled. */
static void settle_pages(quire_memory *memory)
{
    qi_pages *pages = &memory->pages;
    qi_page *list = NULL;
    for (uint32_t i = 0; i < pages->top; i++) {
        qi_page *page = qi_page_at(pages, i);
        qi_lazy_settle(page);
        if (is_gone(page->owner))
            list = settle_page(memory, page, list);
    }
    pages->changes++;
    for (qi_page *page = list, *next; page; page = next) {
        next = page->next;
        if (!memory->device->is_disabled)
            finish_page(memory, page);
    }
}

/* ---- accounts ----------------------------------------------------------------------------- */

static void set(qi_atomic_u64 *counter, uint64_t value)
{
    qi_atomic_store_release_u64(counter, value);
}

/*
 * Returns the bytes of the pages that the memory has and adds their number. This includes pages
 * that the forking thread is returning.
 */
static uint64_t count_pages(quire_memory *memory, uint64_t *count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory->pages.top; i++) {
        const qi_page *page = qi_page_at(&memory->pages, i);
        bool is_counted = page->phase == QI_PAGE_LIVE || page->phase == QI_PAGE_MOVING ||
                          page->phase == QI_PAGE_LEAVING;
        if (!is_counted)
            continue;
        bytes += page->native.bytes;
        ++*count;
    }
    return bytes;
}

/* Sets the accounts of a device to the pages that exist. heap_bytes receives the bytes by heap. */
static void recount(quire_device *device, uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    uint64_t count = 0, all = 0;
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        uint64_t bytes = count_pages(m, &count);
        set(&m->account.used, bytes);
        heap_bytes[device->info.kinds[m->kind].heap] += bytes;
        all += bytes;
    }
    set(&device->pages.used, count);
    set(&device->reserved_bytes, all);
    for (uint32_t i = 0; i < device->info.heap_count; i++) {
        qi_heap *heap = &device->heaps[i];
        set(&heap->account.used, heap_bytes[i]);
        set(&heap->begun, heap_bytes[i]);
        set(&heap->made, heap_bytes[i]);
        set(&heap->ended, 0);
        set(&heap->gone, 0);
    }
}

/* ---- streams, memories, devices ----------------------------------------------------------- */

/* Removes memories that vanished threads were destroying. Their records are lost. */
static void drop_destroyed_memories(quire_device *device)
{
    quire_memory **link = &device->memories;
    device->last_memory = NULL;
    for (quire_memory *memory; (memory = *link);) {
        if (!is_gone(memory->destroying_thread)) {
            device->last_memory = memory;
            link = &memory->next_of_device;
            continue;
        }
        for (uint32_t i = 0; i < qi_shard_count(memory); i++)
            qi_stream_queues_leave_streams(memory->shards[i]);
        qi_owner_remove(memory);
        *link = memory->next_of_device;
        device->memory_count--;
    }
}

/* The same for streams. */
static void drop_destroyed_streams(quire_device *device)
{
    for (quire_stream **link = &device->streams; *link;)
        if (is_gone((*link)->destroying_thread))
            *link = (*link)->next_of_device;
        else
            link = &(*link)->next_of_device;
}

/*
 * Work that was submitted before the fork does not run in the child: all points have passed. A
 * capture stream of a device that survives stays as it is.
 */
static void settle_stream(quire_stream *stream)
{
    stream->callers = 0;
    if (stream->capture && !stream->device->is_disabled)
        return;
    stream->is_over = true;
    qi_atomic_raise_release_u64(&stream->passed, QI_ALL_PASSED);
}

/* Ends the moves of threads that have vanished. Forgets a compaction, unless the forking thread is
   in a step of it: its owner may have vanished. A step of it sets it again. */
static void settle_compaction(quire_memory *memory)
{
    qi_slots_drop_moves(&memory->slots);
    if (memory->mover == qi_thread_self())
        return;
    memory->mover = NULL;
    memory->compaction = NULL;
}

static void settle_memory(quire_memory *memory)
{
    settle_pages(memory);
    settle_compaction(memory);
    if (!qi_uses_are_kept()) /* the forking thread is in no progress callback */
        qi_slots_drop_uses(&memory->slots);
    qi_page_map_forked(memory, !qi_uses_are_kept());
    qi_checked_forked(memory);
    memory->has_orphans = true;
    memory->visitors = 0;
    qi_event_end_watchers(memory->device, memory, true);
    /* a destruction that could still fail with BUSY is forgotten: see qi_memory_destroy */
    qi_atomic_store_release_u32(&memory->is_ending, memory->destroying_thread != NULL);
    if (!memory->device->is_disabled)
        return;
    memory->slots.tag = QI_TAG_DISABLED;
    memory->max_fast_size = 0; /* the slow path refuses the request */
    if (memory->addresses)
        memory->addresses->max_fast_size = 0;
}

/*
 * Requires that the process has one thread and that it holds no lock, unless the fork was
 * called in a callback of the library. Repairs the device, its streams and its memories. A device
 * that does not survive the fork is disabled.
 */
static void settle_device(quire_device *device)
{
    uint64_t heap_bytes[QUIRE_MAX_HEAPS] = {0};
    device->is_copy = true;
    device->is_ending = false; /* likewise: a destruction that could still fail is forgotten */
    if (!device->info.survives_fork && !device->is_disabled)
        qi_device_disable(device);
    drop_destroyed_memories(device);
    drop_destroyed_streams(device);
    for (quire_stream *s = device->streams; s; s = s->next_of_device)
        settle_stream(s);
    qi_event_end_watchers(device, NULL, true);
    for (quire_memory *m = device->memories; m; m = m->next_of_device)
        settle_memory(m);
    recount(device, heap_bytes);
    if (qi_device_offers(device, QUIRE_BACKEND_FORK))
        device->table.fork_child(device->state, heap_bytes);
}

/* ---- orphans ------------------------------------------------------------------------------ */

/*
 * Links all PRIVATE slots and returns the first. All are linked before the first is released,
 * because a release can call a hook, and a slot that the hook frees is PRIVATE as well.
 */
static uint32_t link_orphans(quire_memory *memory)
{
    const qi_slots *slots = &memory->slots;
    uint32_t first = QI_NO_SLOT;
    qi_shards_acquire(memory); /* drains the inboxes, whose slots are PRIVATE but no orphans */
    for (uint32_t i = qi_slots_top(slots); i-- > 0;)
        if (qi_slot_phase(slots, i) == QI_PHASE_PRIVATE) {
            qi_slot_set_next(slots, i, first);
            first = i;
        }
    qi_shards_release(memory);
    return first;
}

void qi_fork_free_orphans(quire_memory *memory)
{
    if (!memory->has_orphans)
        return;
    memory->has_orphans = false;
    for (uint32_t slot = link_orphans(memory), next; slot != QI_NO_SLOT; slot = next) {
        next = qi_slot_next(&memory->slots, slot);
        qi_release(memory, slot);
    }
}

/* ---- the handlers ------------------------------------------------------------------------- */

/*
 * The list of the process's devices, and the fork handlers, which acquire and release the locks of
 * all devices.
 */

/* ---- the devices of the process ----------------------------------------------------------- */

static quire_device *devices; /* protected by the lock of base/system.h */

static void prepare(void);
static void resume_in_parent(void);
static void resume_in_child(void);

/*
 * The handlers are registered with the first device, not when the library is loaded. Before a fork
 * handlers run in the reverse order of their registration. The handlers of the program's host
 * allocator, which were registered earlier, therefore run after those of the library: by then no
 * thread allocates host memory under a lock of the library.
 */
quire_result qi_fork_add(quire_device *device)
{
    static const qi_fork_handlers handlers = {prepare, resume_in_parent, resume_in_child};
    if (!qi_fork_watch(&handlers))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the handlers of forks");
    qi_fork_lock();
    device->next_of_process = devices;
    if (devices)
        devices->previous_of_process = device;
    devices = device;
    qi_fork_unlock();
    return QUIRE_SUCCESS;
}

void qi_fork_remove(quire_device *device)
{
    qi_fork_lock();
    quire_device *next = device->next_of_process, *previous = device->previous_of_process;
    *(previous ? &previous->next_of_process : &devices) = next;
    if (next)
        next->previous_of_process = previous;
    qi_fork_unlock();
}

/* ---- all locks ---------------------------------------------------------------------------- */

/* qi_lock_freeze or qi_lock_thaw. */
typedef void (*lock_function)(qi_lock *lock);

static void each_device(lock_function apply)
{
    for (quire_device *d = devices; d; d = d->next_of_process)
        apply(&d->lock);
}

static void each_stream(lock_function apply)
{
    for (quire_device *d = devices; d; d = d->next_of_process)
        for (quire_stream *s = d->streams; s; s = s->next_of_device)
            apply(&s->lock);
}

/* Returns the memory's lock of a rank, or NULL if it has no shard of that number. */
static qi_lock *lock_of(quire_memory *memory, qi_lock_rank rank)
{
    if (rank < QI_RANK_SHARD + QI_MAX_SHARDS)
        return rank - QI_RANK_SHARD < qi_shard_count(memory)
                   ? &memory->shards[rank - QI_RANK_SHARD]->lock
                   : NULL;
#ifdef QUIRE_CHECKED
    if (rank == QI_RANK_QUARANTINE)
        return &memory->checked.lock;
#endif
    return rank == QI_RANK_PAGES ? &memory->pages.lock : &memory->slots.lock;
}

static void each_memory(lock_function apply, qi_lock_rank rank)
{
    for (quire_device *d = devices; d; d = d->next_of_process)
        for (quire_memory *m = d->memories; m; m = m->next_of_device) {
            qi_lock *lock = lock_of(m, rank);
            if (lock)
                apply(lock);
        }
}

static void each_address_lock(lock_function apply, qi_lock_rank rank)
{
    for (quire_device *d = devices; d; d = d->next_of_process)
        for (quire_memory *m = d->memories; m; m = m->next_of_device)
            if (m->addresses)
                qi_addresses_each_lock(m->addresses, rank, apply);
}

static void acquire_shards(void)
{
    for (int i = 0; i < QI_MAX_SHARDS; i++)
        each_memory(qi_lock_freeze, (qi_lock_rank)(QI_RANK_SHARD + i));
}

/* The first shards last: until then no memory gets a shard whose lock was not acquired here. */
static void release_shards(void)
{
    for (int i = QI_MAX_SHARDS; i-- > 0;)
        each_memory(qi_lock_thaw, (qi_lock_rank)(QI_RANK_SHARD + i));
}

/*
 * Acquires all locks in the order of the ranks, over all devices, because memories of several
 * devices use one stream. No thread holds locks of two memories, so that the order within a rank is
 * free. The lists do not change while the devices' locks are held, which are acquired first and
 * released last.
 */
static void acquire_locks(void)
{
    each_device(qi_lock_freeze);
    acquire_shards();
    each_address_lock(qi_lock_freeze, QI_RANK_ADDRESSES);
    each_address_lock(qi_lock_freeze, QI_RANK_PAGE_STARTS);
    each_address_lock(qi_lock_freeze, QI_RANK_STARTS);
    if (QI_IS_CHECKED)
        each_memory(qi_lock_freeze, QI_RANK_QUARANTINE);
    each_stream(qi_lock_freeze);
    each_memory(qi_lock_freeze, QI_RANK_PAGES);
    each_memory(qi_lock_freeze, QI_RANK_SLOTS);
}

/* Releases the locks in the opposite order, then lets the backends release theirs. */
static void release_locks(void)
{
    each_memory(qi_lock_thaw, QI_RANK_SLOTS);
    each_memory(qi_lock_thaw, QI_RANK_PAGES);
    each_stream(qi_lock_thaw);
    if (QI_IS_CHECKED)
        each_memory(qi_lock_thaw, QI_RANK_QUARANTINE);
    each_address_lock(qi_lock_thaw, QI_RANK_STARTS);
    each_address_lock(qi_lock_thaw, QI_RANK_PAGE_STARTS);
    each_address_lock(qi_lock_thaw, QI_RANK_ADDRESSES);
    release_shards();
    each_device(qi_lock_thaw);
    for (quire_device *d = devices; d; d = d->next_of_process)
        if (qi_device_offers(d, QUIRE_BACKEND_FORK))
            d->table.fork_done(d->state);
}

/*
 * The backends' handlers run first: a backend may call the core while it holds its locks; the core
 * holds no lock while it calls a backend.
 */
static void prepare(void)
{
    qi_lock_assert_none(); /* a fork in a callback that runs under a lock would deadlock */
    for (quire_device *d = devices; d; d = d->next_of_process)
        if (qi_device_offers(d, QUIRE_BACKEND_FORK))
            d->table.fork_prepare(d->state);
    acquire_locks();
}

static void resume_in_parent(void)
{
    release_locks();
}

static void resume_in_child(void)
{
    qi_error error;
    qi_error_save(&error);
    release_locks();
    qi_thread_forked();
    for (quire_device *d = devices; d; d = d->next_of_process)
        settle_device(d);
    qi_error_restore(&error);
}
