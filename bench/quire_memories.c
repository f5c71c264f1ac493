/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire_memories.c - memories of quire as subjects, used through the public calls, on a backend
 * that forwards to the mock driver.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/memories.h"
#include "bench/mock_driver.h"
#include "quire/backend.h"
#include "src/base/result.h"

/* ---- the backend -------------------------------------------------------------------------- */

/* A device with one heap and one device-local memory kind, and without limits. */
static quire_result mock_describe(void *state, quire_device_info *info)
{
    (void)state;
    snprintf(info->name, sizeof info->name, "mock");
    info->heap_count = info->kind_count = 1;
    info->heaps[0] = (quire_heap){.size = MOCK_HEAP_SIZE, .flags = QUIRE_HEAP_DEVICE_LOCAL};
    info->kinds[0].flags = QUIRE_DEVICE_LOCAL;
    info->limits.elastic_kinds = 1;
    return QUIRE_SUCCESS;
}

static quire_result mock_page_create(void *state, const quire_page_request *request,
                                     quire_native_page *page)
{
    (void)state;
    page->handle = mock_make(request->size);
    page->size = request->max_size ? request->max_size : request->size;
    return QUIRE_SUCCESS;
}

static void mock_page_destroy(void *state, const quire_native_page *page)
{
    (void)state;
    mock_give(page->handle);
}

/* Spans of an elastic page count as blocks. */
static quire_result mock_page_back(void *state, const quire_native_page *page,
                                   const quire_span *spans, uint32_t count)
{
    (void)state;
    (void)page;
    for (uint32_t i = 0; i < count; i++)
        (void)mock_make(spans[i].size);
    return QUIRE_SUCCESS;
}

static void mock_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                             uint32_t count, bool moves)
{
    (void)moves;
    (void)state;
    (void)page;
    for (uint32_t i = 0; i < count; i++)
        mock_give(spans[i].size / 1024); /* the size of a handle */
}

/* The number of marks in all streams. Every mark has passed, because no work is submitted. */
static qi_atomic_u64 marks;

static quire_result mock_stream_create(void *state, const void *description, uint64_t *stream)
{
    (void)state;
    (void)description;
    *stream = 1;
    return QUIRE_SUCCESS;
}

static void mock_stream_destroy(void *state, uint64_t stream)
{
    (void)state;
    (void)stream;
}

static quire_result mock_stream_mark(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    (void)stream;
    *value = qi_atomic_add_u64(&marks, 1) + 1;
    return QUIRE_SUCCESS;
}

static quire_result mock_stream_passed(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    (void)stream;
    *value = qi_atomic_load_u64(&marks);
    return QUIRE_SUCCESS;
}

static quire_result mock_stream_await(void *state, uint64_t stream, uint64_t value,
                                      uint64_t nanoseconds, bool *has_passed)
{
    (void)state;
    (void)stream;
    (void)nanoseconds;
    *has_passed = value <= qi_atomic_load_u64(&marks);
    return QUIRE_SUCCESS;
}

static const quire_backend MOCK_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "mock",
    .features = QUIRE_BACKEND_STREAMS | QUIRE_BACKEND_ELASTIC,
    .stream_create = mock_stream_create,
    .stream_destroy = mock_stream_destroy,
    .stream_mark = mock_stream_mark,
    .stream_passed = mock_stream_passed,
    .stream_await = mock_stream_await,
    .describe = mock_describe,
    .page_create = mock_page_create,
    .page_destroy = mock_page_destroy,
    .page_back = mock_page_back,
    .page_unback = mock_page_unback,
};

/* ---- the subjects ------------------------------------------------------------------------- */

typedef struct quire_state {
    quire_device *device;
    quire_memory *memory;
    quire_stream *stream; /* NULL unless the subject is ordered by a stream */
    bool dedicated;
} quire_state;

static void destroy(void *user)
{
    quire_state *state = user;
    quire_memory_destroy_all(&state->memory);
    quire_stream_destroy(&state->stream);
    quire_device_destroy(&state->device);
    free(state);
}

/* Where a series names no page size. A constant, so that the figures of versions with other default
   sizes compare. */
static const uint64_t PAGE_SIZE = UINT64_C(32) << 20;
static const uint64_t CHUNK_SIZE = UINT64_C(2) << 20;

/* After a failure destroy releases the parts that exist. */
static void *create(const subject *self, const subject_arena *arena)
{
    quire_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->dedicated = how_of(self)->dedicated;
    quire_memory_options options = {.shards = how_of(self)->shards,
                                    .elastic = how_of(self)->elastic,
                                    .fit = {.slabs = how_of(self)->slabs, .granule = arena->unit},
                                    .pages.page_size = arena->size ? arena->size : PAGE_SIZE};
    if (options.elastic)
        options.pages.page_size = CHUNK_SIZE;
    if (!quire_device_create(&MOCK_BACKEND, NULL, NULL, &state->device) &&
        !quire_memory_create(state->device, &options, &state->memory) &&
        (how_of(self)->sharing != SHARE_STREAM ||
         !quire_stream_create(state->device, NULL, &state->stream)))
        return state;
    destroy(state);
    return NULL;
}

static uint64_t allocate(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_allocation_options options = {.size = size,
                                        .alignment = alignment,
                                        .dedicated = state->dedicated,
                                        .stream = state->stream};
    quire_allocation allocation;
    *offset = 0; /* unused by these benchmarks */
    qi_ignore(quire_allocate(state->memory, &options, &allocation));
    return allocation.id; /* 0 on failure */
}

static void release(void *user, uint64_t handle)
{
    const quire_state *state = user;
    quire_allocation allocation = {handle};
    qi_ignore(state->stream ? quire_free_on_stream(state->memory, allocation, state->stream)
                            : quire_free(state->memory, allocation));
}

/* The same, with the offset of the allocation: from the call itself, or from a second one. */
static uint64_t allocate_described(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_allocation_info info;
    quire_allocation_options options = {.size = size, .alignment = alignment, .info = &info};
    quire_allocation allocation;
    qi_ignore(quire_allocate(state->memory, &options, &allocation));
    *offset = info.offset;
    return allocation.id;
}

static uint64_t allocate_and_ask(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_allocation_info info;
    quire_allocation allocation = {allocate(user, size, alignment, offset)};
    qi_ignore(quire_allocation_get_info(state->memory, allocation, &info));
    *offset = info.offset;
    return allocation.id;
}

/* Reports an option that this version does not support, with the library's error. */
static const char *absent(const subject *self)
{
    memory_how how = *how_of(self);
    how.shards = how.sharing == SHARE_SHARDS ? 2 : how.shards;
    subject changed = subject_with(self, &how);
    void *state = create(&changed, &(subject_arena){.size = 0});
    if (!state)
        return quire_last_error();
    destroy(state);
    return NULL;
}

#define MEMORY(title, ...)                                                                         \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_MEMORY, .how = &(const memory_how){__VA_ARGS__},          \
        .absent = absent, .create = create, .destroy = destroy, .allocate = allocate,              \
        .free = release                                                                            \
    }

const subject QUIRE_MEMORIES[] = {
    MEMORY("quire", .sharing = SHARE_ONE),
    MEMORY("quire, on a stream", .sharing = SHARE_STREAM),
    MEMORY("quire, one shard", .sharing = SHARE_LOCK, .shards = 1),
    MEMORY("quire, a shard each", .sharing = SHARE_SHARDS),
    MEMORY("quire, a shard each, slabs", .sharing = SHARE_SHARDS, .slabs = true),
    MEMORY("quire, a memory each", .sharing = SHARE_NOTHING),
};

/* The calls of the harness, without a memory. */
static uint64_t allocate_nothing(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    (void)user;
    (void)size;
    (void)alignment;
    *offset = 0;
    return 1;
}

static void release_nothing(void *user, uint64_t handle)
{
    (void)user;
    (void)handle;
}

#define COUNTED(title, sort, make, give)                                                           \
    {                                                                                              \
        .name = (title), .kind = (sort), .how = &(const memory_how){.sharing = SHARE_ONE},         \
        .absent = absent, .create = create, .destroy = destroy, .allocate = (make), .free = (give) \
    }

const subject QUIRE_DESCRIBED[] = {
    {.name = "quire, elastic",
     .kind = SUBJECT_MEMORY,
     .how = &(const memory_how){.sharing = SHARE_ONE, .elastic = true},
     .absent = absent,
     .create = create,
     .destroy = destroy,
     .allocate = allocate,
     .free = release},
    COUNTED("quire, described", SUBJECT_MEMORY, allocate_described, release),
    COUNTED("quire, described after", SUBJECT_MEMORY, allocate_and_ask, release),
    COUNTED("harness alone", SUBJECT_FLOOR, allocate_nothing, release_nothing),
};

const size_t QUIRE_DESCRIBED_COUNT = sizeof QUIRE_DESCRIBED / sizeof *QUIRE_DESCRIBED;

const size_t QUIRE_MEMORY_COUNT = sizeof QUIRE_MEMORIES / sizeof *QUIRE_MEMORIES;
