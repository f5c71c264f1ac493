/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * move.c - one move from begin to end. Source and target hold as many bytes, so that an exchange of
 * their places changes no sum of the shard or of a page.
 */
#include "src/core/compact/move.h"

#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/copy/copy_path.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/find/addresses.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/space/space.h"

/* ---- begin -------------------------------------------------------------------------------- */

bool qi_move_is_possible(const quire_memory *memory, uint32_t slot, bool by_caller,
                         const quire_stream *own)
{
    const uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(&memory->slots, slot));
    if (qi_word_phase(word) != QI_PHASE_LIVE || qi_word_uses(word))
        return false;
    const qi_slot *record = qi_memory_slot(memory, slot);
    const bool is_mapped = qi_word_maps(word) || record->extras & QI_EXTRA_MAPPED;
    return qi_slot_is_movable(record) && !(by_caller && record->object) &&
           qi_uses_are_over(record, own) && (!is_mapped || (by_caller && !memory->maps_on_demand));
}

const char *qi_move_obstacle(const quire_memory *memory)
{
    const qi_copy_path path = qi_copy_path_first(memory, memory);
    return qi_copy_path_public(path, memory, memory) == QUIRE_COPY_UNSUPPORTED
               ? "its backend copies no contents of its kind"
               : NULL;
}

/* Places outside a source. */
typedef struct place_search {
    const qi_shard *shard;
    const qi_source *source;
    uint64_t least; /* live bytes in the page of a place */
} place_search;

/* Pages that the same round empties have no places: their moves can end later than this one. */
static bool is_avoided(const void *user, uint32_t region, uint64_t offset)
{
    const place_search *search = user;
    const qi_source *source = search->source;
    const qi_tally *tally = qi_shard_tally(search->shard, region);
    if (tally->page == source->page)
        return offset >= source->begin && offset < source->end;
    return tally->page->emptied == source->page->compacted || tally->live_bytes < search->least;
}

/* In a page that has allocations, so that it stays. */
static quire_result take_place(qi_shard *shard, const qi_source *source, const qi_slot *record,
                               uint32_t slot, quire_placement *at)
{
    const uint64_t alignment = qi_slot_alignment(record);
    place_search search = {.shard = shard, .source = source, .least = source->least};
    const qi_avoided avoided = {.has = is_avoided, .user = &search};
    quire_result result =
        qi_space_allocate_elsewhere(shard->space, &avoided, record->size, alignment, slot, 0, at);
    if (result != QUIRE_ERROR_NO_SPACE || !search.least)
        return result;
    search.least = 0;
    return qi_space_allocate_elsewhere(shard->space, &avoided, record->size, alignment, slot, 0,
                                       at);
}

quire_result qi_move_find_place(qi_shard *shard, const qi_source *source, const qi_slot *record,
                                quire_range *range)
{
    quire_placement at;
    quire_result result = take_place(shard, source, record, 0, &at);
    *range = at.range;
    return result;
}

/* Takes a PRIVATE slot with a range as large as that of a record, and no native object yet. */
static quire_result take_target(qi_shard *shard, const qi_source *source, const qi_slot *record,
                                uint8_t extras, uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    const qi_range_request request = {
        .requested = record->requested,
        .object = record->object,
        .extras = (uint8_t)(extras | (record->object ? QI_EXTRA_OBJECT : 0))};
    quire_placement at;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (result)
        return result;
    result = take_place(shard, source, record, *slot, &at);
    if (result) {
        qi_slot_give(&memory->slots, &shard->queue, *slot);
        return result;
    }
    qi_range_fill_record(shard, &request, *slot, &at);
    if (record->object)
        qi_memory_slot(memory, *slot)->usage = record->usage;
    return QUIRE_SUCCESS;
}

quire_result qi_move_begin(qi_shard *shard, const qi_source *source, uint32_t slot,
                           const quire_stream *own, qi_move *move)
{
    quire_memory *memory = shard->memory;
    if (!qi_move_is_possible(memory, slot, false, own) ||
        !qi_slot_begin_move(&memory->slots, slot, NULL))
        return QUIRE_ERROR_NO_SPACE;
    *move = (qi_move){.source = slot, .handle = qi_slot_public_handle(&memory->slots, slot)};
    quire_result result =
        take_target(shard, source, qi_memory_slot(memory, slot), 0, &move->target);
    if (result)
        qi_slot_end_move(&memory->slots, slot, 0);
    return result;
}

/* ---- contents ----------------------------------------------------------------------------- */

static qi_end end_of(quire_memory *memory, uint32_t slot)
{
    const qi_device_page *page = &qi_memory_page(memory, slot)->native;
    return (qi_end){.memory = memory,
                    .slot = slot,
                    .page = page,
                    .host = memory->maps_on_demand ? NULL : page->host};
}

/* Both pages have allocations, so that they stay. */
static quire_result copy_contents(quire_memory *memory, const qi_move *move)
{
    const qi_slot *source = qi_memory_slot(memory, move->source);
    qi_copy copy = {.to = end_of(memory, move->target),
                    .from = end_of(memory, move->source),
                    .region = {.size = source->requested,
                               .rows = 1,
                               .slices = 1,
                               .to = {.offset = qi_memory_slot(memory, move->target)->offset},
                               .from = {.offset = source->offset}}};
    quire_result result = qi_copy_reach(&copy, qi_copy_path_first(memory, memory));
    if (!result)
        result = qi_copy_execute(&copy, &copy.region);
    qi_copy_finish(&copy);
    return result;
}

/* Its place was found for the requirements of the former object. */
static quire_result check_needs(const qi_slot *record, const quire_requirements *needs)
{
    return needs->size <= record->size && !needs->dedicated
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_UNSUPPORTED,
                         "an object of a buffer that moves needs more than its former one");
}

quire_result qi_move_make_object(quire_memory *memory, uint32_t target)
{
    qi_slot *record = qi_memory_slot(memory, target);
    const quire_buffer_options options = {.size = record->requested, .usage = record->usage};
    const quire_object_request request = {
        .object = record->object, .buffer = &options, .exportable = memory->exportable};
    quire_requirements needs;
    uint64_t native = 0;
    if (!record->object || !qi_device_offers(memory->device, QUIRE_BACKEND_OBJECTS))
        return QUIRE_SUCCESS;
    quire_result result =
        qi_device_object_create(memory->device, &memory->calls, &request, &native, &needs);
    if (result)
        return result;
    result = check_needs(record, &needs);
    if (!result)
        result = qi_native_bind(memory, target, record->object, native);
    if (result) {
        qi_device_object_destroy(memory->device, &memory->calls, record->object, native);
        return result;
    }
    qi_lock *lock = &qi_shard_of_slot(memory, target)->lock;
    qi_lock_acquire(lock);
    record->native = native;
    qi_lock_release(lock);
    if (memory->addresses)
        qi_addresses_learn(memory, target);
    return QUIRE_SUCCESS;
}

quire_result qi_move_copy(quire_memory *memory, qi_move *move)
{
    quire_result result = qi_move_make_object(memory, move->target);
    if (result)
        return result;
    move->is_entered =
        memory->addresses && qi_addresses_enter_move(memory, move->source, move->target);
    if (memory->addresses && !move->is_entered)
        return qi_addresses_refuse();
    return copy_contents(memory, move);
}

/* ---- the exchange ------------------------------------------------------------------------- */

static void exchange_places(qi_slot *one, qi_slot *other)
{
    const qi_slot former = *one;
    one->offset = other->offset;
    one->size = other->size;
    one->range = other->range;
    one->tally = other->tally;
    one->left_padding = other->left_padding;
    one->requested = other->requested;
    one->shard = other->shard;
    other->offset = former.offset;
    other->size = former.size;
    other->range = former.range;
    other->tally = former.tally;
    other->left_padding = former.left_padding;
    other->requested = former.requested;
    other->shard = former.shard;
    if (one->object) {
        one->native = other->native;
        other->native = former.native;
    }
}

/* The place of a record is that of its slot. */
static void name_owner(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    quire_space *space = qi_shard_of_slot(memory, slot)->space;
    if (record->range.id)
        qi_ignore(qi_space_set_user(space, record->range, slot)); /* it is live */
    else
        record->tally->page->slot = slot; /* dedicated, or nowhere */
}

void qi_move_complete(quire_memory *memory, qi_move *move)
{
    qi_slot *source = qi_memory_slot(memory, move->source);
    qi_slot *target = qi_memory_slot(memory, move->target);
    if (move->is_entered)
        qi_addresses_end_move(memory, move->source, move->target, true);
    move->is_entered = false;
    exchange_places(source, target);
    name_owner(memory, move->source);
    name_owner(memory, move->target);
}

void qi_move_end(quire_memory *memory, const qi_move *move)
{
    if (move->is_entered)
        qi_addresses_end_move(memory, move->source, move->target, false);
    qi_slot_end_move(&memory->slots, move->source, 0);
}

void qi_move_release(quire_memory *memory, const qi_move *move)
{
    qi_native_destroy(memory, qi_memory_slot(memory, move->target));
    qi_release_unpublished(memory, move->target);
}

/* ---- by the caller ------------------------------------------------------------------------ */

quire_result qi_move_offer(qi_shard *shard, const qi_source *source, uint32_t slot,
                           const quire_stream *own, qi_move *move)
{
    if (!qi_move_is_possible(shard->memory, slot, !own, own))
        return QUIRE_ERROR_NO_SPACE;
    const qi_slot *record = qi_memory_slot(shard->memory, slot);
    *move = (qi_move){.source = slot,
                      .handle = qi_slot_public_handle(&shard->memory->slots, slot),
                      .is_mapped = record->extras & QI_EXTRA_MAPPED};
    return take_target(shard, source, record, shard->memory->extras, &move->target);
}

quire_result qi_move_publish(quire_memory *memory, const qi_move *move, quire_allocation *target)
{
    const uint32_t slot = move->target;
    quire_result result = QUIRE_SUCCESS;
    if (move->is_mapped)
        result = qi_page_map_keep(memory, slot);
    if (!result && memory->addresses && !qi_addresses_add(memory, slot, true))
        result = qi_addresses_refuse();
    if (result) {
        qi_release_unpublished(memory, slot);
        return result;
    }
    qi_allocation_publish(memory, slot, QI_PHASE_LIVE, 0, NULL, NULL, target);
    return QUIRE_SUCCESS;
}

/* Requires the shard's lock. The source moves, the target is PRIVATE. */
static quire_result exchange(quire_memory *memory, qi_move *move)
{
    if (memory->addresses) {
        move->is_entered = qi_addresses_enter_move(memory, move->source, move->target);
        if (!move->is_entered)
            return qi_addresses_refuse();
        qi_addresses_remove(memory, move->target);
        qi_memory_slot(memory, move->target)->extras &= (uint8_t)~QI_EXTRA_ADDRESS;
    }
    qi_move_complete(memory, move);
    return QUIRE_SUCCESS;
}

static quire_result refuse_source(quire_allocation source)
{
    return qi_fail_with(QUIRE_ERROR_BUSY,
                        "allocation %x is in use by another call, held, or used by recorded work "
                        "that has not passed: its move cannot be accepted now",
                        source.id);
}

/* A fork waits for the lock: a child has all of it or nothing. */
quire_result qi_move_exchange(qi_shard *shard, quire_allocation source, uint32_t target,
                              const quire_stream *own)
{
    const qi_slots *slots = &shard->memory->slots;
    qi_move move = {.source = qi_handle_slot(source.id), .target = target};
    uint32_t maps = 0;
    qi_lock_acquire(&shard->lock); /* a slot that has the handle does not get another one */
    quire_result result = qi_slot_check(slots, source, QI_ACCEPT_LIVE);
    if (!result && !qi_move_is_possible(shard->memory, move.source, !own, own))
        result = refuse_source(source);
    if (!result && !qi_slot_begin_move(slots, move.source, &maps))
        result = refuse_source(source);
    if (!result) {
        result = exchange(shard->memory, &move);
        qi_slot_end_move(slots, move.source, maps);
    }
    qi_lock_release(&shard->lock);
    return result;
}
