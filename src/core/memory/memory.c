/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - the device lists a memory once it is complete, and closes it to visitors before its
 * pages are destroyed, so that no other thread finds a part of one. A table of the process has the
 * memory of each tag.
 */
#include "src/core/memory/memory.h"

#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/request.h"
#include "src/core/allocate/shard_growth.h"
#include "src/core/compact/compact.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/find/addresses.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/fork.h"
#include "src/core/memory/options.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/page/sizes.h"
#include "src/core/state/event.h"
#include "src/core/state/visitors.h"
#include "src/core/stats/stats.h"
#include "src/space/space.h"

/* ---- attachments -------------------------------------------------------------------------- */

/*
 * Links the attachments of a memory: what a backend keeps in it besides allocations. A doubly
 * linked list, so that removing takes constant time.
 */

void qi_attachment_add(quire_memory *memory, quire_attachment *attachment)
{
    qi_lock_acquire(&memory->device->lock);
    attachment->previous = NULL;
    attachment->next = memory->attachments;
    if (attachment->next)
        attachment->next->previous = attachment;
    memory->attachments = attachment;
    qi_lock_release(&memory->device->lock);
}

void qi_attachment_remove(quire_memory *memory, quire_attachment *attachment)
{
    qi_lock_acquire(&memory->device->lock);
    if (attachment->next)
        attachment->next->previous = attachment->previous;
    if (attachment->previous)
        attachment->previous->next = attachment->next;
    else
        memory->attachments = attachment->next;
    attachment->next = attachment->previous = NULL;
    qi_lock_release(&memory->device->lock);
}

/* ---- memories by their tags --------------------------------------------------------------- */

static void *_Atomic owners[1 << QI_TAG_BITS]; /* NULL, a quire_memory or &shared */
static char shared;

void qi_owner_add(quire_memory *memory)
{
    void *none = NULL;
    if (!qi_atomic_exchange_if_pointer(&owners[memory->tag], &none, memory))
        qi_atomic_store_release_pointer(&owners[memory->tag], &shared);
}

/* An entry that says `shared` stays: stale handles of all former owners have the tag. */
void qi_owner_remove(quire_memory *memory)
{
    void *expected = memory;
    qi_atomic_exchange_if_pointer(&owners[memory->tag], &expected, NULL);
}

static bool has_live(const quire_memory *memory, quire_allocation allocation)
{
    uint32_t slot = qi_handle_slot(allocation.id);
    return qi_slot_find_state(&memory->slots, slot) &&
           qi_slot_public_handle(&memory->slots, slot).id == allocation.id;
}

/* Prefers the memory in which the handle is live; *live gets the number of these. */
static quire_memory *search(quire_device *device, quire_allocation allocation, int *live)
{
    quire_memory *found = NULL;
    qi_lock_acquire(&device->lock);
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        if (m->tag != qi_handle_tag(allocation.id))
            continue;
        bool is_live = has_live(m, allocation);
        if (is_live || !found)
            found = m;
        *live += is_live;
    }
    qi_lock_release(&device->lock);
    return found;
}

quire_result qi_owner_find(quire_device *device, quire_allocation allocation, quire_memory **memory)
{
    int live = 0;
    void *entry = qi_atomic_load_acquire_pointer(&owners[qi_handle_tag(allocation.id)]);
    *memory = entry == &shared ? search(device, allocation, &live) : entry;
    if (*memory && (*memory)->device == device && live < 2)
        return QUIRE_SUCCESS;
    if (live > 1)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "allocation %#llx is live in %d memories of device '%s', which has "
                            "more memories than handles tell apart",
                            (unsigned long long)allocation.id, live, device->info.name);
    if (!allocation.id)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the allocation is {0}, which is no handle");
    quire_result reason = *memory ? QUIRE_ERROR_FOREIGN_HANDLE : QUIRE_ERROR_STALE_HANDLE;
    *memory = NULL;
    return qi_fail_text(reason, "allocation %#llx belongs to no live memory of device '%s'",
                        (unsigned long long)allocation.id, device->info.name);
}

/* ---- creation ----------------------------------------------------------------------------- */

/*
 * No function requires a lock: no other thread knows the memory until its device lists it, nor
 * after it left the list.
 */

/* On failure the caller releases the shards that exist. */
static quire_result create_shards(quire_memory *memory, const quire_memory_options *options)
{
    memory->space = (quire_space_options){
        .fit = options->fit,
        .host_memory = &memory->host.callbacks,
    };
    memory->space.fit.max_alignment = memory->max_alignment;
    quire_result result =
        qi_shards_create(memory, memory->first_shard + (options->shards ? options->shards : 1));
    quire_space_stats stats = {0};
    if (!result)
        qi_space_get_stats(memory->shards[0]->space, &stats);
    memory->granule = stats.granule; /* as the space has resolved it */
    if (memory->is_elastic)
        qi_raise(&memory->chunk, memory->granule);
    return result;
}

/*
 * Creates the records of a memory whose options are resolved. The metadata of each memory is
 * counted in a host record that it owns, with the callbacks of the device.
 */
static quire_result create(const quire_memory *resolved, const quire_memory_options *options,
                           quire_memory **out)
{
    qi_host host;
    quire_result result = qi_host_init(&host, &resolved->device->host.callbacks);
    if (result)
        return result;
    quire_memory *memory = qi_host_allocate(&host, 1, sizeof *memory);
    if (!memory)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a memory");
    *memory = *resolved;
    memory->host = host;
    memory->name = qi_host_copy_text(&memory->host, options->name ? options->name : "memory");
    memory->tag = qi_tag_take();
    qi_slots_init(&memory->slots, memory->tag);
    memory->slots.owner = memory->name;
    qi_pages_init(&memory->pages);
    qi_checked_init(memory);
    result = memory->name
                 ? create_shards(memory, options)
                 : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a memory's name");
    if (!result && options->find_by_address)
        result = qi_addresses_create(memory);
    if (result) {
        qi_shards_destroy(memory);
        qi_tag_give(memory->tag);
        qi_host_release_text(&memory->host, memory->name);
        host = memory->host;
        qi_host_release(&host, memory, 1, sizeof *memory);
        return result;
    }
    uint64_t max_fast_size = qi_request_max_fast(memory);
    memory->is_movable = options->movable;
    qi_atomic_init_u32(&memory->frame, 1);
    if (memory->addresses)
        memory->addresses->max_fast_size = max_fast_size;
    else if (!options->movable)
        memory->max_fast_size = max_fast_size;
    *out = memory;
    return QUIRE_SUCCESS;
}

static quire_result resolve_and_create(quire_device *device, const quire_memory_options *options,
                                       quire_page_extra extra, quire_memory **memory)
{
    quire_memory resolved = {.extra = extra};
    quire_result result = qi_memory_resolve(device, options, &resolved);
    return result ? result : create(&resolved, options, memory);
}

/* Options of the user that do not suit the memory must not stop a program that runs without. */
quire_result qi_memory_make(quire_device *device, const quire_memory_options *options,
                            quire_page_extra extra, quire_memory **memory)
{
    quire_memory_options filled = *options;
    if (!qi_user_options_fill(device, &filled))
        return resolve_and_create(device, options, extra, memory);
    qi_error error;
    qi_error_save(&error);
    if (!resolve_and_create(device, &filled, extra, memory))
        return QUIRE_SUCCESS;
    char reason[512];
    snprintf(reason, sizeof reason, "%s", qi_error_sentence());
    qi_error_restore(&error);
    quire_result result = resolve_and_create(device, options, extra, memory);
    if (!result)
        qi_log(&device->log, QUIRE_LOG_WARNING, "memory '%s' is made without QUIRE_OPTIONS: %s",
               (*memory)->name, reason);
    return result;
}

void qi_memory_announce(const quire_memory *memory)
{
    const quire_page_policy *pages = &memory->policy;
    bool grows = pages->first_page_size < pages->max_page;
    qi_log(&memory->device->log, QUIRE_LOG_INFO, "memory '%s' made: kind %u (%s), pages of %s%s%s",
           memory->name, memory->kind, qi_flags(memory->flags).text,
           qi_bytes(pages->first_page_size).text, grows ? " to " : "",
           grows ? qi_bytes(pages->max_page).text : "");
    qi_checked_report_state(memory);
}

quire_result qi_memory_create(quire_device *device, const quire_memory_options *options,
                              quire_page_extra extra, quire_memory **memory)
{
    /* a memory without options has the defaults of {0} */
    quire_memory_options given = options ? *options : (quire_memory_options){0};
    quire_result result = qi_memory_make(device, &given, extra, memory);
    if (result)
        return result;
    qi_device_add_memory(device, *memory);
    qi_memory_announce(*memory);
    return QUIRE_SUCCESS;
}

void qi_memory_release(quire_memory *memory)
{
    qi_event_end_watchers(memory->device, memory, false);
    qi_shards_destroy(memory);
    qi_addresses_release(memory);
    qi_tag_give(memory->tag);
    qi_slots_finish(&memory->slots, &memory->host);
    qi_pages_finish(&memory->pages, &memory->host);
    qi_names_finish(&memory->names, &memory->host);
    qi_stats_scopes_finish(memory->stats_scopes, &memory->host);
    qi_host_release_text(&memory->host, memory->name);
    qi_host host = memory->host; /* a copy, because the memory contains it */
    qi_host_release(&host, memory, 1, sizeof *memory);
}

/* ---- destruction -------------------------------------------------------------------------- */

/*
 * The caller has exclusive use of the memory, but hooks, log sinks and backends may still call the
 * library with it until its pages are taken out.
 */

/*
 * Takes every page out. From then on no thread finds room or an empty page: allocations that a hook
 * or a log sink requests during the destruction are refused. The device's statistics still count
 * the memory.
 */
static qi_page *shut(quire_memory *memory)
{
    qi_shards_acquire(memory);
    qi_page *leaving = qi_pages_take_all(memory);
    qi_atomic_store_release_u32(&memory->is_ending, true);
    memory->slots.is_shut = true;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_shard *shard = memory->shards[i];
        qi_slot_queue_init(&shard->queue);
        shard->empty_pages = (qi_empty_pages){.oldest = NULL};
        shard->shared = 0;
    }
    qi_shards_release(memory);
    return leaving;
}

/* Destroys a memory without allocations. No other thread uses it, except visitors, which it waits
   for. */
static void finish(quire_memory *memory)
{
    qi_visitors_close(memory);
    qi_checked_drain(memory);
    qi_pages_destroy(memory, shut(memory));
    qi_device_remove_memory(memory->device, memory);
    qi_log(&memory->device->log, QUIRE_LOG_INFO, "memory '%s' destroyed", memory->name);
    qi_memory_release(memory);
}

/* Drains inboxes and the quarantine. Returns how many allocations are left. */
static uint32_t count_left(quire_memory *memory)
{
    uint32_t used = 0;
    qi_checked_drain(memory);
    qi_shards_acquire(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        used += memory->shards[i]->queue.used;
    qi_shards_release(memory);
    return used;
}

/* Logs every live allocation and lists the first names in the text. */
static void list_allocations(quire_memory *memory, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++) {
        if (qi_slot_phase(&memory->slots, i) == QI_PHASE_FREE)
            continue;
        /* a copy, because the log sink may free the allocation */
        const qi_slot slot = *qi_memory_slot(memory, i);
        const char *name = slot.meta && slot.meta->name ? slot.meta->name : "(unnamed)";
        if (length + 1 < room) {
            int more = snprintf(text + length, room - length, "%s'%s'", length ? ", " : "", name);
            length += more > 0 ? (size_t)more : 0;
        }
        if (slot.tally->page->number == QUIRE_NO_PAGE)
            qi_log(&memory->device->log, QUIRE_LOG_WARNING,
                   "memory '%s' still holds '%s', which is evicted", memory->name, name);
        else
            qi_log(&memory->device->log, QUIRE_LOG_WARNING,
                   "memory '%s' still holds '%s': %s at page %u offset %llu", memory->name, name,
                   qi_bytes(slot.size).text, slot.tally->page->number,
                   (unsigned long long)slot.offset);
    }
}

/* Returns an attachment by its index, or NULL. */
static const quire_attachment *attachment_at(const quire_memory *memory, uint32_t index)
{
    const quire_attachment *a = memory->attachments;
    while (a && index--)
        a = a->next;
    return a;
}

/*
 * The same for attachments. The log sink may destroy attachments, so that each is looked up by its
 * index.
 */
static void list_attachments(quire_memory *memory, char *text, size_t room)
{
    const quire_attachment *a;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; (a = attachment_at(memory, i)) != NULL; i++) {
        const char *name = a->name ? a->name : "(unnamed)";
        if (length + 1 < room) {
            int more = snprintf(text + length, room - length, "%s'%s'", length ? ", " : "", name);
            length += more > 0 ? (size_t)more : 0;
        }
        qi_log(&memory->device->log, QUIRE_LOG_WARNING, "memory '%s' still has '%s' of backend %s",
               memory->name, name, memory->device->info.backend);
    }
}

/* Lets each attachment remove itself and free its allocations. */
static void let_attachments_leave(quire_memory *memory)
{
    for (quire_attachment *a = memory->attachments, *next; a; a = next) {
        next = a->next;
        if (a->leave)
            a->leave(a);
    }
}

static quire_result refuse_allocations(quire_memory *memory, uint32_t left)
{
    char names[768];
    list_allocations(memory, names, sizeof names);
    return qi_fail_text(QUIRE_ERROR_BUSY, "memory '%s' still has %u live allocation%s: %s",
                        memory->name, left, qi_plural(left), names);
}

static quire_result refuse_attachments(quire_memory *memory)
{
    char names[768];
    list_attachments(memory, names, sizeof names);
    return qi_fail_text(QUIRE_ERROR_BUSY, "memory '%s' still has objects of backend %s: %s",
                        memory->name, memory->device->info.backend, names);
}

/*
 * Releases the deferred frees whose points have passed. On an error of the backend the frees stay
 * deferred. The thread's last error stays.
 */
static void collect_passed(quire_memory *memory)
{
    qi_error error;
    qi_error_save(&error);
    qi_ignore(qi_deferred_collect(memory, &(uint64_t){0}));
    qi_error_restore(&error);
}

quire_result qi_memory_prepare_end(quire_memory *memory)
{
    if (memory->device->is_disabled) /* no other call can free what it has */
        return QUIRE_SUCCESS;
    if (memory->compaction)
        return qi_fail_text(QUIRE_ERROR_BUSY, "a compaction of memory '%s' has not ended",
                            memory->name);
    let_attachments_leave(memory);
    collect_passed(memory);
    uint64_t waiting = qi_deferred_count(memory);
    if (waiting)
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "memory '%s' has freed allocations that wait for points: %llu",
                            memory->name, (unsigned long long)waiting);
    /* draining the quarantine calls log sinks: they get no new page */
    qi_atomic_store_release_u32(&memory->is_ending, true);
    uint32_t left = count_left(memory);
    if (left && memory->has_orphans) {
        qi_fork_free_orphans(memory);
        left = count_left(memory);
    }
    if (left || memory->attachments) {
        qi_atomic_store_release_u32(&memory->is_ending, false);
        return left ? refuse_allocations(memory, left) : refuse_attachments(memory);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_memory_destroy(quire_memory **destroyed)
{
    quire_memory *memory = *destroyed;
    if (memory->is_default)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory '%s' belongs to device '%s', which destroys it", memory->name,
                            memory->device->info.name);
    quire_result result = qi_memory_prepare_end(memory);
    if (result)
        return result;
    if (memory->device->is_disabled) {
        qi_memory_destroy_all(destroyed);
        return QUIRE_SUCCESS;
    }
    memory->destroying_thread = qi_thread_self(); /* from here on nothing fails */
    *destroyed = NULL;
    finish(memory);
    return QUIRE_SUCCESS;
}

/*
 * Frees every live allocation. Returns false if there was none, not even one that a hook or a log
 * sink has made since.
 */
static bool free_live(quire_memory *memory)
{
    bool was_any = false;
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++)
        if (qi_slot_force_claim(&memory->slots, i)) {
            was_any = true;
            qi_ignore(qi_release_checked(memory, i)); /* CORRUPTED is logged */
        }
    return was_any;
}

void qi_memory_destroy_all(quire_memory **destroyed)
{
    quire_memory *memory = *destroyed;
    *destroyed = NULL;
    if (memory->is_default)
        qi_device_forget_default(memory->device, memory);
    memory->destroying_thread = qi_thread_self();
    qi_atomic_store_release_u32(&memory->is_ending, true);
    if (memory->compaction)
        qi_compact_end(memory->compaction);
    while (memory->attachments)
        memory->attachments->end(memory->attachments);
    do { /* again while hooks and log sinks make allocations in the last pages */
        qi_deferred_finish(memory);
        count_left(memory); /* drains inboxes and quarantine */
        qi_fork_free_orphans(memory);
    } while (free_live(memory));
    finish(memory);
}

/* ---- description -------------------------------------------------------------------------- */

quire_memory_info qi_memory_get_info(quire_memory *memory)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    qi_lock_acquire(&memory->pages.lock);
    uint64_t page_size = memory->is_elastic ? memory->chunk : qi_page_policy_size(shard);
    uint64_t page_count = memory->pages.stats.page_count;
    qi_lock_release(&memory->pages.lock);
    qi_lock_release(&shard->lock);
    return (quire_memory_info){
        .name = memory->name,
        .device = memory->device,
        .kind = memory->kind,
        .flags = memory->flags,
        .mappable = (memory->flags & QUIRE_HOST_VISIBLE) != 0,
        .exportable = memory->exportable,
        .checked = qi_checked_is_on(memory),
        .within_budget = memory->within_budget,
        .fit = memory->fit,
        .page_size = page_size,
        .granule = memory->granule,
        .page_count = (uint32_t)page_count,
        .shards = qi_shard_count(memory) - memory->first_shard,
        .limit = qi_atomic_load_u64(&memory->account.limit),
        .address_space = memory->address_space,
    };
}
