/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * peaks.c - in mode DIVIDED a rise uses the unused part of its shard and reaches the shared words
 * only beyond it. A settlement takes all unused parts back, chooses the mode, and divides the room
 * below the peak again (see peaks.h).
 */
#include "src/core/state/peaks.h"

#include "src/base/bits.h"
#include "src/core/state/memory.h"

/*
 * A settlement takes 14 ns for each shard if the locks are free and in the cache, and a multiple of
 * it beside other threads. Dividing pays if a shard makes this many allocations in between, of some
 * 50 ns each.
 */
enum { PAYS_FROM = 64 };

/* Allocations of a shard in mode EXACT before DIVIDED is tried again: doubles while it fails. */
enum { MIN_PAUSE = 256, MAX_PAUSE = 8192 };

/* With room for this many allocations of each shard, shards claim more than they need. */
enum { MUCH_ROOM = 256 };

/* ---- one shard ---------------------------------------------------------------------------- */

/* Every allocating call reads the cache line of has_left_work: written only if that changes it. */
static void leave_work(quire_memory *memory)
{
    if (!qi_atomic_load_u32(&memory->has_left_work))
        qi_atomic_store_release_u32(&memory->has_left_work, 1);
}

/*
 * Claims what the shard lacks for a rise, and more if there is room below the peak. Without room it
 * claims the rise anyway: the sum may be a new peak.
 */
static void claim(qi_shard *shard, uint32_t which, uint64_t lack)
{
    quire_memory *memory = shard->memory;
    qi_atomic_u64 *claimed = &memory->peaks.claimed[which];
    uint64_t seen = qi_atomic_load_u64(claimed), extra;
    shard->peaks.unused[which] = 0;
    do {
        uint64_t peak = qi_atomic_load_u64(&memory->peaks.peak[which]);
        uint64_t room = peak > seen ? peak - seen : 0;
        if (room < lack) {
            qi_atomic_add_u64(claimed, lack);
            leave_work(memory);
            return;
        }
        extra = room - lack;
        if (extra > shard->peaks.extra[which])
            extra = shard->peaks.extra[which];
    } while (!qi_atomic_exchange_if_u64(claimed, &seen, seen + lack + extra));
    shard->peaks.unused[which] = extra;
}

/* What a call adds to the sums, or subtracts. */
typedef struct amounts {
    uint64_t of[QI_PEAKS];
} amounts;

/* Without a unused part that is large enough, or in mode EXACT. */
static void rise_in_memory(qi_shard *shard, amounts by)
{
    qi_peaks *peaks = &shard->memory->peaks;
    qi_shard_peaks *own = &shard->peaks;
    bool is_exact = own->mode == QI_PEAKS_EXACT;
    for (uint32_t i = 0; i < QI_PEAKS; i++)
        if (is_exact && by.of[i])
            qi_atomic_add_u64(&peaks->claimed[i], by.of[i]);
        else if (own->unused[i] >= by.of[i])
            own->unused[i] -= by.of[i];
        else
            claim(shard, i, by.of[i] - own->unused[i]);
    if (is_exact && !--own->rises_left) {
        own->rises_left = peaks->retry_after;
        leave_work(shard->memory);
    }
}

static void rise(qi_shard *shard, amounts by)
{
    uint64_t *unused = shard->peaks.unused; /* 0 in mode EXACT */
    if (shard->peaks.mode == QI_PEAKS_DIVIDED && unused[QI_PEAK_LIVE] >= by.of[QI_PEAK_LIVE] &&
        unused[QI_PEAK_REQUESTED] >= by.of[QI_PEAK_REQUESTED] &&
        unused[QI_PEAK_COUNT] >= by.of[QI_PEAK_COUNT]) {
        for (uint32_t i = 0; i < QI_PEAKS; i++)
            unused[i] -= by.of[i];
        return;
    }
    rise_in_memory(shard, by);
}

/* In mode EXACT. The sum before the fall, which no other thread sees again, may be a peak. */
static void fall_in_memory(const qi_shard *shard, amounts by)
{
    qi_peaks *peaks = &shard->memory->peaks;
    for (uint32_t i = 0; i < QI_PEAKS; i++) {
        if (!by.of[i])
            continue;
        uint64_t before = qi_atomic_sub_u64(&peaks->claimed[i], by.of[i]);
        if (!shard->peaks.is_undoing)
            qi_atomic_raise_u64(&peaks->peak[i], before);
    }
}

static void fall(qi_shard *shard, amounts by)
{
    if (shard->peaks.mode == QI_PEAKS_EXACT) {
        fall_in_memory(shard, by);
        return;
    }
    for (uint32_t i = 0; i < QI_PEAKS; i++)
        shard->peaks.unused[i] += by.of[i];
}

void qi_peaks_count_in(qi_shard *shard, const qi_slot *record)
{
    rise(shard, (amounts){{record->size + record->left_padding, record->requested, 1}});
}

void qi_peaks_count_out(qi_shard *shard, const qi_slot *record)
{
    uint64_t held = record->size + record->left_padding + qi_checked_behind(record);
    fall(shard, (amounts){{held, record->requested, 1}});
}

void qi_peaks_count_renewal(qi_shard *shard, uint64_t requested, uint64_t freed)
{
    if (requested > freed)
        rise(shard, (amounts){{0, requested - freed, 0}});
    else
        fall(shard, (amounts){{0, freed - requested, 0}});
}

/* ---- all shards --------------------------------------------------------------------------- */

/* The current values of a shard. */
static amounts values_of(const qi_shard *shard)
{
    const quire_memory_stats *stats = &shard->stats;
    return (amounts){{stats->live_bytes, stats->requested_bytes, stats->allocation_count}};
}

static amounts sum_of(const quire_memory *memory)
{
    amounts sum = {{0}};
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        const amounts one = values_of(memory->shards[i]);
        for (uint32_t k = 0; k < QI_PEAKS; k++)
            sum.of[k] += one.of[k];
    }
    return sum;
}

static uint64_t count_allocations(const quire_memory *memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        count += qi_atomic_load_u64(&memory->shards[i]->allocations);
    return count;
}

/* Takes the unused parts of all shards back, and raises the peaks to the exact sums. */
static void collect(quire_memory *memory)
{
    const amounts sum = sum_of(memory);
    for (uint32_t k = 0; k < QI_PEAKS; k++) {
        qi_atomic_raise_u64(&memory->peaks.peak[k], sum.of[k]);
        qi_atomic_store_release_u64(&memory->peaks.claimed[k], sum.of[k]);
    }
}

/*
 * What a shard claims beyond its need in mode DIVIDED: nothing if the room below the peak is small,
 * so that no shard keeps what another needs, and otherwise a part of which all shards together use
 * up a sixteenth of the room. `count` is the number of allocations that the sum is of.
 */
static uint64_t more_of(uint64_t room, uint64_t sum, uint64_t count, uint32_t shards)
{
    uint64_t each = count ? sum / count + 1 : 1;
    return room / each >= (uint64_t)MUCH_ROOM * shards ? room / (16 * shards) : 0;
}

/* Starts a mode in all shards, which have no unused parts. */
static void begin(quire_memory *memory, qi_peak_mode mode)
{
    uint32_t count = qi_shard_count(memory);
    uint64_t more[QI_PEAKS];
    uint64_t allocations = qi_atomic_load_u64(&memory->peaks.claimed[QI_PEAK_COUNT]);
    for (uint32_t k = 0; k < QI_PEAKS; k++) {
        uint64_t sum = qi_atomic_load_u64(&memory->peaks.claimed[k]);
        more[k] =
            more_of(qi_atomic_load_u64(&memory->peaks.peak[k]) - sum, sum, allocations, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        qi_shard_peaks *peaks = &memory->shards[i]->peaks;
        *peaks = (qi_shard_peaks){.mode = (uint8_t)mode, .rises_left = memory->peaks.retry_after};
        for (uint32_t k = 0; k < QI_PEAKS; k++)
            peaks->extra[k] = more[k];
    }
    memory->peaks.settled_at = count_allocations(memory);
}

/* Switches to EXACT if DIVIDED lasted for fewer than PAYS_FROM allocations of each shard; otherwise
   DIVIDED goes on, or is tried after a pause. */
void qi_peaks_settle(quire_memory *memory)
{
    qi_peaks *peaks = &memory->peaks;
    bool was_divided = memory->shards[0]->peaks.mode == QI_PEAKS_DIVIDED;
    uint64_t made = count_allocations(memory) - peaks->settled_at;
    bool has_paid = made >= (uint64_t)PAYS_FROM * qi_shard_count(memory);
    collect(memory);
    if (was_divided && has_paid)
        peaks->retry_after = MIN_PAUSE;
    else if (was_divided && peaks->retry_after < MAX_PAUSE)
        peaks->retry_after *= 2;
    begin(memory, was_divided && !has_paid ? QI_PEAKS_EXACT : QI_PEAKS_DIVIDED);
}

/* ---- statistics --------------------------------------------------------------------------- */

static bool is_alone(const quire_memory *memory)
{
    return memory->shards[0]->peaks.mode == QI_PEAKS_ALONE;
}

void qi_peaks_keep(quire_memory *memory)
{
    if (is_alone(memory)) {
        qi_shard_keep_peaks(&memory->shards[0]->stats);
        return;
    }
    const amounts sum = sum_of(memory);
    for (uint32_t k = 0; k < QI_PEAKS; k++)
        qi_atomic_raise_u64(&memory->peaks.peak[k], sum.of[k]);
}

void qi_peaks_read(quire_memory *memory, quire_memory_stats *out)
{
    if (is_alone(memory)) {
        /* a copy: the peaks of the shard are raised by its next fall */
        quire_memory_stats stats = memory->shards[0]->stats;
        qi_shard_keep_peaks(&stats);
        out->peak_live_bytes = stats.peak_live_bytes;
        out->peak_requested_bytes = stats.peak_requested_bytes;
        out->peak_allocation_count = stats.peak_allocation_count;
        return;
    }
    qi_peaks_keep(memory);
    qi_atomic_u64 *peak = memory->peaks.peak;
    out->peak_live_bytes = qi_atomic_load_u64(&peak[QI_PEAK_LIVE]);
    out->peak_requested_bytes = qi_atomic_load_u64(&peak[QI_PEAK_REQUESTED]);
    out->peak_allocation_count = qi_atomic_load_u64(&peak[QI_PEAK_COUNT]);
}

void qi_peaks_restart(quire_memory *memory)
{
    quire_memory_stats *stats = &memory->shards[0]->stats;
    if (is_alone(memory)) {
        stats->peak_live_bytes = stats->live_bytes;
        stats->peak_requested_bytes = stats->requested_bytes;
        stats->peak_allocation_count = stats->allocation_count;
        return;
    }
    for (uint32_t k = 0; k < QI_PEAKS; k++)
        qi_atomic_store_release_u64(&memory->peaks.peak[k], 0);
    collect(memory);
    begin(memory, QI_PEAKS_EXACT); /* no room is left below the peaks */
}

void qi_peaks_restore(quire_memory *memory, const quire_memory_stats *before)
{
    quire_memory_stats *stats = &memory->shards[0]->stats;
    const uint64_t peak[QI_PEAKS] = {before->peak_live_bytes, before->peak_requested_bytes,
                                     before->peak_allocation_count};
    if (is_alone(memory)) {
        qi_raise(&stats->peak_live_bytes, peak[QI_PEAK_LIVE]);
        qi_raise(&stats->peak_requested_bytes, peak[QI_PEAK_REQUESTED]);
        qi_raise(&stats->peak_allocation_count, peak[QI_PEAK_COUNT]);
        return;
    }
    for (uint32_t k = 0; k < QI_PEAKS; k++)
        qi_atomic_raise_u64(&memory->peaks.peak[k], peak[k]);
}

void qi_peaks_add_shards(quire_memory *memory, uint32_t old_count)
{
    if (old_count == 1) {
        const quire_memory_stats *stats = &memory->shards[0]->stats;
        const uint64_t peak[QI_PEAKS] = {stats->peak_live_bytes, stats->peak_requested_bytes,
                                         stats->peak_allocation_count};
        for (uint32_t k = 0; k < QI_PEAKS; k++)
            qi_atomic_store_release_u64(&memory->peaks.peak[k], peak[k]);
    }
    memory->peaks.retry_after = MIN_PAUSE;
    collect(memory);
    begin(memory, QI_PEAKS_EXACT);
}

bool qi_peaks_agree(const quire_memory *memory)
{
    if (is_alone(memory))
        return qi_shard_count(memory) == 1;
    amounts sum = sum_of(memory);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        for (uint32_t k = 0; k < QI_PEAKS; k++)
            sum.of[k] += memory->shards[i]->peaks.unused[k];
    bool agrees = true;
    for (uint32_t k = 0; k < QI_PEAKS; k++) {
        uint64_t claimed = qi_atomic_load_u64(&memory->peaks.claimed[k]);
        uint64_t peak = qi_atomic_load_u64(&memory->peaks.peak[k]);
        bool is_bounded = memory->shards[0]->peaks.mode == QI_PEAKS_EXACT ||
                          qi_atomic_load_u32(&memory->has_left_work) || claimed <= peak;
        agrees = agrees && claimed == sum.of[k] && is_bounded;
    }
    return agrees;
}
