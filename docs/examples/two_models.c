/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * two_models.c - two models that share one GPU: one of them sleeps while the other one answers.
 *
 * Each layer of a model has weights and a cache, named by model and purpose ("a.weights.0"). All of
 * them lie in one elastic memory, whose limit is a little more than the larger model. Requests come
 * for one model and then for the other one. Before a model answers, the other one falls asleep: its
 * weights wait in host memory, its caches are lost. Then the model wakes, at the same addresses, so
 * that the pointers that were stored when it was loaded stay right.
 *
 *     cc two_models.c $(pkg-config --cflags --libs quire) && ./a.out [--cuda]
 *
 * The program verifies all weights for each request, instead of computing with them. It runs on the
 * host backend, which reads them by these pointers, or with --cuda on a CUDA device. The exit
 * status is 77 if the machine has no device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <quire/cuda.h>
#include <quire/host.h>
#include <quire/quire.h>

enum { MODELS = 2, MOST_LAYERS = 24, TURNS = 8, NO_DEVICE = 77 };
enum { KIB = 1 << 10, MIB = 1 << 20, CHUNK = 2 * MIB, PART = 512 * KIB }; /* bytes */
static const uint64_t LIMIT = (uint64_t)112 * MIB;

/* An allocation, and the address that the model stores for its kernels. */
typedef struct tensor {
    quire_allocation allocation;
    uint64_t address, size;
    uint64_t number; /* counts up; the contents contain it */
} tensor;

typedef struct model {
    const char *name;
    uint32_t layers;
    uint64_t weight_size, cache_size; /* of a layer, bytes */
    tensor weights[MOST_LAYERS], caches[MOST_LAYERS];
} model;

typedef struct engine {
    quire_device *device;
    quire_memory *memory;
    bool host; /* this program can use the addresses itself */
    model models[MODELS];
    uint64_t made, requests, verified;
    uint64_t given, got; /* bytes of all turns */
    bool wrong;          /* a check failed, and has said so */
} engine;

static bool fail(engine *e, const char *what, const tensor *t)
{
    fprintf(stderr, "tensor %" PRIu64 " of %" PRIu64 " bytes: %s\n", t->number, t->size, what);
    e->wrong = true;
    return false;
}

static uint64_t bytes_of(const model *m)
{
    return m->layers * (m->weight_size + m->cache_size);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static uint64_t words[PART / sizeof(uint64_t)], expected[PART / sizeof(uint64_t)];

/* Fills `expected` with the part of the contents at an offset. Another `salt`, other contents. */
static void expect(const tensor *t, uint64_t offset, uint64_t salt)
{
    for (uint64_t i = 0; i < PART / sizeof *expected; i++)
        expected[i] = t->number << 40 | salt << 28 | (offset / sizeof *expected + i);
}

static bool make(engine *e, const model *m, const char *purpose, uint32_t layer, uint64_t size,
                 tensor *t)
{
    char name[32];
    quire_allocation_info info;
    quire_allocation_options options = {
        .size = size, .alignment = 256, .name = name, .info = &info};
    snprintf(name, sizeof name, "%s.%s.%" PRIu32, m->name, purpose, layer);
    if (quire_allocate(e->memory, &options, &t->allocation))
        return false;
    t->address = info.address;
    t->size = size;
    t->number = ++e->made;
    return true;
}

static bool write(engine *e, const tensor *t, uint64_t salt)
{
    for (uint64_t offset = 0; offset < t->size; offset += PART) {
        expect(t, offset, salt);
        if (quire_write(e->memory, t->allocation, offset, expected, PART))
            return false;
    }
    return true;
}

/* Compares all bytes with those that were written. */
static bool verify(engine *e, const tensor *t, uint64_t salt)
{
    quire_allocation_info info;
    if (quire_allocation_get_info(e->memory, t->allocation, &info))
        return false;
    if (info.address != t->address)
        return fail(e, "another address than the stored one", t);
    for (uint64_t offset = 0; offset < t->size; offset += PART) {
        const void *bytes = words;
        expect(t, offset, salt);
        if (e->host)
            bytes = (const char *)(uintptr_t)t->address + offset; /* as a kernel would */
        else if (quire_read(e->memory, t->allocation, offset, words, PART))
            return false;
        if (memcmp(bytes, expected, PART))
            return fail(e, "wrong bytes", t);
    }
    return true;
}

/* ---- models --------------------------------------------------------------------------------- */

static bool load(engine *e, model *m)
{
    for (uint32_t i = 0; i < m->layers; i++)
        if (!make(e, m, "weights", i, m->weight_size, &m->weights[i]) ||
            !make(e, m, "cache", i, m->cache_size, &m->caches[i]) || !write(e, &m->weights[i], 0))
            return false;
    return true;
}

/* Sleeping allocations can be freed as well. */
static bool unload(engine *e, model *m)
{
    for (uint32_t i = 0; i < m->layers; i++)
        if (quire_free(e->memory, m->weights[i].allocation) ||
            quire_free(e->memory, m->caches[i].allocation))
            return false;
    return true;
}

/* An engine with kernels passes the point of the last kernel of the model instead of NULL. */
static bool sleep_model(engine *e, const model *m, uint64_t *given)
{
    char weights[32], caches[32];
    uint64_t of_weights = 0, of_caches = 0;
    snprintf(weights, sizeof weights, "%s.weights.", m->name);
    snprintf(caches, sizeof caches, "%s.cache.", m->name);
    if (quire_memory_sleep(e->memory, caches, QUIRE_SLEEP_DISCARD, NULL, &of_caches) ||
        quire_memory_sleep(e->memory, weights, QUIRE_SLEEP_KEEP, NULL, &of_weights))
        return false;
    *given = of_weights + of_caches;
    return true;
}

/* All weights and caches of the model, or none of them. */
static quire_result wake_model(engine *e, const model *m, uint64_t *got)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s.", m->name);
    return quire_memory_wake(e->memory, prefix, got);
}

/* The caches have unspecified contents when their model wakes: a request fills them first. */
static bool answer(engine *e, const model *m)
{
    e->requests++;
    for (uint32_t i = 0; i < m->layers; i++) {
        if (!verify(e, &m->weights[i], 0) || !write(e, &m->caches[i], e->requests))
            return false;
        e->verified++;
    }
    for (uint32_t i = 0; i < m->layers; i++)
        if (!verify(e, &m->caches[i], e->requests))
            return false;
    return true;
}

/* ---- phases --------------------------------------------------------------------------------- */

/* Returns false unless the model that is awake is all that lives, and what is reserved is at most a
   chunk more at either end of it. NULL: none is awake. */
static bool measure(engine *e, const model *awake, const char *phase)
{
    quire_memory_stats stats;
    if (quire_memory_get_stats(e->memory, &stats))
        return false;
    uint64_t bytes = awake ? bytes_of(awake) : 0;
    uint64_t most = awake ? stats.live_bytes + 2 * (uint64_t)CHUNK : 0;
    if (stats.requested_bytes != bytes || stats.reserved_bytes < bytes ||
        stats.reserved_bytes > most) {
        fprintf(stderr, "%s: %" PRIu64 " bytes live and %" PRIu64 " reserved for %" PRIu64 "\n",
                phase, stats.live_bytes, stats.reserved_bytes, bytes);
        e->wrong = true;
        return false;
    }
    printf("%-36s reserved %5.1f MiB, asleep %5.1f MiB\n", phase,
           (double)stats.reserved_bytes / MIB, (double)stats.asleep_bytes / MIB);
    return true;
}

/* The limit has no room for both: the call that would wake the second one changes nothing. */
static bool refuse_both(engine *e, const model *awake, const model *asleep)
{
    quire_result result = wake_model(e, asleep, NULL);
    if (result != QUIRE_ERROR_OVER_BUDGET) {
        fprintf(stderr, "the limit has room for both models\n");
        e->wrong = true;
        return false;
    }
    return measure(e, awake, "waking the other one was refused");
}

/* Some requests for a model that sleeps. */
static bool serve(engine *e, uint32_t turn, const model *m, const model *other)
{
    uint64_t given = 0, got = 0;
    uint32_t requests = 1 + turn % 3;
    char phase[64];
    if (!sleep_model(e, other, &given) || wake_model(e, m, &got))
        return false;
    e->given += given;
    e->got += got;
    for (uint32_t i = 0; i < requests; i++)
        if (!answer(e, m))
            return false;
    snprintf(phase, sizeof phase, "turn %" PRIu32 ": %" PRIu32 " request%s for model %s", turn + 1,
             requests, requests == 1 ? "" : "s", m->name);
    return measure(e, m, phase);
}

static bool print_totals(engine *e)
{
    quire_memory_stats stats;
    uint64_t both = bytes_of(&e->models[0]) + bytes_of(&e->models[1]);
    if (quire_memory_get_stats(e->memory, &stats))
        return false;
    printf("each of %d switches gave %.1f MiB and got %.1f MiB on average\n", TURNS,
           (double)e->given / TURNS / MIB, (double)e->got / TURNS / MIB);
    printf("both models %.1f MiB, peak reserved %.1f MiB: %.2f times both\n", (double)both / MIB,
           (double)stats.peak_reserved_bytes / MIB,
           (double)stats.peak_reserved_bytes / (double)both);
    printf("%" PRIu64 " requests verified the weights of %" PRIu64
           " layers at their first addresses\n",
           e->requests, e->verified);
    return true;
}

static bool run_models(engine *e)
{
    model *a = &e->models[0], *b = &e->models[1];
    uint64_t given = 0;
    if (!load(e, a) || !measure(e, a, "model a is loaded") || !sleep_model(e, a, &given) ||
        !measure(e, NULL, "model a sleeps") || !load(e, b) || !measure(e, b, "model b is loaded") ||
        !refuse_both(e, b, a))
        return false;
    for (uint32_t turn = 0; turn < TURNS; turn++)
        if (!serve(e, turn, &e->models[turn % 2], &e->models[(turn + 1) % 2]))
            return false;
    return print_totals(e) && unload(e, a) && unload(e, b);
}

/* ---- the program ---------------------------------------------------------------------------- */

static bool run(engine *e)
{
    quire_memory_options options = {
        .name = "models",
        /* device memory; that of the host backend has addresses if the host can write it */
        .kind.intent = e->host ? QUIRE_INTENT_HOST_WRITE : QUIRE_INTENT_DEVICE,
        .elastic = true,
        .pages = {.page_size = CHUNK},
        .limit = LIMIT,
    };
    e->models[0] =
        (model){.name = "a", .layers = 24, .weight_size = 3584 * KIB, .cache_size = 1024 * KIB};
    e->models[1] =
        (model){.name = "b", .layers = 16, .weight_size = 4608 * KIB, .cache_size = 512 * KIB};
    return !quire_memory_create(e->device, &options, &e->memory) && run_models(e) &&
           !quire_memory_destroy(&e->memory);
}

int main(int argc, char **argv)
{
    static engine e;
    bool cuda = argc == 2 && !strcmp(argv[1], "--cuda");
    if (argc > 1 && !cuda) {
        fprintf(stderr, "usage: %s [--cuda]\n", argv[0]);
        return 2;
    }
    e.host = !cuda;
    quire_result opened =
        cuda ? quire_cuda_open(NULL, &e.device) : quire_host_open(NULL, &e.device);
    bool good = !opened && run(&e);
    if (!good && !e.wrong)
        fprintf(stderr, "stopped: %s\n", quire_last_error());
    if (e.memory)
        quire_memory_destroy_all(&e.memory);
    if (e.device)
        quire_device_destroy(&e.device);
    return good ? 0 : opened == QUIRE_ERROR_UNSUPPORTED ? NO_DEVICE : 1;
}
