/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_memories.c - memories on a CUDA device as subjects: quire's, the two allocators of the
 * driver, and the one of the CUDA runtime, all in one context. The handle of a driver allocation is
 * its address.
 */
#include <stdlib.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/mock_driver.h"
#include "quire/quire.h"
#include "src/base/result.h"

static const char *driver_absent(const subject *self)
{
    (void)self;
    return the_cuda.absent[0] ? the_cuda.absent : NULL;
}

/* ---- quire ---------------------------------------------------------------------------------- */

static void destroy_quire(void *state)
{
    quire_memory *memory = state;
    quire_memory_destroy_all(&memory);
}

/* Counts pages in the_driver, where the mock driver counts its blocks. */
static void count_page(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user;
    (void)memory;
    qi_atomic_add_u64(event->kind == QUIRE_EVENT_PAGE_MADE ? &the_driver.made : &the_driver.given,
                      1);
}

static void *create_quire(const subject *self, const subject_arena *arena)
{
    static const quire_hook hook = {.event = count_page,
                                    .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE};
    const quire_memory_options options = {.fit.granule = arena->unit,
                                          .pages.page_size = arena->size};
    quire_memory *memory = NULL;
    (void)self;
    if (!quire_memory_create(the_cuda.device, &options, &memory) &&
        !quire_memory_set_hook(memory, &hook))
        return memory;
    quire_memory_destroy_all(&memory);
    return NULL;
}

/* A memory of quire used in the order of the same stream as the driver's pool. */
typedef struct ordered {
    quire_memory *memory;
    quire_stream *stream;
} ordered;

static void destroy_ordered(void *state)
{
    ordered *o = state;
    destroy_quire(o->memory);
    quire_stream_destroy(&o->stream);
    free(o);
}

/* Wraps the stream of the driver's pool, so that quire and the pool use the same stream. */
static void *create_ordered(const subject *self, const subject_arena *arena)
{
    ordered *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->memory = create_quire(self, arena);
    if (o->memory && !quire_cuda_stream_wrap(the_cuda.device, the_cuda.stream, "bench", &o->stream))
        return o;
    destroy_ordered(o);
    return NULL;
}

static uint64_t allocate_ordered(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const ordered *o = state;
    quire_allocation_options options = {.size = size, .alignment = alignment, .stream = o->stream};
    quire_allocation allocation;
    *offset = 0;
    qi_ignore(quire_allocate(o->memory, &options, &allocation));
    return allocation.id;
}

static void free_ordered(void *state, uint64_t handle)
{
    const ordered *o = state;
    quire_free_on_stream(o->memory, (quire_allocation){handle}, o->stream);
}

static uint64_t allocate_quire(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    quire_allocation_options options = {.size = size, .alignment = alignment};
    quire_allocation allocation;
    *offset = 0; /* unused by these benchmarks */
    qi_ignore(quire_allocate(state, &options, &allocation));
    return allocation.id; /* 0 on failure */
}

static void free_quire(void *state, uint64_t handle)
{
    quire_free(state, (quire_allocation){handle});
}

/* ---- the driver's allocators ---------------------------------------------------------------- */

/* Calls the driver's functions through the table, as a program does. The subject has no state. */
static void *create_plain(const subject *self, const subject_arena *arena)
{
    (void)self;
    (void)arena;
    return &the_cuda;
}

static void destroy_plain(void *state)
{
    (void)state;
}

static uint64_t allocate_plain(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const cuda_driver *driver = state;
    qi_cu_ptr pointer = 0;
    (void)alignment; /* the driver aligns to at least 256 bytes */
    *offset = 0;
    return driver->f.MemAlloc(&pointer, size) ? 0 : pointer;
}

static void free_plain(void *state, uint64_t handle)
{
    const cuda_driver *driver = state;
    (void)driver->f.MemFree(handle);
}

static const char *pool_absent(const subject *self)
{
    const char *absent = driver_absent(self);
    return absent || the_cuda.pool ? absent : "the device has no memory pool";
}

/* The pool keeps all freed memory while it is measured. */
static void *create_pool(const subject *self, const subject_arena *arena)
{
    (void)self;
    (void)arena;
    return cuda_driver_keep(true) ? NULL : &the_cuda;
}

static void destroy_pool(void *state)
{
    (void)state;
    (void)cuda_driver_keep(false);
}

static uint64_t allocate_pool(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const cuda_driver *driver = state;
    qi_cu_ptr pointer = 0;
    (void)alignment;
    *offset = 0;
    return driver->f.MemAllocAsync(&pointer, size, driver->stream) ? 0 : pointer;
}

static void free_pool(void *state, uint64_t handle)
{
    const cuda_driver *driver = state;
    (void)driver->f.MemFreeAsync(handle, driver->stream);
}

static const memory_how HOW = {.sharing = SHARE_ONE};

#define MEMORY(title, what, is_absent, own)                                                        \
    {                                                                                              \
        .name = (title), .kind = (what), .how = &HOW, .absent = (is_absent),                       \
        .create = create_##own, .destroy = destroy_##own, .allocate = allocate_##own,              \
        .free = free_##own                                                                         \
    }

const subject CUDA_MEMORIES[] = {
    MEMORY("quire", SUBJECT_MEMORY, driver_absent, quire),
    MEMORY("quire, on stream", SUBJECT_MEMORY, driver_absent, ordered),
    MEMORY("cuMemAllocAsync", SUBJECT_PEER, pool_absent, pool),
    {.name = "cudaMallocAsync",
     .kind = SUBJECT_PEER,
     .how = &HOW,
     .absent = runtime_absent,
     .create = runtime_create,
     .destroy = runtime_destroy,
     .allocate = runtime_allocate,
     .free = runtime_free},
    MEMORY("cuMemAlloc", SUBJECT_PEER, driver_absent, plain),
};

const size_t CUDA_MEMORY_COUNT = sizeof CUDA_MEMORIES / sizeof *CUDA_MEMORIES;
