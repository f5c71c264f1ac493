/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * checked_model.c - random work on a checked memory of every kind and fit: contents stay, valid
 * frees succeed, exactly the free or the check that must find a stray write finds it, and no other
 * range is ever reported as corrupted.
 *
 *     checked_model [--steps N] [--seed N]
 */
#include <stdio.h>

#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/watched.h"

enum { MAX_HELD = 64, PAGE = 1 << 20 };

typedef struct held {
    quire_allocation allocation;
    quire_native native;
    uint64_t size;
    unsigned char first, last;
    bool has_front; /* guard bytes before it */
    bool is_spoiled;
} held;

static uint64_t steps, seed;
static watched w;
static test_random r;
static held all[MAX_HELD];
static uint32_t count;
static uint64_t found;

static uint64_t below(uint64_t limit)
{
    return random_below(&r, limit);
}

static void allocate(void)
{
    if (count == MAX_HELD)
        return;
    held *h = &all[count];
    h->size = below(20) ? 1 + below(3000) : 1 + below(400000);
    const quire_allocation_options options = {.size = h->size,
                                              .alignment = UINT64_C(1) << below(11),
                                              .offset_alignment = below(6) ? 0 : 1 + below(999),
                                              .dedicated = below(40) == 0,
                                              .zero = below(4) == 0};
    if (quire_allocate(w.memory, &options, &h->allocation))
        return; /* the linear fit's page is full */
    h->native = watched_native(&w, h->allocation);
    h->first = (unsigned char)below(256);
    h->last = h->size > 1 ? (unsigned char)below(256) : h->first;
    /* a power of two that divides the offset raises the alignment; a large one leaves no room */
    uint64_t power = options.offset_alignment & (0 - options.offset_alignment);
    h->has_front = options.alignment <= 256 && power <= 256;
    h->is_spoiled = false;
    CHECK_OK(quire_write(w.memory, h->allocation, h->size - 1, &h->last, 1));
    CHECK_OK(quire_write(w.memory, h->allocation, 0, &h->first, 1));
    count++;
}

static void spoil(held *h)
{
    bool in_front = h->has_front && below(2);
    watched_spoil(&w, &h->native,
                  in_front ? -1 - (int64_t)below(64) : (int64_t)(h->size + below(64)));
    h->is_spoiled = true;
    found++;
}

static void release(uint32_t number)
{
    held h = all[number];
    unsigned char first = 0, last = 0;
    CHECK_OK(quire_read(w.memory, h.allocation, 0, &first, 1));
    CHECK_OK(quire_read(w.memory, h.allocation, h.size - 1, &last, 1));
    CHECK_EQ(first, h.first);
    CHECK_EQ(last, h.last);
    CHECK_EQ(quire_free(w.memory, h.allocation),
             h.is_spoiled ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS);
    all[number] = all[--count];
}

/* Frees an allocation that is not dedicated, writes to it, and expects that the write is found. */
static void write_after_free(uint32_t number)
{
    held h = all[number];
    if (watched_info(&w, h.allocation).dedicated || h.is_spoiled)
        return;
    release(number);
    watched_spoil(&w, &h.native, (int64_t)(h.size < 100000 ? below(h.size) : below(1000)));
    found++;
    if (below(2))
        watched_settle(&w);
}

static bool is_any_spoiled(void)
{
    for (uint32_t i = 0; i < count; i++)
        if (all[i].is_spoiled)
            return true;
    return false;
}

static void check(bool is_corrupted)
{
    CHECK_EQ(quire_memory_check(w.memory),
             is_corrupted || is_any_spoiled() ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS);
    w.log[0] = '\0';
}

static void step(void)
{
    uint64_t what = below(100);
    uint32_t number = count ? (uint32_t)below(count) : 0;
    if (what < 50 || !count) {
        allocate();
    } else if (what < 90) {
        release(number);
    } else if (what < 93) {
        if (!all[number].is_spoiled)
            spoil(&all[number]);
    } else if (what < 95) {
        uint64_t before = found;
        write_after_free(number);
        check(found != before);
    } else if (what < 97) {
        check(false);
    } else if (what < 98) {
        watched_settle(&w);
    }
}

static void play(uint32_t kind, quire_fit fit, bool slabs)
{
    r = (test_random){.state = seed + kind * 10 + (uint64_t)fit};
    watched_prepare(&w);
    watched_open(&w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                             .fit = {.algorithm = fit, .slabs = slabs},
                                             .pages = {.page_size = PAGE}});
    for (uint64_t i = 0; i < steps; i++)
        step();
    while (count)
        release(count - 1);
    check(false);
    CHECK_OK(quire_memory_destroy(&w.memory));
    CHECK_STR(w.log, "");
    watched_end(&w);
}

static void every_fit(uint32_t kind)
{
    static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                     QUIRE_FIT_LINEAR};
    for (int i = 0; i < 4; i++)
        play(kind, FITS[i], false);
    play(kind, QUIRE_FIT_SEGREGATED, true);
}

static void device_kind(void)
{
    every_fit(KIND_DEVICE);
}

static void coherent_kind(void)
{
    every_fit(KIND_COHERENT);
}

static void cached_kind(void)
{
    every_fit(KIND_CACHED);
}

static void mapped_device_kind(void)
{
    every_fit(KIND_DEVICE_MAPPED);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 2000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --steps %" PRIu64 " --seed %" PRIu64 "\n", steps, seed);
    plain_case("device-local", device_kind);
    plain_case("host-visible and coherent", coherent_kind);
    plain_case("host-visible and not coherent", cached_kind);
    plain_case("device-local and host-visible", mapped_device_kind);
    printf("# stray writes found: %" PRIu64 "\n", found);
    return plain_end();
}
