/*
 * memory_create.c - creates and releases the records of a memory and its shards.
 *
 * No function requires a lock: no other thread knows the memory until its device lists it, nor
 * after it left the list.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/request.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/memory_life.h"
#include "src/core/memory/memory_options.h"
#include "src/core/page/page_take.h"
#include "src/core/stats/stats_scope.h"
#include "src/space/space.h"

/* Leaves a shard that shard_finish accepts, also on failure. */
static quire_result shard_init(qi_shard *shard, quire_memory *memory, uint32_t index,
                               const quire_space_options *options)
{
    shard->index = index;
    shard->memory = memory;
    qi_lock_init(&shard->lock, "shard", (qi_lock_rank)(QI_RANK_SHARD + index));
    qi_slot_queue_init(&shard->queue);
    qi_inbox_init(&shard->inbox);
    qi_table_init(&shard->by_region, sizeof(qi_tally));
    qi_table_init(&shard->waits, sizeof(qi_wait));
    qi_stream_queues_init(shard);
    return qi_space_create(options, &shard->space);
}

static void shard_finish(qi_shard *shard)
{
    qi_stream_queues_finish(shard);
    qi_space_destroy(shard->space);
    qi_table_finish(&shard->by_region, &shard->memory->host);
}

static void finish_shards(quire_memory *memory)
{
    for (uint32_t i = 0; memory->shards && i < memory->shard_count; i++)
        shard_finish(&memory->shards[i]);
    qi_host_release(&memory->host, memory->shards, memory->shard_count, sizeof *memory->shards);
}

/* On failure the caller releases the shards that exist (finish_shards). */
static quire_result create_shards(quire_memory *memory, const quire_memory_options *options)
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
    /* all shards are initialised, also after a failure, so that all can be finished */
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        quire_result made = shard_init(&memory->shards[i], memory, i, &space);
        result = result ? result : made;
    }
    quire_space_stats stats = {0};
    if (!result)
        qi_space_get_stats(memory->shards->space, &stats);
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
    qi_pages_init(&memory->pages);
    qi_checked_init(memory);
    result = memory->name
                 ? create_shards(memory, options)
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

quire_result qi_memory_create(quire_device *device, const quire_memory_options *options,
                              quire_page_extra extra, quire_memory **memory)
{
    /* a memory without options has the defaults of {0} */
    quire_memory_options given = options ? *options : (quire_memory_options){0};
    quire_memory resolved = {.extra = extra};
    quire_result result = qi_memory_resolve(device, &given, &resolved);
    if (!result)
        result = create(&resolved, &given, memory);
    if (result)
        return result;
    qi_device_add_memory(device, *memory);
    qi_log(&device->log, QUIRE_LOG_INFO, "memory '%s' made: kind %u (%s), pages of %s",
           (*memory)->name, resolved.kind, qi_flags(resolved.flags).text,
           qi_bytes(resolved.policy.first_page_size).text);
    qi_checked_report_state(*memory);
    return QUIRE_SUCCESS;
}

void qi_memory_release(quire_memory *memory)
{
    finish_shards(memory);
    qi_tag_give(memory->tag);
    qi_slots_finish(&memory->slots, &memory->host);
    qi_pages_finish(&memory->pages, &memory->host);
    qi_names_finish(&memory->names, &memory->host);
    qi_stats_scopes_finish(memory->stats_scopes, &memory->host);
    qi_host_release_text(&memory->host, memory->name);
    qi_host host = memory->host; /* a copy, because the memory contains it */
    qi_host_release(&host, memory, 1, sizeof *memory);
}
