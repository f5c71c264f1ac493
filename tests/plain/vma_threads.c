/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_threads.c - threads that allocate, map, write and free on one allocator, on objects of their
 * own and on shared ones.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/plain.h"
#include "tests/support/vma_fixture.h"

enum { THREADS = 4, HELD = 24, ROUNDS = 400 };

static vma_fixture v;
static VmaPool pool;
static _Atomic uint32_t faults;

typedef struct held {
    VkBuffer buffer;
    VmaAllocation allocation;
    uint8_t value;
} held;

/* How a buffer is allocated in a round: in turn mapped, in a pool, dedicated, not mapped. */
static VmaAllocationCreateInfo options_of(uint32_t round)
{
    VmaAllocationCreateInfo options = {.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT,
                                       .usage = VMA_MEMORY_USAGE_AUTO};
    if (round % 4 == 0)
        options.flags |= VMA_ALLOCATION_CREATE_MAPPED_BIT;
    if (round % 4 == 1)
        options.pool = pool;
    if (round % 16 == 2)
        options.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    return options;
}

static bool has_value(const uint8_t *data, uint8_t value, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        if (data[i] != value)
            return false;
    return true;
}

static void make(held *h, uint32_t round, uint8_t value)
{
    void *data;
    const VmaAllocationCreateInfo options = options_of(round);
    const VkBufferCreateInfo info = vma_fixture_buffer_info(200 + round % 7 * 100);
    h->value = value;
    faults += vmaCreateBuffer(v.allocator, &info, &options, &h->buffer, &h->allocation, NULL) != 0;
    faults += vmaMapMemory(v.allocator, h->allocation, &data) != 0;
    memset(data, value, 200);
    vmaUnmapMemory(v.allocator, h->allocation);
}

static void end(held *h)
{
    uint8_t data[200];
    faults += vmaCopyAllocationToMemory(v.allocator, h->allocation, 0, data, sizeof data) != 0;
    faults += !has_value(data, h->value, sizeof data);
    vmaDestroyBuffer(v.allocator, h->buffer, h->allocation);
    h->allocation = NULL;
}

static void *churn(void *user)
{
    held own[HELD] = {{.value = 0}};
    uint32_t thread = *(uint32_t *)user;
    for (uint32_t i = 0; i < TEST_ROUNDS(ROUNDS); i++) {
        held *h = &own[(i * 5 + thread) % HELD];
        if (h->allocation)
            end(h);
        make(h, i, (uint8_t)(thread * 50 + i % 50));
    }
    for (uint32_t i = 0; i < HELD; i++)
        if (own[i].allocation)
            end(&own[i]);
    return NULL;
}

static void *observe(void *user)
{
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    VmaTotalStatistics stats;
    (void)user;
    for (int i = 0; i < 20; i++) {
        vmaGetHeapBudgets(v.allocator, budgets);
        vmaCalculateStatistics(v.allocator, &stats);
    }
    return NULL;
}

static void threads_share_an_allocator(void)
{
    pthread_t threads[THREADS + 1];
    uint32_t numbers[THREADS], type;
    const VmaAllocationCreateInfo options = options_of(3);
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    VmaTotalStatistics stats;
    vma_fixture_open(&v, NULL, 0);
    CHECK_VK(vmaFindMemoryTypeIndexForBufferInfo(v.allocator, &info, &options, &type));
    CHECK_VK(vmaCreatePool(v.allocator, &(VmaPoolCreateInfo){.memoryTypeIndex = type}, &pool));
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_EQ(pthread_create(&threads[i], NULL, churn, &numbers[i]), 0);
    }
    CHECK_EQ(pthread_create(&threads[THREADS], NULL, observe, NULL), 0);
    for (uint32_t i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(faults, 0);
    vmaCalculateStatistics(v.allocator, &stats);
    CHECK_EQ(stats.total.statistics.allocationCount, 0);
    vmaDestroyPool(v.allocator, pool);
    vma_fixture_close(&v);
}

/* ---- one handle, several threads ------------------------------------------------------------ */

static VmaAllocation shared;

static void *free_shared(void *user)
{
    (void)user;
    vmaFreeMemory(v.allocator, shared);
    return NULL;
}

/* The double free is found: one thread frees, the others print a line. */
static void an_allocation_that_all_free_is_freed_once(void)
{
    pthread_t threads[THREADS];
    VmaTotalStatistics stats;
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    VkBuffer buffer, other;
    vma_fixture_open(&v, NULL, 0);
    VmaAllocation kept = vma_fixture_buffer(&v, 1000, &options, &other);
    for (int round = 0; round < 10; round++) {
        shared = vma_fixture_buffer(&v, 1000, &options, &buffer);
        vmaDestroyBuffer(v.allocator, buffer, NULL);
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, free_shared, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        vmaCalculateStatistics(v.allocator, &stats);
        CHECK_EQ(stats.total.statistics.allocationCount, 1);
    }
    vmaDestroyBuffer(v.allocator, other, kept);
    vma_fixture_close(&v);
}

int main(void)
{
    plain_case("threads share an allocator", threads_share_an_allocator);
    plain_case("an allocation that all free is freed once",
               an_allocation_that_all_free_is_freed_once);
    return plain_end();
}
