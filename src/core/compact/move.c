/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * move.c - one move from begin to end. Source and target hold as many bytes, so that an exchange of
 * their places changes no sum of the shard or of a page.
 */
#include "src/core/compact/move.h"

#include "src/base/result.h"
#include "src/core/copy/copy_path.h"
#include "src/core/find/addresses.h"
#include "src/core/page/range.h"
#include "src/space/space.h"

/* ---- begin -------------------------------------------------------------------------------- */

bool qi_move_is_possible(const quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const uint8_t staying = QI_EXTRA_OBJECT | QI_EXTRA_MAPPED;
    const uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(&memory->slots, slot));
    return qi_word_phase(word) == QI_PHASE_LIVE && !qi_word_maps(word) && !qi_word_uses(word) &&
           record->extras & QI_EXTRA_MOVABLE && !(record->extras & staying) && record->range.id &&
           !(record->meta && record->meta->uses);
}

static quire_result take_place(qi_shard *shard, const qi_page *page, const qi_slot *record,
                               uint32_t slot, quire_placement *at)
{
    quire_result result = qi_space_allocate_elsewhere(shard->space, page->region, record->size,
                                                      UINT64_C(1) << record->usage, slot, 0, at);
    if (result || qi_shard_tally(shard, at->region)->allocation_count)
        return result;
    qi_ignore(shard->space->free_range(shard->space, at->range)); /* it is live */
    return QUIRE_ERROR_NO_SPACE;
}

quire_result qi_move_find_place(qi_shard *shard, const qi_page *page, const qi_slot *record,
                                quire_range *range)
{
    quire_placement at;
    quire_result result = take_place(shard, page, record, 0, &at);
    *range = at.range;
    return result;
}

/* Takes a PRIVATE slot with a range as large as that of a record. */
static quire_result take_target(qi_shard *shard, const qi_slot *record, uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    const qi_range_request request = {.requested = record->requested};
    quire_placement at;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (result)
        return result;
    result = take_place(shard, record->tally->page, record, *slot, &at);
    if (result)
        qi_slot_give(&memory->slots, &shard->queue, *slot);
    else
        qi_range_fill_record(shard, &request, *slot, &at);
    return result;
}

quire_result qi_move_begin(qi_shard *shard, uint32_t slot, qi_move *move)
{
    quire_memory *memory = shard->memory;
    if (!qi_move_is_possible(memory, slot) || !qi_slot_begin_move(&memory->slots, slot))
        return QUIRE_ERROR_NO_SPACE;
    *move = (qi_move){.source = slot};
    quire_result result = take_target(shard, qi_memory_slot(memory, slot), &move->target);
    if (result)
        qi_slot_end_move(&memory->slots, slot);
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

quire_result qi_move_copy(quire_memory *memory, qi_move *move)
{
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
    other->offset = former.offset;
    other->size = former.size;
    other->range = former.range;
    other->tally = former.tally;
    other->left_padding = former.left_padding;
}

void qi_move_complete(qi_shard *shard, qi_move *move)
{
    quire_memory *memory = shard->memory;
    qi_slot *source = qi_memory_slot(memory, move->source);
    qi_slot *target = qi_memory_slot(memory, move->target);
    if (move->is_entered)
        qi_addresses_end_move(memory, move->source, move->target, true);
    move->is_entered = false;
    exchange_places(source, target);
    qi_ignore(qi_space_set_user(shard->space, source->range, move->source)); /* both are live */
    qi_ignore(qi_space_set_user(shard->space, target->range, move->target));
}

void qi_move_end(quire_memory *memory, const qi_move *move)
{
    if (move->is_entered)
        qi_addresses_end_move(memory, move->source, move->target, false);
    qi_slot_end_move(&memory->slots, move->source);
    qi_release_unpublished(memory, move->target);
}
