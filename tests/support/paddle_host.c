/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * paddle_host.c - the pool takes a request from the end of the smallest free piece that fits. The
 * first and last bytes of a piece name its owner, so that two owners are noticed. See
 * paddle_host.h.
 */
#include "tests/support/paddle_host.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "tests/support/random.h"

/* ---- loading -------------------------------------------------------------------------------- */

/* As the version with these sizes does it. Returns false if the plugin rejects the version. */
bool host_load(host_program *h, size_t params_size, size_t interface_size)
{
    void (*init)(void *) = NULL;
    unsigned char *interface = h->interface;
    char *type = NULL;
    h->library = dlopen(PADDLE_RUNTIME, RTLD_LAZY | RTLD_LOCAL);
    if (!h->library)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
    void *found = dlsym(h->library, "InitPlugin");
    CHECK(found);
    memcpy(&init, &found, sizeof init);
    memset(h->params, 0, sizeof h->params);
    memset(h->interface, 0, sizeof h->interface);
    memcpy(h->params, &params_size, sizeof params_size);
    memcpy(h->params + 8, &interface, sizeof interface);
    memcpy(h->interface, &interface_size, sizeof interface_size);
    init(h->params);
    memcpy(&type, h->params + 40, sizeof type);
    if (type)
        CHECK_STR(type, "test_device");
    return type != NULL;
}

void host_begin(host_program *h, const tp_options *options)
{
    size_t count = 0, list[4] = {0};
    *h = (host_program){.tp = plugin_bench_control()};
    h->tp->reset(options);
    CHECK(host_load(h, 88, 904));
    CHECK_EQ(HOST_CALL(h, plain_function, 8)(), 0);
    CHECK_EQ(HOST_CALL(h, of_list, 400)(&count), 0);
    CHECK(count >= 1 && count <= 2);
    CHECK_EQ(HOST_CALL(h, of_list, 408)(list), 0);
    for (size_t i = 0; i < count; i++) {
        h->devices[i].id = (int32_t)list[i];
        CHECK_EQ(HOST_CALL(h, of_device, 24)(&h->devices[i]), 0);
    }
}

void host_end(host_program *h)
{
    for (int i = 0; i < 2; i++)
        if (h->devices[i].id)
            CHECK_EQ(HOST_CALL(h, of_device, 48)(&h->devices[i]), 0);
    CHECK_EQ(HOST_CALL(h, plain_function, 16)(), 0);
    dlclose(h->library);
    if (h->tp->message())
        check_failed(__FILE__, __LINE__, "%s", h->tp->message());
    CHECK_EQ(h->tp->blocks(), 0);
    CHECK_EQ(h->tp->objects(), 0);
}

void host_set(host_program *h, int device)
{
    CHECK_EQ(HOST_CALL(h, of_device, 32)(&h->devices[device]), 0);
}

void *host_take(host_program *h, int device, size_t size)
{
    void *pointer = NULL;
    host_set(h, device);
    CHECK_EQ(HOST_CALL(h, taking, 216)(&h->devices[device], &pointer, size), 0);
    return pointer;
}

void host_give(host_program *h, int device, void *pointer, size_t size)
{
    host_set(h, device);
    CHECK_EQ(HOST_CALL(h, giving, 224)(&h->devices[device], pointer, size), 0);
}

size_t host_free_bytes(host_program *h, int device, size_t *total)
{
    size_t left = 0;
    host_set(h, device);
    CHECK_EQ(HOST_CALL(h, two_sizes, 416)(&h->devices[device], total, &left), 0);
    return left;
}

/* ---- auto_growth ---------------------------------------------------------------------------- */

enum { MAX_CHUNKS = 1024, MAX_PIECES = 512 };

/* A chunk of the runtime's memory, divided into pieces; and the program's pool of them. */
typedef struct piece {
    char *at;
    size_t size;
    bool is_free;
    uint32_t chunk;
    uint32_t stamp;
} piece;

typedef struct chunk {
    char *at;
    size_t size;
} chunk;

typedef struct pool {
    host_program *h;
    int device;
    chunk chunks[MAX_CHUNKS]; /* size 0 means none */
    piece pieces[MAX_CHUNKS]; /* by address within each chunk; chunks are in no order */
    uint32_t piece_count;
} pool;

static void remove_piece(pool *p, uint32_t at)
{
    memmove(&p->pieces[at], &p->pieces[at + 1], (p->piece_count - at - 1) * sizeof *p->pieces);
    p->piece_count--;
}

static void insert_piece(pool *p, uint32_t at, piece made)
{
    CHECK(p->piece_count < MAX_CHUNKS);
    memmove(&p->pieces[at + 1], &p->pieces[at], (p->piece_count - at) * sizeof *p->pieces);
    p->pieces[at] = made;
    p->piece_count++;
}

/* Returns chunks that are one free piece to the runtime. */
static void free_idle(pool *p)
{
    for (uint32_t i = 0; i < p->piece_count;) {
        chunk *c = &p->chunks[p->pieces[i].chunk];
        if (!p->pieces[i].is_free || p->pieces[i].size != c->size) {
            i++;
            continue;
        }
        host_give(p->h, p->device, c->at, c->size);
        c->size = 0;
        remove_piece(p, i);
    }
}

/* Allocates a chunk of the size. Without memory it releases the idle chunks and tries a second
   time. */
static bool grow(pool *p, size_t size)
{
    void *at = host_take(p->h, p->device, size);
    if (!at) {
        free_idle(p);
        at = host_take(p->h, p->device, size);
    }
    if (!at)
        return false;
    uint32_t number = 0;
    while (number < MAX_CHUNKS && p->chunks[number].size)
        number++;
    CHECK(number < MAX_CHUNKS);
    p->chunks[number] = (chunk){at, size};
    insert_piece(p, p->piece_count, (piece){at, size, true, number, 0});
    return true;
}

/* The smallest free piece that fits provides the memory from its end. */
static bool pool_take(pool *p, size_t size, uint32_t stamp, char **out)
{
    uint32_t best = MAX_CHUNKS;
    size = (size + 511) / 512 * 512;
    for (int round = 0; round < 2 && best == MAX_CHUNKS; round++) {
        for (uint32_t i = 0; i < p->piece_count; i++)
            if (p->pieces[i].is_free && p->pieces[i].size >= size &&
                (best == MAX_CHUNKS || p->pieces[i].size < p->pieces[best].size))
                best = i;
        if (best == MAX_CHUNKS && (round || !grow(p, size)))
            return false;
    }
    piece *from = &p->pieces[best];
    if (from->size > size) {
        from->size -= size;
        insert_piece(p, best + 1, (piece){from->at + from->size, size, false, from->chunk, stamp});
        *out = p->pieces[best + 1].at;
    } else {
        from->is_free = false;
        from->stamp = stamp;
        *out = from->at;
    }
    return true;
}

static bool are_neighbours(const piece *a, const piece *b)
{
    return a->is_free && b->is_free && a->chunk == b->chunk && a->at + a->size == b->at;
}

static void pool_give(pool *p, uint32_t at)
{
    p->pieces[at].is_free = true;
    if (at + 1 < p->piece_count && are_neighbours(&p->pieces[at], &p->pieces[at + 1])) {
        p->pieces[at].size += p->pieces[at + 1].size;
        remove_piece(p, at + 1);
    }
    if (at && are_neighbours(&p->pieces[at - 1], &p->pieces[at])) {
        p->pieces[at - 1].size += p->pieces[at].size;
        remove_piece(p, at);
    }
}

/* The first and last bytes of a piece identify its owner. */
static void stamp(pool *p, char *at, size_t size, uint32_t number)
{
    host_device *d = &p->h->devices[p->device];
    host_set(p->h, p->device);
    CHECK_EQ(HOST_CALL(p->h, copying, 272)(d, at, &number, sizeof number), 0);
    CHECK_EQ(HOST_CALL(p->h, copying, 272)(d, at + size - sizeof number, &number, sizeof number),
             0);
}

static void check_stamp(pool *p, const piece *held)
{
    host_device *d = &p->h->devices[p->device];
    uint32_t ends[2] = {0};
    host_set(p->h, p->device);
    CHECK_EQ(HOST_CALL(p->h, copying, 280)(d, &ends[0], held->at, sizeof ends[0]), 0);
    CHECK_EQ(HOST_CALL(p->h, copying, 280)(d, &ends[1], held->at + held->size - sizeof ends[1],
                                           sizeof ends[1]),
             0);
    CHECK(ends[0] == held->stamp && ends[1] == held->stamp);
}

static void random_step(pool *p, test_random *random, uint32_t number)
{
    uint32_t at = p->piece_count ? (uint32_t)random_below(random, p->piece_count) : 0;
    if (p->piece_count < MAX_PIECES && random_below(random, 100) < 55) {
        size_t size = (size_t)1 << random_below(random, 19);
        char *made = NULL;
        size += random_below(random, size);
        if (pool_take(p, size, number, &made))
            stamp(p, made, (size + 511) / 512 * 512, number);
    } else if (p->piece_count && !p->pieces[at].is_free) {
        check_stamp(p, &p->pieces[at]);
        pool_give(p, at);
    }
    if (!random_below(random, 500))
        free_idle(p);
}

void host_play(host_program *h, int device, uint64_t count, uint64_t start)
{
    pool *p = calloc(1, sizeof *p);
    test_random random = {start};
    CHECK(p);
    *p = (pool){.h = h, .device = device};
    for (uint64_t i = 0; i < count; i++)
        random_step(p, &random, (uint32_t)i + 1);
    for (uint32_t i = 0; i < p->piece_count;)
        if (!p->pieces[i].is_free) {
            check_stamp(p, &p->pieces[i]);
            pool_give(p, i);
            i = 0;
        } else {
            i++;
        }
    free_idle(p);
    CHECK_EQ(p->piece_count, 0);
    free(p);
}
