/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * framework_pool.c - the memory pool of a framework: pointers in, pointers out, from any thread.
 *
 * Frameworks hand out addresses and get addresses back. quire's handles stay inside this file:
 * quire writes the address of an allocation in the call that makes it (options.info), and frees by
 * address (quire_free_at_address) in a memory created with find_by_address. Neither the framework
 * nor this pool keeps a table of its own.
 *
 *     cc framework_pool.c $(pkg-config --cflags --libs quire) -pthread && ./a.out
 *
 * The host backend makes the example run everywhere: the addresses are pointers, which the workers
 * use. On CUDA, and on Vulkan with device addresses, they are addresses for the device.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <quire/host.h>
#include <quire/quire.h>

enum { THREADS = 4, ROUNDS = 20000, TENSORS = 64 };

/* ---- the pool ------------------------------------------------------------------------------- */

typedef struct pool {
    quire_device *device;
    quire_memory *memory;
} pool;

static bool pool_open(pool *p)
{
    /* Of the host backend's kinds of memory one that a pointer reaches. shards = 0: quire divides
       the memory into shards if threads wait for each other. */
    quire_memory_options options = {.name = "tensors",
                                    .kind.intent = QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE,
                                    .find_by_address = true};
    return !quire_host_open(NULL, &p->device) &&
           !quire_memory_create(p->device, &options, &p->memory);
}

/* Returns the address of `size` bytes, or 0: quire_last_error has the reason. */
static uint64_t pool_allocate(pool *p, uint64_t size, const char *name, quire_stream *stream)
{
    quire_allocation_info info;
    quire_allocation allocation;
    quire_allocation_options options = {
        .size = size, .alignment = 256, .name = name, .stream = stream, .info = &info};
    return quire_allocate(p->memory, &options, &allocation) ? 0 : info.address;
}

/* Frees what pool_allocate returned: now, or after the work of a stream so far. An address that is
   not that of a live allocation is an error and changes nothing. */
static bool pool_free(pool *p, uint64_t address, quire_stream *stream)
{
    return !quire_free_at_address(p->memory, address, stream);
}

static bool pool_close(pool *p)
{
    /* Fails with BUSY, and lists the names, if tensors are live. */
    return !quire_memory_destroy(&p->memory) && !quire_device_destroy(&p->device);
}

/* ---- a framework that uses it --------------------------------------------------------------- */

typedef struct tensor {
    uint64_t address, size;
    uint64_t number; /* at both ends */
} tensor;

typedef struct worker {
    pthread_t thread;
    pool *pool;
    uint64_t seed;
    bool failed;
} worker;

static bool stop(worker *w, const char *reason)
{
    fprintf(stderr, "a worker stops: %s\n", reason);
    w->failed = true;
    return false;
}

/* Writes a number to both ends of a tensor, or compares both ends with it. */
static void mark(uint64_t address, uint64_t size, uint64_t number)
{
    uint64_t *bytes = (uint64_t *)(uintptr_t)address;
    bytes[0] = bytes[size / sizeof *bytes - 1] = number;
}

static bool is_marked(uint64_t address, uint64_t size, uint64_t number)
{
    const uint64_t *bytes = (const uint64_t *)(uintptr_t)address;
    return bytes[0] == number && bytes[size / sizeof *bytes - 1] == number;
}

/* Replaces a tensor by one of another size; size 0 only frees. Returns false after an error. */
static bool replace(worker *w, tensor *t, uint64_t size, uint64_t number)
{
    if (t->address && !is_marked(t->address, t->size, t->number))
        return stop(w, "a tensor shares bytes with another");
    if (t->address && !pool_free(w->pool, t->address, NULL))
        return stop(w, quire_last_error());
    *t = (tensor){.size = size, .number = number};
    if (!size)
        return true;
    t->address = pool_allocate(w->pool, size, "activations", NULL);
    if (!t->address)
        return stop(w, quire_last_error());
    mark(t->address, size, number);
    return true;
}

/* Keeps up to TENSORS tensors of random sizes and replaces one in each round. */
static void *work(void *user)
{
    worker *w = user;
    tensor tensors[TENSORS] = {{0}};
    uint64_t random = w->seed;
    for (uint64_t i = 0; i < ROUNDS + TENSORS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        uint64_t size = i < ROUNDS ? 256 + (random >> 48) / 8 * 8 : 0;
        if (!replace(w, &tensors[i % TENSORS], size, random))
            break;
    }
    return NULL;
}

static bool run_workers(pool *p)
{
    worker workers[THREADS];
    bool good = true;
    int started = 0;
    while (good && started < THREADS) {
        worker *w = &workers[started];
        *w = (worker){.pool = p, .seed = (uint64_t)started + 1};
        good = !pthread_create(&w->thread, NULL, work, w);
        started += good;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        good &= !workers[i].failed;
    }
    return good;
}

/* Who owns an address, for a message about a wrong access: any address inside the allocation. */
static bool show_owner(pool *p)
{
    quire_allocation owner;
    quire_allocation_info info;
    uint64_t address = pool_allocate(p, 4096, "weights", NULL);
    if (!address || quire_memory_find(p->memory, address + 1000, &owner) ||
        quire_allocation_get_info(p->memory, owner, &info))
        return false;
    printf("byte 1000 of the allocation in page %" PRIu32 " at offset %" PRIu64 "\n", info.page,
           info.offset);
    return pool_free(p, address, NULL);
}

static bool print_statistics(pool *p)
{
    quire_memory_stats stats;
    if (quire_memory_get_stats(p->memory, &stats))
        return false;
    printf("%" PRIu64 " allocations by %d threads, %" PRIu64 " live, peak %" PRIu64
           " bytes, reserved %" PRIu64 " bytes\n",
           stats.allocations, THREADS, stats.allocation_count, stats.peak_live_bytes,
           stats.reserved_bytes);
    return stats.allocation_count == 0;
}

int main(void)
{
    pool p = {0};
    bool good = pool_open(&p) && run_workers(&p) && show_owner(&p) && print_statistics(&p) &&
                pool_close(&p);
    if (!good)
        fprintf(stderr, "stopped: %s\n", quire_last_error());
    return good ? 0 : 1;
}
