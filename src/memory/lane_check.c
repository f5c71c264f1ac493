/*
 * lane_check.c - whether the lanes of a shard agree with themselves, its table and its figures.
 *
 * Damaged links may lead in circles: no more waits are looked at than the figures count.
 */
#include "src/memory/lane.h"

/* What was seen so far of a shard. */
typedef struct review {
    const qi_shard *shard;
    uint64_t count, bytes; /* of waits */
    uint64_t binned;       /* of the lane's waits that say that they lie in a bin */
} review;

/* What holds for a wait wherever it lies. */
static bool wait_agrees(review *r, const qi_lane *lane, const qi_wait *wait)
{
    const quire_memory *memory = r->shard->memory;
    if (++r->count > r->shard->stats.waiting_count || wait->stream != lane->stream ||
        wait->slot >= qi_slots_top(&memory->slots) ||
        qi_slot_phase(&memory->slots, wait->slot) != QI_PHASE_PRIVATE)
        return false;
    r->bytes += qi_lane_held_by(qi_memory_slot(memory, wait->slot));
    r->binned += wait->bin != 0;
    return true;
}

static bool list_agrees(review *r, const qi_lane *lane, const qi_wait_list *list)
{
    const qi_wait *previous = NULL;
    for (const qi_wait *wait = list->first; wait; previous = wait, wait = wait->next)
        if (!wait_agrees(r, lane, wait) || wait->previous != previous || wait->order ||
            !wait->value != (list == &lane->fresh) || (previous && previous->value > wait->value))
            return false;
    return list->last == previous;
}

static bool heap_agrees(review *r, const qi_lane *lane)
{
    const qi_wait *wait = lane->heap.first;
    if (wait && wait->above)
        return false;
    for (; wait; wait = qi_wait_heap_next(wait))
        if (!wait_agrees(r, lane, wait) || !wait->value || !qi_wait_heap_agrees_at(wait))
            return false;
    return true;
}

static bool bins_agree(const review *r, const qi_lane *lane)
{
    const quire_memory *memory = r->shard->memory;
    uint64_t count = 0;
    for (uint32_t bin = 0; bin < QI_LANE_BINS; bin++) {
        const qi_wait *previous = NULL;
        for (const qi_wait *wait = lane->bins[bin]; wait; previous = wait, wait = wait->bin_next)
            if (++count > r->binned || wait->bin != bin + 1 || wait->bin_previous != previous ||
                wait->stream != lane->stream ||
                qi_lane_bin_of(qi_memory_slot(memory, wait->slot)->size) != bin)
                return false;
    }
    return count == r->binned;
}

static bool lane_agrees(review *r, const qi_lane *lane)
{
    r->binned = 0;
    return lane->shard == r->shard && list_agrees(r, lane, &lane->marked) &&
           list_agrees(r, lane, &lane->fresh) && heap_agrees(r, lane) && bins_agree(r, lane);
}

/* Whether the table leads to a lane. */
static bool is_in_table(const qi_shard *shard, const qi_lane *lane)
{
    uint32_t count = 0;
    const qi_lane *found = *qi_lane_bucket(shard, lane->stream);
    while (found && found != lane && ++count <= shard->lane_count)
        found = found->next_of_bucket;
    return found == lane;
}

bool qi_lanes_agree(const qi_shard *shard)
{
    review r = {.shard = shard};
    uint32_t lanes = 0;
    bool knows_recent = !shard->recent_stream;
    for (const qi_lane *lane = shard->lanes; lane; lane = lane->next_of_shard) {
        if (++lanes > shard->lane_count || !is_in_table(shard, lane) || !lane_agrees(&r, lane))
            return false;
        knows_recent |= lane == shard->recent_lane && lane->stream == shard->recent_stream;
    }
    return knows_recent && lanes == shard->lane_count && r.count == shard->stats.waiting_count &&
           r.bytes == shard->stats.waiting_bytes;
}
