/*
 * fork.c - see fork.h.
 */
#include "src/core/memory/fork.h"

#include "src/base/fork.h"
#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/allocate/ladder.h"
#include "src/core/deferred/stream.h"

/* ---- the devices of the process ----------------------------------------------------------- */

static quire_device *devices; /* under the lock of base/fork.h */

static void prepare(void);
static void resume_in_parent(void);
static void resume_in_child(void);

/*
 * With the first device and not when the library is loaded: handlers of the process run in the
 * reverse order before a fork, and those of whatever allocates host memory for the program, which
 * were there before, must wait until threads that allocate under a lock of the library have given
 * that back.
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

/* A memory's lock of one rank, or NULL. */
static qi_lock *lock_of(quire_memory *memory, qi_lock_rank rank)
{
    if (rank < QI_RANK_SHARD + QI_MAX_SHARDS)
        return rank - QI_RANK_SHARD < memory->shard_count
                   ? &memory->shards[rank - QI_RANK_SHARD].lock
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

static void each_shard(lock_function apply)
{
    for (int i = 0; i < QI_MAX_SHARDS; i++)
        each_memory(apply, (qi_lock_rank)(QI_RANK_SHARD + i));
}

/*
 * In the order of the ranks over all devices: streams are used by the memories of several. No
 * thread holds locks of two memories, so that within a rank any order will do. The lists stay while
 * the devices' locks are held, which are the first to be taken and the last to be given back.
 */
static void take_locks(void)
{
    each_device(qi_lock_freeze);
    each_shard(qi_lock_freeze);
    if (QI_IS_CHECKED)
        each_memory(qi_lock_freeze, QI_RANK_QUARANTINE);
    each_stream(qi_lock_freeze);
    each_memory(qi_lock_freeze, QI_RANK_PAGES);
    each_memory(qi_lock_freeze, QI_RANK_SLOTS);
}

static void give_back_locks(void)
{
    each_memory(qi_lock_thaw, QI_RANK_SLOTS);
    each_memory(qi_lock_thaw, QI_RANK_PAGES);
    each_stream(qi_lock_thaw);
    if (QI_IS_CHECKED)
        each_memory(qi_lock_thaw, QI_RANK_QUARANTINE);
    each_shard(qi_lock_thaw);
    each_device(qi_lock_thaw);
    for (quire_device *d = devices; d; d = d->next_of_process)
        if (qi_device_offers(d, QUIRE_BACKEND_FORK))
            d->table.fork_done(d->state);
}

/* Backends first: they call the core with locks of their own, and never the other way round. */
static void prepare(void)
{
    qi_lock_assert_none(); /* a fork in a callback that runs under a lock would wait for itself */
    for (quire_device *d = devices; d; d = d->next_of_process)
        if (qi_device_offers(d, QUIRE_BACKEND_FORK))
            d->table.fork_prepare(d->state);
    take_locks();
}

static void resume_in_parent(void)
{
    give_back_locks();
}

/* ---- in the child: pages ------------------------------------------------------------------ */

static bool is_gone(const void *thread)
{
    return thread && thread != qi_thread_self();
}

/* A page that only the backend may have known, or may have forgotten. */
static void forget_page(qi_pages *pages, qi_page *page)
{
    pages->leaving -= page->phase == QI_PAGE_LEAVING;
    pages->in_use--;
    qi_page_free_number(pages, page);
}

static void forget_being_made(qi_pages *pages, qi_page *page)
{
    qi_page **link = &pages->being_made;
    while (*link != page)
        link = &(*link)->next;
    *link = page->next;
    forget_page(pages, page);
}

/* Between two shards: it is in no space and counted as a page. */
static void forget_moving(qi_pages *pages, qi_page *page)
{
    pages->moving--;
    pages->stats.pages_destroyed++;
    pages->stats.page_count--;
    pages->stats.reserved_bytes -= page->native.size;
    forget_page(pages, page);
}

/* What other threads had in hand; those to be given back to the backend become a list. */
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
        if (page->ending)
            return list;
        break;
    case QI_PAGE_LIVE:
        if (page->resizing)
            break;
        return list;
    case QI_PAGE_GONE: /* counted no longer: nobody is left to tell of it */
        qi_page_free_number(pages, page);
        return list;
    case QI_PAGE_NONE:
    default:
        return list;
    }
    page->next = list;
    return page;
}

/* The same with the backend's help, where the device survives. */
static void end_settling(quire_memory *memory, qi_page *page)
{
    const quire_device *device = memory->device;
    const qi_device_page *native = &page->native;
    if (page->phase == QI_PAGE_LIVE) {
        page->resizing = false;
        page->cut_from = 0;
        if (native->size < native->native.size)
            qi_ignore(device->table.page_resize(device->state, &native->native, native->native.size,
                                                native->size));
        return;
    }
    qi_checked_page_leaving(page);
    if (native->host)
        device->table.unmap(device->state, &native->native);
    device->table.page_destroy(device->state, &native->native);
}

static void settle_pages(quire_memory *memory)
{
    qi_pages *pages = &memory->pages;
    qi_page *list = NULL;
    for (uint32_t i = 0; i < pages->top; i++) {
        qi_page *page = qi_page_at(pages, i);
        if (is_gone(page->owner))
            list = settle_page(memory, page, list);
    }
    pages->changes++;
    for (qi_page *page = list, *next; page; page = next) {
        next = page->next;
        if (!memory->device->is_disabled)
            end_settling(memory, page);
    }
}

/* ---- in the child: what is counted -------------------------------------------------------- */

static void set(qi_atomic_u64 *counter, uint64_t value)
{
    qi_atomic_store_release_u64(counter, value);
}

/* Bytes of the pages that the memory has, also of those that this thread is giving back. */
static uint64_t count_pages(quire_memory *memory, uint64_t *count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory->pages.top; i++) {
        const qi_page *page = qi_page_at(&memory->pages, i);
        bool is_there = page->phase == QI_PAGE_LIVE || page->phase == QI_PAGE_MOVING ||
                        (page->phase == QI_PAGE_LEAVING && !page->ending);
        if (!is_there)
            continue;
        bytes += page->cut_from ? page->cut_from : page->native.size;
        ++*count;
    }
    return bytes;
}

static void count_anew(quire_device *device, uint64_t heap_bytes[QUIRE_MAX_HEAPS])
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

/* ---- in the child: devices ---------------------------------------------------------------- */

static void drop_ending_memories(quire_device *device)
{
    for (quire_memory **link = &device->memories; *link;) {
        if (!is_gone((*link)->destroying_thread)) {
            link = &(*link)->next_of_device;
            continue;
        }
        for (uint32_t i = 0; i < (*link)->shard_count; i++)
            qi_stream_queues_leave_streams(&(*link)->shards[i]);
        *link = (*link)->next_of_device;
        device->memory_count--;
    }
}

static void drop_ending_streams(quire_device *device)
{
    for (quire_stream **link = &device->streams; *link;)
        if (is_gone((*link)->destroying_thread))
            *link = (*link)->next_of_device;
        else
            link = &(*link)->next_of_device;
}

/* Nothing that was submitted will run, so that nothing has to be waited for. */
static void end_stream(quire_stream *stream)
{
    stream->lookers = 0;
    if (stream->capture && !stream->device->is_disabled)
        return;
    stream->is_over = true;
    qi_atomic_raise_release_u64(&stream->passed, QI_ALL_PASSED);
}

/* Of the calling thread: callbacks that it is in with allocations pinned. */
static _Thread_local uint32_t callbacks_with_uses;

void qi_fork_keep_uses(bool keep)
{
    callbacks_with_uses += keep ? 1 : UINT32_MAX;
}

static void settle_memory(quire_memory *memory)
{
    settle_pages(memory);
    if (!callbacks_with_uses)
        qi_slots_drop_uses(&memory->slots);
    qi_checked_forked(memory);
    memory->has_orphans = true;
    memory->is_ending =
        memory->destroying_thread != NULL; /* else its end was not sure: quire_memory_destroy */
    if (!memory->device->is_disabled)
        return;
    memory->slots.tag = QI_TAG_DISABLED;
    memory->max_fast_size = 0;
}

static void settle_device(quire_device *device)
{
    uint64_t heap_bytes[QUIRE_MAX_HEAPS] = {0};
    device->is_copy = true;
    if (!device->info.survives_fork && !device->is_disabled)
        qi_device_disable(device);
    drop_ending_memories(device);
    drop_ending_streams(device);
    for (quire_stream *s = device->streams; s; s = s->next_of_device)
        end_stream(s);
    for (quire_memory *m = device->memories; m; m = m->next_of_device)
        settle_memory(m);
    count_anew(device, heap_bytes);
    if (qi_device_offers(device, QUIRE_BACKEND_FORK))
        device->table.fork_child(device->state, heap_bytes);
}

static void resume_in_child(void)
{
    qi_error error = qi_error_save();
    give_back_locks();
    qi_thread_forked();
    for (quire_device *d = devices; d; d = d->next_of_process)
        settle_device(d);
    qi_error_restore(&error);
}

/* ---- later, in the child ------------------------------------------------------------------ */

/* Links all of them before one is given back: what a hook frees meanwhile is PRIVATE, too. */
static uint32_t link_orphans(quire_memory *memory)
{
    const qi_slots *slots = &memory->slots;
    uint32_t first = QI_NO_SLOT;
    qi_shards_acquire(memory); /* none is left in an inbox, where it looks like an orphan */
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
