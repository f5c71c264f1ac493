/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_program.c - see vma_program.h. Nothing here depends on which of the two headers it is.
 */
#include "bench/vma_objects.h"

#include <pthread.h>
#include <time.h>

#include "bench/mock_driver.h"

/* ---- measuring ------------------------------------------------------------------------------ */

/* What the run counts from here on. */
static void begin(vma_run *run, uint64_t operations_of_sample)
{
    run->operations_of_sample = operations_of_sample;
    run->host_calls = host_calls;
    run->made = qi_atomic_load_u64(&the_driver.made);
}

/* Whether another sample is wanted. There is one at least. */
static bool goes_on(const vma_run *run)
{
    return !run->samples || (run->samples + 1) * run->operations_of_sample <= run->operations;
}

static void add_sample(vma_run *run, uint64_t since)
{
    run->ticks[run->samples++] = ticks_spent(since);
}

static void end(vma_run *run)
{
    run->host_calls = host_calls - run->host_calls;
    run->made = qi_atomic_load_u64(&the_driver.made) - run->made;
    run->live_bytes = qi_atomic_load_u64(&the_driver.bytes);
}

/* Destroys everything but the allocator and then the allocator. */
static void close_allocator(vma_run *run, VmaAllocator allocator, object *objects, size_t count)
{
    const struct timespec pause = {(time_t)(run->pause_ms / 1000),
                                   (long)(run->pause_ms % 1000) * 1000000};
    for (size_t i = 0; i < count; i++)
        destroy_object(allocator, &objects[i]);
    vmaSetCurrentFrameIndex(allocator, 1); /* as in each frame */
    nanosleep(&pause, NULL);
    vmaSetCurrentFrameIndex(allocator, 2);
    run->kept_bytes = qi_atomic_load_u64(&the_driver.bytes);
    vmaDestroyAllocator(allocator);
    free(objects);
}

static object *make_list(size_t count)
{
    object *list = calloc(count, sizeof *list);
    must(list ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
    return list;
}

/* ---- scenarios: objects --------------------------------------------------------------------- */

enum { LIVE = 10000 };

/* Replaces random ones of 10,000 objects. */
static void play_frame(vma_run *run)
{
    VmaAllocator allocator = open_allocator(run, 0);
    object *objects = make_list(LIVE);
    uint64_t state = 1;
    for (size_t i = 0; i < LIVE; i++)
        make_any(allocator, next_random(&state), &objects[i]);
    begin(run, 1);
    while (goes_on(run)) {
        uint64_t random = next_random(&state);
        object *o = &objects[next_random(&state) % LIVE];
        uint64_t since = ticks_now();
        destroy_object(allocator, o);
        make_any(allocator, random, o);
        add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, LIVE);
}

/* A staging buffer for each upload; the last 16 are still in use by the device. */
static void play_uploads(vma_run *run)
{
    enum { IN_FLIGHT = 16, WRITTEN = 256 };
    VmaAllocator allocator = open_allocator(run, 0);
    object *objects = make_list(IN_FLIGHT);
    uint64_t state = 2;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        make_buffer(allocator, 64 * KIB, &MAPPED, &objects[i], NULL);
    begin(run, 1);
    while (goes_on(run)) {
        VkDeviceSize size = (KIB + next_random(&state) % KIB) << next_random(&state) % 10;
        object *o = &objects[run->samples % IN_FLIGHT];
        VmaAllocationInfo info;
        uint64_t since = ticks_now();
        destroy_object(allocator, o);
        make_buffer(allocator, size, &MAPPED, o, &info);
        memset(info.pMappedData, 1, WRITTEN);
        MUST(vmaFlushAllocation(allocator, o->allocation, 0, WRITTEN));
        add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, IN_FLIGHT);
}

/* Replaces random ones of the buffers that fill 256 blocks of 16 MiB. */
static void play_full(vma_run *run)
{
    enum { COUNT = 256 * 64 };
    VmaAllocator allocator = open_allocator(run, 16 * MIB);
    object *objects = make_list(COUNT);
    uint64_t state = 3;
    for (size_t i = 0; i < COUNT; i++)
        make_buffer(allocator, 256 * KIB, &ON_DEVICE, &objects[i], NULL);
    begin(run, 1);
    while (goes_on(run)) {
        object *o = &objects[next_random(&state) % COUNT];
        uint64_t since = ticks_now();
        destroy_object(allocator, o);
        make_buffer(allocator, 256 * KIB, &ON_DEVICE, o, NULL);
        add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, COUNT);
}

/* Ten targets of 64 MiB are created and destroyed in each frame. */
static void play_transients(vma_run *run)
{
    enum { TARGETS = 10, SIDE = 4096 };
    VmaAllocator allocator = open_allocator(run, 0);
    object *objects = make_list(TARGETS);
    begin(run, TARGETS);
    while (goes_on(run)) {
        uint64_t since = ticks_now();
        for (size_t i = 0; i < TARGETS; i++)
            make_image(allocator, SIDE, SIDE, &objects[i]);
        for (size_t i = 0; i < TARGETS; i++)
            destroy_object(allocator, &objects[i]);
        add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, 0);
}

/* ---- scenarios: bufferImageGranularity of 64 KiB ---------------------------------------- */

/* Log-uniform from `least`, over `doublings`. */
static VkDeviceSize any_size(uint64_t *state, VkDeviceSize least, uint64_t doublings)
{
    VkDeviceSize base = least << next_random(state) % doublings;
    return base + next_random(state) % base;
}

/* A texture of 4 KiB to 4 MiB (`doublings` 10) or to 32 KiB (3). */
static void make_texture(VmaAllocator allocator, uint64_t *state, uint64_t doublings, object *made)
{
    enum { WIDTH = 64, ROW = WIDTH * 4 };
    make_image(allocator, WIDTH, (uint32_t)(any_size(state, 4 * KIB, doublings) / ROW), made);
}

/* Replaces random ones of textures and of buffers of 256 B to 1 MiB, in blocks of 16 MiB. The
   textures come first. */
static void play_granules(vma_run *run, uint64_t textures, uint64_t doublings, uint64_t buffers)
{
    the_driver.granularity = 64 * KIB;
    VmaAllocator allocator = open_allocator(run, 16 * MIB);
    uint64_t count = textures + buffers, state = 6;
    object *objects = make_list(count);
    begin(run, 1);
    for (uint64_t made = 0; made < count || goes_on(run); made++) {
        uint64_t i = made < count ? made : next_random(&state) % count;
        uint64_t since = ticks_now();
        if (made >= count)
            destroy_object(allocator, &objects[i]);
        if (i < textures)
            make_texture(allocator, &state, doublings, &objects[i]);
        else
            make_buffer(allocator, any_size(&state, 256, 12), &ON_DEVICE, &objects[i], NULL);
        if (made >= count)
            add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, count);
}

static void play_textures(vma_run *run)
{
    play_granules(run, 2000, 10, 20000);
}

static void play_small_textures(vma_run *run)
{
    play_granules(run, 20000, 3, 0);
}

/* ---- scenarios: threads --------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    VmaAllocator allocator;
    pthread_barrier_t *barrier;
    object *objects;
    uint64_t rounds, state;
} worker;

enum { LIVE_OF_THREAD = 1000, PAIRS_OF_ROUND = 10000, MAX_THREADS = 4 };

/* The main thread waits at both barriers of a round too. */
static void *work(void *user)
{
    worker *w = user;
    for (uint64_t round = 0; round < w->rounds; round++) {
        pthread_barrier_wait(w->barrier);
        for (uint32_t i = 0; i < PAIRS_OF_ROUND; i++) {
            object *o = &w->objects[next_random(&w->state) % LIVE_OF_THREAD];
            destroy_object(w->allocator, o);
            make_any(w->allocator, next_random(&w->state), o);
        }
        pthread_barrier_wait(w->barrier);
    }
    return NULL;
}

static void start(worker *w, uint64_t seed)
{
    w->state = seed;
    for (size_t i = 0; i < LIVE_OF_THREAD; i++)
        make_any(w->allocator, next_random(&w->state), &w->objects[i]);
    must(pthread_create(&w->thread, NULL, work, w) ? VK_ERROR_UNKNOWN : VK_SUCCESS, "a thread");
}

/* The time of a round is that of all threads, and a round has their pairs. */
static void play_threads(vma_run *run, uint32_t threads)
{
    VmaAllocator allocator = open_allocator(run, 0);
    worker workers[MAX_THREADS];
    pthread_barrier_t barrier;
    object *objects = make_list((size_t)threads * LIVE_OF_THREAD);
    pthread_barrier_init(&barrier, NULL, threads + 1);
    begin(run, (uint64_t)threads * PAIRS_OF_ROUND);
    uint64_t rounds = run->operations / run->operations_of_sample;
    rounds += !rounds;
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (worker){.allocator = allocator,
                              .barrier = &barrier,
                              .objects = objects + (size_t)i * LIVE_OF_THREAD,
                              .rounds = rounds};
        start(&workers[i], i + 1);
    }
    while (goes_on(run)) {
        uint64_t since = ticks_now();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        add_sample(run, since);
    }
    for (uint32_t i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    end(run);
    pthread_barrier_destroy(&barrier);
    close_allocator(run, allocator, objects, (size_t)threads * LIVE_OF_THREAD);
}

static void play_thread(vma_run *run)
{
    play_threads(run, 1);
}

static void play_two_threads(vma_run *run)
{
    play_threads(run, 2);
}

static void play_four_threads(vma_run *run)
{
    play_threads(run, 4);
}

/* ---- scenarios: single functions ------------------------------------------------------------ */

enum { GROUP = 16 };

static VmaVirtualAllocation allocate_virtually(VmaVirtualBlock block, uint64_t random)
{
    const VmaVirtualAllocationCreateInfo info = {.size = (256 + random % 256) << (random >> 8) % 6,
                                                 .alignment = 256};
    VmaVirtualAllocation allocation;
    VkDeviceSize offset;
    MUST(vmaVirtualAllocate(block, &info, &allocation, &offset));
    return allocation;
}

/* Replaces random ones of 10,000 allocations of a virtual block of 128 MiB. */
static void play_virtual(vma_run *run)
{
    const VmaVirtualBlockCreateInfo info = {
        .size = 128 * MIB, .pAllocationCallbacks = run->counts_host ? &COUNTING : NULL};
    VmaVirtualBlock block;
    VmaVirtualAllocation *all = calloc(LIVE, sizeof *all);
    uint64_t state = 4;
    must(all ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
    MUST(vmaCreateVirtualBlock(&info, &block));
    for (size_t i = 0; i < LIVE; i++)
        all[i] = allocate_virtually(block, next_random(&state));
    begin(run, GROUP);
    while (goes_on(run)) {
        uint64_t since = ticks_now();
        for (int i = 0; i < GROUP; i++) {
            VmaVirtualAllocation *a = &all[next_random(&state) % LIVE];
            vmaVirtualFree(block, *a);
            *a = allocate_virtually(block, next_random(&state));
        }
        add_sample(run, since);
    }
    end(run);
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
    free(all);
}

/* Calls `use` for random ones of 10,000 buffers that the host can write. */
static void play_on_buffers(vma_run *run, const VmaAllocationCreateInfo *how,
                            void (*use)(VmaAllocator, VmaAllocation))
{
    VmaAllocator allocator = open_allocator(run, 0);
    object *objects = make_list(LIVE);
    uint64_t state = 5;
    for (size_t i = 0; i < LIVE; i++)
        make_buffer(allocator, 4 * KIB, how, &objects[i], NULL);
    begin(run, GROUP);
    while (goes_on(run)) {
        uint64_t since = ticks_now();
        for (int i = 0; i < GROUP; i++)
            use(allocator, objects[next_random(&state) % LIVE].allocation);
        add_sample(run, since);
    }
    end(run);
    close_allocator(run, allocator, objects, LIVE);
}

static void get_info(VmaAllocator allocator, VmaAllocation allocation)
{
    VmaAllocationInfo info;
    vmaGetAllocationInfo(allocator, allocation, &info);
    must(info.size ? VK_SUCCESS : VK_ERROR_UNKNOWN, "vmaGetAllocationInfo");
}

static void play_information(vma_run *run)
{
    play_on_buffers(run, &MAPPED, get_info);
}

static void map_and_unmap(VmaAllocator allocator, VmaAllocation allocation)
{
    void *bytes;
    MUST(vmaMapMemory(allocator, allocation, &bytes));
    vmaUnmapMemory(allocator, allocation);
}

static void play_mapping(vma_run *run)
{
    play_on_buffers(run, &TO_MAP, map_and_unmap);
}

static void play_mapping_mapped(vma_run *run)
{
    play_on_buffers(run, &MAPPED, map_and_unmap);
}

static void play_opening(vma_run *run)
{
    begin(run, 1);
    while (goes_on(run)) {
        uint64_t since = ticks_now();
        vmaDestroyAllocator(open_allocator(run, 0));
        add_sample(run, since);
    }
    end(run);
}

static const vma_scenario SCENARIOS[VMA_SCENARIOS] = {
    {"frame", "an object replaced", 200000, play_frame},
    {"uploads", "an upload", 100000, play_uploads},
    {"full", "a buffer replaced", 200000, play_full},
    {"transients", "a target made and destroyed", 20000, play_transients},
    {"textures", "a texture or buffer replaced", 100000, play_textures},
    {"small", "a texture replaced", 100000, play_small_textures},
    {"threads-1", "an object replaced", 200000, play_thread},
    {"threads-2", "an object replaced", 400000, play_two_threads},
    {"threads-4", "an object replaced", 400000, play_four_threads},
    {"virtual", "a virtual allocation replaced", 800000, play_virtual},
    {"information", "vmaGetAllocationInfo", 800000, play_information},
    {"mapping", "a map and an unmap", 400000, play_mapping},
    {"mapping-2", "the same, with MAPPED_BIT", 400000, play_mapping_mapped},
    {"opening", "an allocator made and destroyed", 200, play_opening},
};

const vma_program THE_PROGRAM = {THE_NAME, SCENARIOS};
