/*
 * memory.c - every wrong use of quire/memory.h, quire/preset.h and quire/allocation.h: the
 * documented code, a sentence, zeroed outputs, nothing changed.
 */
#include <stdio.h>

#include "tests/support/random.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define OUTSIDE QUIRE_ERROR_OUT_OF_RANGE

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
        REFUSED(&b, bad[i].code, call);                                                            \
    }

#define REFUSED_HANDLES_OUT(out, call)                                                             \
    for (int i = 0; i < BAD; i++) {                                                                \
        quire_allocation wrong = bad[i].allocation;                                                \
        REFUSED_OUT(&b, bad[i].code, out, call);                                                   \
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
        bad[i].code = QUIRE_ERROR_STALE_HANDLE;
    }
    bad[0].code = INVALID;
    bad[3].code = bad[6].code = QUIRE_ERROR_FOREIGN_HANDLE;
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
    REFUSED_OUT(&b, code, made, quire_memory_create(b.device, options, &made));
}

static void creation(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    const quire_intent none = QUIRE_INTENT_DEVICE,
                       both = QUIRE_INTENT_HOST_READ | QUIRE_INTENT_UPLOAD,
                       exported = QUIRE_INTENT_EXPORT;
    quire_memory *made;
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSED_OUT(&b, INVALID, made, quire_memory_create(NULL, NULL, &made));
    REFUSED(&b, INVALID, quire_memory_create(b.device, NULL, NULL));
    refuse_memory(INVALID, &(quire_memory_options){.name = long_name});
    refuse_memory(INVALID, &(quire_memory_options){.kind.required = 0x200});
    refuse_memory(INVALID, &(quire_memory_options){.kind.required = UINT32_MAX});
    refuse_memory(
        INVALID, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .kind.intent = none});
    refuse_memory(INVALID, &(quire_memory_options){.kind.exact = true, .kind.intent = none});
    refuse_memory(INVALID, &(quire_memory_options){.kind.intent = both});
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.kind.intent = exported});
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.kind.required = QUIRE_PROTECTED});
    refuse_memory(UNSUPPORTED,
                  &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .kind.exact = true});
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.kind.mask = 1u << 31});
    refuse_memory(INVALID, &(quire_memory_options){.shards = 65});
    refuse_memory(INVALID, &(quire_memory_options){.limit = QUIRE_PERCENT_OF_HEAP(101)});
    refuse_memory(UNSUPPORTED,
                  &(quire_memory_options){.shards = 2, .fit.algorithm = QUIRE_FIT_LINEAR});
    refuse_memory(INVALID, &(quire_memory_options){.fit.algorithm = (quire_fit)77});
    refuse_memory(INVALID, &(quire_memory_options){.fit.granule = 3});
    refuse_memory(INVALID,
                  &(quire_memory_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 256}});
    refuse_memory(INVALID,
                  &(quire_memory_options){.fit = {.algorithm = QUIRE_FIT_LINEAR, .granule = 256}});
    refuse_memory(INVALID, &(quire_memory_options){.fit.max_alignment = 3});
    refuse_memory(INVALID, &(quire_memory_options){.fit.max_alignment = UINT64_C(2) << 30});
    for (int i = 0; i < 4; i++) {
        quire_memory_options options = {0}, fit = {0}, pages = {0};
        options.unused[i] = fit.fit.unused[i] = pages.pages.unused[i] = 1;
        refuse_memory(INVALID, &options);
        refuse_memory(INVALID, &fit);
        refuse_memory(INVALID, &pages);
    }
}

static void contiguous(void)
{
    const uint32_t grows = 0x2, others = 0xd;
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.contiguous = true, .kind.mask = others});
    refuse_memory(UNSUPPORTED,
                  &(quire_memory_options){.contiguous = true, .kind.mask = grows, .shards = 2});
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.contiguous = true,
                                                       .kind.mask = grows,
                                                       .fit.algorithm = QUIRE_FIT_BUDDY});
    refuse_memory(UNSUPPORTED, &(quire_memory_options){.contiguous = true,
                                                       .kind.mask = grows,
                                                       .fit.algorithm = QUIRE_FIT_LINEAR});
    refuse_memory(INVALID, &(quire_memory_options){.address_space = 1, .kind.mask = grows});
    refuse_memory(INVALID, &(quire_memory_options){.address_space = UINT64_MAX});
    CHECK(bench_memory(&b, &(quire_memory_options){.contiguous = true,
                                                   .kind.mask = grows,
                                                   .address_space = 65536,
                                                   .pages.page_size = 4096}));
    quire_allocation made;
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = SIZE}, &made));
    refusal_begin(&b);
    REFUSED_OUT(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, made,
                quire_allocate(b.memory, &(quire_allocation_options){.size = 65536}, &made));
    REFUSED(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, quire_memory_preallocate(b.memory, 65537));
    quire_memory_destroy_all(&b.memories[2]);
    refusal_begin(&b);
}

static void refuse_policy(quire_result code, quire_page_policy policy)
{
    refuse_memory(code, &(quire_memory_options){.pages = policy});
}

static void policies(void)
{
    refuse_policy(INVALID, (quire_page_policy){.growth_percent = 1001});
    refuse_policy(INVALID, (quire_page_policy){.growth_percent = UINT32_MAX});
    refuse_policy(INVALID, (quire_page_policy){.page_size = 8192, .max_page = 4096});
    refuse_policy(
        INVALID, (quire_page_policy){.page_size = 4096, .first_page_size = 9000, .max_page = 8192});
    refuse_policy(INVALID, (quire_page_policy){.dedicated = (quire_dedicated)3});
    refuse_policy(INVALID, (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS,
                                               .dedicated_threshold = 1});
    refuse_policy(INVALID, (quire_page_policy){.growth = (quire_growth)3});
    refuse_policy(INVALID, (quire_page_policy){.growth = QUIRE_GROWTH_RESERVED});
    refuse_policy(INVALID, (quire_page_policy){.request_factor = 2});
    refuse_policy(INVALID, (quire_page_policy){.page_granularity = 3});
    refuse_policy(INVALID, (quire_page_policy){.classes = {{.page_size = 4096}}});
    refuse_policy(INVALID, (quire_page_policy){.classes = {{.max_request = 4096}}});
    refuse_policy(INVALID, (quire_page_policy){.classes = {{2, 4096}, {1, 4096}}});
    refuse_policy(INVALID,
                  (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS, .classes = {{1, 4096}}});
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
    REFUSED_OUT(&b, INVALID, made, quire_page_policy_preset(QUIRE_PRESET_RMM, NULL, 0, &made));
    REFUSED(&b, INVALID, quire_page_policy_preset(QUIRE_PRESET_RMM, b.device, 0, NULL));
    REFUSED_OUT(&b, INVALID, made, quire_page_policy_preset((quire_preset)3, b.device, 0, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_page_policy_preset(QUIRE_PRESET_PYTORCH, b.device, 4, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_page_policy_preset(QUIRE_PRESET_VMA, b.device, UINT32_MAX, &made));
    REFUSED(&b, INVALID, quire_page_policy_paddle(QUIRE_PADDLE_AUTO_GROWTH, &good, NULL));
    REFUSED_OUT(&b, INVALID, made, quire_page_policy_paddle(QUIRE_PADDLE_AUTO_GROWTH, NULL, &made));
    REFUSED_OUT(&b, INVALID, made,
                quire_page_policy_paddle((quire_paddle_strategy)2, &good, &made));
    for (int i = 0; i < 5; i++)
        REFUSED_OUT(
            &b, INVALID, made,
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
        REFUSED_OUT(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, made,
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
    REFUSED_OUT(&b, INVALID, info, quire_memory_get_info(NULL, &info));
    REFUSED(&b, INVALID, quire_memory_get_info(visible, NULL));
    REFUSED_OUT(&b, INVALID, page, quire_page_get_info(NULL, 0, &page));
    REFUSED(&b, INVALID, quire_page_get_info(visible, 0, NULL));
    REFUSED_OUT(&b, OUTSIDE, page, quire_page_get_info(visible, 1, &page));
    REFUSED_OUT(&b, OUTSIDE, page, quire_page_get_info(visible, UINT32_MAX, &page));
    REFUSED_OUT(&b, INVALID, released, quire_memory_trim(NULL, 0, &released));
    REFUSED(&b, INVALID, quire_memory_trim(NULL, 0, NULL));
    REFUSED_OUT(&b, INVALID, released, quire_device_trim(NULL, 0, &released));
    REFUSED(&b, INVALID, quire_device_walk(NULL, go_on, NULL));
    REFUSED(&b, INVALID, quire_device_walk(b.device, NULL, NULL));
    REFUSED(&b, INVALID, quire_memory_preallocate(NULL, 1));
    REFUSED(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, quire_memory_preallocate(visible, UINT64_MAX));
    REFUSED(&b, INVALID, quire_memory_destroy(NULL));
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_memory_destroy(&busy));
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
    REFUSED(&b, INVALID, quire_memory_set_limit(NULL, 1));
    REFUSED(&b, INVALID, quire_memory_set_name_limit(NULL, "x", 1));
    REFUSED(&b, INVALID, quire_memory_set_name_limit(visible, NULL, 1));
    REFUSED(&b, INVALID, quire_memory_set_name_limit(visible, long_prefix, 1));
    REFUSED(&b, INVALID, quire_memory_set_name_limit(visible, long_prefix, 0));
    REFUSED_OUT(&b, INVALID, usage, quire_memory_get_name_usage(NULL, "x", &usage));
    REFUSED_OUT(&b, INVALID, usage, quire_memory_get_name_usage(visible, NULL, &usage));
    REFUSED_OUT(&b, INVALID, usage, quire_memory_get_name_usage(visible, long_prefix, &usage));
    REFUSED(&b, INVALID, quire_memory_get_name_usage(visible, "x", NULL));
    CHECK_OK(quire_memory_set_limit(visible, 1));
    CHECK_OK(quire_memory_set_name_limit(visible, "victim", 1));
    refusal_begin(&b);
    REFUSED_OUT(
        &b, QUIRE_ERROR_OVER_BUDGET, made,
        quire_allocate(visible, &(quire_allocation_options){.size = 1, .dedicated = true}, &made));
    REFUSED_OUT(
        &b, QUIRE_ERROR_OVER_BUDGET, made,
        quire_allocate(visible, &(quire_allocation_options){.size = 1, .name = "victims"}, &made));
    REFUSED(&b, QUIRE_ERROR_OVER_BUDGET,
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
    REFUSED_OUT(&b, code, made, quire_allocate(memory, options, &made));
    REFUSED_OUT(&b, code, made, quire_reserve(memory, options, &made));
    REFUSED_OUT(&b, code, made, quire_allocate_batch(memory, options, &made, 1));
    uint32_t chosen = 77;
    REFUSED_OUT(&b, code, made, quire_allocate_fallback(&memory, 1, options, &chosen, &made));
}

static void requests(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    const quire_allocation_options good = {.size = SIZE};
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 255, UINT64_MAX / 2 + 1, UINT64_C(1) << 31};
    const uint64_t alignments[] = {3, 1000, UINT64_C(4) << 20, UINT64_C(1) << 63, UINT64_MAX};
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSED(&b, INVALID, quire_allocate(visible, &good, NULL));
    REFUSED(&b, INVALID, quire_reserve(visible, &good, NULL));
    refuse_wish(INVALID, NULL, &good);
    refuse_wish(INVALID, visible, NULL);
    refuse_wish(INVALID, visible, &(quire_allocation_options){0});
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        refuse_wish(INVALID, visible,
                    &(quire_allocation_options){.size = SIZE, .alignment = alignments[i]});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        refuse_wish(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, visible,
                    &(quire_allocation_options){.size = sizes[i]});
        refuse_wish(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, visible,
                    &(quire_allocation_options){
                        .size = sizes[i], .alignment = 4096, .dedicated = true, .zero = true});
    }
    refuse_wish(INVALID, visible, &(quire_allocation_options){.size = 1, .name = long_name});
    refuse_wish(QUIRE_ERROR_NOT_HOST_VISIBLE, device_only,
                &(quire_allocation_options){.size = 1, .host_read = true});
    refuse_wish(QUIRE_ERROR_NOT_HOST_VISIBLE, device_only,
                &(quire_allocation_options){.size = 1, .host_write = true});
    refuse_wish(QUIRE_ERROR_NOT_HOST_VISIBLE, device_only,
                &(quire_allocation_options){.size = 1, .mapped = true});
    for (int i = 0; i < 4; i++) {
        quire_allocation_options options = good;
        options.unused[i] = UINT64_MAX;
        refuse_wish(INVALID, visible, &options);
    }
}

/* ---- states --------------------------------------------------------------------------------- */

static void states(void)
{
    REFUSED(&b, INVALID, quire_commit(NULL, reserved));
    REFUSED(&b, INVALID, quire_abort(NULL, reserved));
    REFUSED(&b, INVALID, quire_free(NULL, live));
    REFUSED(&b, INVALID, quire_free_batch(NULL, &live, 1));
    REFUSED(&b, INVALID, quire_free_batch(visible, NULL, 1));
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free_batch(visible, &mapped, 1));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_commit(visible, live));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_abort(visible, live));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_abort(visible, mapped));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_free(visible, reserved));
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free(visible, mapped));
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
        if (quire_allocation_get_info(visible, wrong, &info) != QUIRE_ERROR_STALE_HANDLE)
            check_failed(__FILE__, __LINE__, "handle 0x%" PRIx64 " is taken", wrong.id);
    }
    REFUSED(&b, QUIRE_ERROR_STALE_HANDLE, quire_unmap(visible, bad[1].allocation));
}

static void forged_handles(void)
{
    for (uint32_t bit = 26; bit < 64; bit++) {
        quire_allocation wrong = {live.id ^ UINT64_C(1) << bit};
        REFUSED(&b, bit < 52 ? QUIRE_ERROR_STALE_HANDLE : QUIRE_ERROR_FOREIGN_HANDLE,
                quire_free(visible, wrong));
        if (bit < 52) /* above, the tag may be that of another memory */
            REFUSED(&b, QUIRE_ERROR_STALE_HANDLE, quire_device_free(b.device, wrong));
    }
}

static void handles_alone(void)
{
    quire_memory *owner;
    REFUSED_OUT(&b, INVALID, owner, quire_device_owner(NULL, live, &owner));
    REFUSED(&b, INVALID, quire_device_owner(b.device, live, NULL));
    REFUSED(&b, INVALID, quire_device_free(NULL, live));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_device_free(b.device, reserved));
    for (int i = 0; i < BAD; i++) {
        const quire_result code = i ? QUIRE_ERROR_STALE_HANDLE : INVALID;
        if (bad[i].allocation.id == remote.id)
            continue; /* of another memory of the device */
        REFUSED(&b, code, quire_device_free(b.device, bad[i].allocation));
        REFUSED_OUT(&b, code, owner, quire_device_owner(b.device, bad[i].allocation, &owner));
    }
}

static void questions(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    quire_allocation_info info;
    char name[1];
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSED_OUT(&b, INVALID, info, quire_allocation_get_info(NULL, live, &info));
    REFUSED(&b, INVALID, quire_allocation_get_info(visible, live, NULL));
    REFUSED_HANDLES_OUT(info, quire_allocation_get_info(visible, wrong, &info));
    REFUSED_OUT(&b, INVALID, name, quire_allocation_get_name(NULL, live, name, sizeof name));
    REFUSED(&b, INVALID, quire_allocation_get_name(visible, live, NULL, 5));
    REFUSED(&b, INVALID, quire_allocation_get_name(visible, live, name, 0));
    REFUSED_HANDLES_OUT(name, quire_allocation_get_name(visible, wrong, name, sizeof name));
    REFUSED(&b, INVALID, quire_allocation_set_name(NULL, live, "name"));
    REFUSED(&b, INVALID, quire_allocation_set_name(visible, live, long_name));
    REFUSED_HANDLES(quire_allocation_set_name(visible, wrong, "name"));
    REFUSED_HANDLES(quire_allocation_set_name(visible, wrong, NULL));
    REFUSED(&b, INVALID, quire_allocation_set_user_data(NULL, live, 1));
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
    REFUSED_OUT(&b, INVALID, p, quire_map(NULL, live, &p));
    REFUSED(&b, INVALID, quire_map(visible, live, NULL));
    REFUSED_HANDLES_OUT(p, quire_map(visible, wrong, &p));
    REFUSED_OUT(&b, QUIRE_ERROR_WRONG_STATE, p, quire_map(visible, reserved, &p));
    REFUSED_OUT(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, p, quire_map(device_only, remote, &p));
    REFUSED_OUT(&b, INVALID, p, quire_map_range(NULL, live, 0, 1, &p));
    REFUSED(&b, INVALID, quire_map_range(visible, live, 0, 1, NULL));
    REFUSED_HANDLES_OUT(p, quire_map_range(visible, wrong, 0, 1, &p));
    for (int i = 0; i < OUTSIDES; i++)
        REFUSED_OUT(&b, OUTSIDE, p,
                    quire_map_range(visible, live, outside[i].offset, outside[i].size, &p));
    REFUSED(&b, INVALID, quire_unmap(NULL, mapped));
    REFUSED(&b, QUIRE_ERROR_NOT_MAPPED, quire_unmap(visible, live));
    REFUSED(&b, QUIRE_ERROR_NOT_MAPPED, quire_unmap(device_only, remote));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_unmap(visible, reserved));
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
    REFUSED(&b, QUIRE_ERROR_NOT_MAPPED, quire_unmap(visible, lasting));
    CHECK_OK(quire_map(visible, lasting, &p));
    refusal_begin(&b);
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free(visible, lasting));
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free_batch(visible, &lasting, 1));
    CHECK_OK(quire_unmap(visible, lasting));
    CHECK_OK(quire_free(visible, lasting));
    refusal_begin(&b);
    REFUSED(&b, QUIRE_ERROR_STALE_HANDLE, quire_free(visible, lasting));
}

static void mapping_too_often(void)
{
    void *p;
    for (int i = 0; i < MAX_MAPS; i++)
        CHECK_OK(quire_map(visible, live, &p));
    refusal_begin(&b);
    REFUSED_OUT(&b, OUTSIDE, p, quire_map(visible, live, &p));
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free(visible, live));
    for (int i = 0; i < MAX_MAPS; i++)
        CHECK_OK(quire_unmap(visible, live));
    refusal_begin(&b);
    REFUSED(&b, QUIRE_ERROR_NOT_MAPPED, quire_unmap(visible, live));
}

static void syncing(void)
{
    REFUSED(&b, INVALID, quire_flush(NULL, live, 0, 0));
    REFUSED(&b, INVALID, quire_invalidate(NULL, live, 0, 0));
    REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, quire_flush(device_only, remote, 0, 0));
    REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, quire_invalidate(device_only, remote, 0, 0));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_flush(visible, reserved, 0, 0));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_invalidate(visible, reserved, 0, 0));
    REFUSED_HANDLES(quire_flush(visible, wrong, 0, 0));
    REFUSED_HANDLES(quire_invalidate(visible, wrong, 0, 0));
    for (int i = 0; i < OUTSIDES; i++) {
        REFUSED(&b, OUTSIDE, quire_flush(visible, live, outside[i].offset, outside[i].size));
        REFUSED(&b, OUTSIDE, quire_invalidate(visible, live, outside[i].offset, outside[i].size));
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
    REFUSED(&b, INVALID, quire_flush_batch(NULL, &good, 1));
    REFUSED(&b, INVALID, quire_invalidate_batch(NULL, &good, 1));
    REFUSED(&b, INVALID, quire_flush_batch(visible, NULL, 1));
    REFUSED(&b, INVALID, quire_invalidate_batch(visible, NULL, 1));
    REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, quire_flush_batch(device_only, &there, 1));
    REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, quire_invalidate_batch(device_only, &there, 1));
    for (int s = 0; s < 2; s++) {
        REFUSED(&b, QUIRE_ERROR_WRONG_STATE, sync_batch(s, visible, (quire_view){reserved, 0, 0}));
        REFUSED_HANDLES(sync_batch(s, visible, (quire_view){wrong, 0, 0}));
        for (int i = 0; i < OUTSIDES; i++)
            REFUSED(&b, OUTSIDE,
                    sync_batch(s, visible, (quire_view){live, outside[i].offset, outside[i].size}));
    }
}

static void copying(void)
{
    char data[8] = "data";
    REFUSED(&b, INVALID, quire_write(NULL, live, 0, data, 1));
    REFUSED(&b, INVALID, quire_read(NULL, live, 0, data, 1));
    REFUSED(&b, INVALID, quire_write(visible, live, 0, NULL, 1));
    REFUSED(&b, INVALID, quire_read(visible, live, 0, NULL, 1));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_write(visible, reserved, 0, data, 1));
    REFUSED(&b, QUIRE_ERROR_WRONG_STATE, quire_read(visible, reserved, 0, data, 1));
    REFUSED_HANDLES(quire_write(visible, wrong, 0, data, 1));
    REFUSED_HANDLES(quire_read(visible, wrong, 0, data, 1));
    REFUSED(&b, OUTSIDE, quire_write(visible, live, SIZE + 1, data, 0));
    for (int i = 2; i < OUTSIDES; i++) {
        uint64_t offset = outside[i].offset, size = outside[i].size;
        REFUSED(&b, OUTSIDE, quire_write(visible, live, offset, data, size));
        REFUSED(&b, OUTSIDE, quire_read(visible, live, offset, data, size));
        REFUSED(&b, OUTSIDE, quire_write(device_only, remote, offset, data, size));
        REFUSED(&b, OUTSIDE, quire_read(device_only, remote, offset, data, size));
    }
    CHECK_STR(data, "data"); /* a rejected read writes nothing */
}

/* ---- views ---------------------------------------------------------------------------------- */

static void making_views(void)
{
    quire_view view, whole = {live, 0, SIZE}, far = {live, UINT64_MAX - 10, 100};
    REFUSED_OUT(&b, INVALID, view, quire_view_create(NULL, live, 0, 0, &view));
    REFUSED(&b, INVALID, quire_view_create(visible, live, 0, 0, NULL));
    REFUSED_HANDLES_OUT(view, quire_view_create(visible, wrong, 0, 0, &view));
    REFUSED(&b, INVALID, quire_view_narrow(whole, 0, 0, NULL));
    REFUSED_OUT(&b, OUTSIDE, view, quire_view_narrow(far, 50, 10, &view));
    REFUSED_OUT(&b, OUTSIDE, view, quire_view_narrow((quire_view){live, 0, 0}, 0, 0, &view));
    for (int i = 0; i < OUTSIDES; i++) {
        uint64_t offset = outside[i].offset, size = outside[i].size;
        REFUSED_OUT(&b, OUTSIDE, view, quire_view_create(visible, live, offset, size, &view));
        REFUSED_OUT(&b, OUTSIDE, view, quire_view_narrow(whole, offset, size, &view));
    }
}

static void using_views(void)
{
    const quire_view part = {live, 10, 20}, far = {live, UINT64_MAX - 10, 100},
                     beyond = {live, 990, 20};
    char data[8] = "data";
    void *p;
    REFUSED_OUT(&b, INVALID, p, quire_view_map(NULL, part, &p));
    REFUSED(&b, INVALID, quire_view_map(visible, part, NULL));
    REFUSED_OUT(&b, OUTSIDE, p, quire_view_map(visible, far, &p));
    REFUSED_OUT(&b, OUTSIDE, p, quire_view_map(visible, beyond, &p));
    REFUSED(&b, INVALID, quire_view_write(NULL, part, 0, data, 1));
    REFUSED(&b, INVALID, quire_view_read(NULL, part, 0, data, 1));
    REFUSED(&b, INVALID, quire_view_write(visible, part, 0, NULL, 1));
    REFUSED(&b, INVALID, quire_view_read(visible, part, 0, NULL, 1));
    REFUSED(&b, OUTSIDE, quire_view_write(visible, part, 19, data, 2));
    REFUSED(&b, OUTSIDE, quire_view_read(visible, part, 21, data, 0));
    REFUSED(&b, OUTSIDE, quire_view_write(visible, far, 50, data, 2));
    REFUSED(&b, OUTSIDE, quire_view_read(visible, far, 50, data, 2));
    REFUSED(&b, OUTSIDE, quire_view_write(visible, beyond, 15, data, 2));
    REFUSED(&b, OUTSIDE, quire_view_read(visible, beyond, 15, data, 2));
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
        REFUSED_OUT(&b, OUTSIDE, found, quire_memory_find(visible, nowhere[i], &found));
        REFUSED_OUT(&b, OUTSIDE, found, quire_device_find(b.device, nowhere[i], &memory, &found));
        REFUSED_OUT(&b, OUTSIDE, memory, quire_device_find(b.device, nowhere[i], &memory, &found));
        REFUSED(&b, OUTSIDE, quire_free_at_address(visible, nowhere[i], NULL));
    }
}

static void finding(void)
{
    quire_allocation found;
    quire_memory *memory;
    uint64_t address = address_of(live);
    REFUSED_OUT(&b, INVALID, found, quire_memory_find(NULL, address, &found));
    REFUSED(&b, INVALID, quire_memory_find(visible, address, NULL));
    REFUSED_OUT(&b, INVALID, found, quire_device_find(NULL, address, NULL, &found));
    REFUSED_OUT(&b, INVALID, memory, quire_device_find(b.device, address, &memory, NULL));
    REFUSED_OUT(&b, UNSUPPORTED, found, quire_memory_find(device_only, address, &found));
    REFUSED(&b, UNSUPPORTED, quire_free_at_address(device_only, address, NULL));
    REFUSED(&b, INVALID, quire_free_at_address(NULL, address, NULL));
    REFUSED(&b, INVALID, quire_free_at_address(visible, address + 1, NULL));
    REFUSED(&b, INVALID,
            quire_free_at_address(visible, address + SIZE, NULL)); /* held, not requested */
    REFUSED(&b, QUIRE_ERROR_BUSY, quire_free_at_address(visible, address_of(mapped), NULL));
    finding_nothing();
}

static const misuse_case cases[] = {
    {"creating memories", creation},
    {"contiguous memories", contiguous},
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
    {"making views", making_views},
    {"using views", using_views},
    {NULL, NULL},
};

static const char *const headers[] = {"memory.h", "page_policy.h", "preset.h", "allocation.h",
                                      NULL};

const misuse_area misuse_memory = {"memory", begin, end, cases, headers};
