/*
 * late.c - what quire refuses while a stream captures, because the stream has no mark yet, is put
 * off. That happens only to a stream that captures without a pool when the adapter first sees it.
 */
#include <stdlib.h>

#include "src/adapters/torch/state.h"

static quire_result perform(const torch_late *l)
{
    return l->is_free ? quire_free_on_stream(l->memory, l->allocation, l->stream)
                      : quire_record_use(l->memory, l->allocation, l->stream);
}

/* Requires the mutex. A free comes after the uses of its allocation, which are older. */
static bool waits(const torch_device *d, quire_allocation allocation)
{
    for (const torch_late *l = d->late; l; l = l->next)
        if (l->allocation.id == allocation.id)
            return true;
    return false;
}

/* Requires the mutex. */
static quire_result put_off(torch_device *d, const torch_late *wanted)
{
    torch_late **end = &d->late;
    torch_late *l = malloc(sizeof *l);
    if (!l)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a free");
    while (*end)
        end = &(*end)->next;
    *l = *wanted;
    *end = l;
    atomic_fetch_add(&d->late_count, 1);
    return QUIRE_SUCCESS;
}

static quire_result now_or_later(torch_device *d, const torch_late *wanted)
{
    quire_result result = QUIRE_ERROR_NOT_PERMITTED;
    bool may_wait = atomic_load(&d->late_count);
    if (may_wait)
        pthread_mutex_lock(&d->late_mutex);
    if (!may_wait || !waits(d, wanted->allocation))
        result = perform(wanted);
    if (result == QUIRE_ERROR_NOT_PERMITTED) {
        if (!may_wait)
            pthread_mutex_lock(&d->late_mutex);
        may_wait = true;
        result = put_off(d, wanted);
    } else if (result) {
        torch_fail_quire(wanted->is_free ? "a free" : "a use of a stream");
    }
    if (may_wait)
        pthread_mutex_unlock(&d->late_mutex);
    return result;
}

quire_result torch_late_free(torch_device *d, quire_memory *memory, quire_allocation allocation,
                             quire_stream *stream)
{
    return now_or_later(
        d, &(torch_late){
               .memory = memory, .allocation = allocation, .stream = stream, .is_free = true});
}

quire_result torch_late_use(torch_device *d, quire_memory *memory, quire_allocation allocation,
                            quire_stream *stream)
{
    return now_or_later(
        d, &(torch_late){.memory = memory, .allocation = allocation, .stream = stream});
}

/* Stops at the first that still waits for the same stream's end of its capture: the order of the
   uses and the free of an allocation matters. */
void torch_late_retry(torch_device *d)
{
    if (!atomic_load(&d->late_count))
        return;
    pthread_mutex_lock(&d->late_mutex);
    while (d->late && perform(d->late) != QUIRE_ERROR_NOT_PERMITTED) {
        torch_late *done = d->late;
        d->late = done->next;
        atomic_fetch_sub(&d->late_count, 1);
        free(done);
    }
    pthread_mutex_unlock(&d->late_mutex);
}
