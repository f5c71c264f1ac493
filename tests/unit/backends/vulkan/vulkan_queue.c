/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_queue.c - the queues of a Vulkan device on the fake driver: the program's lock, and the
 * queue that binds sparse objects. On a real driver: vulkan_open.c.
 */
#include <pthread.h>

#include "quire/vulkan_sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define BLOCK (64 * KIB) /* block size of the fake driver */
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define DENIED QUIRE_ERROR_NOT_PERMITTED

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 256 * KIB}};
static const VkBufferCreateInfo PARTIAL = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
    .size = 4 * BLOCK,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
};

static void submit_nothing(const quire_vulkan_handles *h, VkQueue queue)
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    PFN_vkQueueSubmit submit = VULKAN_CALL(*h, vkQueueSubmit);
    CHECK_EQ(submit(queue, 1, &info, VK_NULL_HANDLE), 0);
}

/* ---- the program's lock ---------------------------------------------------------------------- */

enum { ROUNDS = 40 };

static quire_memory *written;
static quire_allocation target;

static void *write_often(void *unused)
{
    static const char bytes[1000];
    for (int i = 0; i < ROUNDS; i++)
        CHECK_OK(quire_write(written, target, 0, bytes, sizeof bytes));
    return unused;
}

/* Calls on a queue last long, so that the driver would notice two at the same time. */
VULKAN_UNIT(vulkan_queue, the_program_submits_while_other_threads_copy)
{
    pthread_t thread;
    vulkan_bench_start_with(
        b, &(fv_options){.layouts = {fv_layout_named("amd-bar")}, .linger_us = 200});
    written = vulkan_bench_memory(b, &LOCAL);
    CHECK_OK(quire_allocate(written, &(quire_allocation_options){.size = 1000}, &target));
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    CHECK_EQ(pthread_create(&thread, NULL, write_often, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(quire_vulkan_queue_lock(b->device));
        submit_nothing(&h, h.queue);
        CHECK_OK(quire_vulkan_queue_unlock(b->device));
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *unlock_here(void *device)
{
    CHECK_FAILS(quire_vulkan_queue_unlock(device), DENIED);
    return NULL;
}

VULKAN_UNIT_ON(vulkan_queue, the_lock_belongs_to_the_thread_that_took_it,
               vulkan_bench_start(b, NULL, 0))
{
    pthread_t thread;
    CHECK_FAILS(quire_vulkan_queue_unlock(b->device), DENIED);
    CHECK_HAS(quire_last_error(), "does not hold");
    for (int i = 0; i < 2; i++) {
        CHECK_OK(quire_vulkan_queue_lock(b->device));
        CHECK_FAILS(quire_vulkan_queue_lock(b->device), DENIED);
        CHECK_HAS(quire_last_error(), "already");
        CHECK_EQ(pthread_create(&thread, NULL, unlock_here, b->device), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_OK(quire_vulkan_queue_unlock(b->device));
    }
    CHECK_FAILS(quire_vulkan_queue_unlock(b->device), DENIED);
}

/* They would wait for themselves. */
VULKAN_UNIT_ON(vulkan_queue, functions_that_submit_are_refused_to_the_thread_that_holds_it,
               vulkan_bench_start(b, NULL, 0))
{
    static char bytes[1000];
    quire_allocation a, zeroed;
    quire_image image;
    quire_stream *stream = NULL;
    quire_vulkan_sparse *sparse = NULL, *other = NULL;
    quire_point point;
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &a));
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 8, .height = 8}, &image));
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    CHECK_OK(quire_vulkan_sparse_buffer_create(memory, &PARTIAL, NULL, &sparse));
    CHECK_OK(quire_vulkan_queue_lock(b->device));
    const uint64_t submits = fv_calls(b->driver, "vkQueueSubmit");
    CHECK_FAILS(quire_write(memory, a, 0, bytes, sizeof bytes), DENIED);
    CHECK_HAS(quire_last_error(), "quire_vulkan_queue_unlock");
    CHECK_FAILS(quire_read(memory, a, 0, bytes, sizeof bytes), DENIED);
    CHECK_FAILS(quire_fill(memory, a, &(quire_fill_options){.value = 1}, NULL), DENIED);
    CHECK_FAILS(
        quire_allocate(memory, &(quire_allocation_options){.size = 1000, .zero = true}, &zeroed),
        DENIED);
    CHECK_FAILS(quire_lluvia_image_set_layout(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                              VK_IMAGE_LAYOUT_GENERAL),
                DENIED);
    CHECK_FAILS(quire_stream_mark(stream, &point), DENIED);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, BLOCK), DENIED);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &PARTIAL, NULL, &other), DENIED);
    CHECK_EQ(fv_calls(b->driver, "vkQueueSubmit"), submits);
    CHECK_EQ(fv_calls(b->driver, "vkQueueBindSparse"), 0);
    CHECK_OK(quire_vulkan_queue_unlock(b->device));
    CHECK_OK(quire_write(memory, a, 0, bytes, sizeof bytes));
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, BLOCK));
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* ---- wrapped devices ------------------------------------------------------------------------- */

typedef struct gate {
    bool is_held;
    uint64_t times;
} gate;

static void hold(void *user)
{
    gate *g = user;
    CHECK(!g->is_held);
    g->is_held = true;
    g->times++;
}

static void let_go(void *user)
{
    gate *g = user;
    CHECK(g->is_held);
    g->is_held = false;
}

static quire_vulkan_queue guarded(VkQueue queue, uint32_t family, gate *g)
{
    return (quire_vulkan_queue){
        .queue = queue, .family = family, .lock = hold, .unlock = let_go, .user = g};
}

/* Wraps the bench's device again, with these queues. */
static quire_device *wrap(vulkan_bench *b, quire_vulkan_queue queue, quire_vulkan_queue sparse)
{
    static const VkPhysicalDeviceFeatures features = {.sparseBinding = VK_TRUE,
                                                      .sparseResidencyBuffer = VK_TRUE};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pEnabledFeatures = &features};
    quire_device *device = NULL;
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.device_info = &info;
    options.queue = queue;
    options.sparse_queue = sparse;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    return device;
}

VULKAN_UNIT_ON(vulkan_queue, the_lock_of_a_wrapped_device_is_the_callers,
               vulkan_bench_start(b, NULL, 0))
{
    gate g = {.times = 0};
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    const quire_vulkan_queue none = {.queue = NULL}, plain = {.queue = h.queue};
    quire_device *device = wrap(b, guarded(h.queue, 0, &g), none);
    CHECK_OK(quire_vulkan_queue_lock(device));
    CHECK(g.is_held);
    CHECK_FAILS(quire_vulkan_queue_lock(device), DENIED);
    CHECK_OK(quire_vulkan_queue_unlock(device));
    CHECK(!g.is_held);
    CHECK_EQ(g.times, 1);
    CHECK_OK(quire_device_destroy(&device));
    device = wrap(b, plain, none); /* quire's own mutex */
    CHECK_OK(quire_vulkan_queue_lock(device));
    CHECK_OK(quire_vulkan_queue_unlock(device));
    CHECK_OK(quire_device_destroy(&device));
    device = wrap(b, none, none);
    CHECK_FAILS(quire_vulkan_queue_lock(device), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "without a queue");
    CHECK_FAILS(quire_vulkan_queue_unlock(device), DENIED);
    CHECK_OK(quire_device_destroy(&device));
    CHECK_FAILS(quire_vulkan_queue_lock(NULL), INVALID);
    CHECK_FAILS(quire_vulkan_queue_unlock(NULL), INVALID);
}

/* ---- sparse objects on a family of their own ------------------------------------------------- */

/* Binds parts, fills them through the staging ring and reads them back. */
static void use_sparse(quire_device *device)
{
    static unsigned char in[BLOCK], out[BLOCK];
    quire_memory *memory = NULL;
    quire_vulkan_sparse *sparse = NULL;
    quire_vulkan_part part;
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    CHECK_OK(quire_vulkan_sparse_buffer_create(
        memory, &PARTIAL, &(quire_vulkan_object_options){.zero = true}, &sparse));
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    memset(in, 0x5a, sizeof in);
    for (uint64_t offset = 0; offset < 4 * BLOCK; offset += BLOCK) {
        CHECK_OK(quire_vulkan_sparse_get_part(sparse, offset, &part));
        CHECK_OK(quire_write(memory, part.allocation, 0, in, sizeof in));
        CHECK_OK(quire_read(memory, part.allocation, 0, out, sizeof out));
        CHECK(!memcmp(in, out, sizeof in));
    }
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, BLOCK, BLOCK));
    CHECK_OK(quire_vulkan_sparse_bind(sparse, BLOCK, BLOCK));
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_memory_destroy(&memory));
}

UNIT(vulkan_queue, an_own_device_has_a_queue_that_binds)
{
    const uint32_t flags[] = {0, FV_LATE, FV_STALE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        vulkan_bench b;
        quire_vulkan_features features;
        vulkan_bench_start(&b, NULL, FV_SPARSE_APART | flags[i]);
        const quire_vulkan_handles h = vulkan_bench_handles(&b);
        CHECK_EQ(h.queue_family, 0);
        CHECK_EQ(h.sparse_family, 3);
        CHECK(h.sparse_queue != NULL && h.sparse_queue != h.queue);
        CHECK_OK(quire_vulkan_get_features(b.device, &features));
        CHECK(features.sparse_queue && features.sparse_binding);
        use_sparse(b.device);
        CHECK(fv_calls(b.driver, "vkQueueBindSparse") >= 3);
        vulkan_bench_end(&b);
    }
}

VULKAN_UNIT_ON(vulkan_queue, one_queue_serves_where_its_family_binds,
               vulkan_bench_start(b, NULL, 0))
{
    CHECK(vulkan_bench_handles(b).sparse_queue == NULL);
    use_sparse(b->device);
}

/* The lock of quire_vulkan_queue_lock guards both queues of an own device. */
VULKAN_UNIT_ON(vulkan_queue, the_program_may_bind_itself,
               vulkan_bench_start(b, NULL, FV_SPARSE_APART))
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    const VkBindSparseInfo info = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO};
    PFN_vkQueueBindSparse bind = VULKAN_CALL(h, vkQueueBindSparse);
    CHECK_OK(quire_vulkan_queue_lock(b->device));
    CHECK_EQ(bind(h.sparse_queue, 1, &info, VK_NULL_HANDLE), 0);
    CHECK_OK(quire_vulkan_queue_unlock(b->device));
}

UNIT(vulkan_queue, each_wrapped_queue_has_its_own_lock)
{
    vulkan_bench b;
    gate main = {.times = 0}, apart = {.times = 0};
    vulkan_bench_start(&b, NULL, FV_SPARSE_APART);
    const quire_vulkan_handles h = vulkan_bench_handles(&b);
    quire_device *device = wrap(&b, guarded(h.queue, h.queue_family, &main),
                                guarded(h.sparse_queue, h.sparse_family, &apart));
    const uint64_t binds = fv_calls(b.driver, "vkQueueBindSparse"),
                   submits = fv_calls(b.driver, "vkQueueSubmit");
    use_sparse(device);
    CHECK_EQ(apart.times, fv_calls(b.driver, "vkQueueBindSparse") - binds);
    CHECK_EQ(main.times, fv_calls(b.driver, "vkQueueSubmit") - submits);
    CHECK_OK(quire_device_destroy(&device));
    /* the same queue twice: one lock */
    vulkan_bench_end(&b);
    vulkan_bench_start(&b, NULL, 0);
    const quire_vulkan_handles one = vulkan_bench_handles(&b);
    gate unused = {.times = 0};
    device = wrap(&b, guarded(one.queue, 0, &main), guarded(one.queue, 0, &unused));
    use_sparse(device);
    CHECK_EQ(unused.times, 0);
    CHECK_OK(quire_device_destroy(&device));
    vulkan_bench_end(&b);
}

VULKAN_UNIT_ON(vulkan_queue, a_device_without_a_queue_that_binds_names_the_option,
               vulkan_bench_start(b, NULL, FV_SPARSE_APART))
{
    quire_memory *memory = NULL;
    quire_vulkan_sparse *sparse = NULL;
    quire_vulkan_features features;
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    const quire_vulkan_queue none = {.queue = NULL},
                             apart = {.queue = h.sparse_queue, .family = h.sparse_family};
    quire_device *device =
        wrap(b, (quire_vulkan_queue){.queue = h.queue, .family = h.queue_family}, none);
    CHECK_OK(quire_vulkan_get_features(device, &features));
    CHECK(!features.sparse_queue && features.sparse_binding);
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &PARTIAL, NULL, &sparse), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "sparse_queue");
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
    /* a sparse queue alone binds, and copies nothing */
    device = wrap(b, none, apart);
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    CHECK_OK(quire_vulkan_sparse_buffer_create(memory, &PARTIAL, NULL, &sparse));
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
}

VULKAN_UNIT_ON(vulkan_queue, half_a_lock_of_the_sparse_queue_is_refused,
               vulkan_bench_start(b, NULL, FV_SPARSE_APART))
{
    quire_device *device = NULL;
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.sparse_queue =
        (quire_vulkan_queue){.queue = h.sparse_queue, .family = h.sparse_family, .lock = hold};
    CHECK_FAILS(quire_vulkan_wrap(&options, &device), INVALID);
    options.sparse_queue = (quire_vulkan_queue){.lock = hold, .unlock = let_go};
    CHECK_FAILS(quire_vulkan_wrap(&options, &device), INVALID);
    CHECK(!device);
}
