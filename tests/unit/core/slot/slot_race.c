/*
 * slot_race.c - the slot table behind handles under concurrent threads, and under forged handles.
 */
#include "tests/support/unit.h"

#include <pthread.h>

#include "src/core/slot/slot.h"
#include "tests/support/random.h"

enum { TAG = 5, ANY = QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED };

/* The handle of a slot that is not free. */
static quire_allocation handle_of(const qi_slots *slots, uint32_t slot)
{
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot)));
    return (quire_allocation){qi_handle(slots->tag, generation, slot)};
}

/* ---- races -------------------------------------------------------------------------------- */

/*
 * Eight threads go through the same batch of slots in the same order, three times: all commit, all
 * free; or half commit while half abort. A thousand batches of a hundred slots are 100,000 rounds.
 */
enum { THREADS = 8, BATCH = 100, BATCHES = 1000 };

typedef struct race {
    qi_slots slots;
    qi_slot_queue queue;
    qi_host host;
    pthread_barrier_t barrier;
    quire_allocation handles[BATCH];
    qi_atomic_u64 wins[BATCH];
    qi_atomic_u64 other_wins[BATCH];
    qi_atomic_u64 surprises; /* results that a losing thread must not get */
    bool split;              /* odd threads abort while even ones commit */
} race;

typedef struct racer {
    race *race;
    uint32_t number;
    pthread_t thread;
} racer;

static void try_commit(race *r, int i)
{
    quire_result result = qi_slot_commit(&r->slots, r->handles[i]);
    if (!result)
        qi_atomic_add_u64(&r->wins[i], 1);
    else if (result != QUIRE_ERROR_WRONG_STATE && result != QUIRE_ERROR_STALE_HANDLE)
        qi_atomic_add_u64(&r->surprises, 1);
}

static void try_leave(race *r, int i, int accept, qi_atomic_u64 *wins)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&r->slots, r->handles[i], accept, &slot);
    if (!result)
        qi_atomic_add_u64(&wins[i], 1);
    else if (result != QUIRE_ERROR_STALE_HANDLE && result != QUIRE_ERROR_WRONG_STATE)
        qi_atomic_add_u64(&r->surprises, 1);
}

static void take_batch(race *r)
{
    for (int i = 0; i < BATCH; i++) {
        uint32_t slot = 0;
        CHECK_OK(qi_slot_take(&r->slots, &r->queue, &r->host, &slot));
        qi_slot_publish(&r->slots, slot, QI_PHASE_RESERVED);
        r->handles[i] = handle_of(&r->slots, slot);
        r->wins[i] = r->other_wins[i] = 0;
    }
}

/* After a split phase each slot was either committed or aborted; frees the committed ones. */
static void free_committed(race *r)
{
    for (int i = 0; i < BATCH; i++) {
        uint32_t slot = qi_handle_slot(r->handles[i].id);
        if (r->split) {
            CHECK_EQ(r->wins[i] + r->other_wins[i], 1);
            if (r->wins[i])
                CHECK_OK(qi_slot_claim(&r->slots, r->handles[i], QI_ACCEPT_LIVE, &slot));
        } else {
            CHECK_EQ(r->wins[i], 1);
            CHECK_EQ(r->other_wins[i], 1);
        }
        CHECK_EQ(qi_slot_phase(&r->slots, slot), QI_PHASE_PRIVATE);
        qi_slot_give(&r->slots, &r->queue, slot);
    }
}

static void *run_racer(void *user)
{
    racer *me = user;
    race *r = me->race;
    bool first = me->number == 0, aborts = r->split && me->number % 2;
    for (int batch = 0; batch < BATCHES; batch++) {
        if (first)
            take_batch(r);
        pthread_barrier_wait(&r->barrier);
        for (int i = 0; i < BATCH; i++)
            if (aborts)
                try_leave(r, i, QI_ACCEPT_RESERVED, r->other_wins);
            else
                try_commit(r, i);
        pthread_barrier_wait(&r->barrier);
        for (int i = 0; i < BATCH && !r->split; i++)
            try_leave(r, i, QI_ACCEPT_LIVE, r->other_wins);
        pthread_barrier_wait(&r->barrier);
        if (first)
            free_committed(r);
    }
    return NULL;
}

static void run_race(bool split)
{
    static race r;
    racer racers[THREADS];
    r.split = split;
    CHECK_OK(qi_host_init(&r.host, unit_memory()));
    qi_slots_init(&r.slots, TAG);
    qi_slot_queue_init(&r.queue);
    pthread_barrier_init(&r.barrier, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        racers[i] = (racer){.race = &r, .number = i};
        if (i)
            CHECK(!pthread_create(&racers[i].thread, NULL, run_racer, &racers[i]));
    }
    run_racer(&racers[0]); /* checks fail the test only on the thread that runs it */
    for (uint32_t i = 1; i < THREADS; i++)
        pthread_join(racers[i].thread, NULL);
    pthread_barrier_destroy(&r.barrier);
    CHECK_EQ(r.surprises, 0);
    CHECK_EQ(r.queue.used, 0);
    qi_slots_finish(&r.slots, &r.host);
}

UNIT(slot_race, of_eight_threads_exactly_one_commits_and_one_frees)
{
    run_race(false);
}

UNIT(slot_race, of_commits_and_aborts_exactly_one_wins)
{
    run_race(true);
}

/* Uses against a free: while a thread uses the slot it is live. */
typedef struct slot_user {
    qi_slots slots;
    qi_slot_queue queue;
    quire_allocation handle;
    qi_atomic_u64 uses, broken, done;
} slot_user;

static void *run_slot_user(void *user)
{
    slot_user *p = user;
    uint32_t slot = 0;
    while (!p->done) {
        if (qi_slot_begin_use(&p->slots, p->handle, QI_ACCEPT_LIVE, &slot))
            continue;
        if (qi_slot_phase(&p->slots, slot) != QI_PHASE_LIVE)
            qi_atomic_add_u64(&p->broken, 1);
        qi_atomic_add_u64(&p->uses, 1);
        qi_slot_end_use(&p->slots, slot);
    }
    return NULL;
}

UNIT(slot_race, a_free_never_happens_between_a_use_and_its_end)
{
    static slot_user p;
    qi_host host;
    pthread_t threads[2];
    uint32_t slot = 0;
    CHECK_OK(qi_host_init(&host, unit_memory()));
    qi_slots_init(&p.slots, TAG);
    qi_slot_queue_init(&p.queue);
    CHECK_OK(qi_slot_take(&p.slots, &p.queue, &host, &slot));
    qi_slot_publish(&p.slots, slot, QI_PHASE_LIVE);
    p.handle = handle_of(&p.slots, slot);
    for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_slot_user, &p));
    while (p.uses < 1000) {
    }
    while (
        qi_slot_claim(&p.slots, p.handle, QI_ACCEPT_LIVE, &slot)) /* BUSY while a thread uses it */
        CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
    uint64_t uses = p.uses;
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(qi_slot_phase(&p.slots, slot), QI_PHASE_PRIVATE);
    p.done = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(p.uses, uses);
    CHECK_EQ(p.broken, 0);
    qi_slot_give(&p.slots, &p.queue, slot);
    qi_slots_finish(&p.slots, &host);
}

/* ---- forged handles ----------------------------------------------------------------------- */

enum { LIVE = 300 };

typedef struct forgery {
    qi_slots slots;
    qi_slot_queue queue;
    qi_host host;
    quire_allocation handles[LIVE];
    uint64_t right; /* forged ids that were live by chance */
} forgery;

static bool is_live(const forgery *f, uint64_t id)
{
    for (int i = 0; i < LIVE; i++)
        if (f->handles[i].id == id)
            return true;
    return false;
}

static void present(forgery *f, uint64_t id)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&f->slots, (quire_allocation){id}, ANY, &slot);
    if (!result)
        qi_slot_end_use(&f->slots, slot);
    CHECK_EQ(!result, is_live(f, id));
    CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE || result == QUIRE_ERROR_FOREIGN_HANDLE ||
          (!id && result == QUIRE_ERROR_INVALID_ARGUMENT));
    f->right += !result;
}

UNIT(slot_race, forged_handles_are_refused_unless_they_are_live_ones)
{
    static forgery f;
    test_random random = {2024};
    CHECK_OK(qi_host_init(&f.host, unit_memory()));
    qi_slots_init(&f.slots, TAG);
    qi_slot_queue_init(&f.queue);
    for (int round = 0; round < 3; round++) /* two generations freed before the live one */
        for (int i = 0; i < LIVE; i++) {
            uint32_t slot = 0;
            CHECK_OK(qi_slot_take(&f.slots, &f.queue, &f.host, &slot));
            f.handles[i] = handle_of(&f.slots, slot);
            if (round < 2)
                qi_slot_give(&f.slots, &f.queue, slot);
            else
                qi_slot_publish(&f.slots, slot, QI_PHASE_LIVE);
        }
    for (int i = 0; i < 20000; i++) {
        uint64_t near_one = f.handles[random_below(&random, LIVE)].id;
        present(&f, random_next(&random));                                /* any number */
        present(&f, near_one ^ UINT64_C(1) << random_below(&random, 64)); /* one bit changed */
        present(&f, qi_handle(TAG, (uint32_t)random_below(&random, 8),
                              (uint32_t)random_below(&random, 2 * LIVE)));
    }
    CHECK(f.right > 0);
    for (int i = 0; i < LIVE; i++)
        present(&f, f.handles[i].id);
    qi_slots_finish(&f.slots, &f.host);
}
