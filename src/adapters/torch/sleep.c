/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - the tag of a thread, and the sleep of what was allocated under a tag: see calls.h.
 */
#include <string.h>

#include "quire/elastic.h"
#include "src/adapters/torch/state.h"

/* ---- tags --------------------------------------------------------------------------------- */

static _Thread_local char tag_of_thread[QUIRE_MAX_NAME + 1]; /* "": none */

static quire_result check_tag(const char *tag)
{
    if (tag && !*tag)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a tag is empty");
    if (tag && strlen(tag) > QUIRE_MAX_NAME)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a tag of %zu bytes; at most %d",
                          strlen(tag), QUIRE_MAX_NAME);
    return QUIRE_SUCCESS;
}

quire_result torch_set_tag(const char *tag)
{
    quire_result result = check_tag(tag);
    if (!result)
        memmove(tag_of_thread, tag ? tag : "",
                tag ? strlen(tag) + 1 : 1); /* it may be torch_tag's */
    return result;
}

const char *torch_tag(void)
{
    return *tag_of_thread ? tag_of_thread : NULL;
}

/* ---- sleep -------------------------------------------------------------------------------- */

/*
 * Acquires the lock of the device for writing, which keeps other threads from allocating meanwhile,
 * and waits for the device's work. On failure no lock is held.
 */
static quire_result begin(int device, const char *prefix, torch_device **d)
{
    quire_result result = check_tag(prefix);
    if (!result)
        result = torch_check_fork();
    if (result)
        return result;
    *d = torch_device_get(device);
    if (!*d)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "device %d has no allocation", device);
    torch_late_retry(*d);
    pthread_rwlock_wrlock(&(*d)->lock);
    if (torch_device_settle(*d))
        return QUIRE_SUCCESS;
    pthread_rwlock_unlock(&(*d)->lock);
    return torch_fail(QUIRE_ERROR_BUSY,
                      "the work of device %d cannot be awaited: a stream captures, a pool is "
                      "begun, or the driver fails",
                      (*d)->ordinal);
}

/* The result is quire's. */
static quire_result end(torch_device *d, quire_result result, const char *call)
{
    if (result)
        result = torch_fail_quire(call);
    pthread_rwlock_unlock(&d->lock);
    return result;
}

quire_result torch_sleep(int device, const char *prefix, bool keep, uint64_t *bytes)
{
    torch_device *d = NULL;
    *bytes = 0;
    quire_result result = begin(device, prefix, &d);
    if (result)
        return result;
    const quire_sleep_mode mode = keep ? QUIRE_SLEEP_KEEP : QUIRE_SLEEP_DISCARD;
    return end(d, quire_memory_sleep(d->memory, prefix, mode, NULL, bytes), "sleep");
}

quire_result torch_wake(int device, const char *prefix, uint64_t *bytes)
{
    torch_device *d = NULL;
    *bytes = 0;
    quire_result result = begin(device, prefix, &d);
    return result ? result : end(d, quire_memory_wake(d->memory, prefix, bytes), "wake");
}
