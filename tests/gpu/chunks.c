/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chunks.c - what a range of addresses costs that consists of chunks, by the size of a chunk: the
 * figures from which the chunk size of a page is chosen. Asks a CUDA driver without quire.
 *
 *     chunks [LIBRARY [MIB]]
 *
 * A run reserves addresses and maps chunks of one size there, of MIB in total, which is 2048 unless
 * given. Each size has three runs: one that is not counted, because the first use of a size costs
 * more; one that sets access and unmaps chunk by chunk; and one that does so in one call each. The
 * figures of creating, mapping and releasing are those of the last. Each run reserves anew, so that
 * neither form of access finds tables that the other one left. There are runs for access by device
 * 0 alone, by one peer too, and by all peers too.
 *
 * Prints a line per size, without a buffer, and a table at the end. A refused call ends the runs of
 * its size, and the line says which call and why. Exits with 0 even then: a fact is no failure.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/clock.h"
#include "tests/support/check.h"
#include "tests/support/cuda_direct.h"
#include "tests/support/plain.h"

#define MIB ((size_t)1 << 20)
#define TOUCHED (2 * MIB)
#define USUAL_TOTAL (2048 * MIB)
#define MAX_MIB 1048576
#define MAX_DEVICES 64

static const size_t SIZES[] = {2 * MIB, 8 * MIB, 32 * MIB, 64 * MIB, 512 * MIB};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

/* What is measured. EACH is a call per chunk, RUN one call for all chunks of the run. */
typedef enum step {
    CREATE,
    MAP,
    ACCESS_EACH,
    ACCESS_RUN,
    UNMAP_EACH,
    UNMAP_RUN,
    RELEASE,
    STEP_COUNT
} step;

/* Those that have access. Device 0, which has the chunks, comes first. */
typedef struct audience {
    const char *name;
    qi_cu_access_desc access[MAX_DEVICES];
    size_t count;
} audience;

/* us: of all chunks together */
typedef struct cost {
    const audience *audience;
    size_t size, count;
    double us[STEP_COUNT];
} cost;

typedef struct run {
    cost *cost;
    bool is_at_once; /* access is set, and the chunks are unmapped, in one call each */
    size_t created, mapped;
    qi_cu_ptr at;
    qi_cu_handle *handles; /* of as many chunks as the run has */
} run;

static cost costs[3 * SIZE_COUNT];
static size_t cost_count;

/* ---- the calls of a run ---------------------------------------------------------------------- */

static qi_cu_ptr address_of(const run *r, size_t chunk)
{
    return r->at + chunk * r->cost->size;
}

static size_t bytes_of(const run *r)
{
    return r->cost->size * r->cost->count;
}

/* Says which call ended the run; of all chunks if the chunk is the number of all. Returns true if
   the call succeeded. */
static bool accept(const run *r, const char *call, size_t chunk, qi_cu_result code)
{
    const cost *c = r->cost;
    char of[64] = "all chunks";
    if (chunk < c->count)
        snprintf(of, sizeof of, "chunk %zu of %zu", chunk + 1, c->count);
    if (code)
        printf("chunks of %zu MiB, %s: no result: %s, %s: %u %s\n", c->size / MIB,
               c->audience->name, call, of, code, cuda_direct_name(code));
    return !code;
}

static bool create(run *r)
{
    const qi_cu_allocation_prop plain = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    double start = now_us();
    for (; r->created < r->cost->count; r->created++)
        if (!accept(r, "cuMemCreate", r->created,
                    cu.MemCreate(&r->handles[r->created], r->cost->size, &plain, 0)))
            return false;
    r->cost->us[CREATE] = now_us() - start;
    return true;
}

static bool map(run *r)
{
    double start = now_us();
    for (; r->mapped < r->cost->count; r->mapped++)
        if (!accept(
                r, "cuMemMap", r->mapped,
                cu.MemMap(address_of(r, r->mapped), r->cost->size, 0, r->handles[r->mapped], 0)))
            return false;
    r->cost->us[MAP] = now_us() - start;
    return true;
}

static bool access_each(const run *r)
{
    const audience *a = r->cost->audience;
    double start = now_us();
    for (size_t i = 0; i < r->cost->count; i++)
        if (!accept(r, "cuMemSetAccess", i,
                    cu.MemSetAccess(address_of(r, i), r->cost->size, a->access, a->count)))
            return false;
    r->cost->us[ACCESS_EACH] = now_us() - start;
    return true;
}

static bool access_run(const run *r)
{
    const audience *a = r->cost->audience;
    double start = now_us();
    qi_cu_result code = cu.MemSetAccess(r->at, bytes_of(r), a->access, a->count);
    r->cost->us[ACCESS_RUN] = now_us() - start;
    return accept(r, "cuMemSetAccess", r->cost->count, code);
}

/* Writes to the end of the last chunk, to which the device must have access by now. */
static bool touch(const run *r)
{
    qi_cu_result code = cu.MemsetD8(r->at + bytes_of(r) - TOUCHED, 1, TOUCHED);
    if (!code)
        code = cu.CtxSynchronize();
    return accept(r, "cuMemsetD8", r->cost->count - 1, code);
}

/* The last chunk first, so that the rest is known if a call is refused. */
static bool unmap_each(run *r)
{
    double start = now_us();
    for (; r->mapped; r->mapped--)
        if (!accept(r, "cuMemUnmap", r->mapped - 1,
                    cu.MemUnmap(address_of(r, r->mapped - 1), r->cost->size)))
            return false;
    r->cost->us[UNMAP_EACH] = now_us() - start;
    return true;
}

/* The documentation promises it for a single mapping only. */
static bool unmap_run(run *r)
{
    double start = now_us();
    qi_cu_result code = cu.MemUnmap(r->at, bytes_of(r));
    r->cost->us[UNMAP_RUN] = now_us() - start;
    if (!code)
        r->mapped = 0;
    return accept(r, "cuMemUnmap", r->cost->count, code);
}

static bool release(run *r)
{
    double start = now_us();
    for (; r->created; r->created--)
        if (!accept(r, "cuMemRelease", r->created - 1, cu.MemRelease(r->handles[r->created - 1])))
            return false;
    r->cost->us[RELEASE] = now_us() - start;
    return true;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool fill_and_empty(run *r)
{
    return create(r) && map(r) && (r->is_at_once ? access_run(r) : access_each(r)) && touch(r) &&
           (r->is_at_once ? unmap_run(r) : unmap_each(r)) && release(r);
}

/* Gives back what a refused call left. A call that is refused here ends the program. */
static void clear(run *r)
{
    for (; r->mapped; r->mapped--)
        MUST(cu.MemUnmap(address_of(r, r->mapped - 1), r->cost->size));
    for (; r->created; r->created--)
        MUST(cu.MemRelease(r->handles[r->created - 1]));
    MUST(cu.MemAddressFree(r->at, bytes_of(r)));
}

/* Returns false if a call was refused. */
static bool make_run(cost *c, bool is_at_once)
{
    run r = {.cost = c, .is_at_once = is_at_once};
    if (!accept(&r, "cuMemAddressReserve", c->count,
                cu.MemAddressReserve(&r.at, bytes_of(&r), 0, 0, 0)))
        return false;
    r.handles = calloc(c->count, sizeof *r.handles);
    CHECK(r.handles);
    bool is_done = fill_and_empty(&r);
    clear(&r);
    free(r.handles);
    return is_done;
}

static void print_line(const cost *c)
{
    const double *us = c->us, n = (double)c->count;
    printf("chunks of %zu MiB, %s, mean of %zu, us: create %.1f map %.1f access %.1f unmap %.1f "
           "release %.1f, of all at once: access %.1f unmap %.1f\n",
           c->size / MIB, c->audience->name, c->count, us[CREATE] / n, us[MAP] / n,
           us[ACCESS_EACH] / n, us[UNMAP_EACH] / n, us[RELEASE] / n, us[ACCESS_RUN], us[UNMAP_RUN]);
}

static void measure(const audience *a, size_t size, size_t total)
{
    cost *c = &costs[cost_count];
    *c = (cost){.audience = a, .size = size, .count = total / size};
    if (!make_run(c, false) || !make_run(c, false) || !make_run(c, true))
        return;
    cost_count++;
    print_line(c);
}

static void measure_all(const audience *a, size_t total)
{
    for (int i = 0; i < SIZE_COUNT; i++)
        measure(a, SIZES[i], total);
}

/* A row has the microseconds of a GiB, so that sizes can be compared. */
static void print_table(void)
{
    if (cost_count)
        printf("\nus of a GiB; each: a call per chunk, run: one call for all chunks\n%-26s"
               "%5s %9s %9s %9s %9s %9s %9s %9s\n",
               "access", "MiB", "create", "map", "acc. each", "acc. run", "unm. each", "unm. run",
               "release");
    for (size_t i = 0; i < cost_count; i++) {
        const cost *c = &costs[i];
        double gib = (double)(c->size * c->count) / (double)(1024 * MIB);
        printf("%-26s%5zu", c->audience->name, c->size / MIB);
        for (int s = 0; s < STEP_COUNT; s++)
            printf(" %9.1f", c->us[s] / gib);
        puts("");
    }
}

/* ---- who has access -------------------------------------------------------------------------- */

static void let_in(audience *a, int device)
{
    a->access[a->count++] = (qi_cu_access_desc){{QI_CU_MEM_LOCATION_TYPE_DEVICE, device},
                                                QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

/* Device 0 and at most that many peers that reach its memory */
static void invite(audience *a, int peers)
{
    int count = 0;
    MUST(cu.DeviceGetCount(&count));
    let_in(a, 0);
    for (int i = 1; i < count && peers && a->count < MAX_DEVICES; i++) {
        int can = 0;
        MUST(cu.DeviceCanAccessPeer(&can, i, 0));
        if (can)
            let_in(a, i), peers--;
    }
}

static void measure_audiences(size_t total)
{
    static audience alone = {.name = "device 0 alone"}, one = {.name = "device 0 and one peer"},
                    all = {.name = "device 0 and all peers"};
    int count = 0;
    MUST(cu.DeviceGetCount(&count));
    invite(&alone, 0);
    invite(&one, 1);
    invite(&all, INT_MAX);
    printf("peers of device 0: %zu\n", all.count - 1);
    measure_all(&alone, total);
    const char *reason = count == 1       ? "one GPU"
                         : one.count == 1 ? "no other device reaches device 0"
                                          : NULL;
    if (reason)
        printf("chunks, %s: skipped: %s\n", one.name, reason);
    else
        measure_all(&one, total);
    if (!reason && all.count == 2)
        reason = "one device reaches device 0";
    if (reason)
        printf("chunks, %s: skipped: %s\n", all.name, reason);
    else
        measure_all(&all, total);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Why no run can be made; NULL if runs can. Half of the free memory is left to others, because a
   device that shares its memory with the processor may need it. */
static const char *why_not(size_t total)
{
    static char reason[100];
    int has_addresses = 0;
    size_t free = 0, all = 0;
    qi_cu_result code = cu.DeviceGetAttribute(
        &has_addresses, QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 0);
    if (code || !has_addresses)
        return "the device has no virtual memory management";
    MUST(cu.MemGetInfo(&free, &all));
    if (total <= free / 2)
        return NULL;
    snprintf(reason, sizeof reason, "%zu MiB are free, and a run takes half of them at most",
             free / MIB);
    return reason;
}

/* Bytes of a run. Every size has to divide them. 0: the word is invalid. */
static size_t total_of(const char *word)
{
    char *end;
    unsigned long mib = strtoul(word, &end, 10);
    bool is_valid = end != word && !*end && mib && !(mib % 512) && mib <= MAX_MIB;
    return is_valid ? mib * MIB : 0;
}

int main(int argc, char **argv)
{
    size_t total = argc > 2 ? total_of(argv[2]) : USUAL_TOTAL;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!total || argc > 3) {
        fputs("usage: chunks [LIBRARY [MIB]]; MIB is a multiple of 512, at most 1048576\n", stderr);
        return 2;
    }
    plain_begin("chunks");
    cuda_direct_open(argc > 1 ? argv[1] : "libcuda.so.1");
    printf("== chunks, %zu MiB in a run\n", total / MIB);
    const char *reason = why_not(total);
    if (reason)
        printf("chunks: skipped: %s\n", reason);
    else
        measure_audiences(total);
    print_table();
    MUST(cu.DevicePrimaryCtxRelease(0));
    return 0;
}
