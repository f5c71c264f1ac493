/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * workload.c - see workload.h.
 */
#include "bench/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 16, UNIT = 256, SMALL_UNIT = 16 };
#define MIB (UINT64_C(1) << 20)

/* ---- random numbers ----------------------------------------------------------------------- */

uint64_t rng_next(rng *r)
{
    r->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

uint64_t rng_below(rng *r, uint64_t n)
{
    /* the high half of the 64 by 64 bit product of the random number and n */
    uint64_t x = rng_next(r), low = (x & UINT32_MAX) * n, high = (x >> 32) * n;
    return (high + (low >> 32)) >> 32;
}

uint64_t rng_log_uniform(rng *r, double low, double high)
{
    return (uint64_t)floor(low * exp2(rng_unit(r) * log2(high / low)));
}

static uint64_t rounded(uint64_t size)
{
    return (size + UNIT - 1) & ~(uint64_t)(UNIT - 1);
}

/* ---- lists -------------------------------------------------------------------------------- */

/* After a failed allocation of host memory all further steps are dropped. */
static void add(workload *w, uint32_t slot, uint64_t size, uint32_t alignment)
{
    if (w->broken)
        return;
    if (w->count == w->room) {
        size_t room = w->room ? w->room * 2 : 1024;
        workload_step *steps = realloc(w->steps, room * sizeof *steps);
        if (!steps) { /* workload_make reports it */
            w->broken = true;
            return;
        }
        w->steps = steps;
        w->room = room;
    }
    w->steps[w->count++] = (workload_step){size, slot, alignment};
}

/* A random size and alignment. */
typedef struct draw {
    uint64_t size;
    uint32_t alignment;
} draw;

/* Uniform in the logarithm from 256 B to 1 MiB. */
static draw draw_a(rng *r, bool raw)
{
    uint64_t size = rng_log_uniform(r, 256, 1048576);
    return (draw){raw ? size : rounded(size), UNIT};
}

/* One of 13 small sizes, with an alignment from 16 to 256. */
static draw draw_b(rng *r)
{
    static const uint32_t sizes[] = {64,  96,   128,  192,  256,  384, 512,
                                     768, 1024, 1536, 2048, 3072, 4096};
    uint64_t size = sizes[rng_below(r, sizeof sizes / sizeof *sizes)];
    return (draw){size, UINT32_C(1) << (4 + rng_below(r, 5))};
}

typedef struct family {
    char letter;
    bool raw; /* a: sizes are not rounded; e: sizes change */
    uint32_t slots;
    uint32_t warm_pairs; /* per slot; c: number of timed rounds; e: number of training steps */
    uint64_t timed_pairs;
} family;

static draw draw_for(rng *r, const family *f)
{
    return f->letter == 'b' ? draw_b(r) : draw_a(r, f->raw);
}

/* Allocates every slot once. */
static void fill(workload *w, rng *r, const family *f)
{
    for (uint32_t i = 0; i < f->slots; i++) {
        draw d = draw_for(r, f);
        add(w, i, d.size, d.alignment);
    }
}

/* Frees GROUP different random slots and allocates them again with new sizes. */
static void add_churn(workload *w, rng *r, const family *f)
{
    uint32_t victims[GROUP];
    for (int i = 0; i < GROUP; i++) {
        bool again = true;
        while (again) {
            victims[i] = (uint32_t)rng_below(r, f->slots);
            again = false;
            for (int j = 0; j < i; j++)
                again = again || victims[j] == victims[i];
        }
        add(w, victims[i], 0, 0);
    }
    for (int i = 0; i < GROUP; i++) {
        draw d = draw_for(r, f);
        add(w, victims[i], d.size, d.alignment);
    }
}

/* Families a and b. */
static void make_random(workload *w, rng *r, const family *f)
{
    fill(w, r, f);
    for (uint64_t done = 0; done < (uint64_t)f->slots * f->warm_pairs; done += GROUP)
        add_churn(w, r, f);
    w->timed_from = w->count;
    for (uint64_t done = 0; done < f->timed_pairs; done += GROUP)
        add_churn(w, r, f);
}

/* Family c: rounds that fill all slots and free them in reverse order. Round 0 warms up. */
static void make_lifo(workload *w, rng *r, const family *f)
{
    for (uint32_t round = 0; round <= f->warm_pairs; round++) {
        if (round == 1)
            w->timed_from = w->count;
        fill(w, r, f);
        for (uint32_t i = f->slots; i-- > 0;)
            add(w, i, 0, 0);
    }
}

/* Family d: a ring that frees and refills the oldest GROUP slots. */
static void make_fifo(workload *w, rng *r, const family *f)
{
    fill(w, r, f);
    uint64_t warm = (uint64_t)f->slots * f->warm_pairs;
    for (uint64_t done = 0; done < warm + f->timed_pairs; done += GROUP) {
        if (done >= warm && !w->timed_from)
            w->timed_from = w->count;
        for (uint64_t i = 0; i < GROUP; i++)
            add(w, (uint32_t)((done + i) % f->slots), 0, 0);
        for (uint64_t i = 0; i < GROUP; i++) {
            draw d = draw_for(r, f);
            add(w, (uint32_t)((done + i) % f->slots), d.size, d.alignment);
        }
    }
}

/* ---- a layered network -------------------------------------------------------------------- */

enum { LAYERS = 48, TINY = 12, SAVED = 3, DNN_SLOTS = 1024 };

typedef struct layer {
    uint64_t weight, activation, workspace, tiny[TINY], saved[SAVED];
    /* slots of the tensors that live from the forward to the backward pass, or longer */
    uint32_t act_slot, saved_slots[SAVED], grad_slot, grad_weight_slot;
} layer;

typedef struct network {
    workload *w;
    rng *r;
    layer layers[LAYERS];
    uint32_t free_slots[DNN_SLOTS];
    uint32_t free_count;
    double scale;
} network;

/* Slots are reused last in, first out. */
static uint32_t net_alloc(network *n, uint64_t size)
{
    uint32_t slot = n->free_slots[--n->free_count];
    add(n->w, slot, rounded(size ? size : 1), UNIT);
    return slot;
}

static void net_free(network *n, uint32_t slot)
{
    add(n->w, slot, 0, 0);
    n->free_slots[n->free_count++] = slot;
}

static uint64_t scaled(const network *n, uint64_t size)
{
    return (uint64_t)((double)size * n->scale);
}

static void draw_layers(network *n)
{
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &n->layers[i];
        l->weight = rng_log_uniform(n->r, 1048576, 16777216);
        l->activation = rng_log_uniform(n->r, 2097152, 33554432);
        l->workspace = rng_log_uniform(n->r, 65536, 8388608);
        for (int k = 0; k < TINY; k++)
            l->tiny[k] = rng_log_uniform(n->r, 256, 65536);
        for (int k = 0; k < SAVED; k++)
            l->saved[k] = rng_log_uniform(n->r, 256, 262144);
    }
}

/* Allocates per layer the weight, four small tensors, and two optimizer states. They stay live. */
static void start_network(network *n)
{
    for (int i = 0; i < LAYERS; i++) {
        uint64_t weight = n->layers[i].weight;
        net_alloc(n, weight);
        for (int k = 0; k < 4; k++)
            net_alloc(n, rng_log_uniform(n->r, 256, 16384));
        net_alloc(n, weight);
        net_alloc(n, weight);
    }
}

/* Allocates the workspace and the tiny tensors of a layer. free_short frees them after its pass. */
static void alloc_short(network *n, const layer *l, uint32_t *slots)
{
    slots[0] = net_alloc(n, scaled(n, l->workspace));
    for (int k = 0; k < TINY; k++)
        slots[1 + k] = net_alloc(n, scaled(n, l->tiny[k]));
}

static void free_short(network *n, const uint32_t *slots)
{
    for (int k = 0; k < TINY; k++)
        net_free(n, slots[1 + k]);
    net_free(n, slots[0]);
}

/* A layer keeps its activation and its saved tensors for the backward pass. */
static void forward(network *n)
{
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &n->layers[i];
        uint32_t slots[1 + TINY];
        l->act_slot = net_alloc(n, scaled(n, l->activation));
        alloc_short(n, l, slots);
        for (int k = 0; k < SAVED; k++)
            l->saved_slots[k] = net_alloc(n, scaled(n, l->saved[k]));
        free_short(n, slots);
    }
}

/*
 * Processes the layers in reverse order. Each layer frees the gradient of the layer above it, and
 * its own activation and saved tensors.
 */
static void backward(network *n)
{
    for (int i = LAYERS; i-- > 0;) {
        layer *l = &n->layers[i];
        uint32_t slots[1 + TINY];
        l->grad_slot = net_alloc(n, scaled(n, l->activation));
        alloc_short(n, l, slots);
        l->grad_weight_slot = net_alloc(n, l->weight);
        free_short(n, slots);
        if (i + 1 < LAYERS)
            net_free(n, n->layers[i + 1].grad_slot);
        net_free(n, l->act_slot);
        for (int k = 0; k < SAVED; k++)
            net_free(n, l->saved_slots[k]);
    }
    net_free(n, n->layers[0].grad_slot);
}

/* Two temporary tensors per layer; then the gradient of the weight is freed. */
static void optimize(network *n)
{
    for (int i = 0; i < LAYERS; i++) {
        uint32_t a = net_alloc(n, n->layers[i].weight), b = net_alloc(n, n->layers[i].weight);
        net_free(n, a);
        net_free(n, b);
        net_free(n, n->layers[i].grad_weight_slot);
    }
}

/* Family e, which includes m_dnn and m_dyn. The first two iterations warm up. */
static void make_network(workload *w, rng *r, bool dynamic, uint32_t iterations)
{
    static const double scales[] = {1, 1, 1, .75, 1.25, .5};
    network n = {.w = w, .r = r, .scale = 1, .free_count = DNN_SLOTS};
    for (uint32_t i = 0; i < DNN_SLOTS; i++)
        n.free_slots[i] = DNN_SLOTS - 1 - i;
    draw_layers(&n);
    start_network(&n);
    for (uint32_t i = 0; i < iterations; i++) {
        if (i == 2)
            w->timed_from = w->count;
        if (dynamic)
            n.scale = scales[rng_below(r, sizeof scales / sizeof *scales)];
        forward(&n);
        backward(&n);
        optimize(&n);
    }
    w->slots = DNN_SLOTS;
    w->arena = UINT64_C(6) << 30;
}

/* ---- by name ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint64_t seed;
    family family;
} KNOWN[] = {
    {"a1k", 1001, {'a', false, 1000, 20, 500000}},
    {"a10k", 1005, {'a', false, 10000, 4, 500000}},
    {"a100k", 1002, {'a', false, 100000, 3, 500000}},
    {"a1m", 1003, {'a', false, 1000000, 2, 1000000}},
    {"a100k_raw", 1002, {'a', true, 100000, 3, 500000}},
    {"b1k", 2001, {'b', false, 1000, 20, 500000}},
    {"b100k", 2002, {'b', false, 100000, 3, 500000}},
    {"c1k", 3000, {'c', false, 1000, 400, 0}},
    {"c100k", 3001, {'c', false, 100000, 6, 0}},
    {"d1k", 4000, {'d', false, 1000, 2, 500000}},
    {"d100k", 4001, {'d', false, 100000, 2, 500000}},
    {"e_dnn", 5001, {'e', false, 0, 120, 0}},
    {"e_dyn", 5002, {'e', true, 0, 120, 0}},
    /* short workloads for the measurement of the smallest arena */
    {"m_a4k", 6001, {'a', false, 4000, 6, 16000}},
    {"m_b4k", 6002, {'b', false, 4000, 6, 16000}},
    {"m_dnn", 5001, {'e', false, 0, 4, 0}},
    {"m_dyn", 5002, {'e', true, 0, 12, 0}},
};

enum { KNOWN_COUNT = sizeof KNOWN / sizeof *KNOWN };

const char *workload_name(size_t index)
{
    return index < KNOWN_COUNT ? KNOWN[index].name : NULL;
}

/* An arena that is two thirds full: 1.5 times the slots times the mean size of the family. */
static uint64_t arena_of(const family *f)
{
    double bytes =
        f->letter == 'b' ? 1.5 * f->slots * 1090.5 : 1.5 * f->slots * 1048320 / log(4096);
    return ((uint64_t)bytes + MIB - 1) / MIB * MIB;
}

static void make_family(workload *w, rng *r, const family *f)
{
    w->slots = f->slots;
    w->arena = f->letter == 'e' ? 0 : arena_of(f);
    w->granule = f->letter == 'b' ? SMALL_UNIT : UNIT;
    if (f->letter == 'c')
        make_lifo(w, r, f);
    else if (f->letter == 'd')
        make_fifo(w, r, f);
    else if (f->letter == 'e')
        make_network(w, r, f->raw, f->warm_pairs);
    else
        make_random(w, r, f);
}

bool workload_make(const char *name, uint64_t variant, workload *out)
{
    *out = (workload){0};
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strcmp(KNOWN[i].name, name))
            continue;
        rng r = {KNOWN[i].seed + variant * 1000003};
        out->name = KNOWN[i].name;
        make_family(out, &r, &KNOWN[i].family);
        return !out->broken;
    }
    return false;
}

void workload_free(workload *w)
{
    free(w->steps);
    *w = (workload){0};
}
