/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plans.c - plans of generated networks: their peaks beside the lower bound, and what they cost.
 *
 * usage: bench_plan [--kind KIND] [--items N] [--seed N] [--limit SECONDS] [--goal RATIO] [--csv]
 *
 * Without --kind all kinds are planned. With a goal it fails if a peak needs more. --csv prints the
 * ranges of one kind instead, as `quire plan` reads them.
 *
 * A network is a chain of layers, each with a few operations. Channels and resolution change now
 * and then. Sizes are bytes, rounded up to 256. The kinds:
 *
 *     inference  activations, some of which skip layers; convolution matrices; temporaries
 *     training   the same forward; activations that the way back needs live until then; gradients
 *     resident   training, where weights and their gradients live to the end
 *     random     both ends of each lifetime are random times; sizes of up to 1 MiB
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/plan.h"

enum { FORWARD = 4, BACKWARD = 6 }; /* times of a layer */

typedef enum kind { KIND_INFERENCE, KIND_TRAINING, KIND_RESIDENT, KIND_RANDOM, KINDS } kind;

static const char *const NAMES[KINDS] = {"inference", "training", "resident", "random"};

/* ---- networks ------------------------------------------------------------------------------ */

typedef struct network {
    quire_plan_item *items;
    uint32_t count, room;
    uint64_t seed;
    uint64_t end; /* the last time */
} network;

static uint64_t next_random(network *n)
{
    uint64_t z = n->seed += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number from low to high. */
static uint64_t between(network *n, uint64_t low, uint64_t high)
{
    return low + next_random(n) % (high - low + 1);
}

/* A range from one time to another, both included. */
static void add(network *n, uint64_t from, uint64_t to, uint64_t size)
{
    if (n->count == n->room)
        return;
    n->items[n->count++] = (quire_plan_item){
        .size = (size + 255) / 256 * 256, .first_use = from, .last_use = to < n->end ? to : n->end};
}

/* A layer. `f` is its first time forward, `b` its first time on the way back. */
static void add_layer(network *n, kind k, uint64_t f, uint64_t b, uint64_t channels,
                      uint64_t pixels)
{
    const uint64_t activation = 2 * channels * pixels;
    const uint64_t weights = 2 * channels * channels * (between(n, 0, 1) ? 9 : 1);
    const bool is_trained = k != KIND_INFERENCE;
    const uint64_t skips = between(n, 0, 3) ? 0 : FORWARD * between(n, 1, 5);
    add(n, f, is_trained ? b + 3 : f + FORWARD + 1 + skips, activation);
    add(n, f + 1, is_trained ? b + 1 : f + FORWARD, activation / between(n, 1, 4));
    add(n, f, f + between(n, 0, 1), 4096 * between(n, 1, 64));
    add(n, f + 2, f + 2, activation * between(n, 1, 9) / 2);
    add(n, f + 1, f + between(n, 1, 3), channels * between(n, 4, 400));
    if (k != KIND_TRAINING)
        add(n, 0, n->end, weights);
    if (!is_trained)
        return;
    add(n, f + 1, b, 8 * channels);
    add(n, b, b + BACKWARD, activation);
    add(n, b + 1, b + 2, activation * between(n, 1, 9) / 2);
    add(n, b + 2, b + between(n, 2, 4), activation / between(n, 1, 4));
    add(n, b + 3, b + 3, 4096 * between(n, 1, 64));
    add(n, b, b + between(n, 0, 5), channels * between(n, 4, 400));
    add(n, b + 4, k == KIND_RESIDENT ? n->end : b + 30, weights);
}

static void add_layers(network *n, kind k)
{
    const uint64_t each = k == KIND_INFERENCE ? 6 : k == KIND_TRAINING ? 12 : 13;
    const uint64_t layers = n->room / each + 1;
    uint64_t channels = 64, side = 56;
    n->end = layers * (k == KIND_INFERENCE ? FORWARD : FORWARD + BACKWARD) - 1;
    for (uint64_t i = 0; i < layers; i++) {
        if (!between(n, 0, 40)) {
            channels = 16 * between(n, 1, 64);
            side = between(n, 7, 112);
        }
        uint64_t back = layers * FORWARD + BACKWARD * (layers - 1 - i);
        add_layer(n, k, FORWARD * i, back, channels, side * side);
    }
}

static void add_random(network *n)
{
    n->end = n->room;
    while (n->count < n->room) {
        uint64_t a = between(n, 0, n->end), b = between(n, 0, n->end);
        add(n, a < b ? a : b, a < b ? b : a, between(n, 1, 1 << 20));
    }
}

static network make_network(kind k, uint32_t items, uint64_t seed)
{
    network n = {.items = calloc(items, sizeof *n.items), .room = items, .seed = seed};
    if (!n.items) {
        fprintf(stderr, "bench_plan: no host memory for %" PRIu32 " items\n", items);
        exit(1);
    }
    if (k == KIND_RANDOM)
        add_random(&n);
    else
        add_layers(&n, k);
    return n;
}

/* ---- what a plan costs --------------------------------------------------------------------- */

/* Counts the host memory of a plan. */
typedef struct meter {
    uint64_t bytes, peak;
} meter;

static void *meter_allocate(void *user, size_t size, size_t alignment)
{
    meter *m = user;
    m->bytes += size;
    m->peak = m->bytes > m->peak ? m->bytes : m->peak;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void meter_release(void *user, void *pointer, size_t size, size_t alignment)
{
    meter *m = user;
    (void)alignment;
    m->bytes -= size;
    free(pointer);
}

typedef struct choice {
    int kind; /* KINDS: all */
    uint32_t items;
    uint64_t seed;
    double limit, goal;
    bool csv;
} choice;

/* Returns the ratio of the peak to the lower bound. */
static double run(kind k, const choice *c)
{
    meter m = {0, 0};
    const quire_host_memory memory = {
        .allocate = meter_allocate, .release = meter_release, .user = &m};
    const quire_plan_options options = {
        .time_limit_ns = (uint64_t)(c->limit * 1e9), .seed = c->seed, .host_memory = &memory};
    network n = make_network(k, c->items, c->seed);
    const quire_plan_problem problem = {.items = n.items, .item_count = n.count};
    quire_plan_place *places = calloc(n.count, sizeof *places);
    quire_plan_info info;
    if (!places || quire_plan(&problem, &options, places, &info) ||
        quire_plan_check(&problem, places, NULL, NULL)) {
        fprintf(stderr, "bench_plan: %s\n", quire_last_error());
        exit(1);
    }
    double ratio = (double)info.peak_bytes / (double)info.lower_bound_bytes;
    printf("%-10s %8" PRIu32 " items  %.4f of the bound%s  %8.3f s  %4.0f bytes an item\n",
           NAMES[k], n.count, ratio, info.proven_optimal ? ", proven" : "        ",
           (double)info.wall_ns / 1e9, (double)m.peak / n.count);
    fflush(stdout);
    free(places);
    free(n.items);
    return ratio;
}

static int print_csv(const choice *c)
{
    network n = make_network((kind)c->kind, c->items, c->seed);
    printf("id,lower,upper,size\n");
    for (uint32_t i = 0; i < n.count; i++)
        printf("%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, n.items[i].first_use,
               n.items[i].last_use + 1, n.items[i].size);
    free(n.items);
    return 0;
}

/* ---- run ----------------------------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: bench_plan [--kind inference|training|resident|random] [--items N] "
                    "[--seed N]\n"
                    "                  [--limit SECONDS] [--goal RATIO] [--csv]\n");
    return 2;
}

static int find_kind(const char *name)
{
    int k = 0;
    while (k < KINDS && strcmp(name, NAMES[k]))
        k++;
    return k;
}

static bool read_options(int argc, char **argv, choice *c)
{
    static const struct option longs[] = {
        {"kind", required_argument, NULL, 'k'},
        {"items", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"limit", required_argument, NULL, 'l'},
        {"goal", required_argument, NULL, 'g'},
        {"csv", no_argument, NULL, 'c'},
        {NULL, 0, NULL, 0},
    };
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (o) {
        case 'k':
            c->kind = find_kind(optarg);
            if (c->kind == KINDS)
                return false;
            break;
        case 'n':
            c->items = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 's':
            c->seed = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            c->limit = strtod(optarg, NULL);
            break;
        case 'g':
            c->goal = strtod(optarg, NULL);
            break;
        case 'c':
            c->csv = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc && c->items && c->limit > 0 && (!c->csv || c->kind < KINDS);
}

int main(int argc, char **argv)
{
    choice c = {.kind = KINDS, .items = 10000, .seed = 1, .limit = 0.5};
    int missed = 0;
    if (!read_options(argc, argv, &c))
        return usage();
    if (c.csv)
        return print_csv(&c);
    for (int k = 0; k < KINDS; k++)
        if (c.kind == KINDS || c.kind == k)
            missed += run((kind)k, &c) > c.goal && c.goal > 0;
    if (missed)
        fprintf(stderr, "bench_plan: %d above the goal of %.4f\n", missed, c.goal);
    return missed > 0;
}
