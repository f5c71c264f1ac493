/*
 * memory.c - memories: made of a device, one memory kind, one fit and one page policy; asked
 * and ended. How allocations are placed in them is allocation.c, how pages come and go is page.c,
 * how many of them are kept is reserve.c.
 */
#include "src/core/state/memory.h"

#include <stdio.h>
#include <inttypes.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/memory/fork.h"
#include "src/core/page/page_size.h"
#include "src/core/allocate/ladder.h"
#include "src/core/device/policy.h"
#include "src/core/deferred/deferred_free.h"

static const uint64_t DEFAULT_LARGEST_ALIGNMENT = UINT64_C(2) << 20;

/* ---- creation ----------------------------------------------------------------------------- */

static quire_result check_options(const quire_memory_options *options)
{
    if (options->intent && (options->flags || options->exact))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "memory options: give flags or an intent, not both");
    if (options->shards > QI_MAX_SHARDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u shards: most %u are allowed",
                            options->shards, QI_MAX_SHARDS);
    if (options->contiguous && options->shards > 1)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "%u shards: a contiguous memory has one page, which cannot be shared "
                            "out",
                            options->shards);
    if (options->contiguous &&
        (options->fit == QUIRE_FIT_BUDDY || options->fit == QUIRE_FIT_LINEAR))
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a contiguous memory: the fits buddy and linear cannot follow a page that "
                       "grows");
    if (options->address_space && !options->contiguous)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a reservation is of contiguous memories alone");
    if (options->shards > 1 && options->fit == QUIRE_FIT_LINEAR)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "%u shards: the linear fit works in one page, which cannot be shared "
                            "out",
                            options->shards);
    if (options->limit_percent > 100)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a limit of %u percent of the heap",
                            options->limit_percent);
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(options->name), QUIRE_MAX_NAME);
    if (!(options->priority >= 0 && options->priority <= 1))
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "priority %g is not from 0 to 1",
                            (double)options->priority);
    return qi_check_unused(options, "quire_memory_options");
}

/* A mask of one bit without further wishes names the kind itself, whatever its flags are. */
static bool names_kind(const quire_device *device, const quire_memory_options *options)
{
    return !options->flags && !options->exact && !options->intent &&
           qi_is_power_of_two(options->kind_mask) &&
           qi_lowest_bit(options->kind_mask) < device->info.kind_count;
}

static quire_result choose_kind(const quire_device *device, const quire_memory_options *options,
                                uint32_t *kind)
{
    if (names_kind(device, options)) {
        *kind = qi_lowest_bit(options->kind_mask);
        return QUIRE_SUCCESS;
    }
    quire_kind_request request = {.required = options->flags, .exact = options->exact};
    if (!options->flags && !options->exact)
        request.required = QUIRE_DEVICE_LOCAL;
    if (options->intent) {
        quire_result result = qi_kind_request_for(device, options->intent, &request);
        if (result)
            return result;
    }
    request.kind_mask = options->kind_mask;
    return quire_device_choose_kind(device, &request, kind);
}

/* Host-visible kinds that are not coherent: neighbours must not share an atom. */
static uint64_t atom_of(const quire_device *device, quire_memory_flags flags)
{
    bool flushed = flags & QUIRE_HOST_VISIBLE && !(flags & QUIRE_HOST_COHERENT);
    return flushed ? device->info.limits.non_coherent_atom : 1;
}

/* Of two limits the lower one; 0 is none. */
static uint64_t limit_of(const quire_device *device, uint32_t kind,
                         const quire_memory_options *options)
{
    uint64_t size = device->info.heaps[device->info.kinds[kind].heap].size;
    uint64_t share =
        size / 100 * options->limit_percent + size % 100 * options->limit_percent / 100;
    if (!options->limit_percent || (options->limit && options->limit < share))
        return options->limit;
    return share ? share : 1; /* of a heap of a few bytes: nothing, and not everything */
}

static quire_result resolve_reservation(const quire_memory_options *options, quire_memory *memory)
{
    const quire_device_info *info = &memory->device->info;
    if (!options->contiguous)
        return QUIRE_SUCCESS;
    if (!(info->limits.elastic_kinds >> memory->kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "a contiguous memory: pages of memory kind %" PRIu32
                            " of backend %s cannot grow",
                            memory->kind, info->backend);
    memory->address_space = options->address_space;
    if (!memory->address_space)
        memory->address_space = info->heaps[info->kinds[memory->kind].heap].size;
    return QUIRE_SUCCESS;
}

/* Everything that is known before the first allocation of host memory. */
static quire_result resolve(quire_device *device, const quire_memory_options *options,
                            quire_memory *memory)
{
    quire_result result = check_options(options);
    if (!result)
        result = choose_kind(device, options, &memory->kind);
    if (result)
        return result;
    memory->device = device;
    memory->flags = device->info.kinds[memory->kind].flags;
    memory->priority = options->priority;
    memory->exportable = options->intent && options->intent->exportable;
    memory->atom = atom_of(device, memory->flags);
    memory->fit = options->fit;
    memory->clock = options->clock;
    memory->on_out_of_memory = options->on_out_of_memory;
    memory->shard_count = options->shards ? options->shards : 1;
    memory->max_alignment =
        options->max_alignment ? options->max_alignment : DEFAULT_LARGEST_ALIGNMENT;
    if (!qi_is_power_of_two(memory->max_alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest alignment %u is not a power of two", memory->max_alignment);
    if (memory->max_alignment < memory->atom)
        memory->max_alignment = memory->atom;
    uint64_t base = device->info.limits.page_alignment;
    if (base && base < memory->atom)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "memory kind %u is flushed in atoms of %b, but the device aligns its "
                            "pages to %b only",
                            memory->kind, memory->atom, base);
    result = resolve_reservation(options, memory);
    if (result)
        return result;
    qi_account_set_limit(&memory->account, limit_of(device, memory->kind, options));
    memory->policy = qi_policy_resolve(&options->pages, device, memory->kind);
    return qi_policy_validate(&memory->policy);
}

static void finish_shards(quire_memory *memory)
{
    for (uint32_t i = 0; memory->shards && i < memory->shard_count; i++)
        qi_shard_finish(&memory->shards[i]);
    qi_host_release(&memory->host, memory->shards, memory->shard_count, sizeof *memory->shards);
}

static quire_result make_shards(quire_memory *memory, const quire_memory_options *options)
{
    quire_space_options space = {
        .fit = options->fit,
        .least_fragmentation = options->least_fragmentation,
        .deferred_coalescing = options->deferred_coalescing,
        .slabs = options->slabs,
        .granule = options->granule,
        .max_alignment = memory->max_alignment,
        .host_memory = &memory->host.callbacks,
    };
    memory->shards = qi_host_allocate(&memory->host, memory->shard_count, sizeof *memory->shards);
    if (!memory->shards)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a memory's shards");
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < memory->shard_count; i++) { /* each, so that all can be finished */
        quire_result made = qi_shard_init(&memory->shards[i], memory, i, &space);
        result = result ? result : made;
    }
    quire_space_stats stats = {0};
    if (!result)
        qi_space_get_stats(memory->shards->space, &stats);
    memory->granule = stats.granule;
    return result;
}

static quire_result make(const quire_memory *resolved, const quire_memory_options *options,
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
    qi_pages_init(&memory->pages);
    qi_checked_init(memory);
    result = memory->name
                 ? make_shards(memory, options)
                 : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a memory's name");
    if (result) {
        finish_shards(memory);
        qi_tag_give(memory->tag);
        qi_host_release_text(&memory->host, memory->name);
        host = memory->host;
        qi_host_release(&host, memory, 1, sizeof *memory);
        return result;
    }
    memory->max_fast_size = qi_request_max_fast(memory);
    *out = memory;
    return QUIRE_SUCCESS;
}

quire_result quire_memory_create_with(quire_device *device, const quire_memory_options *options,
                                      quire_page_extra extra, quire_memory **memory)
{
    if (memory)
        *memory = NULL;
    if (!device || !memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_create: device or memory is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_memory_options asked = options ? *options : (quire_memory_options){0};
    quire_memory resolved = {.extra = extra};
    quire_result result = resolve(device, &asked, &resolved);
    if (!result)
        result = make(&resolved, &asked, memory);
    if (result)
        return result;
    qi_device_add_memory(device, *memory);
    qi_log(&device->log, QUIRE_LOG_INFO, "memory '%s' made: kind %u (%s), pages of %s",
           (*memory)->name, resolved.kind, qi_flags(resolved.flags).text,
           qi_bytes(resolved.policy.first_page_size).text);
    qi_checked_report_state(*memory);
    return QUIRE_SUCCESS;
}

quire_result quire_memory_create(quire_device *device, const quire_memory_options *options,
                                 quire_memory **memory)
{
    return quire_memory_create_with(device, options, (quire_page_extra){.pointer = NULL}, memory);
}

quire_result qi_refuse_null_memory(void)
{
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is null");
}

/* ---- the end ------------------------------------------------------------------------------ */

/*
 * Takes every page out. Nobody finds room in the memory any more, nor an empty page: what the hook
 * or the sink asks for while it ends is refused. Figures of the device still count the memory.
 */
static qi_page *shut(quire_memory *memory)
{
    qi_shards_acquire(memory);
    qi_page *leaving = qi_pages_take_all(memory);
    memory->is_ending = true;
    memory->slots.is_shut = true;
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_shard *shard = &memory->shards[i];
        qi_slot_queue_init(&shard->queue);
        shard->empty_pages = (qi_empty_pages){.oldest = NULL};
        shard->shared = 0;
    }
    qi_shards_release(memory);
    return leaving;
}

/* Ends a memory without allocations. Nobody else uses it. */
static void finish(quire_memory *memory)
{
    qi_checked_drain(memory);
    qi_pages_destroy(memory, shut(memory));
    qi_device_remove_memory(memory->device, memory);
    qi_log(&memory->device->log, QUIRE_LOG_INFO, "memory '%s' ended", memory->name);
    finish_shards(memory);
    qi_tag_give(memory->tag);
    qi_slots_finish(&memory->slots, &memory->host);
    qi_pages_finish(&memory->pages, &memory->host);
    qi_names_finish(&memory->names, &memory->host);
    qi_stats_scopes_finish(memory->stats_scopes, &memory->host);
    qi_host_release_text(&memory->host, memory->name);
    qi_host host = memory->host;
    qi_host_release(&host, memory, 1, sizeof *memory);
}

/* Frees what waits in inboxes and in quarantine; how many allocations are left. */
static uint32_t count_left(quire_memory *memory)
{
    uint32_t used = 0;
    qi_checked_drain(memory);
    qi_shards_acquire(memory);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        used += memory->shards[i].queue.used;
    qi_shards_release(memory);
    return used;
}

/* Logs what lives and puts the first names into the text. */
static void list_allocations(quire_memory *memory, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++) {
        if (qi_slot_phase(&memory->slots, i) == QI_PHASE_FREE)
            continue;
        const qi_slot slot = *qi_memory_slot(memory, i); /* the sink may free it */
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

static const quire_attachment *attachment_at(const quire_memory *memory, uint32_t index)
{
    const quire_attachment *a = memory->attachments;
    while (a && index--)
        a = a->next;
    return a;
}

/* The same of what the backend has attached. The sink may end one meanwhile. */
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

static void let_leave(quire_memory *memory)
{
    for (quire_attachment *a = memory->attachments, *next; a; a = next) {
        next = a->next;
        if (a->leave)
            a->leave(a);
    }
}

quire_result quire_memory_destroy(quire_memory **memory)
{
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_destroy: memory is null");
    quire_memory *ending = *memory;
    if (!ending)
        return QUIRE_SUCCESS;
    if (ending->device->is_disabled) { /* nothing of it can be freed in another way */
        quire_memory_destroy_all(memory);
        return QUIRE_SUCCESS;
    }
    let_leave(ending);
    qi_error error = qi_error_save();
    qi_ignore(qi_deferred_collect(ending, &(uint64_t){0})); /* what is not known still waits */
    qi_error_restore(&error);
    uint64_t waiting = qi_deferred_count(ending);
    if (waiting)
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "memory '%s' has freed allocations that wait for points: %llu",
                            ending->name, (unsigned long long)waiting);
    ending->is_ending = true;
    uint32_t left = count_left(ending);
    if (left && ending->has_orphans) {
        qi_fork_free_orphans(ending);
        left = count_left(ending);
    }
    if (left) {
        char names[768];
        ending->is_ending = false;
        list_allocations(ending, names, sizeof names);
        return qi_fail_text(QUIRE_ERROR_BUSY, "memory '%s' still has live allocations (%u): %s",
                            ending->name, left, names);
    }
    if (ending->attachments) {
        char names[768];
        ending->is_ending = false;
        list_attachments(ending, names, sizeof names);
        return qi_fail_text(QUIRE_ERROR_BUSY, "memory '%s' still has objects of backend %s: %s",
                            ending->name, ending->device->info.backend, names);
    }
    ending->destroying_thread = qi_thread_self();
    *memory = NULL;
    finish(ending);
    return QUIRE_SUCCESS;
}

/* False: there was nothing left, not even of what a hook or a sink has allocated meanwhile. */
static bool free_live(quire_memory *memory)
{
    bool was_any = false;
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++)
        if (qi_slot_force_claim(&memory->slots, i)) {
            was_any = true;
            qi_ignore(qi_release_checked(memory, i)); /* harm is told */
        }
    return was_any;
}

void quire_memory_destroy_all(quire_memory **memory)
{
    if (!memory || !*memory)
        return;
    quire_memory *ending = *memory;
    ending->destroying_thread = qi_thread_self();
    *memory = NULL;
    ending->is_ending = true;
    while (ending->attachments)
        ending->attachments->end(ending->attachments);
    do {
        qi_deferred_finish(ending);
        count_left(ending); /* what is on its way is freed already */
        qi_fork_free_orphans(ending);
    } while (free_live(ending));
    finish(ending);
}

/* ---- questions --------------------------------------------------------------- */

quire_result quire_memory_get_info(quire_memory *memory, quire_memory_info *info)
{
    if (info)
        *info = (quire_memory_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_memory_get_info: memory or info is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    qi_lock_acquire(&memory->pages.lock);
    uint64_t page_size = qi_page_policy_size(shard);
    uint64_t page_count = memory->pages.stats.page_count;
    qi_lock_release(&memory->pages.lock);
    qi_lock_release(&shard->lock);
    *info = (quire_memory_info){
        .name = memory->name,
        .device = memory->device,
        .kind = memory->kind,
        .flags = memory->flags,
        .mappable = (memory->flags & QUIRE_HOST_VISIBLE) != 0,
        .checked = qi_checked_is_on(memory),
        .fit = memory->fit,
        .page_size = page_size,
        .granule = memory->granule,
        .page_count = (uint32_t)page_count,
        .shards = memory->shard_count,
        .limit = qi_atomic_load_u64(&memory->account.limit),
        .address_space = memory->address_space,
    };
    return QUIRE_SUCCESS;
}
