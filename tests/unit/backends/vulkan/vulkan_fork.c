/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_fork.c - a forked child with a Vulkan device of its parent: it can only destroy the
 * device, which releases the records and calls no driver function.
 */
#include <unistd.h>

#include "quire/vulkan_sparse.h"
#include "tests/support/child.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define DENIED QUIRE_ERROR_NOT_PERMITTED

typedef struct scene {
    vulkan_bench b;
    quire_memory *memory;
    quire_allocation range;
    quire_buffer buffer;
    quire_image image;
    quire_stream *stream;
    quire_vulkan_alias *alias;
    quire_vulkan_sparse *sparse;
} scene;

static void begin(scene *s)
{
    static const VkBufferCreateInfo sparse = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
        .size = 1024 * KIB,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    static const VkBufferCreateInfo plain =
        VULKAN_BUFFER(4 * KIB, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    memset(s, 0, sizeof *s);
    vulkan_bench_start(&s->b, NULL, 0);
    s->memory =
        vulkan_bench_memory(&s->b, &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL,
                                                           .pages = {.page_size = 1024 * KIB}});
    CHECK_OK(quire_buffer_create(s->memory, &(quire_buffer_options){.size = 64 * KIB}, &s->buffer));
    CHECK_OK(quire_image_create(s->memory, &(quire_image_options){.width = 32, .height = 32},
                                &s->image));
    CHECK_OK(quire_write(s->memory, s->buffer.allocation, 0, "staged", 6));
    CHECK_OK(quire_stream_create(s->b.device, NULL, &s->stream));
    CHECK_OK(quire_fill(s->memory, s->buffer.allocation,
                        &(quire_fill_options){.value = 1, .stream = s->stream}, NULL));
    CHECK_OK(quire_allocate(
        s->memory, &(quire_allocation_options){.size = 8 * KIB, .alignment = 4 * KIB}, &s->range));
    CHECK_OK(quire_vulkan_alias_buffer_create(s->memory, s->range, &plain, NULL, &s->alias));
    CHECK_OK(quire_vulkan_sparse_buffer_create(s->memory, &sparse, NULL, &s->sparse));
    CHECK_OK(quire_vulkan_sparse_bind(s->sparse, 0, 256 * KIB));
}

static bool is_refused(scene *s)
{
    quire_allocation a;
    quire_buffer buffer;
    quire_vulkan_handles handles;
    quire_vulkan_features features;
    quire_vulkan_queue queue;
    quire_vulkan_sparse_info info;
    quire_point point;
    bool has_passed = false;
    char byte = 0;
    quire_memory *m = s->memory;
    return quire_allocate(m, &(quire_allocation_options){.size = 1}, &a) == DENIED &&
           quire_buffer_create(m, &(quire_buffer_options){.size = 1}, &buffer) == DENIED &&
           quire_read(m, s->buffer.allocation, 0, &byte, 1) == DENIED &&
           quire_free(m, s->buffer.allocation) == DENIED &&
           quire_memory_trim(m, 0, NULL) == DENIED &&
           quire_stream_mark(s->stream, &point) == DENIED &&
           quire_point_has_passed(&(quire_point){s->stream, 2}, &has_passed) == DENIED &&
           quire_vulkan_get_handles(s->b.device, &handles) == DENIED &&
           quire_vulkan_get_features(s->b.device, &features) == DENIED &&
           quire_vulkan_get_queue(s->b.device, 0, &queue) == DENIED &&
           quire_vulkan_queue_lock(s->b.device) == DENIED &&
           quire_vulkan_queue_unlock(s->b.device) == DENIED &&
           quire_vulkan_sparse_bind(s->sparse, 0, 64 * KIB) == DENIED &&
           quire_vulkan_sparse_get_info(s->sparse, &info) == DENIED &&
           quire_last_result() == DENIED;
}

static bool is_ended(scene *s)
{
    return !quire_stream_destroy(&s->stream) && !quire_memory_destroy(&s->b.memories[0]) &&
           !quire_device_destroy(&s->b.device) && !s->b.host_memory.blocks;
}

static bool child(scene *s)
{
    uint64_t calls = fv_calls(s->b.driver, NULL);
    alarm(20);
    return is_refused(s) && is_ended(s) && fv_calls(s->b.driver, NULL) == calls;
}

UNIT(vulkan_fork, a_forked_child_is_refused_and_can_end_everything)
{
    scene s;
    begin(&s);
    pid_t made = fork();
    CHECK(made >= 0);
    if (!made)
        child_end(child(&s));
    CHECK(child_was_well(made));
    CHECK_OK(quire_vulkan_sparse_destroy(&s.sparse));
    CHECK_OK(quire_vulkan_alias_destroy(&s.alias));
    CHECK_OK(quire_stream_destroy(&s.stream));
    vulkan_bench_end(&s.b);
}
