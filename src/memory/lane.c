/*
 * lane.c - see lane.h.
 */
#include "src/memory/lane.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the records of waits ----------------------------------------------------------------- */

static qi_wait *take_spare(qi_shard *shard)
{
    qi_wait *wait = shard->spare_waits;
    if (wait) {
        shard->spare_waits = wait->next;
        return wait;
    }
    if (!qi_table_ensure(&shard->waits, &shard->memory->host, shard->wait_count))
        return NULL;
    return qi_table_at(&shard->waits, shard->wait_count++, sizeof(qi_wait));
}

static qi_lane *make_lane(qi_shard *shard, quire_stream *stream)
{
    qi_lane *lane = qi_host_allocate(&shard->memory->host, 1, sizeof *lane);
    if (!lane)
        return NULL;
    lane->shard = shard;
    lane->stream = stream;
    lane->next_of_shard = shard->lanes;
    shard->lanes = lane;
    qi_lock_acquire(&stream->lock);
    lane->next_of_stream = stream->lanes;
    stream->lanes = lane;
    qi_lock_release(&stream->lock);
    return lane;
}

qi_lane *qi_lane_find(const qi_shard *shard, const quire_stream *stream)
{
    qi_lane *lane = shard->lanes;
    while (lane && lane->stream != stream)
        lane = lane->next_of_shard;
    return lane;
}

qi_wait *qi_lane_take_wait(qi_shard *shard, quire_stream *stream)
{
    if (!qi_lane_find(shard, stream) && !make_lane(shard, stream))
        return NULL;
    qi_wait *wait = take_spare(shard);
    if (!wait)
        return NULL;
    *wait = (qi_wait){.stream = stream};
    qi_stream_add_wait(stream);
    return wait;
}

qi_wait *qi_lane_end_wait(qi_shard *shard, qi_wait *wait)
{
    qi_wait *then = wait->then;
    qi_stream_drop_wait(wait->stream);
    wait->next = shard->spare_waits;
    shard->spare_waits = wait;
    return then;
}

/* ---- bins --------------------------------------------------------------------------------- */

/* The bin of ranges of a size: eight to each power of two, below 8 one each. */
static uint32_t bin_of(uint64_t size)
{
    if (size < 8)
        return (uint32_t)size;
    uint32_t high = qi_highest_bit(size);
    return (high - 2) * 8 + (uint32_t)(size >> (high - 3) & 7);
}

static void put_into_bin(qi_lane *lane, qi_wait *wait)
{
    uint32_t bin = bin_of(qi_memory_slot(lane->shard->memory, wait->slot)->size);
    wait->bin = bin + 1;
    wait->bin_previous = NULL;
    wait->bin_next = lane->bins[bin];
    if (wait->bin_next)
        wait->bin_next->bin_previous = wait;
    lane->bins[bin] = wait;
}

static void take_from_bin(qi_lane *lane, qi_wait *wait)
{
    if (!wait->bin)
        return;
    uint32_t bin = wait->bin - 1;
    if (wait->bin_next)
        wait->bin_next->bin_previous = wait->bin_previous;
    if (wait->bin_previous)
        wait->bin_previous->bin_next = wait->bin_next;
    else
        lane->bins[bin] = wait->bin_next;
    wait->bin = 0;
}

/* ---- the order of the stream -------------------------------------------------------------- */

/* Behind `after`; NULL: first. */
static void link_after(qi_wait_list *list, qi_wait *wait, qi_wait *after)
{
    wait->previous = after;
    wait->next = after ? after->next : list->first;
    *(after ? &after->next : &list->first) = wait;
    *(wait->next ? &wait->next->previous : &list->last) = wait;
}

static void unlink(qi_wait_list *list, const qi_wait *wait)
{
    *(wait->previous ? &wait->previous->next : &list->first) = wait->next;
    *(wait->next ? &wait->next->previous : &list->last) = wait->previous;
}

static uint64_t held_by(const qi_shard *shard, const qi_wait *wait)
{
    const qi_slot *record = qi_memory_slot(shard->memory, wait->slot);
    return record->size + record->left_padding + qi_checked_behind(record);
}

void qi_lane_put(qi_shard *shard, qi_wait *wait, bool is_raw)
{
    qi_lane *lane = qi_lane_find(shard, wait->stream);
    qi_wait_list *list = wait->value ? &lane->marked : &lane->fresh;
    qi_wait *after = list->last;
    while (wait->value && after && after->value > wait->value)
        after = after->previous;
    link_after(list, wait, after);
    wait->bin = 0;
    if (is_raw && !wait->then && !QI_IS_CHECKED)
        put_into_bin(lane, wait);
    shard->stats.waiting_bytes += held_by(shard, wait);
    qi_atomic_store_release_u64(&shard->waiting, ++shard->stats.waiting_count);
}

static qi_wait *take_out(qi_lane *lane, qi_wait *wait)
{
    qi_shard *shard = lane->shard;
    unlink(wait->value ? &lane->marked : &lane->fresh, wait);
    take_from_bin(lane, wait);
    shard->stats.waiting_bytes -= held_by(shard, wait);
    qi_atomic_store_release_u64(&shard->waiting, --shard->stats.waiting_count);
    return wait;
}

qi_wait *qi_lane_take_passed(qi_lane *lane, uint64_t passed)
{
    qi_wait *wait = lane->marked.first;
    if (wait && wait->value <= passed)
        return take_out(lane, wait);
    wait = lane->fresh.first;
    return wait && passed == QI_ALL_PASSED ? take_out(lane, wait) : NULL;
}

qi_wait *qi_lane_take_fresh(qi_lane *lane)
{
    qi_wait *first = NULL;
    while (lane->fresh.last) {
        qi_wait *wait = take_out(lane, lane->fresh.last);
        wait->next = first;
        first = wait;
    }
    return first;
}

/* ---- fits --------------------------------------------------------------------------------- */

/* So many ranges of a bin are looked at. */
enum { MOST_LOOKED_AT = 8 };

static bool fits(const quire_memory *memory, uint32_t slot, const qi_fitting *fitting)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = record->tally->page;
    uint64_t address = page->native.native.address + record->offset;
    return !page->tied && record->size >= fitting->size &&
           record->size - fitting->size <= fitting->size / 8 &&
           !qi_padding(address, fitting->alignment) && !record->range.id == fitting->dedicated &&
           qi_slot_can_renew(&memory->slots, slot);
}

/* The smallest of those of a bin that are looked at. */
static qi_wait *best_of_bin(const qi_lane *lane, uint32_t bin, const qi_fitting *fitting)
{
    const quire_memory *memory = lane->shard->memory;
    qi_wait *best = NULL;
    uint64_t least = UINT64_MAX;
    int left = MOST_LOOKED_AT;
    for (qi_wait *wait = lane->bins[bin]; wait && left-- > 0 && least > fitting->size;
         wait = wait->bin_next) {
        uint64_t size = qi_memory_slot(memory, wait->slot)->size;
        if (size < least && fits(memory, wait->slot, fitting) &&
            !qi_stream_is_ahead(wait->stream, wait->value)) {
            best = wait;
            least = size;
        }
    }
    return best;
}

qi_wait *qi_lane_take_fitting(qi_lane *lane, const qi_fitting *fitting)
{
    uint32_t bin = bin_of(fitting->size);
    qi_wait *best = best_of_bin(lane, bin, fitting);
    for (uint32_t above = 1; !best && above <= 2 && bin + above < QI_LANE_BINS; above++)
        best = best_of_bin(lane, bin + above, fitting); /* an eighth more lies two bins above */
    return best ? take_out(lane, best) : NULL;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void remove_from_stream(const qi_lane *lane)
{
    quire_stream *stream = lane->stream;
    qi_lock_acquire(&stream->lock);
    qi_lane **link = &stream->lanes;
    while (*link != lane)
        link = &(*link)->next_of_stream;
    *link = lane->next_of_stream;
    qi_lock_release(&stream->lock);
}

void qi_lane_release(qi_lane *lane)
{
    qi_shard *shard = lane->shard;
    qi_lane **link = &shard->lanes;
    while (*link != lane)
        link = &(*link)->next_of_shard;
    *link = lane->next_of_shard;
    remove_from_stream(lane);
    qi_host_release(&shard->memory->host, lane, 1, sizeof *lane);
}

void qi_lanes_finish(qi_shard *shard)
{
    while (shard->lanes)
        qi_lane_release(shard->lanes);
    qi_table_finish(&shard->waits, &shard->memory->host);
}

/* ---- check -------------------------------------------------------------------------------- */

static bool list_agrees(const qi_lane *lane, const qi_wait_list *list, quire_memory_stats *seen)
{
    const quire_memory *memory = lane->shard->memory;
    const qi_wait *previous = NULL;
    for (const qi_wait *wait = list->first; wait; previous = wait, wait = wait->next) {
        if (wait->stream != lane->stream || wait->previous != previous ||
            !wait->value != (list == &lane->fresh) || (previous && previous->value > wait->value) ||
            qi_slot_phase(&memory->slots, wait->slot) != QI_PHASE_PRIVATE ||
            (wait->bin && wait->bin - 1 != bin_of(qi_memory_slot(memory, wait->slot)->size)))
            return false;
        seen->waiting_count++;
        seen->waiting_bytes += held_by(lane->shard, wait);
    }
    return list->last == previous;
}

bool qi_lanes_agree(const qi_shard *shard)
{
    quire_memory_stats seen = {0};
    for (const qi_lane *lane = shard->lanes; lane; lane = lane->next_of_shard)
        if (!list_agrees(lane, &lane->marked, &seen) || !list_agrees(lane, &lane->fresh, &seen))
            return false;
    return seen.waiting_count == shard->stats.waiting_count &&
           seen.waiting_bytes == shard->stats.waiting_bytes;
}
