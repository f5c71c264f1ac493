/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_find.c - finding allocations by address: quire_memory_find for the first byte and for a
 * byte inside, and the look-up in a hash table of the same addresses. Look-ups come in random order
 * among 100,000 live allocations. Each is timed alone, which gives percentiles, and all in a row.
 * The three take turns within each repeat, in one process.
 */
#include <inttypes.h>

#include "bench/address_table.h"
#include "bench/children.h"
#include "bench/memory.h"
#include "bench/ticks.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/result.h"

enum { LIVE = 100000, LOOKUPS = 200000, LEAST = 64, MOST = 8192, INSIDE = 40 };

enum { HASH_TABLE, FIRST_BYTE, BYTE_INSIDE, WAYS };

static const char *const NAMES[WAYS] = {"hash table", "first byte", "byte inside"};

typedef struct find_result {
    bool good;
    double median_ns, p99_ns, row_ns;
} find_result;

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct scene {
    quire_device *device;
    quire_memory *memory;
    address_table table;
    uint64_t addresses[LIVE];
    uint32_t order[LOOKUPS];
    uint64_t spent[LOOKUPS];
    uint64_t count; /* look-ups of each way */
    uint64_t sum;   /* of handles found; keeps the compiler from leaving out a look-up */
} scene;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool allocate(scene *s, uint64_t *random)
{
    for (uint32_t i = 0; i < LIVE; i++) {
        quire_allocation made;
        quire_allocation_info info;
        const quire_allocation_options options = {
            .size = LEAST + next_random(random) % (MOST - LEAST), .info = &info};
        if (quire_allocate(s->memory, &options, &made))
            return false;
        s->addresses[i] = info.address;
        address_table_put(&s->table, info.address, made.id);
    }
    for (uint64_t i = 0; i < s->count; i++)
        s->order[i] = (uint32_t)(next_random(random) % LIVE);
    return true;
}

static bool begin(scene *s, uint64_t rep)
{
    uint64_t random = rep + 1;
    s->table = address_table_make(LIVE);
    return !quire_host_open(NULL, &s->device) &&
           !quire_memory_create(s->device,
                                &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                        .shards = 1,
                                                        .find_by_address = true},
                                &s->memory) &&
           allocate(s, &random);
}

static void look_up(scene *s, int way, uint64_t address)
{
    quire_allocation found = {0};
    if (way == HASH_TABLE)
        found.id = address_table_find(&s->table, address);
    else
        qi_ignore(
            quire_memory_find(s->memory, address + (way == BYTE_INSIDE ? INSIDE : 0), &found));
    s->sum += found.id;
}

static uint64_t time_each(scene *s, int way)
{
    uint64_t before = s->sum;
    for (uint64_t i = 0; i < s->count; i++) {
        uint64_t since = ticks_now();
        look_up(s, way, s->addresses[s->order[i]]);
        s->spent[i] = ticks_spent(since);
    }
    return s->sum - before;
}

static double time_row(scene *s, int way)
{
    uint64_t since = ticks_now();
    for (uint64_t i = 0; i < s->count; i++)
        look_up(s, way, s->addresses[s->order[i]]);
    return (double)ticks_spent(since) * the_clock.ns / (double)s->count;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

typedef struct run {
    const memory_bench *bench;
    find_result *results; /* shared: [rep][way] */
} run;

static void measure_index(void *user, size_t rep)
{
    const run *r = user;
    static scene s;
    s.count = r->bench->max_pairs < LOOKUPS ? r->bench->max_pairs : LOOKUPS;
    if (!begin(&s, rep))
        return;
    uint64_t expected = time_each(&s, HASH_TABLE); /* warms up */
    for (size_t turn = 0; turn < WAYS; turn++) {
        int way = (int)((turn + rep) % WAYS);
        find_result *result = &r->results[rep * WAYS + (size_t)way];
        result->row_ns = time_row(&s, way);
        result->good = time_each(&s, way) == expected;
        qsort(s.spent, s.count, sizeof *s.spent, compare);
        result->median_ns = (double)s.spent[s.count / 2] * the_clock.ns;
        result->p99_ns = (double)s.spent[s.count * 99 / 100] * the_clock.ns;
    }
    quire_memory_destroy_all(&s.memory);
    quire_device_destroy(&s.device);
    address_table_end(&s.table);
}

/* ---- results ------------------------------------------------------------------------------ */

typedef struct find_row {
    size_t reps;
    spread median, p99, row;
} find_row;

static find_row row_of(const run *r, size_t way)
{
    find_row row = {.reps = 0};
    double median[MAX_REPS], p99[MAX_REPS], all[MAX_REPS];
    for (size_t rep = 0; rep < r->bench->reps; rep++) {
        const find_result *one = &r->results[rep * WAYS + way];
        if (!one->good)
            continue;
        median[row.reps] = one->median_ns;
        p99[row.reps] = one->p99_ns;
        all[row.reps++] = one->row_ns;
    }
    if (row.reps) {
        row.median = spread_of(median, row.reps);
        row.p99 = spread_of(p99, row.reps);
        row.row = spread_of(all, row.reps);
    }
    return row;
}

static void report(memory_bench *b, const run *r)
{
    printf("\nfind: ns to look up an address among %d allocations, least over the repeats\n", LIVE);
    printf("  %-28s %9s %9s %9s\n", "", "median", "99 %", "in a row");
    for (size_t way = 0; way < WAYS; way++) {
        find_row row = row_of(r, way);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "way", NAMES[way]);
        qi_json_number(&b->out.json, "reps", row.reps);
        if (row.reps) {
            printf("  %-28s %9.1f %9.1f %9.1f\n", NAMES[way], row.median.min, row.p99.min,
                   row.row.min);
            write_spread(&b->out.json, "median_ns", row.median);
            write_spread(&b->out.json, "p99_ns", row.p99);
            write_spread(&b->out.json, "row_ns", row.row);
        } else {
            printf("  %-28s failed\n", NAMES[way]);
        }
        qi_json_end_object(&b->out.json);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_find(memory_bench *b)
{
    qi_json_array(&b->out.json, "find");
    if (is_wanted(&b->wanted_families, "find")) {
        run r = {.bench = b, .results = shared_memory(WAYS * b->reps, sizeof *r.results)};
        in_children(b->reps, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.results, WAYS * b->reps, sizeof *r.results);
    }
    qi_json_end_array(&b->out.json);
}
