/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * by_kind.c - ranges, buffers and images without a memory of the caller: which kind is chosen, what
 * follows if it is full, and what a failure leaves behind.
 */
#include "src/core/allocate/oom_report.h"
#include "src/core/memory/default_memory.h"
#include "tests/support/crew.h"
#include "tests/support/fake.h"
#include "tests/support/streams.h"
#include "tests/support/unit.h"

#include "quire/backend.h"
#include "quire/quire.h"

#define GIB (UINT64_C(1) << 30)

enum { KINDS = 4, SIZE = 4096, NONE = 99 };

typedef struct bench {
    fake_backend fake;
    quire_device *device;
} bench;

static void prepare(bench *b)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
}

static void open_device(bench *b)
{
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
}

static void make(bench *b)
{
    prepare(b);
    open_device(b);
}

static void end(bench *b)
{
    for (uint32_t kind = 0; kind < b->fake.info.kind_count; kind++) {
        quire_memory *memory = NULL;
        CHECK_OK(quire_device_default_memory(b->device, kind, &memory));
        CHECK_OK(quire_memory_check(memory));
        quire_memory_destroy_all(&memory);
    }
    CHECK_EQ(b->fake.objects, 0);
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.maps, 0);
}

/* What is created in a test: a raw range, a buffer, an image, an object of the backend. */
typedef enum sort { RANGE = 0, BUFFER, IMAGE, OBJECT, SORTS } sort;

static const uint64_t DESCRIPTION = SIZE;

/* Creates one of SIZE bytes. */
static quire_result create(bench *b, sort s, const quire_kind_request *choice, bool host_write,
                           quire_memory **memory, quire_allocation *made)
{
    if (s == RANGE)
        return quire_device_allocate(
            b->device, choice, &(quire_allocation_options){.size = SIZE, .host_write = host_write},
            memory, made);
    if (s == BUFFER)
        return quire_device_buffer_create(
            b->device, choice, &(quire_buffer_options){.size = SIZE, .host_write = host_write},
            memory, (quire_buffer *)made);
    if (s == IMAGE)
        return quire_device_image_create(
            b->device, choice, &(quire_image_options){.width = SIZE, .host_write = host_write},
            memory, (quire_image *)made);
    return quire_device_object_create(b->device, choice,
                                      &(quire_object_options){.object = QUIRE_OBJECT_BUFFER,
                                                              .description = &DESCRIPTION,
                                                              .host_write = host_write},
                                      memory, made);
}

/* Creates one and returns the kind of its memory. */
static uint32_t kind_of(bench *b, sort s, const quire_kind_request *choice, bool host_write)
{
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_allocation made;
    CHECK_OK(create(b, s, choice, host_write, &memory, &made));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_OK(quire_memory_check(memory));
    return info.kind;
}

static void expect_refused(bench *b, sort s, const quire_kind_request *choice, bool host_write,
                           quire_result code, const char *says)
{
    quire_memory *memory = (quire_memory *)(void *)b;
    quire_allocation made = {7};
    uint64_t objects = b->fake.objects;
    CHECK_FAILS(create(b, s, choice, host_write, &memory, &made), code);
    CHECK_HAS(quire_last_error(), says);
    CHECK(!memory);
    CHECK_EQ(made.id, 0);
    CHECK_EQ(b->fake.objects, objects);
}

/* The kinds in the order in which quire_device_choose_kind finds them. Returns their number. */
static uint32_t rank(bench *b, quire_kind_request request, uint32_t kinds[KINDS])
{
    uint32_t count = 0;
    if (!request.mask)
        request.mask = (1u << KINDS) - 1;
    while (request.mask && !quire_device_choose_kind(b->device, &request, &kinds[count]))
        request.mask &= ~(1u << kinds[count++]);
    return count;
}

/* Lets the default memory of a kind create no more pages. */
static void fill(bench *b, uint32_t kind)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_device_default_memory(b->device, kind, &memory));
    CHECK_OK(quire_memory_set_limit(memory, 1));
}

/* A test of each sort, from the first one that is named. */
#define EACH(name, first)                                                                          \
    static void name##_of(bench *b, sort s);                                                       \
    UNIT(by_kind, name)                                                                            \
    {                                                                                              \
        for (sort s = first; s < SORTS; s++) {                                                     \
            bench b;                                                                               \
            make(&b);                                                                              \
            name##_of(&b, s);                                                                      \
            end(&b);                                                                               \
        }                                                                                          \
    }                                                                                              \
    static void name##_of(bench *b, sort s)

/* ---- the order ---------------------------------------------------------------------------- */

UNIT(by_kind, the_kinds_follow_in_the_order_of_the_choice)
{
    static const quire_kind_request requests[] = {
        {.required = QUIRE_DEVICE_LOCAL},
        {.required = QUIRE_HOST_VISIBLE},
        {.required = QUIRE_HOST_VISIBLE, .preferred = QUIRE_HOST_CACHED},
        {.preferred = QUIRE_DEVICE_LOCAL},
        {.preferred = QUIRE_HOST_VISIBLE, .avoided = QUIRE_DEVICE_LOCAL},
        {.preferred = QUIRE_DEVICE_LOCAL, .mask = 0xa},
        {.required = QUIRE_DEVICE_LOCAL, .exact = true},
    };
    for (uint32_t i = 0; i < sizeof requests / sizeof *requests; i++)
        for (sort s = RANGE; s < SORTS; s++) {
            const quire_kind_request choice = requests[i];
            uint32_t kinds[KINDS], count = 1;
            for (uint32_t k = 0; k < count; k++) { /* the k best kinds are full */
                bench b;
                make(&b);
                count = rank(&b, requests[i], kinds);
                for (uint32_t full = 0; full < k; full++)
                    fill(&b, kinds[full]);
                CHECK_EQ(kind_of(&b, s, &choice, false), kinds[k]);
                end(&b);
            }
            CHECK(count > 0);
        }
}

#define CASE(name) UNIT_ON(by_kind, name, bench, b, make(b), end)

CASE(without_a_choice_the_host_access_decides)
{
    uint32_t kind = NONE;
    for (sort s = RANGE; s < SORTS; s++) {
        CHECK_OK(quire_device_choose_kind(
            b->device, &(quire_kind_request){.intent = QUIRE_INTENT_HOST_WRITE}, &kind));
        CHECK_EQ(kind_of(b, s, NULL, true), kind);
        CHECK_EQ(kind_of(b, s, &(quire_kind_request){.intent = 0}, true), kind);
        CHECK_OK(quire_device_choose_kind(
            b->device, &(quire_kind_request){.preferred = QUIRE_DEVICE_LOCAL}, &kind));
        CHECK_EQ(kind_of(b, s, NULL, false), kind);
    }
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_buffer buffer;
    CHECK_OK(quire_device_choose_kind(
        b->device, &(quire_kind_request){.intent = QUIRE_INTENT_HOST_READ}, &kind));
    CHECK_OK(quire_device_buffer_create(
        b->device, NULL, &(quire_buffer_options){.size = 64, .host_read = true}, &memory, &buffer));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.kind, kind);
}

/* Without a choice a full device is left for a kind that is not device-local; with an intent, or
   where the flag is required, it is not. */
CASE(device_local_is_preferred_unless_it_is_required)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 1));
    const quire_kind_request required = {.required = QUIRE_DEVICE_LOCAL};
    const quire_intent intent = QUIRE_INTENT_DEVICE;
    const quire_kind_request intended = {.intent = intent};
    for (sort s = RANGE; s < SORTS; s++) {
        uint32_t kind = kind_of(b, s, NULL, false);
        CHECK_EQ(b->fake.info.kinds[kind].heap, 1);
        expect_refused(b, s, &required, false, QUIRE_ERROR_OVER_BUDGET, "of kind 0");
        expect_refused(b, s, &intended, false, QUIRE_ERROR_OVER_BUDGET, "of kind 0");
    }
}

CASE(host_access_requires_a_visible_kind_in_any_case)
{
    const quire_intent none = QUIRE_INTENT_DEVICE;
    const quire_kind_request choices[] = {
        {.intent = none}, {.required = QUIRE_DEVICE_LOCAL}, {.preferred = QUIRE_DEVICE_LOCAL}};
    for (sort s = RANGE; s < SORTS; s++) {
        for (int i = 0; i < 3; i++)
            CHECK_EQ(kind_of(b, s, &choices[i], true), 3);
        const quire_kind_request exact = {.required = QUIRE_DEVICE_LOCAL, .exact = true};
        expect_refused(b, s, &exact, true, QUIRE_ERROR_NOT_HOST_VISIBLE, "kind 0");
        const quire_kind_request avoided = {.avoided = QUIRE_HOST_VISIBLE};
        expect_refused(b, s, &avoided, true, QUIRE_ERROR_INVALID_ARGUMENT,
                       "both avoided and requested");
    }
}

CASE(what_is_mapped_gets_a_visible_kind)
{
    quire_memory *memory = NULL;
    quire_allocation_info info;
    quire_buffer buffer;
    const quire_buffer_options options = {.size = SIZE, .mapped = true, .info = &info};
    CHECK_OK(quire_device_buffer_create(b->device, NULL, &options, &memory, &buffer));
    CHECK(info.host != NULL);
    CHECK_OK(quire_free(memory, buffer.allocation));
}

/* ---- refusals ----------------------------------------------------------------------------- */

EACH(the_error_of_the_best_kind_is_returned_if_all_refuse, RANGE)
{
    uint32_t kinds[KINDS];
    CHECK_EQ(rank(b, (quire_kind_request){.preferred = QUIRE_DEVICE_LOCAL}, kinds), KINDS);
    CHECK_OK(quire_device_set_page_limit(b->device, 1));
    fill(b, kinds[0]); /* OVER_BUDGET; the others have TOO_MANY_PAGES */
    quire_memory *other = NULL;
    quire_allocation made;
    CHECK_OK(quire_memory_create(b->device, NULL, &other));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 64}, &made));
    expect_refused(b, s, NULL, false, QUIRE_ERROR_OVER_BUDGET, "memory 'default memory of");
    CHECK_EQ(b->fake.objects, 0);
    quire_memory_destroy_all(&other);
}

/* Each default memory that was asked knows the kinds that refused with it. */
UNIT_ON(by_kind, a_refusal_of_all_kinds_is_noted_in_each, bench, b, make(b), end)
{
    quire_memory *memory = NULL;
    quire_allocation none;
    const quire_allocation_options huge = {.size = UINT64_C(1) << 50};
    uint32_t noted = 0;
    CHECK_FAILS(quire_device_allocate(b->device, NULL, &huge, &memory, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        qi_oom_record last;
        CHECK_OK(quire_device_default_memory(b->device, kind, &memory));
        qi_oom_last(memory, &last);
        if (!last.number)
            continue;
        noted |= UINT32_C(1) << kind;
        CHECK_EQ(last.kinds, (UINT32_C(1) << KINDS) - 1);
    }
    CHECK_EQ(noted, (UINT32_C(1) << KINDS) - 1);
}

EACH(a_success_in_a_later_kind_keeps_the_last_error, RANGE)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 1));
    CHECK_FAILS(quire_free(NULL, (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    kind_of(b, s, NULL, false);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(an_error_that_no_other_kind_can_avoid_ends_the_search)
{
    quire_memory *memory = NULL;
    quire_buffer buffer;
    CHECK_FAILS(quire_device_buffer_create(b->device, NULL,
                                           &(quire_buffer_options){.size = 64, .alignment = 3},
                                           &memory, &buffer),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_device_buffer_create(b->device, NULL,
                                           &(quire_buffer_options){.size = 64, .alignment = GIB},
                                           &memory, &buffer),
                QUIRE_ERROR_INVALID_ARGUMENT);
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    CHECK_EQ(stats.memory_count, 1); /* the one that refused the alignment */
    fake_fail(&b->fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    expect_refused(b, RANGE, NULL, false, QUIRE_ERROR_DEVICE_LOST, "");
    fake_fail(&b->fake, 0, false, QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    CHECK_EQ(stats.memory_count, 1);
}

/* ---- native objects ----------------------------------------------------------------------- */

CASE(only_kinds_that_can_hold_the_object_are_used)
{
    b->fake.object_needs.kind_mask = 1u << 2;
    for (sort s = BUFFER; s < SORTS; s++) {
        CHECK_EQ(kind_of(b, s, NULL, false), 2);
        const quire_kind_request required = {.required = QUIRE_DEVICE_LOCAL};
        expect_refused(b, s, &required, false, QUIRE_ERROR_UNSUPPORTED, "in the mask 0x4");
        const quire_kind_request masked = {.mask = 3};
        expect_refused(b, s, &masked, false, QUIRE_ERROR_UNSUPPORTED,
                       "the object needs one of kinds 0x4, and the request allows 0x3");
    }
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b->device, &stats));
    CHECK_EQ(stats.memory_count, 1); /* memories of other kinds were not even made */
}

EACH(the_native_object_is_created_once_for_all_kinds, BUFFER)
{
    uint32_t kinds[KINDS];
    CHECK_EQ(rank(b, (quire_kind_request){.preferred = QUIRE_DEVICE_LOCAL}, kinds), KINDS);
    for (uint32_t k = 0; k + 1 < KINDS; k++)
        fill(b, kinds[k]);
    CHECK_EQ(kind_of(b, s, NULL, false), kinds[KINDS - 1]);
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_CREATE], 1);
    CHECK_EQ(b->fake.objects, 1);
    fill(b, kinds[KINDS - 1]);
    for (int i = 0; i < 600; i++) { /* until the page is full, too */
        quire_memory *memory;
        quire_allocation made;
        if (create(b, s, NULL, false, &memory, &made))
            break;
    }
    uint64_t created = b->fake.calls[FAKE_OBJECT_CREATE], objects = b->fake.objects;
    expect_refused(b, s, NULL, false, QUIRE_ERROR_OVER_BUDGET, "limit");
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_CREATE], created + 1);
    CHECK_EQ(b->fake.objects, objects);
}

UNIT(by_kind, each_failing_host_allocation_leaves_nothing)
{
    for (sort s = RANGE; s < SORTS; s++) {
        uint64_t call = 1;
        for (;; call++) {
            bench b;
            quire_memory *memory = NULL;
            quire_allocation made;
            make(&b);
            test_memory_fail(unit_memory_state(), call, false);
            quire_result result = create(&b, s, NULL, true, &memory, &made);
            test_memory_fail(unit_memory_state(), 0, false);
            if (result) {
                CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
                CHECK(!memory && !made.id);
                CHECK_EQ(b.fake.objects, 0);
            }
            end(&b);
            if (!result)
                break;
        }
        CHECK(call > 4);
    }
}

/* ---- streams, information, backends without objects --------------------------------------- */

UNIT_ON(by_kind, options_keep_their_meaning, bench, b, prepare(b), end)
{
    quire_memory *memory = NULL, *again = NULL;
    quire_stream *stream = NULL;
    quire_allocation_info info, second;
    quire_buffer buffer, reused;
    streams_offer(&b->fake.table);
    open_device(b);
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    quire_buffer_options options = {
        .size = SIZE, .name = "weights", .user_data = 5, .info = &info, .stream = stream};
    CHECK_OK(quire_device_buffer_create(b->device, NULL, &options, &memory, &buffer));
    CHECK_EQ(info.requested, SIZE);
    CHECK_EQ(info.user_data, 5);
    CHECK(info.native != 0);
    char name[16];
    CHECK_OK(quire_allocation_get_name(memory, buffer.allocation, name, sizeof name));
    CHECK_STR(name, "weights");
    CHECK_OK(quire_free_on_stream(memory, buffer.allocation, stream));
    options.info = &second;
    CHECK_OK(quire_device_buffer_create(b->device, NULL, &options, &again, &reused));
    CHECK(again == memory);
    CHECK_EQ(second.page, info.page);
    CHECK_EQ(second.offset, info.offset);
    CHECK_OK(quire_allocation_get_name(memory, reused.allocation, name, sizeof name));
    CHECK_STR(name, "weights");
    options.size = UINT64_MAX / 2;
    CHECK_FAILS(quire_device_buffer_create(b->device, NULL, &options, &again, &reused),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(second.native, 0);
    CHECK_EQ(second.requested, 0);
    CHECK_OK(quire_device_default_memory(b->device, 0, &memory));
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_stream_destroy(&stream));
}

/* On a stream the name is given after the placement: in a later kind, too. */
UNIT_ON(by_kind, a_name_on_a_stream_survives_a_refusal, bench, b, prepare(b), end)
{
    quire_memory *memory = NULL;
    quire_stream *stream = NULL;
    quire_buffer buffer;
    char name[16];
    streams_offer(&b->fake.table);
    open_device(b);
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 1));
    CHECK_OK(quire_device_buffer_create(
        b->device, NULL,
        &(quire_buffer_options){.size = SIZE, .name = "weights", .stream = stream, .zero = true},
        &memory, &buffer));
    CHECK_OK(quire_allocation_get_name(memory, buffer.allocation, name, sizeof name));
    CHECK_STR(name, "weights");
    CHECK_OK(quire_stream_destroy(&stream));
}

UNIT(by_kind, a_backend_without_objects_serves_ranges_and_images)
{
    for (sort s = RANGE; s < OBJECT; s++) {
        bench b;
        prepare(&b);
        b.fake.table.features &= ~QUIRE_BACKEND_OBJECTS;
        b.fake.table.object_create = NULL;
        b.fake.table.object_bind = NULL;
        b.fake.table.object_destroy = NULL;
        open_device(&b);
        CHECK_OK(quire_device_set_heap_limit(b.device, 0, 1));
        uint32_t kind = kind_of(&b, s, NULL, false);
        CHECK_EQ(b.fake.info.kinds[kind].heap, 1);
        expect_refused(&b, OBJECT, NULL, false, QUIRE_ERROR_UNSUPPORTED,
                       "backend fake has no objects");
        end(&b);
    }
}

/* ---- threads ------------------------------------------------------------------------------ */

typedef struct worker {
    bench *b;
    uint32_t refused;
} worker;

/* Creates, until both heaps are full, and frees everything. */
static void churn(void *user)
{
    enum { MOST = 64 };
    worker *w = user;
    quire_memory *memories[MOST];
    quire_allocation made[MOST];
    for (int round = 0; round < 20; round++) {
        uint32_t count = 0;
        while (count < MOST && !create(w->b, (sort)(count % SORTS), NULL, count & 4,
                                       &memories[count], &made[count]))
            count++;
        w->refused += count < MOST;
        while (count--)
            if (quire_free(memories[count], made[count]))
                w->refused = NONE;
    }
}

CASE(threads_share_the_kinds_within_the_limits)
{
    crew c;
    worker workers[4];
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, UINT64_C(3) << 20));
    CHECK_OK(quire_device_set_heap_limit(b->device, 1, UINT64_C(3) << 20));
    crew_start(&c, 4);
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] = (worker){b, 0};
        crew_tell(&c, i + 1, churn, &workers[i]);
    }
    for (uint32_t i = 0; i < 4; i++)
        crew_await(&c, i + 1);
    crew_end(&c);
    for (uint32_t i = 0; i < 4; i++)
        CHECK(workers[i].refused < NONE);
    CHECK(b->fake.peak_heap_bytes[0] <= UINT64_C(3) << 20);
    CHECK(b->fake.peak_heap_bytes[1] <= UINT64_C(3) << 20);
    CHECK_EQ(b->fake.objects, 0);
}
