/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backend.c - a complete backend outside the library that uses only the installed headers.
 *
 * Its "device" is a budget of 16 MiB of this process; aligned_alloc provides the pages. It
 * implements the required functions and mapping. quire writes and reads through the mapping and
 * returns UNSUPPORTED for images.
 *
 *     cc backend.c $(pkg-config --cflags --libs quire) && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quire/backend.h>
#include <quire/insight.h>

#define POOL_SIZE (UINT64_C(16) << 20)

/* The state of the backend; the core passes it to every function. */
typedef struct pool {
    uint64_t used; /* bytes in pages; not atomic, because this example has one thread */
} pool;

static quire_result pool_describe(void *state, quire_device_info *info)
{
    (void)state;
    strcpy(info->name, "pool of 16 MiB");
    info->heap_count = 1;
    info->heaps[0].size = POOL_SIZE;
    info->kind_count = 1;
    info->kinds[0].flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT;
    info->limits.page_granularity = 4096;
    info->limits.page_alignment = 4096;
    return QUIRE_SUCCESS;
}

static quire_result pool_page_create(void *state, const quire_page_request *request,
                                     quire_native_page *page)
{
    pool *p = state;
    if (request->size > POOL_SIZE - p->used)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "the pool has %" PRIu64 " bytes left", POOL_SIZE - p->used);
    void *bytes = aligned_alloc(4096, request->size);
    if (!bytes)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "aligned_alloc returned NULL");
    p->used += request->size;
    page->handle = (uintptr_t)bytes;
    page->address = (uintptr_t)bytes;
    page->size = request->size;
    return QUIRE_SUCCESS;
}

static void pool_page_destroy(void *state, const quire_native_page *page)
{
    pool *p = state;
    p->used -= page->size;
    free((void *)(uintptr_t)page->handle);
}

static quire_result pool_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    *pointer = (void *)(uintptr_t)page->handle;
    return QUIRE_SUCCESS;
}

static void pool_unmap(void *state, const quire_native_page *page)
{
    (void)state;
    (void)page;
}

static const quire_backend POOL_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "pool",
    .features = QUIRE_BACKEND_MAP,
    .describe = pool_describe,
    .page_create = pool_page_create,
    .page_destroy = pool_page_destroy,
    .map = pool_map,
    .unmap = pool_unmap,
};

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, quire_last_error());
    return 1;
}

static int use_memory(quire_memory *memory)
{
    quire_buffer buffer;
    quire_allocation_info info;
    const char text[] = "written through our own backend";
    char back[sizeof text];
    if (quire_buffer_create(memory, &(quire_buffer_options){.size = 4096}, &buffer) ||
        quire_write(memory, buffer.allocation, 0, text, sizeof text) ||
        quire_read(memory, buffer.allocation, 0, back, sizeof back) ||
        quire_allocation_get_info(memory, buffer.allocation, &info))
        return fail("buffer");
    printf("page %" PRIu32 " offset %" PRIu64 ": %s\n", info.page, info.offset, back);

    /* A request above the size of the device fails and changes nothing. */
    quire_allocation large;
    if (!quire_allocate(memory, &(quire_allocation_options){.size = 2 * POOL_SIZE}, &large))
        return fail("the allocation should have been refused");
    printf("refused: %s\n", quire_last_error());
    return quire_free(memory, buffer.allocation) ? fail("free") : 0;
}

int main(void)
{
    pool state = {0};
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    if (quire_device_create(&POOL_BACKEND, &state, NULL, &device))
        return fail("device");
    quire_memory_options options = {.name = "example", .pages = {.page_size = 1 << 20}};
    if (quire_memory_create(device, &options, &memory))
        return fail("memory");
    int status = use_memory(memory);
    if (quire_memory_destroy(&memory) || quire_device_destroy(&device))
        return fail("destroy");
    return status;
}
