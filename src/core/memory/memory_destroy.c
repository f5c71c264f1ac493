/*
 * memory_destroy.c - destroys memories, and lists the allocations and attachments that prevent it.
 *
 * The caller has exclusive use of the memory, but hooks, log sinks and backends may still call the
 * library with it until its pages are taken out.
 */
#include <stdio.h>

#include "src/base/result.h"
#include "src/core/deferred/deferred_collect.h"
#include "src/core/deferred/deferred_finish.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/fork.h"
#include "src/core/memory/memory_life.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/state/visitors.h"

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
        qi_log(&memory->device->log, QUIRE_LOG_WARNING,
               "memory '%s' still holds '%s': %s at page %u offset %llu", memory->name, name,
               qi_bytes(slot.size).text, slot.tally->page->number, (unsigned long long)slot.offset);
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
    while (memory->attachments)
        memory->attachments->end(memory->attachments);
    do { /* again while hooks and log sinks make allocations in the last pages */
        qi_deferred_finish(memory);
        count_left(memory); /* drains inboxes and quarantine */
        qi_fork_free_orphans(memory);
    } while (free_live(memory));
    finish(memory);
}
