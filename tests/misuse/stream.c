/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - every wrong use of quire/stream.h: the documented code, a sentence, zeroed
 * outputs, nothing changed.
 */
#include <stdio.h>

#include "tests/misuse/misuse.h"
#include "tests/support/on_stream.h"
#include "tests/support/state.h"
#include "tests/support/streams.h"

enum { SIZE = 1000 };

static bench b;
static quire_stream *stream, *held, *foreign;
static quire_device *other_device;
static fake_backend other;
static quire_memory *memory;
static quire_allocation live, reserved, mapped, stale, remote, waiting;
static uint64_t waiting_address;

static uint64_t address_of(quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
    return info.address;
}

static bool build(void)
{
    const quire_allocation_options options = {.size = SIZE, .name = "victim"};
    bench_begin(&b, true);
    streams_offer(&b.fake.table);
    return bench_open(&b) &&
           bench_memory(&b, &(quire_memory_options){.name = "other", .kind.mask = 2}) &&
           bench_allocate(&b, 1, &options) &&
           bench_memory(&b, &(quire_memory_options){.name = "memory",
                                                    .kind.mask = 2,
                                                    .find_by_address = true}) &&
           bench_allocate(&b, 3, &options) && bench_reserve(&b, &options);
}

static void begin(void)
{
    const quire_allocation_options options = {.size = SIZE};
    CHECK(build());
    memory = b.memory;
    remote = b.held[0].allocation;
    live = b.held[1].allocation;
    mapped = b.held[2].allocation;
    reserved = b.held[4].allocation;
    stale = b.held[3].allocation;
    CHECK(bench_free(&b, 3) && bench_map(&b, 2));
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held));
    CHECK_OK(quire_allocate(memory, &options, &waiting));
    waiting_address = address_of(waiting);
    CHECK_OK(quire_free_on_stream(memory, waiting, stream));
    fake_init(&other);
    other.table = b.fake.table;
    CHECK_OK(fake_open(&other, NULL, &other_device));
    CHECK_OK(quire_stream_create(other_device, NULL, &foreign));
    CHECK_OK(quire_stream_mark(foreign, &(quire_point){0}));
    refusal_begin(&b);
}

static void finish(void)
{
    streams_pass(stream);
    CHECK_OK(quire_collect(memory, NULL));
    streams_pass(stream);
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&held));
    CHECK_OK(quire_stream_destroy(&foreign));
    CHECK_OK(quire_device_destroy(&other_device));
    bench_end(&b);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void making(void)
{
    static char long_name[QUIRE_MAX_NAME + 2];
    quire_stream *none = NULL, *busy = stream;
    memset(long_name, 'x', sizeof long_name - 1);
    REFUSE_OUT(INVALID, none, quire_stream_create(NULL, NULL, &none));
    REFUSE(INVALID, quire_stream_create(b.device, NULL, NULL));
    REFUSE_OUT(INVALID, none,
               quire_stream_create(b.device, &(quire_stream_options){.name = long_name}, &none));
    for (int i = 0; i < 4; i++) {
        quire_stream_options options = {0};
        options.unused[i] = 1;
        REFUSE_OUT(INVALID, none, quire_stream_create(b.device, &options, &none));
    }
    REFUSE(INVALID, quire_stream_destroy(NULL));
    REFUSE(BUSY, quire_stream_destroy(&busy));
    CHECK(busy == stream);
}

static void asking(void)
{
    quire_stream_info info;
    quire_point point, own = {stream, 1}, of_held = {held, 1}, far = {foreign, 1};
    quire_point beyond = {stream, 1000}, beyond_held = {held, 2};
    bool has_passed;
    REFUSE_OUT(INVALID, info, quire_stream_get_info(NULL, &info));
    REFUSE(INVALID, quire_stream_get_info(stream, NULL));
    REFUSE_OUT(INVALID, point, quire_stream_mark(NULL, &point));
    REFUSE(INVALID, quire_stream_mark(stream, NULL));
    REFUSE(INVALID, quire_stream_announce(NULL, 1));
    REFUSE(INVALID, quire_stream_announce(stream, 0));
    REFUSE(UNSUPPORTED, quire_stream_announce(stream, 5));
    REFUSE(UNSUPPORTED, quire_stream_announce(held, 5));
    REFUSE(INVALID, quire_stream_wait(NULL, &own));
    REFUSE(INVALID, quire_stream_wait(stream, NULL));
    REFUSE(INVALID, quire_stream_wait(stream, &of_held));
    REFUSE(INVALID, quire_stream_wait(held, &own));
    REFUSE(FOREIGN, quire_stream_wait(stream, &far));
    REFUSE(INVALID, quire_stream_wait(foreign, &beyond));
    REFUSE_OUT(INVALID, has_passed, quire_point_has_passed(&beyond, &has_passed));
    REFUSE(INVALID, quire_point_await(&beyond, QUIRE_FOREVER));
    REFUSE(INVALID, quire_point_await(&beyond_held, 0));
    REFUSE_OUT(INVALID, has_passed, quire_point_has_passed(NULL, &has_passed));
    REFUSE(INVALID, quire_point_has_passed(&own, NULL));
    REFUSE(INVALID, quire_point_await(NULL, 0));
    REFUSE(BUSY, quire_point_await(&far, 0));
    REFUSE(BUSY, quire_point_await(&of_held, QUIRE_FOREVER));
}

/* ---- memory --------------------------------------------------------------------------------- */

/* The handles that no call may free, and the expected error of each. */
static const struct {
    const quire_allocation *allocation;
    quire_result code;
} bad[] = {{&stale, STALE}, {&waiting, STALE}, {&remote, FOREIGN}, {&reserved, WRONG_STATE}};

static void frees(void)
{
    const quire_point point = {stream, 1}, beyond = {stream, 1000}, never = {foreign, 1000};
    const quire_allocation none = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        REFUSE(bad[i].code, quire_free_after_point(memory, *bad[i].allocation, &point));
        REFUSE(bad[i].code, quire_free_after_point(memory, *bad[i].allocation, &(quire_point){0}));
        REFUSE(bad[i].code, quire_free_on_stream(memory, *bad[i].allocation, stream));
        REFUSE(bad[i].code, quire_record_use(memory, *bad[i].allocation, stream));
    }
    REFUSE(INVALID, quire_free_after_point(memory, none, &point));
    REFUSE(INVALID, quire_free_on_stream(memory, none, stream));
    REFUSE(INVALID, quire_record_use(memory, none, stream));
    REFUSE(BUSY, quire_free_after_point(memory, mapped, &point));
    REFUSE(BUSY, quire_free_on_stream(memory, mapped, stream));
    REFUSE(INVALID, quire_free_after_point(NULL, live, &point));
    REFUSE(INVALID, quire_free_after_point(memory, live, NULL));
    REFUSE(INVALID, quire_free_after_point(memory, live, &beyond));
    REFUSE(INVALID, quire_free_after_point(memory, live, &never));
    REFUSE(INVALID, quire_free_on_stream(NULL, live, stream));
    REFUSE(INVALID, quire_free_on_stream(memory, live, NULL));
    REFUSE(INVALID, quire_record_use(NULL, live, stream));
    REFUSE(INVALID, quire_record_use(memory, live, NULL));
}

static void frees_by_address(void)
{
    uint64_t address = address_of(live);
    REFUSE(INVALID, quire_free_at_address(NULL, address, stream));
    REFUSE(INVALID, quire_free_at_address(memory, address + 1, stream));
    REFUSE(UNSUPPORTED, quire_free_at_address(b.memories[0], address, stream));
    REFUSE(BUSY, quire_free_at_address(memory, address_of(mapped), stream));
    REFUSE(OUTSIDE, quire_free_at_address(memory, address_of(reserved), stream));
    REFUSE(OUTSIDE, quire_free_at_address(memory, 0, stream));
    REFUSE(OUTSIDE, quire_free_at_address(memory, waiting_address, stream));
}

static void allocations(void)
{
    const quire_allocation_options good = {.size = SIZE}, empty = {0},
                                   odd = {.size = SIZE, .alignment = 3},
                                   huge = {.size = UINT64_MAX};
    quire_allocation made;
    uint64_t released;
    REFUSE_OUT(INVALID, made, allocate_on_stream(NULL, &good, stream, &made));
    REFUSE_OUT(INVALID, made, allocate_on_stream(memory, NULL, stream, &made));
    REFUSE(INVALID, allocate_on_stream(memory, &good, stream, NULL));
    REFUSE_OUT(INVALID, made, allocate_on_stream(memory, &empty, stream, &made));
    REFUSE_OUT(INVALID, made, allocate_on_stream(memory, &odd, held, &made));
    REFUSE_OUT(NO_MEMORY, made, allocate_on_stream(memory, &huge, stream, &made));
    REFUSE_OUT(INVALID, released, quire_collect(NULL, &released));
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"making streams", making},   {"asking and waiting", asking},
    {"frees and uses", frees},    {"frees by address", frees_by_address},
    {"allocations", allocations}, {NULL, NULL},
};

static const char *const headers[] = {"stream.h", NULL};

const misuse_area misuse_stream = {"stream", begin, finish, cases, headers};
