/*
 * history.c - the last allocations, frees, refusals and changes of pages, in a ring: see state.h.
 */
#include <stdlib.h>
#include <time.h>

#include "src/adapters/torch/state.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_on;
static torch_entry *entries;
static uint64_t room, added; /* the entries with the numbers from added - room on are there */

bool torch_history_is_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

quire_result torch_record_history(uint64_t count)
{
    quire_result result = torch_check_fork();
    if (result)
        return result;
    torch_entry *made =
        count && count <= SIZE_MAX / sizeof *made ? calloc(count, sizeof *made) : NULL;
    if (count && !made)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                          "no host memory for a history of this length");
    pthread_mutex_lock(&mutex);
    free(entries);
    entries = made;
    room = count;
    added = 0;
    atomic_store(&is_on, count > 0);
    pthread_mutex_unlock(&mutex);
    return QUIRE_SUCCESS;
}

void torch_history_add(torch_entry entry)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    entry.time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    pthread_mutex_lock(&mutex);
    if (room)
        entries[added++ % room] = entry;
    pthread_mutex_unlock(&mutex);
}

void torch_history_visit(int device, void (*visit)(void *user, const torch_entry *entry),
                         void *user)
{
    pthread_mutex_lock(&mutex);
    for (uint64_t i = added > room ? added - room : 0; i < added; i++)
        if (entries[i % room].device == device)
            visit(user, &entries[i % room]);
    pthread_mutex_unlock(&mutex);
}
