/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * default_memory.c - the memories that a device owns: made once for each kind, treated like any
 * memory, and destroyed with the device or not at all.
 */
#include <stdio.h>

#include "src/core/memory/default_memory.h"
#include "tests/support/crew.h"
#include "tests/support/fake.h"
#include "tests/support/log_lines.h"
#include "tests/support/streams.h"
#include "tests/support/unit.h"

#include "quire/quire.h"

typedef struct bench {
    fake_backend fake;
    quire_device *device;
    log_lines log;
} bench;

static void prepare(bench *b)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
}

static void open_device(bench *b)
{
    quire_device_options options = {.host_memory = unit_memory(),
                                    .log = {.write = log_lines_keep, .level = QUIRE_LOG_INFO}};
    options.log.user = &b->log;
    CHECK_OK(quire_device_create(&b->fake.table, &b->fake, &options, &b->device));
    b->log.text[0] = '\0';
}

static void make(bench *b)
{
    prepare(b);
    open_device(b);
}

static void end(bench *b)
{
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK(!b->device);
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.objects, 0);
    CHECK(b->fake.ended);
}

static quire_memory *default_of(bench *b, uint32_t kind)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_device_default_memory(b->device, kind, &memory));
    CHECK(memory != NULL);
    return memory;
}

static quire_allocation allocate(quire_memory *memory, uint64_t size, const char *name)
{
    quire_allocation made;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = size, .name = name}, &made));
    return made;
}

UNIT(default_memory, one_of_each_kind_is_made_at_the_first_call)
{
    bench b;
    make(&b);
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(b.device, &stats));
    CHECK_EQ(stats.memory_count, 0);
    for (uint32_t kind = 0; kind < 4; kind++) {
        quire_memory_info info;
        char name[64];
        quire_memory *memory = default_of(&b, kind);
        CHECK(default_of(&b, kind) == memory);
        snprintf(name, sizeof name, "default memory of kind %u", kind);
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK_STR(info.name, name);
        CHECK_EQ(info.kind, kind);
        CHECK(info.device == b.device);
    }
    quire_memory *none = NULL;
    CHECK_FAILS(quire_device_default_memory(b.device, 4, &none), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "has 4 memory kinds, not 4");
    CHECK_OK(quire_device_get_stats(b.device, &stats));
    CHECK_EQ(stats.memory_count, 4);
    CHECK_HAS(b.log.text, "memory 'default memory of kind 3' made: kind 3");
    end(&b);
    CHECK_HAS(b.log.text, "memory 'default memory of kind 3' destroyed");
}

#define CASE(name) UNIT_ON(default_memory, name, bench, b, make(b), end)

CASE(the_program_does_not_destroy_it)
{
    quire_memory *memory = default_of(b, 2), *same = memory;
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(),
              "memory 'default memory of kind 2' belongs to device 'fake device'");
    CHECK(memory == same);
    allocate(memory, 100, NULL); /* and it is usable */
    quire_memory_destroy_all(&memory);
    CHECK(!memory);
    CHECK_EQ(b->fake.pages, 0);
    allocate(default_of(b, 2), 100, NULL); /* of another one */
    memory = default_of(b, 2);
    quire_memory_destroy_all(&memory);
}

CASE(the_device_is_busy_while_one_has_allocations)
{
    quire_memory *empty = default_of(b, 0), *first = default_of(b, 1), *second = default_of(b, 3);
    CHECK_OK(quire_free(empty, allocate(empty, 100, NULL))); /* leaves an empty page */
    quire_allocation weights = allocate(first, 100, "weights");
    quire_allocation mesh = allocate(second, 200, "mesh");
    quire_device *device = b->device;
    CHECK_FAILS(quire_device_destroy(&b->device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(),
              "memory 'default memory of kind 1' still has 1 live allocation: 'weights'");
    CHECK(b->device == device);
    CHECK_HAS(b->log.text, "memory 'default memory of kind 1' still holds 'weights'");
    CHECK_HAS(b->log.text, "memory 'default memory of kind 3' still holds 'mesh'");
    /* nothing has changed: not even the memories that are empty */
    CHECK(default_of(b, 0) == empty && default_of(b, 1) == first);
    CHECK_OK(quire_free(empty, allocate(empty, 4096, NULL)));
    CHECK_OK(quire_free(first, weights));
    CHECK_FAILS(quire_device_destroy(&b->device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "'mesh'");
    CHECK_OK(quire_free(second, mesh));
    CHECK(b->fake.pages > 0); /* the empty pages go with the device */
}

CASE(other_memories_are_reported_before_it)
{
    quire_memory *own = NULL;
    default_of(b, 0);
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.name = "own"}, &own));
    CHECK_FAILS(quire_device_destroy(&b->device), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "device 'fake device' still has 1 live memory: 'own'");
    CHECK_OK(quire_memory_destroy(&own));
}

UNIT_ON(default_memory, deferred_frees_in_it_keep_the_device, bench, b, prepare(b), end)
{
    quire_stream *stream = NULL;
    streams_offer(&b->fake.table);
    open_device(b);
    quire_memory *memory = default_of(b, 0);
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    CHECK_OK(quire_free_on_stream(memory, allocate(memory, 100, NULL), stream));
    CHECK_FAILS(quire_device_destroy(&b->device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "still has streams");
    CHECK_OK(quire_collect(memory, NULL)); /* sets the mark */
    streams_pass(stream);
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* A capture stream that is destroyed stays named by the allocation that it used. */
CASE(an_allocation_that_a_destroyed_capture_stream_used_is_named)
{
    quire_stream *stream = NULL;
    quire_memory *memory = default_of(b, 0);
    quire_allocation made;
    CHECK_OK(quire_stream_create(b->device, &(quire_stream_options){.capture = true}, &stream));
    CHECK_OK(quire_allocate(
        memory, &(quire_allocation_options){.size = 64, .name = "used", .stream = stream}, &made));
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_FAILS(quire_device_destroy(&b->device), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "'default memory of kind 0' still has 1 live allocation: 'used'");
    CHECK_OK(quire_free(memory, made));
}

UNIT(default_memory, without_host_memory_none_is_made_and_nothing_is_lost)
{
    uint64_t call = 1;
    for (;; call++) {
        bench b;
        quire_memory *memory = NULL;
        make(&b);
        test_memory_fail(unit_memory_state(), call, false);
        quire_result result = quire_device_default_memory(b.device, 1, &memory);
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK(!memory);
        }
        CHECK_OK(quire_memory_check(default_of(&b, 1)));
        end(&b);
        if (!result)
            break;
    }
    CHECK(call > 3);
}

typedef struct race {
    bench *b;
    quire_memory *found[CREW_MOST][4];
} race;

typedef struct racer {
    race *race;
    uint32_t number;
} racer;

static void find_all(void *user)
{
    const racer *r = user;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t kind = (i + r->number) % 4;
        if (quire_device_default_memory(r->race->b->device, kind,
                                        &r->race->found[r->number - 1][kind]))
            r->race->found[r->number - 1][kind] = NULL;
    }
}

UNIT(default_memory, threads_that_ask_at_once_get_the_same)
{
    crew c;
    crew_start(&c, CREW_MOST);
    for (int round = 0; round < 50; round++) {
        bench b;
        race all = {.b = &b};
        racer racers[CREW_MOST];
        make(&b);
        for (uint32_t i = 0; i < CREW_MOST; i++) {
            racers[i] = (racer){&all, i + 1};
            crew_tell(&c, i + 1, find_all, &racers[i]);
        }
        for (uint32_t i = 0; i < CREW_MOST; i++)
            crew_await(&c, i + 1);
        quire_device_stats stats;
        CHECK_OK(quire_device_get_stats(b.device, &stats));
        CHECK_EQ(stats.memory_count, 4);
        for (uint32_t i = 0; i < CREW_MOST; i++)
            for (uint32_t kind = 0; kind < 4; kind++)
                CHECK(all.found[i][kind] && all.found[i][kind] == all.found[0][kind]);
        end(&b);
    }
    crew_end(&c);
}

CASE(none_is_made_while_the_device_is_destroyed)
{
    quire_device *device = b->device;
    quire_memory *memory = default_of(b, 1), *none = memory;
    CHECK_OK(quire_free(memory, allocate(memory, 64, NULL)));
    CHECK_OK(qi_device_prepare_end(device));
    CHECK_FAILS(quire_device_default_memory(device, 0, &none), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "device 'fake device' is being destroyed");
    CHECK(!none);
}

/* ---- options -------------------------------------------------------------------------------- */

static quire_memory_info info_of(quire_memory *memory)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    return info;
}

CASE(options_are_for_the_kinds_that_the_request_allows)
{
    const quire_memory_options all = {.pages = {.page_size = 65536}, .limit = 1 << 20},
                               visible = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .pages = {.page_size = 4096},
                                          .priority = 1.0F},
                               first = {.kind.mask = 1, .fit.algorithm = QUIRE_FIT_BUDDY};
    CHECK_OK(quire_device_set_default_options(b->device, &all));
    CHECK_OK(quire_device_set_default_options(b->device, &visible));
    CHECK_OK(quire_device_set_default_options(b->device, &first));
    for (uint32_t kind = 0; kind < b->fake.info.kind_count; kind++) {
        const quire_memory_info info = info_of(default_of(b, kind));
        const bool is_visible = b->fake.info.kinds[kind].flags & QUIRE_HOST_VISIBLE;
        char name[64];
        snprintf(name, sizeof name, "default memory of kind %u", kind);
        CHECK_STR(info.name, name);
        CHECK_EQ(info.kind, kind);
        CHECK_EQ(info.fit, kind ? QUIRE_FIT_SEGREGATED : QUIRE_FIT_BUDDY);
        if (!kind)
            continue;
        CHECK_EQ(info.page_size, is_visible ? 4096 : 65536);
        CHECK_EQ(info.limit, is_visible ? 0 : 1 << 20);
        CHECK_EQ(default_of(b, kind)->priority, is_visible ? 1.0F : 0.5F);
    }
}

CASE(options_serve_allocations_without_a_memory)
{
    quire_memory *memory;
    quire_allocation made;
    CHECK_OK(quire_device_set_default_options(
        b->device, &(quire_memory_options){
                       .pages = {.page_size = 4096, .dedicated = QUIRE_DEDICATED_ALWAYS}}));
    CHECK_OK(quire_device_allocate(b->device, NULL, &(quire_allocation_options){.size = 100},
                                   &memory, &made));
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, made, &info));
    CHECK(info.dedicated);
    CHECK_OK(quire_device_free(b->device, made));
}

CASE(null_options_are_the_first_ones)
{
    const uint64_t usual = info_of(default_of(b, 0)).page_size;
    quire_memory *first = default_of(b, 0);
    quire_memory_destroy_all(&first);
    CHECK_OK(quire_device_set_default_options(
        b->device, &(quire_memory_options){.pages = {.page_size = 4096}}));
    CHECK_OK(quire_device_set_default_options(b->device, NULL));
    CHECK_EQ(info_of(default_of(b, 0)).page_size, usual);
}

CASE(options_that_cannot_be_are_refused_and_change_nothing)
{
    const struct {
        quire_memory_options options;
        quire_result reason;
        const char *says;
    } wrong[] = {
        {{.name = "mine"},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "options of default memories have no name"},
        {{.kind.intent = QUIRE_INTENT_UPLOAD},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "by quire_kind_request.required and .mask alone"},
        {{.kind.preferred = QUIRE_HOST_CACHED}, QUIRE_ERROR_INVALID_ARGUMENT, ".mask alone"},
        {{.kind.avoided = QUIRE_HOST_CACHED}, QUIRE_ERROR_INVALID_ARGUMENT, ".mask alone"},
        {{.kind.exact = true}, QUIRE_ERROR_INVALID_ARGUMENT, ".mask alone"},
        {{.kind.mask = 0x80000000}, QUIRE_ERROR_UNSUPPORTED, "no memory kind of device"},
        {{.kind.required = QUIRE_PROTECTED}, QUIRE_ERROR_UNSUPPORTED, "PROTECTED"},
        {{.elastic = true, .shards = 2}, QUIRE_ERROR_UNSUPPORTED, ""},
        {{.priority = 7.0F}, QUIRE_ERROR_INVALID_ARGUMENT, "priority"},
        {{.unused = {1}}, QUIRE_ERROR_INVALID_ARGUMENT, "unused"},
    };
    const uint64_t usual = info_of(default_of(b, 0)).page_size;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quire_memory_options options = wrong[i].options;
        options.pages.page_size = 4096;
        CHECK_FAILS(quire_device_set_default_options(b->device, &options), wrong[i].reason);
        CHECK_HAS(quire_last_error(), wrong[i].says);
    }
    CHECK_FAILS(quire_device_set_default_options(
                    b->device, &(quire_memory_options){.pages = {.page_size = 4096}}),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "memory 'default memory of kind 0' of device");
    CHECK(info_of(default_of(b, 1)).page_size != 4096 &&
          info_of(default_of(b, 0)).page_size == usual);
    CHECK_FAILS(quire_device_set_default_options(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(host_memory_for_options_may_be_missing)
{
    test_memory_fail(unit_memory_state(), 1, false);
    CHECK_FAILS(quire_device_set_default_options(
                    b->device, &(quire_memory_options){.pages = {.page_size = 4096}}),
                QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK(info_of(default_of(b, 0)).page_size != 4096);
}
