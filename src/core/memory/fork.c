/*
 * fork.c - the list of the process's devices, and the fork handlers, which acquire and release the
 * locks of all devices. fork_child.c repairs the child.
 */
#include "src/core/memory/fork.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/deferred/stream.h"
#include "src/core/find/addresses.h"
#include "src/core/memory/fork_child.h"

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
        qi_fork_settle_device(d);
    qi_error_restore(&error);
}
