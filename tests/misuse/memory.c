/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - every wrong use of quire/memory.h, preset.h, allocation.h and elastic.h: the
 * documented code, a sentence, zeroed outputs, nothing changed.
 */
#include <stdio.h>

#include "tests/support/random.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

enum { SIZE = 1000, MAX_MAPS = (1 << 18) - 1, RANDOM_HANDLES = 1000000 };

static bench b;
static quire_memory *visible, *device_only;
static quire_allocation live, reserved, mapped, remote;

/* The handles that no call may accept as an allocation of `visible`, and the expected error of
   each. */
static struct {
    quire_allocation allocation;
    quire_result code;
} bad[7];

enum { BAD = sizeof bad / sizeof *bad };

#define REFUSED_HANDLES(call)                                                                      \
    for (int i = 0; i < BAD; i++) {                                                                \
        quire_allocation wrong = bad[i].allocation;                                                \
        REFUSE(bad[i].code, call);                                                                 \
    }

#define REFUSED_HANDLES_OUT(out, call)                                                             \
    for (int i = 0; i < BAD; i++) {                                                                \
        quire_allocation wrong = bad[i].allocation;                                                \
        REFUSE_OUT(bad[i].code, out, call);                                                        \
    }

/* ---- the objects ---------------------------------------------------------------------------- */

static void fill_in_bad(quire_allocation stale, quire_allocation reused)
{
    const uint64_t slots = (UINT64_C(1) << 26) - 1; /* below 26 bits generation, 12 bits owner */
    const uint64_t ids[BAD] = {0,         stale.id,        reused.id,
                               remote.id, live.id | slots, live.id ^ UINT64_C(1) << 40,
                               UINT64_MAX};
    for (int i = 0; i < BAD; i++) {
        bad[i].allocation.id = ids[i];
        bad[i].code = STALE;
    }
    bad[0].code = INVALID;
    bad[3].code = bad[6].code = FOREIGN;
}

static bool build(void)
{
    const quire_allocation_options options = {.size = SIZE, .name = "victim"};
    bench_begin(&b, true);
    b.fake.info.limits.elastic_kinds = 0x2;
    return bench_open(&b) &&
           bench_memory(&b, &(quire_memory_options){.name = "device only", .kind.mask = 1}) &&
           bench_allocate(&b, 1, &options) &&
           bench_memory(&b, &(quire_memory_options){.name = "visible",
                                                    .kind.mask = 2,
                                                    .find_by_address = true}) &&
           bench_allocate(&b, 3, &options) && bench_reserve(&b, &options);
}

static void begin(void)
{
    CHECK(build());
    device_only = b.memories[0];
    visible = b.memories[1];
    remote = b.held[0].allocation;
    live = b.held[1].allocation;
    mapped = b.held[2].allocation;
    reserved = b.held[4].allocation;
    quire_allocation reused = b.held[3].allocation, stale;
    CHECK(bench_free(&b, 3) && bench_map(&b, 2));
    CHECK_OK(quire_allocate(visible, &(quire_allocation_options){.size = 50}, &stale));
    CHECK_OK(quire_free(visible, stale));
    CHECK(bench_allocate(&b, 1, &(quire_allocation_options){.size = 60}));
    fill_in_bad(stale, reused);
    refusal_begin(&b);
}

/* ---- quire/memory.h ------------------------------------------------------------------------- */

static void refuse_memory(quire_result code, const quire_memory_options *options)
{
    quire_memory *made;
    REFUSE_OUT(code, made, quire_memory_create(b.device, options, &made));
}

#define BAD_MEMORY(code, ...) refuse_memory(code, &(quire_memory_options){__VA_ARGS__})

static void creation(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    const quire_intent none = QUIRE_INTENT_DEVICE,
                       both = QUIRE_INTENT_HOST_READ | QUIRE_INTENT_UPLOAD,
                       exported = QUIRE_INTENT_EXPORT;
    quire_memory *made;
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSE_OUT(INVALID, made, quire_memory_create(NULL, NULL, &made));
    REFUSE(INVALID, quire_memory_create(b.device, NULL, NULL));
    BAD_MEMORY(INVALID, .name = long_name);
    BAD_MEMORY(INVALID, .kind.required = 0x200);
    BAD_MEMORY(INVALID, .kind.required = UINT32_MAX);
    BAD_MEMORY(INVALID, .kind.required = QUIRE_HOST_VISIBLE, .kind.intent = none);
    BAD_MEMORY(INVALID, .kind.exact = true, .kind.intent = none);
    BAD_MEMORY(INVALID, .kind.intent = both);
    BAD_MEMORY(UNSUPPORTED, .kind.intent = exported);
    BAD_MEMORY(UNSUPPORTED, .kind.required = QUIRE_PROTECTED);
    BAD_MEMORY(UNSUPPORTED, .kind.required = QUIRE_HOST_VISIBLE, .kind.exact = true);
    BAD_MEMORY(UNSUPPORTED, .kind.mask = 1u << 31);
    BAD_MEMORY(INVALID, .shards = 65);
    BAD_MEMORY(INVALID, .limit = QUIRE_PERCENT_OF_HEAP(101));
    BAD_MEMORY(UNSUPPORTED, .shards = 2, .fit.algorithm = QUIRE_FIT_LINEAR);
    BAD_MEMORY(INVALID, .fit.algorithm = (quire_fit)77);
    BAD_MEMORY(INVALID, .fit.granule = 3);
    BAD_MEMORY(INVALID, .fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 256});
    BAD_MEMORY(INVALID, .fit = {.algorithm = QUIRE_FIT_LINEAR, .granule = 256});
    BAD_MEMORY(INVALID, .fit.max_alignment = 3);
    BAD_MEMORY(INVALID, .fit.max_alignment = UINT64_C(2) << 30);
    for (int i = 0; i < 4; i++) {
        quire_memory_options options = {0}, fit = {0}, pages = {0};
        options.unused[i] = fit.fit.unused[i] = pages.pages.unused[i] = 1;
        refuse_memory(INVALID, &options);
        refuse_memory(INVALID, &fit);
        refuse_memory(INVALID, &pages);
    }
}

static void elastic(void)
{
    const uint32_t grows = 0x2, others = 0xd;
    BAD_MEMORY(UNSUPPORTED, .elastic = true, .kind.mask = others);
    BAD_MEMORY(UNSUPPORTED, .elastic = true, .kind.mask = grows, .shards = 2);
    for (int fit = QUIRE_FIT_SEGREGATED + 1; fit <= QUIRE_FIT_LINEAR; fit++)
        BAD_MEMORY(UNSUPPORTED, .elastic = true, .kind.mask = grows,
                   .fit.algorithm = (quire_fit)fit);
    BAD_MEMORY(INVALID, .elastic = true, .kind.mask = grows, .pages.page_size = 3 * 4096);
    BAD_MEMORY(INVALID, .elastic = true, .kind.mask = grows, .pages.max_page = 65536);
    BAD_MEMORY(INVALID, .address_space = 1, .kind.mask = grows);
    BAD_MEMORY(INVALID, .address_space = UINT64_MAX);
    CHECK(bench_memory(&b, &(quire_memory_options){.elastic = true,
                                                   .kind.mask = grows,
                                                   .address_space = 65536,
                                                   .pages.page_size = 4096}));
    quire_allocation made;
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = SIZE}, &made));
    refusal_begin(&b);
    REFUSE_OUT(NO_MEMORY, made,
               quire_allocate(b.memory, &(quire_allocation_options){.size = 65536}, &made));
    REFUSE(NO_MEMORY, quire_memory_preallocate(b.memory, 65537));
    quire_memory_destroy_all(&b.memories[2]);
    refusal_begin(&b);
}

static void refuse_policy(quire_result code, quire_page_policy policy)
{
    BAD_MEMORY(code, .pages = policy);
}

#define BAD_POLICY(code, ...) refuse_policy(code, (quire_page_policy){__VA_ARGS__})

static void policies(void)
{
    BAD_POLICY(INVALID, .growth_percent = 1001);
    BAD_POLICY(INVALID, .growth_percent = UINT32_MAX);
    BAD_POLICY(INVALID, .page_size = 8192, .max_page = 4096);
    BAD_POLICY(INVALID, .page_size = 4096, .first_page_size = 9000, .max_page = 8192);
    BAD_POLICY(INVALID, .dedicated = (quire_dedicated)3);
    BAD_POLICY(INVALID, .dedicated = QUIRE_DEDICATED_ALWAYS, .dedicated_threshold = 1);
    BAD_POLICY(INVALID, .growth = (quire_growth)3);
    BAD_POLICY(INVALID, .growth = QUIRE_GROWTH_RESERVED);
    BAD_POLICY(INVALID, .request_factor = 2);
    BAD_POLICY(INVALID, .page_granularity = 3);
    BAD_POLICY(INVALID, .classes = {{.page_size = 4096}});
    BAD_POLICY(INVALID, .classes = {{.max_request = 4096}});
    BAD_POLICY(INVALID, .classes = {{2, 4096}, {1, 4096}});
    BAD_POLICY(INVALID, .dedicated = QUIRE_DEDICATED_ALWAYS, .classes = {{1, 4096}});
}

static void presets(void)
{
    const quire_paddle_sizes good = {.min_chunk = 512, .max_chunk = 4096},
                             wide[] = {{.min_chunk = 2, .chunk = UINT64_MAX},
                                       {.unused = {1}},
                                       {.extra_padding = UINT64_MAX},
                                       {.chunk = 1},
                                       {.unused = {0, 0, 0, 1}}};
    quire_page_policy made;
    REFUSE_OUT(INVALID, made, quire_page_policy_preset(QUIRE_PRESET_RMM, NULL, 0, &made));
    REFUSE(INVALID, quire_page_policy_preset(QUIRE_PRESET_RMM, b.device, 0, NULL));
    REFUSE_OUT(INVALID, made, quire_page_policy_preset((quire_preset)3, b.device, 0, &made));
    REFUSE_OUT(INVALID, made, quire_page_policy_preset(QUIRE_PRESET_PYTORCH, b.device, 4, &made));
    REFUSE_OUT(INVALID, made,
               quire_page_policy_preset(QUIRE_PRESET_VMA, b.device, UINT32_MAX, &made));
    REFUSE(INVALID, quire_page_policy_paddle(QUIRE_PADDLE_AUTO_GROWTH, &good, NULL));
    REFUSE_OUT(INVALID, made, quire_page_policy_paddle(QUIRE_PADDLE_AUTO_GROWTH, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_page_policy_paddle((quire_paddle_strategy)2, &good, &made));
    for (int i = 0; i < 5; i++)
        REFUSE_OUT(
            INVALID, made,
            quire_page_policy_paddle(i < 2 ? QUIRE_PADDLE_AUTO_GROWTH : QUIRE_PADDLE_NAIVE_BEST_FIT,
                                     &wide[i], &made));
}

/* A size that overflows once it is padded and rounded. */
static void overflowing_policies(void)
{
    const quire_page_policy wide[] = {{.extra_padding = UINT64_MAX},
                                      {.size_granularity = UINT64_MAX},
                                      {.extra_padding = 100, .size_granularity = UINT64_MAX / 2}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        quire_allocation made;
        CHECK(bench_memory(&b, &(quire_memory_options){.pages = wide[i]}));
        refusal_begin(&b);
        REFUSE_OUT(NO_MEMORY, made,
                   quire_allocate(b.memory, &(quire_allocation_options){.size = 2}, &made));
        CHECK_OK(quire_memory_destroy(&b.memories[2]));
    }
    b.memory = visible;
    refusal_begin(&b);
}

static bool go_on(void *user, quire_memory *memory)
{
    (void)user, (void)memory;
    return true;
}

static void memories(void)
{
    quire_memory *none = NULL, *busy = visible;
    quire_memory_info info;
    quire_page_info page;
    uint64_t released;
    REFUSE_OUT(INVALID, info, quire_memory_get_info(NULL, &info));
    REFUSE(INVALID, quire_memory_get_info(visible, NULL));
    REFUSE_OUT(INVALID, page, quire_page_get_info(NULL, 0, &page));
    REFUSE(INVALID, quire_page_get_info(visible, 0, NULL));
    REFUSE_OUT(OUTSIDE, page, quire_page_get_info(visible, 1, &page));
    REFUSE_OUT(OUTSIDE, page, quire_page_get_info(visible, UINT32_MAX, &page));
    REFUSE_OUT(INVALID, released, quire_memory_trim(NULL, 0, &released));
    REFUSE(INVALID, quire_memory_trim(NULL, 0, NULL));
    REFUSE_OUT(INVALID, released, quire_device_trim(NULL, 0, &released));
    REFUSE(INVALID, quire_device_walk(NULL, go_on, NULL));
    REFUSE(INVALID, quire_device_walk(b.device, NULL, NULL));
    REFUSE(INVALID, quire_memory_preallocate(NULL, 1));
    REFUSE(NO_MEMORY, quire_memory_preallocate(visible, UINT64_MAX));
    REFUSE(INVALID, quire_memory_destroy(NULL));
    REFUSE(BUSY, quire_memory_destroy(&busy));
    CHECK(busy == visible);
    CHECK_HAS(quire_last_error(), "victim");
    CHECK_OK(quire_memory_destroy(&none));
    HARMLESS(&b, quire_memory_destroy_all(NULL));
    HARMLESS(&b, quire_memory_destroy_all(&none));
}

static void limits(void)
{
    static char long_prefix[QUIRE_MAX_NAME + 2];
    quire_name_usage usage;
    quire_allocation made;
    memset(long_prefix, 'x', sizeof long_prefix - 1);
    REFUSE(INVALID, quire_memory_set_limit(NULL, 1));
    REFUSE(INVALID, quire_memory_set_name_limit(NULL, "x", 1));
    REFUSE(INVALID, quire_memory_set_name_limit(visible, NULL, 1));
    REFUSE(INVALID, quire_memory_set_name_limit(visible, long_prefix, 1));
    REFUSE(INVALID, quire_memory_set_name_limit(visible, long_prefix, 0));
    REFUSE_OUT(INVALID, usage, quire_memory_get_name_usage(NULL, "x", &usage));
    REFUSE_OUT(INVALID, usage, quire_memory_get_name_usage(visible, NULL, &usage));
    REFUSE_OUT(INVALID, usage, quire_memory_get_name_usage(visible, long_prefix, &usage));
    REFUSE(INVALID, quire_memory_get_name_usage(visible, "x", NULL));
    CHECK_OK(quire_memory_set_limit(visible, 1));
    CHECK_OK(quire_memory_set_name_limit(visible, "victim", 1));
    refusal_begin(&b);
    REFUSE_OUT(
        QUIRE_ERROR_OVER_BUDGET, made,
        quire_allocate(visible, &(quire_allocation_options){.size = 1, .dedicated = true}, &made));
    REFUSE_OUT(
        QUIRE_ERROR_OVER_BUDGET, made,
        quire_allocate(visible, &(quire_allocation_options){.size = 1, .name = "victims"}, &made));
    REFUSE(QUIRE_ERROR_OVER_BUDGET,
           quire_allocation_set_name(visible, b.held[5].allocation, "victim too"));
    CHECK_OK(quire_memory_set_limit(visible, 0));
    CHECK_OK(quire_memory_set_name_limit(visible, "victim", 0));
    refusal_begin(&b);
}

/* ---- creating allocations ------------------------------------------------------------------- */

static void refuse_wish(quire_result code, quire_memory *memory,
                        const quire_allocation_options *options)
{
    quire_allocation made;
    REFUSE_OUT(code, made, quire_allocate(memory, options, &made));
    REFUSE_OUT(code, made, quire_reserve(memory, options, &made));
    REFUSE_OUT(code, made, quire_allocate_batch(memory, options, &made, 1));
    uint32_t chosen = 77;
    REFUSE_OUT(code, made, quire_allocate_fallback(&memory, 1, options, &chosen, &made));
}

static void requests(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    const quire_allocation_options good = {.size = SIZE};
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 255, UINT64_MAX / 2 + 1, UINT64_C(1) << 31};
    const uint64_t alignments[] = {3, 1000, UINT64_C(4) << 20, UINT64_C(1) << 63, UINT64_MAX};
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSE(INVALID, quire_allocate(visible, &good, NULL));
    REFUSE(INVALID, quire_reserve(visible, &good, NULL));
    refuse_wish(INVALID, NULL, &good);
    refuse_wish(INVALID, visible, NULL);
    refuse_wish(INVALID, visible, &(quire_allocation_options){0});
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        refuse_wish(INVALID, visible,
                    &(quire_allocation_options){.size = SIZE, .alignment = alignments[i]});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        refuse_wish(NO_MEMORY, visible, &(quire_allocation_options){.size = sizes[i]});
        refuse_wish(NO_MEMORY, visible,
                    &(quire_allocation_options){
                        .size = sizes[i], .alignment = 4096, .dedicated = true, .zero = true});
    }
    refuse_wish(INVALID, visible, &(quire_allocation_options){.size = 1, .name = long_name});
    refuse_wish(NOT_VISIBLE, device_only,
                &(quire_allocation_options){.size = 1, .host_read = true});
    refuse_wish(NOT_VISIBLE, device_only,
                &(quire_allocation_options){.size = 1, .host_write = true});
    refuse_wish(NOT_VISIBLE, device_only, &(quire_allocation_options){.size = 1, .mapped = true});
    for (int i = 0; i < 3; i++) {
        quire_allocation_options options = good;
        options.unused[i] = UINT64_MAX;
        refuse_wish(INVALID, visible, &options);
    }
}

/* ---- states --------------------------------------------------------------------------------- */

static void states(void)
{
    REFUSE(INVALID, quire_commit(NULL, reserved));
    REFUSE(INVALID, quire_abort(NULL, reserved));
    REFUSE(INVALID, quire_free(NULL, live));
    REFUSE(INVALID, quire_free_batch(NULL, &live, 1));
    REFUSE(INVALID, quire_free_batch(visible, NULL, 1));
    REFUSE(BUSY, quire_free_batch(visible, &mapped, 1));
    REFUSE(WRONG_STATE, quire_commit(visible, live));
    REFUSE(WRONG_STATE, quire_abort(visible, live));
    REFUSE(WRONG_STATE, quire_abort(visible, mapped));
    REFUSE(WRONG_STATE, quire_free(visible, reserved));
    REFUSE(BUSY, quire_free(visible, mapped));
    REFUSED_HANDLES(quire_commit(visible, wrong));
    REFUSED_HANDLES(quire_abort(visible, wrong));
    REFUSED_HANDLES(quire_free(visible, wrong));
}

/* Random 64 bits with the owner's 12 bits right. */
static void random_handles(void)
{
    test_random r = {.state = 1};
    const uint64_t owner = live.id >> 52 << 52;
    quire_allocation_info info;
    for (int i = 0; i < RANDOM_HANDLES; i++) {
        uint64_t slot = random_next(&r) >> random_below(&r, 64) & ((UINT64_C(1) << 26) - 1);
        uint64_t generation = 1000 + random_below(&r, (UINT64_C(1) << 26) - 1000);
        quire_allocation wrong = {owner | generation << 26 | slot};
        if (quire_allocation_get_info(visible, wrong, &info) != STALE)
            check_failed(__FILE__, __LINE__, "handle 0x%" PRIx64 " is taken", wrong.id);
    }
    REFUSE(STALE, quire_unmap(visible, bad[1].allocation));
}

static void forged_handles(void)
{
    for (uint32_t bit = 26; bit < 64; bit++) {
        quire_allocation wrong = {live.id ^ UINT64_C(1) << bit};
        REFUSE(bit < 52 ? STALE : FOREIGN, quire_free(visible, wrong));
        if (bit < 52) /* above, the tag may be that of another memory */
            REFUSE(STALE, quire_device_free(b.device, wrong));
    }
}

static void handles_alone(void)
{
    quire_memory *owner;
    REFUSE_OUT(INVALID, owner, quire_device_owner(NULL, live, &owner));
    REFUSE(INVALID, quire_device_owner(b.device, live, NULL));
    REFUSE(INVALID, quire_device_free(NULL, live));
    REFUSE(WRONG_STATE, quire_device_free(b.device, reserved));
    for (int i = 0; i < BAD; i++) {
        const quire_result code = i ? STALE : INVALID;
        if (bad[i].allocation.id == remote.id)
            continue; /* of another memory of the device */
        REFUSE(code, quire_device_free(b.device, bad[i].allocation));
        REFUSE_OUT(code, owner, quire_device_owner(b.device, bad[i].allocation, &owner));
    }
}

static void questions(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    quire_allocation_info info;
    char name[1];
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSE_OUT(INVALID, info, quire_allocation_get_info(NULL, live, &info));
    REFUSE(INVALID, quire_allocation_get_info(visible, live, NULL));
    REFUSED_HANDLES_OUT(info, quire_allocation_get_info(visible, wrong, &info));
    REFUSE_OUT(INVALID, name, quire_allocation_get_name(NULL, live, name, sizeof name));
    REFUSE(INVALID, quire_allocation_get_name(visible, live, NULL, 5));
    REFUSE(INVALID, quire_allocation_get_name(visible, live, name, 0));
    REFUSED_HANDLES_OUT(name, quire_allocation_get_name(visible, wrong, name, sizeof name));
    REFUSE(INVALID, quire_allocation_set_name(NULL, live, "name"));
    REFUSE(INVALID, quire_allocation_set_name(visible, live, long_name));
    REFUSED_HANDLES(quire_allocation_set_name(visible, wrong, "name"));
    REFUSED_HANDLES(quire_allocation_set_name(visible, wrong, NULL));
    REFUSE(INVALID, quire_allocation_set_user_data(NULL, live, 1));
    REFUSED_HANDLES(quire_allocation_set_user_data(visible, wrong, 1));
}

/* ---- host access ---------------------------------------------------------------------------- */

/* Ranges that lie outside an allocation of SIZE bytes; the first two are empty. */
static const struct {
    uint64_t offset, size;
} outside[] = {
    {SIZE, 0},
    {UINT64_MAX, 0},
    {0, SIZE + 1},
    {1, SIZE},
    {SIZE, 1},
    {SIZE - 1, 2},
    {SIZE + 1, 1},
    {UINT64_MAX, 1},
    {UINT64_MAX, UINT64_MAX},
    {1, UINT64_MAX},
    {SIZE / 2, UINT64_MAX - SIZE / 2 + 1},
};

enum { OUTSIDES = sizeof outside / sizeof *outside };

static void mapping(void)
{
    void *p;
    REFUSE_OUT(INVALID, p, quire_map(NULL, live, &p));
    REFUSE(INVALID, quire_map(visible, live, NULL));
    REFUSED_HANDLES_OUT(p, quire_map(visible, wrong, &p));
    REFUSE_OUT(WRONG_STATE, p, quire_map(visible, reserved, &p));
    REFUSE_OUT(NOT_VISIBLE, p, quire_map(device_only, remote, &p));
    REFUSE_OUT(INVALID, p, quire_map_range(NULL, live, 0, 1, &p));
    REFUSE(INVALID, quire_map_range(visible, live, 0, 1, NULL));
    REFUSED_HANDLES_OUT(p, quire_map_range(visible, wrong, 0, 1, &p));
    for (int i = 0; i < OUTSIDES; i++)
        REFUSE_OUT(OUTSIDE, p,
                   quire_map_range(visible, live, outside[i].offset, outside[i].size, &p));
    REFUSE(INVALID, quire_unmap(NULL, mapped));
    REFUSE(NOT_MAPPED, quire_unmap(visible, live));
    REFUSE(NOT_MAPPED, quire_unmap(device_only, remote));
    REFUSE(WRONG_STATE, quire_unmap(visible, reserved));
    REFUSED_HANDLES(quire_unmap(visible, wrong));
}

/* An allocation that is mapped while it lives: the caller's maps are counted apart from that. */
static void mapping_for_good(void)
{
    void *p;
    quire_allocation lasting;
    const quire_allocation_options options = {.size = SIZE, .mapped = true};
    CHECK_OK(quire_allocate(visible, &options, &lasting));
    refusal_begin(&b);
    REFUSE(NOT_MAPPED, quire_unmap(visible, lasting));
    CHECK_OK(quire_map(visible, lasting, &p));
    refusal_begin(&b);
    REFUSE(BUSY, quire_free(visible, lasting));
    REFUSE(BUSY, quire_free_batch(visible, &lasting, 1));
    CHECK_OK(quire_unmap(visible, lasting));
    CHECK_OK(quire_free(visible, lasting));
    refusal_begin(&b);
    REFUSE(STALE, quire_free(visible, lasting));
}

static void mapping_too_often(void)
{
    void *p;
    for (int i = 0; i < MAX_MAPS; i++)
        CHECK_OK(quire_map(visible, live, &p));
    refusal_begin(&b);
    REFUSE_OUT(OUTSIDE, p, quire_map(visible, live, &p));
    REFUSE(BUSY, quire_free(visible, live));
    for (int i = 0; i < MAX_MAPS; i++)
        CHECK_OK(quire_unmap(visible, live));
    refusal_begin(&b);
    REFUSE(NOT_MAPPED, quire_unmap(visible, live));
}

static void syncing(void)
{
    REFUSE(INVALID, quire_flush(NULL, live, 0, 0));
    REFUSE(INVALID, quire_invalidate(NULL, live, 0, 0));
    REFUSE(NOT_VISIBLE, quire_flush(device_only, remote, 0, 0));
    REFUSE(NOT_VISIBLE, quire_invalidate(device_only, remote, 0, 0));
    REFUSE(WRONG_STATE, quire_flush(visible, reserved, 0, 0));
    REFUSE(WRONG_STATE, quire_invalidate(visible, reserved, 0, 0));
    REFUSED_HANDLES(quire_flush(visible, wrong, 0, 0));
    REFUSED_HANDLES(quire_invalidate(visible, wrong, 0, 0));
    for (int i = 0; i < OUTSIDES; i++) {
        REFUSE(OUTSIDE, quire_flush(visible, live, outside[i].offset, outside[i].size));
        REFUSE(OUTSIDE, quire_invalidate(visible, live, outside[i].offset, outside[i].size));
    }
}

/* The second of two parts is wrong. */
static quire_result sync_batch(bool flushes, quire_memory *memory, quire_view other)
{
    const quire_view views[] = {{live, 0, 0}, other};
    return flushes ? quire_flush_batch(memory, views, 2) : quire_invalidate_batch(memory, views, 2);
}

static void syncing_many(void)
{
    const quire_view good = {live, 0, 0}, there = {remote, 0, 0};
    REFUSE(INVALID, quire_flush_batch(NULL, &good, 1));
    REFUSE(INVALID, quire_invalidate_batch(NULL, &good, 1));
    REFUSE(INVALID, quire_flush_batch(visible, NULL, 1));
    REFUSE(INVALID, quire_invalidate_batch(visible, NULL, 1));
    REFUSE(NOT_VISIBLE, quire_flush_batch(device_only, &there, 1));
    REFUSE(NOT_VISIBLE, quire_invalidate_batch(device_only, &there, 1));
    for (int s = 0; s < 2; s++) {
        REFUSE(WRONG_STATE, sync_batch(s, visible, (quire_view){reserved, 0, 0}));
        REFUSED_HANDLES(sync_batch(s, visible, (quire_view){wrong, 0, 0}));
        for (int i = 0; i < OUTSIDES; i++)
            REFUSE(OUTSIDE,
                   sync_batch(s, visible, (quire_view){live, outside[i].offset, outside[i].size}));
    }
}

static void copying(void)
{
    char data[8] = "data";
    REFUSE(INVALID, quire_write(NULL, live, 0, data, 1));
    REFUSE(INVALID, quire_read(NULL, live, 0, data, 1));
    REFUSE(INVALID, quire_write(visible, live, 0, NULL, 1));
    REFUSE(INVALID, quire_read(visible, live, 0, NULL, 1));
    REFUSE(WRONG_STATE, quire_write(visible, reserved, 0, data, 1));
    REFUSE(WRONG_STATE, quire_read(visible, reserved, 0, data, 1));
    REFUSED_HANDLES(quire_write(visible, wrong, 0, data, 1));
    REFUSED_HANDLES(quire_read(visible, wrong, 0, data, 1));
    REFUSE(OUTSIDE, quire_write(visible, live, SIZE + 1, data, 0));
    for (int i = 2; i < OUTSIDES; i++) {
        uint64_t offset = outside[i].offset, size = outside[i].size;
        REFUSE(OUTSIDE, quire_write(visible, live, offset, data, size));
        REFUSE(OUTSIDE, quire_read(visible, live, offset, data, size));
        REFUSE(OUTSIDE, quire_write(device_only, remote, offset, data, size));
        REFUSE(OUTSIDE, quire_read(device_only, remote, offset, data, size));
    }
    CHECK_STR(data, "data"); /* a rejected read writes nothing */
}

/* ---- views ---------------------------------------------------------------------------------- */

static void making_views(void)
{
    quire_view view, whole = {live, 0, SIZE}, far = {live, UINT64_MAX - 10, 100};
    REFUSE_OUT(INVALID, view, quire_view_create(NULL, live, 0, 0, &view));
    REFUSE(INVALID, quire_view_create(visible, live, 0, 0, NULL));
    REFUSED_HANDLES_OUT(view, quire_view_create(visible, wrong, 0, 0, &view));
    REFUSE(INVALID, quire_view_narrow(whole, 0, 0, NULL));
    REFUSE_OUT(OUTSIDE, view, quire_view_narrow(far, 50, 10, &view));
    REFUSE_OUT(OUTSIDE, view, quire_view_narrow((quire_view){live, 0, 0}, 0, 0, &view));
    for (int i = 0; i < OUTSIDES; i++) {
        uint64_t offset = outside[i].offset, size = outside[i].size;
        REFUSE_OUT(OUTSIDE, view, quire_view_create(visible, live, offset, size, &view));
        REFUSE_OUT(OUTSIDE, view, quire_view_narrow(whole, offset, size, &view));
    }
}

static void using_views(void)
{
    const quire_view part = {live, 10, 20}, far = {live, UINT64_MAX - 10, 100},
                     beyond = {live, 990, 20};
    char data[8] = "data";
    void *p;
    REFUSE_OUT(INVALID, p, quire_view_map(NULL, part, &p));
    REFUSE(INVALID, quire_view_map(visible, part, NULL));
    REFUSE_OUT(OUTSIDE, p, quire_view_map(visible, far, &p));
    REFUSE_OUT(OUTSIDE, p, quire_view_map(visible, beyond, &p));
    REFUSE(INVALID, quire_view_write(NULL, part, 0, data, 1));
    REFUSE(INVALID, quire_view_read(NULL, part, 0, data, 1));
    REFUSE(INVALID, quire_view_write(visible, part, 0, NULL, 1));
    REFUSE(INVALID, quire_view_read(visible, part, 0, NULL, 1));
    REFUSE(OUTSIDE, quire_view_write(visible, part, 19, data, 2));
    REFUSE(OUTSIDE, quire_view_read(visible, part, 21, data, 0));
    REFUSE(OUTSIDE, quire_view_write(visible, far, 50, data, 2));
    REFUSE(OUTSIDE, quire_view_read(visible, far, 50, data, 2));
    REFUSE(OUTSIDE, quire_view_write(visible, beyond, 15, data, 2));
    REFUSE(OUTSIDE, quire_view_read(visible, beyond, 15, data, 2));
    REFUSED_HANDLES_OUT(p, quire_view_map(visible, ((quire_view){wrong, 0, 1}), &p));
    REFUSED_HANDLES(quire_view_write(visible, ((quire_view){wrong, 0, 1}), 0, data, 1));
    REFUSED_HANDLES(quire_view_read(visible, ((quire_view){wrong, 0, 1}), 0, data, 1));
    CHECK_STR(data, "data");
}

static void end(void)
{
    bench_end(&b);
}

/* ---- the area ------------------------------------------------------------------------------- */

/* ---- addresses ------------------------------------------------------------------------------ */

static uint64_t address_of(quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(visible, allocation, &info));
    return info.address;
}

/* Addresses that no live allocation contains. */
static void finding_nothing(void)
{
    quire_page_info page;
    CHECK_OK(quire_page_get_info(visible, 0, &page));
    const uint64_t nowhere[] = {0,
                                1,
                                address_of(reserved),
                                address_of(reserved) + 10,
                                page.address - 1,
                                page.address + page.size,
                                b.fake.next_address,
                                UINT64_MAX};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        quire_allocation found;
        quire_memory *memory;
        REFUSE_OUT(OUTSIDE, found, quire_memory_find(visible, nowhere[i], &found));
        REFUSE_OUT(OUTSIDE, found, quire_device_find(b.device, nowhere[i], &memory, &found));
        REFUSE_OUT(OUTSIDE, memory, quire_device_find(b.device, nowhere[i], &memory, &found));
        REFUSE(OUTSIDE, quire_free_at_address(visible, nowhere[i], NULL));
    }
}

static void finding(void)
{
    quire_allocation found;
    quire_memory *memory;
    uint64_t address = address_of(live);
    REFUSE_OUT(INVALID, found, quire_memory_find(NULL, address, &found));
    REFUSE(INVALID, quire_memory_find(visible, address, NULL));
    REFUSE_OUT(INVALID, found, quire_device_find(NULL, address, NULL, &found));
    REFUSE_OUT(INVALID, memory, quire_device_find(b.device, address, &memory, NULL));
    REFUSE_OUT(UNSUPPORTED, found, quire_memory_find(device_only, address, &found));
    REFUSE(UNSUPPORTED, quire_free_at_address(device_only, address, NULL));
    REFUSE(INVALID, quire_free_at_address(NULL, address, NULL));
    REFUSE(INVALID, quire_free_at_address(visible, address + 1, NULL));
    REFUSE(INVALID, quire_free_at_address(visible, address + SIZE, NULL)); /* held, not requested */
    REFUSE(BUSY, quire_free_at_address(visible, address_of(mapped), NULL));
    finding_nothing();
}

/* Both calls for a list of which the second range is wrong. */
static void refuse_ranges(quire_result code, quire_view first, quire_view wrong)
{
    const quire_view ranges[] = {first, wrong};
    REFUSE(code, quire_back_range(b.memory, ranges, 2));
    REFUSE(code, quire_unback_range(b.memory, ranges, 2, NULL));
}

static void lazy_allocations(void)
{
    quire_allocation lazy, plain, made;
    quire_memory *before = b.memory;
    REFUSE_OUT(
        INVALID, made,
        quire_allocate(visible, &(quire_allocation_options){.size = SIZE, .lazy = true}, &made));
    REFUSE(INVALID, quire_back_range(NULL, NULL, 0));
    REFUSE(INVALID, quire_unback_range(NULL, NULL, 0, NULL));
    REFUSE(UNSUPPORTED, quire_back_range(visible, NULL, 0));
    REFUSE(UNSUPPORTED, quire_unback_range(visible, NULL, 0, NULL));
    REFUSE(INVALID, quire_memory_sleep(NULL, NULL, QUIRE_SLEEP_KEEP, NULL, NULL));
    REFUSE(UNSUPPORTED, quire_memory_sleep(visible, NULL, QUIRE_SLEEP_KEEP, NULL, NULL));
    REFUSE(INVALID, quire_memory_wake(NULL, NULL, NULL));
    CHECK(bench_memory(&b, &(quire_memory_options){.elastic = true,
                                                   .kind.mask = 0x2,
                                                   .address_space = 1 << 20,
                                                   .pages.page_size = 4096}));
    CHECK_OK(
        quire_allocate(b.memory, &(quire_allocation_options){.size = 40000, .lazy = true}, &lazy));
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = SIZE}, &plain));
    const quire_view good = {lazy, 4096, 4096};
    CHECK_OK(quire_back_range(b.memory, &good, 1));
    refusal_begin(&b);
    REFUSE(INVALID, quire_back_range(b.memory, NULL, 1));
    REFUSE(INVALID, quire_memory_sleep(b.memory, NULL, (quire_sleep_mode)2, NULL, NULL));
    REFUSE(INVALID, quire_unback_range(b.memory, NULL, 1, NULL));
    refuse_ranges(UNSUPPORTED, good, (quire_view){plain, 0, 0});
    refuse_ranges(INVALID, good, (quire_view){{0}, 0, 0});
    refuse_ranges(FOREIGN, good, (quire_view){live, 0, 0});
    refuse_ranges(OUTSIDE, good, (quire_view){lazy, 40000, 0});
    refuse_ranges(OUTSIDE, good, (quire_view){lazy, 0, 40001});
    refuse_ranges(OUTSIDE, good, (quire_view){lazy, 1, UINT64_MAX});
    REFUSE(WRONG_STATE, quire_write(b.memory, lazy, 4095, "ab", 2));
    quire_memory_destroy_all(&b.memories[2]);
    b.memory = before;
    refusal_begin(&b);
}

static const misuse_case cases[] = {
    {"creating memories", creation},
    {"elastic memories", elastic},
    {"page policies", policies},
    {"presets", presets},
    {"policies that overflow", overflowing_policies},
    {"asking and ending memories", memories},
    {"limits", limits},
    {"making allocations", requests},
    {"states of allocations", states},
    {"forged handles", forged_handles},
    {"random handles", random_handles},
    {"handles alone", handles_alone},
    {"asking allocations", questions},
    {"finding by address", finding},
    {"mapping", mapping},
    {"mapping for good", mapping_for_good},
    {"mapping too often", mapping_too_often},
    {"flushing and invalidating", syncing},
    {"flushing and invalidating many", syncing_many},
    {"writing and reading", copying},
    {"lazy allocations", lazy_allocations},
    {"making views", making_views},
    {"using views", using_views},
    {NULL, NULL},
};

static const char *const headers[] = {"memory.h",     "page_policy.h", "preset.h",
                                      "allocation.h", "elastic.h",     NULL};

const misuse_area misuse_memory = {"memory", begin, end, cases, headers};
