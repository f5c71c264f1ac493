/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * words.c - the words of an execution: the values of each, which of them a thread may still read,
 * and which threads sleep on it (see model.h).
 */
#include "src/base/sleep.h"
#include "tests/model/machine.h"

/* ---- words ---------------------------------------------------------------------------------- */

static uint64_t memory_at(const void *at, size_t size)
{
    return size == sizeof(uint64_t) ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static void set_memory(void *at, size_t size, uint64_t value)
{
    if (size == sizeof(uint64_t))
        *(uint64_t *)at = value;
    else
        *(uint32_t *)at = (uint32_t)value;
}

static uint32_t place_with(const void *at, uint64_t value)
{
    uint32_t i = 0;
    while (i < model.place_count && model.places[i].at != at)
        i++;
    if (i == model.place_count) {
        if (i == MAX_PLACES)
            model_violated("the scenario has too many words");
        model.place_count++;
        model.places[i].at = at;
        model.places[i].count = 1;
        model.places[i].messages[0] = (message){.value = value};
    }
    return i;
}

static uint32_t place_of(const void *at, size_t size)
{
    return place_with(at, memory_at(at, size));
}

static void learn(view *known, const view *other)
{
    for (uint32_t i = 0; i < model.place_count; i++)
        if (known->oldest[i] < other->oldest[i])
            known->oldest[i] = other->oldest[i];
}

static view *known(void)
{
    return &model.threads[model.self].known;
}

static message *newest(place *p)
{
    return &p->messages[p->count - 1];
}

static void acquire(const message *read, int order)
{
    if (order & MODEL_ACQUIRE && model.fault != MODEL_NO_ACQUIRE)
        learn(known(), &read->known);
}

/* A thread that polls sees each new value. It acts on it at any later time: it is ready to run. */
static void end_polls(uint32_t index)
{
    for (uint32_t i = 0; i < model.thread_count; i++)
        if (model.threads[i].state == POLLING && model.threads[i].place == index)
            model.threads[i].state = WOKEN;
}

/* Stores a value in a word. A value that replaces another by an exchange passes on what that one
   knew. */
static void append(uint32_t index, size_t size, uint64_t value, int order, bool is_exchange)
{
    place *p = &model.places[index];
    if (p->count == MAX_MESSAGES) {
        model_violated("the scenario gives a word too many values");
        return;
    }
    message *last = newest(p), *now = last + 1;
    *now = (message){.value = value};
    if (is_exchange)
        now->known = last->known;
    known()->oldest[index] = (uint16_t)p->count++;
    if (order & MODEL_RELEASE && model.fault != MODEL_NO_RELEASE)
        learn(&now->known, known());
    set_memory((void *)(uintptr_t)p->at, size, value);
    end_polls(index);
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Stops before an operation on a word, until the scheduler lets this thread make the step. */
static uint32_t step(const void *at, size_t size, bool writes)
{
    thread *t = &model.threads[model.self];
    t->place = place_of(at, size);
    t->writes = writes;
    model_leave();
    return t->place;
}

uint64_t model_load(const void *at, size_t size, int order)
{
    if (!model.is_running)
        return memory_at(at, size);
    uint32_t index = step(at, size, false);
    place *p = &model.places[index];
    uint32_t oldest = known()->oldest[index];
    uint32_t older = model.scenario->is_strong ? 0 : model_choose(p->count - oldest);
    uint32_t chosen = p->count - 1 - older;
    known()->oldest[index] = (uint16_t)chosen;
    acquire(&p->messages[chosen], order);
    return p->messages[chosen].value;
}

void model_store(void *at, size_t size, uint64_t value, int order)
{
    if (model.is_running)
        append(step(at, size, true), size, value, order, false);
    else
        set_memory(at, size, value);
}

/* The value that an exchange works on. */
static uint64_t take_newest(void *at, size_t size, int order, uint32_t *index)
{
    *index = step(at, size, true);
    message *last = newest(&model.places[*index]);
    acquire(last, order);
    if (model.fault == MODEL_TORN_EXCHANGE)
        step(at, size, true);
    return last->value;
}

uint64_t model_swap(void *at, size_t size, uint64_t value, int order)
{
    uint32_t index = 0;
    uint64_t old = model.is_running ? take_newest(at, size, order, &index) : memory_at(at, size);
    if (model.is_running)
        append(index, size, value, order, true);
    else
        set_memory(at, size, value);
    return old;
}

uint64_t model_add(void *at, size_t size, uint64_t value, int order)
{
    uint32_t index = 0;
    uint64_t old = model.is_running ? take_newest(at, size, order, &index) : memory_at(at, size);
    if (model.is_running)
        append(index, size, size == sizeof(uint64_t) ? old + value : (uint32_t)(old + value), order,
               true);
    else
        set_memory(at, size, old + value);
    return old;
}

bool model_exchange_if(void *at, size_t size, uint64_t *seen, uint64_t value, int order)
{
    uint32_t index = 0;
    uint64_t old = model.is_running ? take_newest(at, size, order, &index) : memory_at(at, size);
    if (old != *seen) {
        if (model.is_running)
            known()->oldest[index] = (uint16_t)(model.places[index].count - 1);
        *seen = old;
        return false;
    }
    if (model.is_running)
        append(index, size, value, order, true);
    else
        set_memory(at, size, value);
    return true;
}

/* ---- locks as one word ---------------------------------------------------------------------- */

void model_acquire(uint32_t *lock)
{
    thread *t = &model.threads[model.self];
    if (model.is_running) {
        t->needs = lock;
        step(lock, sizeof *lock, true);
        t->needs = NULL;
    }
    *lock = 1;
}

void model_release(uint32_t *lock)
{
    *lock = 0;
}

/* ---- data that is not atomic ---------------------------------------------------------------- */

/* Each thread's reads of a word are counted separately, at these addresses. */
static place *reads_of(const uint64_t *at, uint32_t reader, uint32_t *index)
{
    *index = place_with((const char *)at + 1 + reader, 0);
    return &model.places[*index];
}

uint64_t model_read(const uint64_t *at)
{
    uint32_t reads = 0;
    if (!model.is_running)
        return *at;
    uint32_t index = step(at, sizeof *at, false);
    if (known()->oldest[index] + 1u != model.places[index].count)
        model_violated("race: a read beside a write");
    uint32_t count = reads_of(at, model.self, &reads)->count++;
    known()->oldest[reads] = (uint16_t)count;
    return *at;
}

void model_write(uint64_t *at, uint64_t value)
{
    uint32_t reads = 0;
    if (!model.is_running) {
        *at = value;
        return;
    }
    uint32_t index = step(at, sizeof *at, true);
    if (known()->oldest[index] + 1u != model.places[index].count)
        model_violated("race: a write beside another");
    for (uint32_t i = 0; i < model.thread_count; i++) {
        uint32_t count = reads_of(at, i, &reads)->count;
        if (i != model.self && known()->oldest[reads] + 1u != count)
            model_violated("race: a write beside a read");
    }
    append(index, sizeof *at, value, MODEL_RELAXED, false);
}

/* ---- sleeping (src/base/sleep.h) ------------------------------------------------------------ */

/* A thread that compares the word finds its newest value. */
static void fall_asleep(qi_atomic_u32 *word, uint32_t seen, state how)
{
    thread *t = &model.threads[model.self];
    uint32_t index = step(word, sizeof *word, false);
    bool sleeps = *word == seen || (model.fault == MODEL_BLIND_SLEEP && how == ASLEEP);
    if (sleeps) {
        t->state = how;
        t->place = index;
        model_leave();
    }
    if (!sleeps || how == POLLING)
        known()->oldest[index] = (uint16_t)(model.places[index].count - 1);
}

void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen)
{
    fall_asleep(word, seen, ASLEEP);
}

void qi_sleep_poll(qi_atomic_u32 *word, uint32_t seen)
{
    fall_asleep(word, seen, POLLING);
}

static void wake(qi_atomic_u32 *word, bool all)
{
    uint32_t sleeping[MODEL_MAX_THREADS], count = 0;
    if (!model.is_running)
        return;
    uint32_t index = step(word, sizeof *word, true);
    for (uint32_t i = 0; i < model.thread_count; i++)
        if (model.threads[i].state == ASLEEP && model.threads[i].place == index)
            sleeping[count++] = i;
    uint32_t first = all ? 0 : model_choose(count);
    for (uint32_t i = first; i < (all || !count ? count : first + 1); i++)
        if (model.fault != MODEL_NO_WAKE)
            model.threads[sleeping[i]].state = WOKEN;
}

void qi_sleep_wake_one(qi_atomic_u32 *word)
{
    wake(word, false);
}

void qi_sleep_wake_all(qi_atomic_u32 *word)
{
    wake(word, true);
}
