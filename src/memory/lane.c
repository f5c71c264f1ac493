/*
 * lane.c - see lane.h.
 */
#include "src/memory/lane.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the shard's table of lanes ----------------------------------------------------------- */

static void link_into_bucket(const qi_shard *shard, qi_lane *lane)
{
    qi_lane **bucket = qi_lane_bucket(shard, lane->stream);
    lane->next_of_bucket = *bucket;
    *bucket = lane;
}

static void release_buckets(qi_shard *shard)
{
    if (shard->lane_buckets != shard->first_buckets)
        qi_host_release(&shard->memory->host, shard->lane_buckets, (size_t)1 << shard->lane_bits,
                        sizeof *shard->lane_buckets);
}

/* Twice as many buckets. Without host memory they stay, and more lanes share one. */
static void grow_table(qi_shard *shard)
{
    uint32_t bits = shard->lane_bits + 1;
    qi_lane **buckets = qi_host_allocate(&shard->memory->host, (size_t)1 << bits, sizeof *buckets);
    if (!buckets)
        return;
    release_buckets(shard);
    shard->lane_buckets = buckets;
    shard->lane_bits = bits;
    for (qi_lane *lane = shard->lanes; lane; lane = lane->next_of_shard)
        link_into_bucket(shard, lane);
}

static void add_to_table(qi_shard *shard, qi_lane *lane)
{
    link_into_bucket(shard, lane);
    if (++shard->lane_count > UINT32_C(1) << shard->lane_bits)
        grow_table(shard);
}

static void remove_from_table(qi_shard *shard, const qi_lane *lane)
{
    qi_lane **link = qi_lane_bucket(shard, lane->stream);
    while (*link != lane)
        link = &(*link)->next_of_bucket;
    *link = lane->next_of_bucket;
    shard->lane_count--;
    if (shard->recent_lane == lane)
        shard->recent_stream = NULL;
}

qi_lane *qi_lane_search(qi_shard *shard, const quire_stream *stream)
{
    qi_lane *lane = *qi_lane_bucket(shard, stream);
    while (lane && lane->stream != stream)
        lane = lane->next_of_bucket;
    if (lane) {
        shard->recent_stream = stream;
        shard->recent_lane = lane;
    }
    return lane;
}

void qi_lanes_init(qi_shard *shard)
{
    shard->lane_buckets = shard->first_buckets;
    shard->lane_bits = QI_FIRST_LANE_BITS;
}

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
    add_to_table(shard, lane);
    qi_lock_acquire(&stream->lock);
    lane->next_of_stream = stream->lanes;
    stream->lanes = lane;
    qi_lock_release(&stream->lock);
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

static void put_into_bin(qi_lane *lane, qi_wait *wait, uint64_t size)
{
    uint32_t bin = qi_lane_bin_of(size);
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

static void append(qi_wait_list *list, qi_wait *wait)
{
    wait->previous = list->last;
    wait->next = NULL;
    *(list->last ? &list->last->next : &list->first) = wait;
    list->last = wait;
}

static void unlink(qi_wait_list *list, const qi_wait *wait)
{
    *(wait->previous ? &wait->previous->next : &list->first) = wait->next;
    *(wait->next ? &wait->next->previous : &list->last) = wait->previous;
}

void qi_lane_put(qi_shard *shard, qi_wait *wait, bool is_raw)
{
    qi_lane *lane = qi_lane_find(shard, wait->stream);
    qi_wait_list *list = wait->value ? &lane->marked : &lane->fresh;
    const qi_slot *record = qi_memory_slot(shard->memory, wait->slot);
    wait->bin = 0;
    shard->stats.waiting_bytes += qi_lane_held_by(record);
    if (is_raw && !wait->then && !QI_IS_CHECKED)
        put_into_bin(lane, wait, record->size);
    qi_atomic_store_release_u64(&shard->waiting, ++shard->stats.waiting_count);
    if (list->last && qi_unlikely(list->last->value > wait->value))
        qi_wait_heap_put(&lane->heap, wait);
    else
        append(list, wait);
}

static qi_wait *take_out(qi_lane *lane, qi_wait *wait)
{
    qi_shard *shard = lane->shard;
    take_from_bin(lane, wait);
    shard->stats.waiting_bytes -= qi_lane_held_by(qi_memory_slot(shard->memory, wait->slot));
    qi_atomic_store_release_u64(&shard->waiting, --shard->stats.waiting_count);
    if (qi_unlikely(wait->order != 0))
        return qi_wait_heap_take(&lane->heap, wait);
    unlink(wait->value ? &lane->marked : &lane->fresh, wait);
    return wait;
}

qi_wait *qi_lane_take_passed(qi_lane *lane, uint64_t passed)
{
    qi_wait *wait = lane->marked.first, *late = lane->heap.first;
    if (late && (!wait || late->value < wait->value))
        wait = late;
    if (wait && wait->value <= passed)
        return take_out(lane, wait);
    wait = lane->fresh.first;
    return wait && passed == QI_ALL_PASSED ? take_out(lane, wait) : NULL;
}

uint64_t qi_lane_highest(const qi_lane *lane)
{
    uint64_t late = qi_wait_heap_highest(&lane->heap);
    uint64_t last = lane->marked.last ? lane->marked.last->value : 0;
    return late > last ? late : last;
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
    uint32_t bin = qi_lane_bin_of(fitting->size);
    qi_wait *best = best_of_bin(lane, bin, fitting);
    for (uint32_t above = 1; !best && above <= 2 && bin + above < QI_LANE_BINS; above++)
        best = best_of_bin(lane, bin + above, fitting); /* an eighth more lies two bins above */
    return best ? take_out(lane, best) : NULL;
}

qi_wait *qi_lane_take_fitting_on(qi_shard *shard, const quire_stream *stream,
                                 const qi_fitting *fitting)
{
    qi_lane *lane = qi_lane_find(shard, stream);
    return lane ? qi_lane_take_fitting(lane, fitting) : NULL;
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

void qi_lanes_leave_streams(const qi_shard *shard)
{
    for (const qi_lane *lane = shard->lanes; lane; lane = lane->next_of_shard)
        remove_from_stream(lane);
}

void qi_lane_release(qi_lane *lane)
{
    qi_shard *shard = lane->shard;
    qi_lane **link = &shard->lanes;
    while (*link != lane)
        link = &(*link)->next_of_shard;
    *link = lane->next_of_shard;
    remove_from_table(shard, lane);
    remove_from_stream(lane);
    qi_host_release(&shard->memory->host, lane, 1, sizeof *lane);
}

void qi_lanes_finish(qi_shard *shard)
{
    while (shard->lanes)
        qi_lane_release(shard->lanes);
    release_buckets(shard);
    qi_table_finish(&shard->waits, &shard->memory->host);
}
