/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_fuzz.c - input bytes become a space's options and calls on it, valid ones and misuse.
 *
 * A naive list of live ranges determines what each call must return: whether it may fail, with
 * which code, and that a range lies inside its region, aligned, on bytes without an owner, on no
 * stretch of the other kind. After a full search that finds nothing, every hole is checked.
 *
 * A target of libFuzzer (meson option fuzz) that aborts at the first contradiction; without it a
 * plain program that generates inputs from a seed.
 */
#include "tests/fuzz/space_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- calls -------------------------------------------------------------------------------- */

static bool is_valid(const quire_range_options *asked)
{
    uint64_t alignment = asked->alignment + !asked->alignment;
    return asked->size && !(alignment & (alignment - 1)) &&
           alignment <= options.fit.max_alignment && !asked->unused[0] &&
           (!asked->upper || options.fit.algorithm == QUIRE_FIT_LINEAR) &&
           (!asked->lowest || options.fit.algorithm == QUIRE_FIT_SEGREGATED ||
            options.fit.algorithm == QUIRE_FIT_FIRST);
}

/* Uses the shorter calls if they are sufficient. */
static quire_result allocate_by_any_call(const quire_range_options *asked, quire_placement *at)
{
    if (asked->optimal || asked->upper || asked->bounded || asked->lowest || asked->unused[0] ||
        asked->user % 2)
        return quire_space_allocate_with(space, asked, at);
    return quire_space_allocate(space, asked->size, asked->alignment, asked->user, at);
}

static void allocate(void)
{
    uint8_t how = byte();
    if (live_count == MAX_LIVE)
        return;
    quire_range_options asked = {.size = how & 1 ? some_size() : some_size() * options.fit.granule,
                                 .alignment = some_alignment(),
                                 .user = how & 2 ? any_number() : 0,
                                 .bounded = how & 4,
                                 .optimal = how & 8,
                                 .upper = how & 16 && options.fit.algorithm == QUIRE_FIT_LINEAR,
                                 .lowest = how & 32 && how & 64 &&
                                           options.fit.algorithm <= QUIRE_FIT_FIRST};
    if (how >= 248) {
        asked.size = any_number();
        asked.upper = how & 1;
        asked.lowest = how & 2;
        asked.unused[0] = how == 255;
    }
    quire_placement at;
    quire_result result = allocate_by_any_call(&asked, &at);
    if (!result) {
        CHECK(is_valid(&asked));
        accept(&at, &asked);
        return;
    }
    CHECK_EQ(at.range.id | at.size, 0);
    CHECK(is_valid(&asked) == (result != QUIRE_ERROR_INVALID_ARGUMENT));
    CHECK(result == QUIRE_ERROR_INVALID_ARGUMENT || result == QUIRE_ERROR_NO_SPACE ||
          result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(result != QUIRE_ERROR_NO_SPACE || !fits(&asked));
}

/* Mostly a live one; otherwise a freed one, none, or any number. */
static quire_range some_range(void)
{
    uint8_t b = byte();
    if (b < 224 && live_count)
        return live[b % live_count].at.range;
    return b < 250 ? old[b % MAX_OLD] : (quire_range){b < 252 ? 0 : any_number()};
}

static void release(void)
{
    quire_range range = some_range();
    CHECK(answers(quire_space_free(space, range), range.id));
    if (find(range.id) < live_count)
        forget(find(range.id));
}

static void release_batch(void)
{
    quire_range ranges[MAX_BATCH] = {{0}};
    uint32_t count = below(MAX_BATCH), alive = 0;
    for (uint32_t i = 0; i < count; i++) {
        ranges[i] = some_range();
        bool seen = false;
        for (uint32_t j = 0; j < i; j++)
            seen |= ranges[j].id == ranges[i].id;
        if (seen && input_left % 8) /* so that most batches succeed */
            i--, count--;
        else
            alive += !seen && find(ranges[i].id) < live_count;
    }
    quire_result result = quire_space_free_batch(space, ranges, count);
    CHECK((alive == count) == !result);
    for (uint32_t i = 0; !result && i < count; i++)
        forget(find(ranges[i].id));
}

static void look(void)
{
    quire_range range = some_range();
    uint32_t index = find(range.id);
    quire_placement at;
    CHECK(answers(quire_space_get(space, range, &at), range.id));
    if (index < live_count)
        CHECK(!memcmp(&at, &live[index].at, sizeof at));
    uint64_t user = any_number();
    quire_result result = quire_space_set_user(space, range, user);
    if (result == QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        return;
    CHECK(answers(result, range.id));
    if (index < live_count)
        live[index].at.user = user;
}

static void add_region(void)
{
    uint8_t how = byte();
    uint32_t number = 0, lowest = 0;
    uint64_t size = some_length() * options.fit.granule, base = byte() * options.fit.granule;
    if (how >= 240)
        size = any_number();
    if (how % 16 == 15)
        base = any_number();
    while (lowest < MAX_REGIONS && regions[lowest].used)
        lowest++;
    if (lowest == MAX_REGIONS)
        return;
    bool valid = size && !((size | base) & (options.fit.granule - 1)) && base + (size - 1) >= base;
    quire_result result = quire_space_add_region(space, size, base, &number);
    CHECK(valid == (result != QUIRE_ERROR_INVALID_ARGUMENT));
    if (result)
        return;
    CHECK_EQ(number, lowest);
    regions[number] = (region){.used = true, .base = base, .size = size};
}

static void remove_region(void)
{
    uint32_t number = byte() % (MAX_REGIONS + 1), owners = 0;
    for (uint32_t i = 0; i < live_count; i++)
        owners += live[i].at.region == number;
    bool used = number < MAX_REGIONS && regions[number].used;
    quire_result result = quire_space_remove_region(space, number);
    CHECK_EQ(result, !used    ? QUIRE_ERROR_INVALID_ARGUMENT
                     : owners ? QUIRE_ERROR_BUSY
                              : QUIRE_SUCCESS);
    if (!result)
        regions[number].used = false;
}

/* The addresses on the line are unknown here, so growth may fail. */
static void resize_region(void)
{
    uint8_t how = byte();
    uint32_t number = byte() % (MAX_REGIONS + 1);
    uint64_t size = how >= 240 ? any_number() : some_length() * options.fit.granule, end = 0;
    bool used = number < MAX_REGIONS && regions[number].used;
    for (uint32_t i = 0; i < live_count; i++)
        if (live[i].at.region == number && end_of(&live[i].at) > end)
            end = end_of(&live[i].at);
    if (used && how % 4 == 0)
        size = end; /* the minimum, or 0 */
    uint64_t last = used ? regions[number].base + (size - 1) : 0;
    bool valid =
        used && size && !(size & (options.fit.granule - 1)) && last >= regions[number].base;
    bool supported =
        options.fit.algorithm == QUIRE_FIT_SEGREGATED || options.fit.algorithm == QUIRE_FIT_FIRST;
    quire_result result = quire_space_resize_region(space, number, size);
    CHECK(valid == (result != QUIRE_ERROR_INVALID_ARGUMENT));
    CHECK(!valid || supported == (result != QUIRE_ERROR_UNSUPPORTED));
    if (!valid || !supported)
        return;
    CHECK(size >= end || result == QUIRE_ERROR_BUSY);
    if (size <= regions[number].size) /* some slots of a slab may be live */
        CHECK(!result || size < end || (result == QUIRE_ERROR_BUSY && options.fit.slabs));
    else
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_RANGE ||
              result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    if (!result)
        regions[number].size = size;
}

static void clear(void)
{
    CHECK_OK(quire_space_clear(space));
    while (live_count)
        forget(live_count - 1);
}

static void misuse(void)
{
    quire_placement at;
    CHECK(quire_space_allocate(NULL, 1, 1, 0, &at) && !at.range.id);
    CHECK(quire_space_allocate(space, 1, 1, 0, NULL) && quire_space_clear(NULL));
    CHECK(quire_space_allocate_with(space, NULL, &at) && !at.range.id);
    CHECK(quire_space_add_region(space, options.fit.granule, 0, NULL));
    CHECK(quire_space_remove_region(space, UINT32_MAX) && quire_space_check(NULL));
    CHECK(quire_space_resize_region(NULL, 0, options.fit.granule));
    CHECK(quire_space_free(NULL, (quire_range){1}) && quire_space_free(space, (quire_range){0}));
    CHECK(quire_space_free_batch(space, NULL, 1) && !quire_space_free_batch(space, NULL, 0));
    CHECK(quire_space_get(space, some_range(), NULL) && quire_space_get_stats(space, NULL));
    CHECK(quire_space_walk(space, NULL, NULL));
    quire_space_trim(NULL);
}

static void call_rare(void)
{
    static void (*const calls[])(void) = {add_region, remove_region, compare, misuse,
                                          resize_region};
    uint32_t which = below(16);
    if (which == 15)
        clear();
    else if (which == 14)
        quire_space_trim(space);
    else if (which == 13)
        host_fails_in = 1 + below(4);
    else
        calls[which % 5]();
}

/* ---- one input ---------------------------------------------------------------------------- */

/* Returns true with a space that has at most one region, of any size. */
static bool create(void)
{
    static const quire_host_memory host = {.allocate = host_allocate, .release = host_release};
    uint8_t fit = byte(), flags = byte(), sizes = byte();
    options =
        (quire_space_options){.fit.algorithm = fit < 250 ? fit % 4 : fit, .host_memory = &host};
    few_sizes = flags & 128;
    bool can_choose = options.fit.algorithm == QUIRE_FIT_SEGREGATED || flags >= 250;
    options.fit.least_fragmentation = can_choose && flags & 1;
    options.fit.slabs = can_choose && flags & 4;
    options.buffer_image_granularity = flags & 8 ? UINT64_C(1) << sizes % 16 : 0;
    if (options.fit.algorithm == QUIRE_FIT_SEGREGATED || options.fit.algorithm == QUIRE_FIT_BUDDY)
        options.fit.granule = flags & 16 ? UINT64_C(1) << sizes / 16 : 0;
    options.fit.max_alignment = flags & 32 ? some_alignment() : 0;
    options.size = flags & 64 ? 0
                              : (some_length() + few_sizes * 1024) *
                                    (options.fit.granule ? options.fit.granule : 256);
    if (sizes == 255)
        options.fit.granule = any_number();
    options.unused[3] = sizes == 254;
    quire_result result = quire_space_create(&options, &space);
    CHECK(!result == (space != NULL));
    if (result)
        return false;
    if (options.fit.algorithm == QUIRE_FIT_SEGREGATED && flags & 2)
        defer_frees(space, 8);
    if (options.size)
        regions[0] = (region){.used = true, .size = options.size};
    return true;
}

/* The resolved defaults. */
static void resolve(void)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    options.fit.granule = stats.granule;
    if (!options.fit.max_alignment)
        options.fit.max_alignment = UINT64_C(2) << 20;
    if (options.fit.max_alignment < options.buffer_image_granularity)
        options.fit.max_alignment = options.buffer_image_granularity;
    if (options.buffer_image_granularity == 1)
        options.buffer_image_granularity = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const calls[])(void) = {allocate, allocate, allocate, allocate,      release,
                                          release,  release,  look,     release_batch, call_rare};
    input = data;
    input_left = size;
    live_count = host_fails_in = 0;
    memset(regions, 0, sizeof regions);
    memset(old, 0, sizeof old);
    if (create()) {
        resolve();
        while (input_left)
            calls[below(sizeof calls / sizeof *calls)]();
        compare();
        quire_space_destroy(&space);
    }
    CHECK_EQ(host_blocks, 0);
    return 0;
}
