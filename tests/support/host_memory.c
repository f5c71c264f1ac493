/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_memory.c - see host_memory.h. Each block stores its size and alignment before its first
 * byte, so that a release with other numbers stops the program.
 */
#include "tests/support/host_memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 64 };

typedef struct header {
    size_t size, alignment;
    uint64_t magic;
} header;

#define MAGIC UINT64_C(0x717569726521)

static void *test_allocate(void *user, size_t size, size_t alignment)
{
    test_memory *memory = user;
    pthread_mutex_lock(&memory->lock);
    uint64_t call = ++memory->calls;
    bool fails = memory->fail_at &&
                 (call == memory->fail_at || (memory->fail_from_then && call > memory->fail_at));
    if (!fails) {
        memory->blocks++;
        memory->bytes += size;
    }
    pthread_mutex_unlock(&memory->lock);
    if (fails)
        return NULL;
    size_t total = (size + HEADER + HEADER - 1) / HEADER * HEADER;
    char *block = alignment <= HEADER ? aligned_alloc(HEADER, total) : NULL;
    if (!block)
        /* the test machine is out of memory, or the alignment is above the documented maximum */
        abort();
    *(header *)(void *)block = (header){size, alignment, MAGIC};
    return block + HEADER;
}

static void test_release(void *user, void *pointer, size_t size, size_t alignment)
{
    test_memory *memory = user;
    header *h = (header *)(void *)((char *)pointer - HEADER);
    if (h->magic != MAGIC || h->size != size || h->alignment != alignment) {
        fprintf(stderr, "release of %zu bytes, alignment %zu: allocated were %zu, %zu\n", size,
                alignment, h->size, h->alignment);
        abort();
    }
    h->magic = 0;
    free(h);
    pthread_mutex_lock(&memory->lock);
    memory->blocks--;
    memory->bytes -= size;
    pthread_mutex_unlock(&memory->lock);
}

void test_memory_init(test_memory *memory)
{
    *memory = (test_memory){.callbacks = {test_allocate, test_release, memory}};
    pthread_mutex_init(&memory->lock, NULL);
}

void test_memory_fail(test_memory *memory, uint64_t call, bool from_then)
{
    pthread_mutex_lock(&memory->lock);
    memory->calls = 0;
    memory->fail_at = call;
    memory->fail_from_then = from_then;
    pthread_mutex_unlock(&memory->lock);
}
