/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * peaks.c - the peaks of several shards in every interleaving: what the memory reports is the
 * maximum of the sum over an order of the calls in which a call that returned before another began
 * comes first. Statistics that are read meanwhile fit into the same order.
 *
 * One value is counted, the requested bytes. The calls are those of an allocation, a free and a
 * reading of statistics, as page/range.h and allocate/shard_growth.c make them: locks,
 * counting, and the settlement before an allocating call returns.
 */
#include "src/core/state/memory.h"

#include "tests/model/model.h"
#include "tests/support/plain.h"

enum { SHARDS = 2, MAX_CALLS = 8 };

#ifdef QUIRE_CHECKED
/* The checked builds' own part of a range, which these slots do not have. */
uint64_t qi_checked_behind(const qi_slot *record)
{
    (void)record;
    return 0;
}
#endif

/* A call: when it began and returned, and what it did. */
typedef struct call {
    uint64_t began, returned;
    int64_t change; /* of the sum */
    bool reads;
    uint64_t read; /* the peak */
} call;

static quire_memory memory;
static qi_shard shards[SHARDS];
static uint32_t locks[SHARDS];
static uint64_t passed[SHARDS]; /* what a holder of the lock knows passes to the next through it */
static uint64_t time_now;
static uint64_t first_sum, first_peak;
static call calls[MAX_CALLS];
static uint32_t call_count;
static bool forgets; /* a fault: rises beyond the claims are not settled */

/* ---- calls -------------------------------------------------------------------------------- */

static uint64_t next_time(void)
{
    return model_add(&time_now, sizeof time_now, 1, MODEL_RELAXED);
}

static call *begin_call(int64_t change)
{
    call *c = &calls[call_count++];
    *c = (call){.change = change};
    c->began = next_time();
    c->returned = UINT64_MAX;
    return c;
}

static void acquire(uint32_t at)
{
    model_acquire(&locks[at]);
    model_swap(&passed[at], sizeof passed[at], 1, MODEL_ACQUIRE);
}

static void release(uint32_t at)
{
    model_store(&passed[at], sizeof passed[at], 0, MODEL_RELEASE);
    model_release(&locks[at]);
}

static void acquire_all(void)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        acquire(i);
}

static void release_all(void)
{
    for (uint32_t i = SHARDS; i-- > 0;)
        release(i);
}

/* As qi_memory_catch_up. */
static void settle_if_due(void)
{
    if (forgets || !qi_atomic_load_u32(&memory.has_left_work))
        return;
    acquire_all();
    qi_atomic_store_release_u32(&memory.has_left_work, 0);
    qi_peaks_settle(&memory);
    release_all();
}

static void change(uint32_t at, int64_t by)
{
    qi_shard *shard = &shards[at];
    call *c = begin_call(by);
    acquire(at);
    shard->stats.requested_bytes += (uint64_t)by;
    if (by > 0) {
        qi_shard_count_allocation(shard, 1);
        qi_peaks_count_renewal(shard, (uint64_t)by, 0);
    } else {
        qi_peaks_count_renewal(shard, 0, (uint64_t)-by);
    }
    release(at);
    if (by > 0)
        settle_if_due();
    c->returned = next_time();
}

static void read_peak(void)
{
    quire_memory_stats stats;
    call *c = begin_call(0);
    acquire_all();
    qi_peaks_read(&memory, &stats);
    c->reads = true;
    c->read = stats.peak_requested_bytes;
    release_all();
    c->returned = next_time();
}

/* ---- judging ------------------------------------------------------------------------------ */

/* Whether a call may come next: none of the others returned before it began. */
static bool may_come(uint32_t at, uint32_t placed)
{
    for (uint32_t i = 0; i < call_count; i++)
        if (!(placed >> i & 1) && calls[i].returned < calls[at].began)
            return false;
    return !(placed >> at & 1);
}

/* Whether an order of the calls that are not placed yet leads to the reported peaks. */
static bool fits(uint32_t placed, uint64_t sum, uint64_t peak, uint64_t reported)
{
    if (placed == (1u << call_count) - 1)
        return peak == reported;
    for (uint32_t i = 0; i < call_count; i++) {
        if (!may_come(i, placed) || (calls[i].reads && calls[i].read != peak))
            continue;
        uint64_t next = sum + (uint64_t)calls[i].change;
        if (fits(placed | 1u << i, next, next > peak ? next : peak, reported))
            return true;
    }
    return false;
}

static void judge(void)
{
    quire_memory_stats stats;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SHARDS; i++)
        sum += shards[i].stats.requested_bytes;
    MODEL_CHECK(qi_peaks_agree(&memory));
    qi_peaks_read(&memory, &stats);
    MODEL_CHECK(stats.peak_requested_bytes >= sum);
    if (!fits(0, first_sum, first_peak, stats.peak_requested_bytes))
        model_violated("no order of the calls has this peak");
}

/* ---- beginnings --------------------------------------------------------------------------- */

static void begin_with(qi_peak_mode mode, uint64_t first, uint64_t second, uint64_t peak)
{
    const uint64_t values[SHARDS] = {first, second};
    memset(&memory, 0, sizeof memory);
    memset(shards, 0, sizeof shards);
    time_now = call_count = 0;
    forgets = false;
    memory.shard_count = SHARDS;
    first_sum = first + second;
    first_peak = peak;
    memory.peaks.retry_after = 256;
    memory.peaks.peak[QI_PEAK_REQUESTED] = peak;
    memory.peaks.claimed[QI_PEAK_REQUESTED] = first_sum;
    for (uint32_t i = 0; i < SHARDS; i++) {
        locks[i] = 0;
        passed[i] = 0;
        shards[i].memory = &memory;
        shards[i].stats.requested_bytes = values[i];
        shards[i].peaks = (qi_shard_peaks){.mode = (uint8_t)mode, .rises_left = 2};
        memory.shards[i] = &shards[i];
    }
}

static void begin_exact(void)
{
    begin_with(QI_PEAKS_EXACT, 5, 5, 10);
}

static void begin_divided(void)
{
    begin_with(QI_PEAKS_DIVIDED, 5, 5, 10);
}

static void begin_with_room(void)
{
    begin_with(QI_PEAKS_DIVIDED, 5, 5, 12);
}

static void begin_forgetting(void)
{
    begin_divided();
    forgets = true;
}

/* ---- threads ------------------------------------------------------------------------------ */

static void rise_and_fall_in_first(void)
{
    change(0, 2);
    change(0, -2);
}

static void rise_and_fall_in_second(void)
{
    change(1, 3);
    change(1, -3);
}

static void fall_and_rise_in_second(void)
{
    change(1, -3);
    change(1, 4);
}

static void rise_here_fall_there(void)
{
    change(0, 2);
    change(1, -4);
}

static void rise_twice(void)
{
    change(1, 1);
    change(1, 1);
}

static void read_once(void)
{
    read_peak();
}

#define SCENARIOS(identifier, text, begins)                                                        \
    static const model_scenario identifier##_pairs = {                                             \
        .name = "two that rise and fall, " text,                                                   \
        .begin = begins,                                                                           \
        .threads = {rise_and_fall_in_first, rise_and_fall_in_second},                              \
        .judge = judge,                                                                            \
        .preemptions = 3};                                                                         \
    static const model_scenario identifier##_crossed = {                                           \
        .name = "one that rises and falls elsewhere, one that falls and rises, " text,             \
        .begin = begins,                                                                           \
        .threads = {rise_here_fall_there, fall_and_rise_in_second},                                \
        .judge = judge,                                                                            \
        .preemptions = 3};                                                                         \
    static const model_scenario identifier##_three = {                                             \
        .name = "two that rise and fall, one that rises twice, " text,                             \
        .begin = begins,                                                                           \
        .threads = {rise_and_fall_in_first, fall_and_rise_in_second, rise_twice},                  \
        .judge = judge,                                                                            \
        .preemptions = 2};                                                                         \
    static const model_scenario identifier##_read = {                                              \
        .name = "two that rise and fall, one that reads, " text,                                   \
        .begin = begins,                                                                           \
        .threads = {rise_and_fall_in_first, fall_and_rise_in_second, read_once},                   \
        .judge = judge,                                                                            \
        .preemptions = 2}
SCENARIOS(exact, "counted exactly", begin_exact);
SCENARIOS(divided, "without room", begin_divided);
SCENARIOS(room, "with room for one", begin_with_room);

static const model_scenario forgetting = {
    .name = "rises that are not settled",
    .begin = begin_forgetting,
    .threads = {rise_and_fall_in_first, rise_and_fall_in_second},
    .judge = judge,
    .preemptions = 2};

static void counted_exactly(void)
{
    model_holds(&exact_pairs);
    model_holds(&exact_crossed);
    model_holds(&exact_three);
    model_holds(&exact_read);
}

static void divided_without_room(void)
{
    model_holds(&divided_pairs);
    model_holds(&divided_crossed);
    model_holds(&divided_three);
    model_holds(&divided_read);
}

static void divided_with_room(void)
{
    model_holds(&room_pairs);
    model_holds(&room_crossed);
    model_holds(&room_three);
    model_holds(&room_read);
}

static void a_missing_settlement_is_found(void)
{
    model_finds(&forgetting, MODEL_NO_FAULT, "no order of the calls");
}

static void a_torn_sum_is_found(void)
{
    model_finds(&exact_pairs, MODEL_TORN_EXCHANGE, "no order of the calls");
}

int main(void)
{
    model_case("peaks are exact where every operation counts in the shared sums", counted_exactly);
    model_case("peaks are exact where the shards are at their claims", divided_without_room);
    model_case("peaks are exact where the shards compete for room", divided_with_room);
    model_case("the model finds a missing settlement", a_missing_settlement_is_found);
    model_case("the model finds a torn sum", a_torn_sum_is_found);
    return plain_end();
}
