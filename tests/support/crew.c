/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * crew.c - see crew.h.
 */
#include "tests/support/crew.h"

#include "src/base/thread.h"

static void *serve(void *user)
{
    crew_member *me = user;
    pthread_mutex_lock(&me->lock);
    me->number = qi_thread_number();
    for (;;) {
        me->task = NULL;
        pthread_cond_broadcast(&me->changed);
        while (!me->task && !me->ends)
            pthread_cond_wait(&me->changed, &me->lock);
        if (me->ends)
            break;
        void (*task)(void *) = me->task;
        pthread_mutex_unlock(&me->lock);
        task(me->user);
        pthread_mutex_lock(&me->lock);
    }
    pthread_mutex_unlock(&me->lock);
    return NULL;
}

static void nothing(void *user)
{
    (void)user;
}

void crew_tell(crew *c, uint32_t number, void (*task)(void *user), void *user)
{
    crew_member *member = &c->members[number - 1];
    pthread_mutex_lock(&member->lock);
    member->task = task;
    member->user = user;
    pthread_cond_broadcast(&member->changed);
    pthread_mutex_unlock(&member->lock);
}

void crew_await(crew *c, uint32_t number)
{
    crew_member *member = &c->members[number - 1];
    pthread_mutex_lock(&member->lock);
    while (member->task)
        pthread_cond_wait(&member->changed, &member->lock);
    pthread_mutex_unlock(&member->lock);
}

void crew_do(crew *c, uint32_t number, void (*task)(void *user), void *user)
{
    crew_tell(c, number, task, user);
    crew_await(c, number);
}

void crew_start(crew *c, uint32_t count)
{
    CHECK_EQ(qi_thread_number(), 0);
    for (c->count = 0; c->count < count;) {
        crew_member *member = &c->members[c->count++];
        *member = (crew_member){.task = nothing};
        pthread_mutex_init(&member->lock, NULL);
        pthread_cond_init(&member->changed, NULL);
        CHECK_EQ(pthread_create(&member->thread, NULL, serve, member), 0);
        crew_await(c, c->count);
        CHECK_EQ(member->number, c->count);
    }
}

void crew_end(crew *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        crew_member *member = &c->members[i];
        pthread_mutex_lock(&member->lock);
        member->ends = true;
        pthread_cond_broadcast(&member->changed);
        pthread_mutex_unlock(&member->lock);
        pthread_join(member->thread, NULL);
        pthread_cond_destroy(&member->changed);
        pthread_mutex_destroy(&member->lock);
    }
}
