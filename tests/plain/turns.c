/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * turns.c - which pages a failed request waits for: pages whose creation began before its failure,
 * and none that began later. Those may fail for the same reason, and two threads that waited for
 * each other in turn would never end.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "quire/quire.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"

enum { PAGE = 1 << 20, TRIES = 10, MAX_S = 2 };

/* The work of a thread, and its progress. Requires the stage's lock. */
typedef struct actor {
    pthread_t thread;
    uint32_t asked;   /* pages that it requested from the backend */
    uint32_t held_at; /* the request whose answer is delayed; 0 means none */
    bool is_delayed, has_ended;
    quire_result result;
} actor;

static struct {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    actor first, second, third;
} stage;

static _Thread_local actor *self;

/* Waits until the flag has the value; returns false on a timeout. Requires the lock. */
static bool await(const bool *flag, bool wanted)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += MAX_S;
    while (*flag != wanted)
        if (pthread_cond_timedwait(&stage.changed, &stage.lock, &end))
            return *flag == wanted;
    return true;
}

static void set(bool *flag, bool value)
{
    *flag = value;
    pthread_cond_broadcast(&stage.changed);
}

/* No page is available; some answers are delayed until another thread releases them. */
static quire_result refuse(void *state, const quire_page_request *request, quire_native_page *page)
{
    (void)state;
    (void)request;
    (void)page;
    pthread_mutex_lock(&stage.lock);
    if (++self->asked == self->held_at) {
        set(&self->is_delayed, true);
        await(&self->is_delayed, false);
    }
    pthread_mutex_unlock(&stage.lock);
    return QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void *allocate(void *user)
{
    quire_allocation none;
    self = user;
    self->result = quire_allocate(stage.memory, &(quire_allocation_options){.size = PAGE}, &none);
    pthread_mutex_lock(&stage.lock);
    set(&self->has_ended, true);
    pthread_mutex_unlock(&stage.lock);
    return NULL;
}

static void start(actor *a, uint32_t held_at)
{
    *a = (actor){.held_at = held_at};
    CHECK(!pthread_create(&a->thread, NULL, allocate, a));
}

/* Releases the delayed answer. Requires the lock. */
static void release_answer(actor *a)
{
    set(&a->is_delayed, false);
}

static void finish(actor *a)
{
    CHECK(await(&a->has_ended, true));
    pthread_join(a->thread, NULL);
    CHECK_EQ(a->result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
}

/* Lets the first thread run to its end; returns false if it waits for another thread's page. */
static bool ends_alone(void)
{
    if (stage.first.is_delayed)
        release_answer(&stage.first);
    return await(&stage.first.has_ended, true);
}

/*
 * The first thread's request fails while the second one's page is being created. It waits for that
 * page, retries and fails while the third one's page is being created. That creation began later:
 * before the first thread's retry, or during it. Returns false if the first thread was slow, so
 * that it failed after the second one's page was finished, or after the third one's creation began.
 */
static bool play(bool is_early)
{
    start(&stage.second, 1);
    CHECK(await(&stage.second.is_delayed, true));
    start(&stage.first, is_early ? 0 : 2);
    pthread_mutex_unlock(&stage.lock);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pthread_mutex_lock(&stage.lock);
    CHECK(!stage.first.has_ended); /* it waits */
    if (is_early) {
        start(&stage.third, 1);
        CHECK(await(&stage.third.is_delayed, true));
    }
    release_answer(&stage.second);
    while (!is_early && !stage.first.is_delayed && !stage.first.has_ended)
        CHECK(!pthread_cond_wait(&stage.changed, &stage.lock));
    if (!is_early) {
        start(&stage.third, 1);
        CHECK(await(&stage.third.is_delayed, true));
    }
    bool has_ended = ends_alone();
    release_answer(&stage.third);
    finish(&stage.third);
    finish(&stage.second); /* it may have waited for either */
    finish(&stage.first);
    return has_ended && stage.first.asked == 2;
}

static void play_until_in_time(bool is_early)
{
    const quire_memory_options options = {.pages = {.page_size = PAGE}};
    bool was_in_time = false;
    memset(&stage, 0, sizeof stage);
    pthread_mutex_init(&stage.lock, NULL);
    pthread_cond_init(&stage.changed, NULL);
    fake_init(&stage.fake);
    stage.fake.table.page_create = refuse;
    CHECK_OK(fake_open(&stage.fake, NULL, &stage.device));
    CHECK_OK(quire_memory_create(stage.device, &options, &stage.memory));
    pthread_mutex_lock(&stage.lock);
    for (int i = 0; i < TRIES && !was_in_time; i++)
        was_in_time = play(is_early);
    pthread_mutex_unlock(&stage.lock);
    CHECK(was_in_time);
    CHECK_OK(quire_memory_check(stage.memory));
    CHECK_OK(quire_memory_destroy(&stage.memory));
    CHECK_OK(quire_device_destroy(&stage.device));
    pthread_cond_destroy(&stage.changed);
    pthread_mutex_destroy(&stage.lock);
}

static void begun_before_it_asks_again(void)
{
    play_until_in_time(true);
}

static void begun_while_it_asks_again(void)
{
    play_until_in_time(false);
}

int main(void)
{
    plain_case("no request waits for a page begun after its failure", begun_before_it_asks_again);
    plain_case("no request waits for a page begun during its retry", begun_while_it_asks_again);
    return plain_end();
}
