/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * threads.c - the contract: four threads at once, on one memory, on a memory each, and on pages
 * that are created and destroyed.
 */
#include "tests/contract/kit.h"

enum { THREADS = 4, OWN = 12, STEPS = 150, PAGES = 50 };

static const contract_world *world;
static uint32_t of_kind;
static quire_memory
    *memories[THREADS]; /* the memory of each thread: one for all, or one for each */
static pthread_barrier_t start;

static bool takes_threads(const contract_world *w)
{
    return !w->subject->one_thread;
}

typedef struct owned {
    quire_allocation allocation;
    uint64_t size, key;
} owned;

static void make_or_free(quire_memory *memory, test_random *r, owned *o)
{
    bool has_contents = kit_can_both(world, of_kind);
    if (!o->allocation.id) {
        *o = (owned){.size = random_size(r, 12 * KIB), .key = random_next(r)};
        o->allocation =
            ALLOCATE(memory, .size = o->size, .alignment = UINT64_C(1) << random_below(r, 9),
                     .dedicated = random_below(r, 12) == 0);
        if (has_contents)
            kit_write(memory, o->allocation, o->size, o->key);
        return;
    }
    if (has_contents)
        kit_read(memory, o->allocation, o->size, o->key);
    CHECK_OK(quire_free(memory, o->allocation));
    o->allocation.id = 0;
}

static void *churn(void *number)
{
    quire_memory *memory = memories[(uintptr_t)number];
    test_random r = {(uintptr_t)number + 1};
    owned own[OWN] = {0};
    pthread_barrier_wait(&start);
    for (int i = 0; i < STEPS; i++) {
        make_or_free(memory, &r, &own[random_below(&r, OWN)]);
        if (random_below(&r, 20) == 0)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    for (int i = 0; i < OWN; i++)
        if (own[i].allocation.id)
            make_or_free(memory, &r, &own[i]);
    return NULL;
}

/* Creates and destroys pages through the table alone, each with another size and pattern. */
static void *turn_pages(void *number)
{
    uint64_t me = (uintptr_t)number;
    unsigned char bytes[256];
    pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < PAGES; i++) {
        kit_page page = kit_page_make(world, of_kind, (1 + (me + i) % THREADS) * 8 * KIB);
        uint64_t last = page.native.size - sizeof bytes;
        kit_fill(me * 1000 + i, 0, bytes, sizeof bytes);
        bool reached = kit_page_write(world, &page, last, bytes, sizeof bytes);
        memset(bytes, 0, sizeof bytes);
        if (reached && kit_page_read(world, &page, last, bytes, sizeof bytes))
            kit_expect(me * 1000 + i, 0, bytes, sizeof bytes);
        kit_page_end(world, &page);
    }
    return NULL;
}

/*
 * Copies within the memory: bytes move from the first allocation to the last, pattern by pattern.
 */
static void *pass_on(void *number)
{
    enum { LINKS = 3, SIZE = 5000, ROUNDS = 15 };
    uint64_t me = (uintptr_t)number;
    quire_memory *memory = memories[me];
    quire_allocation chain[LINKS];
    pthread_barrier_wait(&start);
    for (int i = 0; i < LINKS; i++)
        chain[i] = ALLOCATE(memory, .size = SIZE);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        kit_write(memory, chain[0], SIZE, me * 1000 + round);
        for (int i = 1; i < LINKS; i++) /* rows of an odd size, and a shorter last one */
            CHECK_OK(quire_copy(
                &(quire_copy_options){
                    .to = {.memory = memory, .allocation = chain[i], .row_pitch = 100},
                    .from = {.memory = memory, .allocation = chain[i - 1], .row_pitch = 100},
                    .size = 61,
                    .rows = 50},
                NULL));
        for (int i = 1; i < LINKS; i++)
            CHECK_OK(quire_copy(&(quire_copy_options){.to = {.memory = memory,
                                                             .allocation = chain[i],
                                                             .offset = 61,
                                                             .row_pitch = 100},
                                                      .from = {memory, chain[i - 1], 61, 100, 0},
                                                      .size = 39,
                                                      .rows = 50},
                                NULL));
        CHECK_OK(quire_fill(memory, chain[0], &(quire_fill_options){0}, NULL));
        kit_read(memory, chain[LINKS - 1], SIZE, me * 1000 + round);
    }
    for (int i = 0; i < LINKS; i++)
        CHECK_OK(quire_free(memory, chain[i]));
    return NULL;
}

static void run_threads(const contract_world *w, uint32_t kind, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    world = w;
    of_kind = kind;
    CHECK_EQ(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&start);
}

static void on_one_memory(contract_world *w, uint32_t kind)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        quire_memory *memory = kit_memory(w, kind, &(quire_memory_options){.shards = shards});
        for (int i = 0; i < THREADS; i++)
            memories[i] = memory;
        run_threads(w, kind, churn);
        kit_end(&memory);
    }
}

static void on_one_each(contract_world *w, uint32_t kind)
{
    for (int i = 0; i < THREADS; i++)
        memories[i] = kit_memory(w, kind, NULL);
    run_threads(w, kind, churn);
    for (int i = 0; i < THREADS; i++)
        kit_end(&memories[i]);
}

static void on_pages(contract_world *w, uint32_t kind)
{
    run_threads(w, kind, turn_pages);
}

static void on_copies(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    for (int i = 0; i < THREADS; i++)
        memories[i] = memory;
    if (kit_can_both(w, kind))
        run_threads(w, kind, pass_on);
    kit_end(&memory);
}

const contract_scenario contract_threads[] = {
    {.name = "four threads create and destroy pages",
     .of_kind = on_pages,
     .applies = takes_threads},
    {.name = "four threads on one memory", .of_kind = on_one_memory, .applies = takes_threads},
    {.name = "four threads on a memory each", .of_kind = on_one_each, .applies = takes_threads},
    {.name = "four threads copy and fill", .of_kind = on_copies, .applies = takes_threads},
    {0},
};
