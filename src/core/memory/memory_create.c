/*
 * memory_create.c - creates and releases the records of a memory.
 *
 * No function requires a lock: no other thread knows the memory until its device lists it, nor
 * after it left the list.
 */
#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/request.h"
#include "src/core/allocate/shard_growth.h"
#include "src/core/find/addresses.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/memory_life.h"
#include "src/core/memory/memory_options.h"
#include "src/core/memory/user_options.h"
#include "src/core/page/life.h"
#include "src/core/state/event.h"
#include "src/core/stats/stats_scope.h"
#include "src/space/space.h"

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
    if (memory->addresses)
        memory->addresses->max_fast_size = max_fast_size;
    else
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
