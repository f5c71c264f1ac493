/*
 * interim.c - the statistics so far, for a process that ends without the layer's knowledge: by
 * _exit, by a signal, or by executing another program.
 *
 * Beside the file of the statistics there is one for each device and process, FILE.PID-N.partial.
 * It is replaced by renaming, so that it is complete at every moment, and removed when the final
 * statistics are written. It is written again when an SHARE-th more calls were made than at the
 * last time, so that the cost per call does not depend on their number, and at the first call after
 * INTERVAL_NS. What is missing from it was thus called within that time after the last writing, and
 * is at most an SHARE-th of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/adapters/vulkan_layer/output.h"
#include "src/base/process.h"
#include "src/base/system.h"

enum { SHARE = 64, MAX_NAMES = 1000 };
static const uint64_t INTERVAL_NS = 10 * 1000 * 1000;
static const long EXIT_WAIT_NS = 500 * 1000 * 1000, NS_PER_SECOND = 1000 * 1000 * 1000;
static const char NEW[] = ".new"; /* what the path is extended by until the file is complete */

/* Creates an empty file under a name that is free. The name can be taken by a program that this
   process executed before, which had the same number. */
static bool create(layer_interim *interim, const char *beside, uint32_t number)
{
    for (uint32_t i = 0; i < MAX_NAMES; i++) {
        snprintf(interim->path, sizeof interim->path, "%s.%ld-%" PRIu32 ".partial", beside,
                 (long)getpid(), number + i);
        int file = qi_output_open(interim->path, O_EXCL);
        if (file >= 0)
            return !close(file);
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* Requires the mutex. The name can be guessed: what exists under it, a link above all, is removed
   and not opened. */
static bool replace(const layer_device *device)
{
    const char *path = device->interim.path;
    char other[sizeof device->interim.path + sizeof NEW];
    snprintf(other, sizeof other, "%s%s", path, NEW);
    unlink(other);
    FILE *file = layer_open_stream(other, O_EXCL | O_NOFOLLOW, "w");
    if (!file)
        return false;
    bool is_written = layer_write_statistics(device, file);
    return !fclose(file) && is_written && !rename(other, path);
}

/* From now on the file is never due. */
static void stop(layer_interim *interim)
{
    qi_atomic_store_release_u64(&interim->due_calls, UINT64_MAX);
    qi_atomic_store_release_u64(&interim->due_ns, UINT64_MAX);
}

/* Requires the mutex. After a failure the file is not written again. */
static void write_now(layer_device *device)
{
    layer_interim *interim = &device->interim;
    uint64_t calls = qi_atomic_load_u64(&interim->calls);
    if (replace(device)) {
        qi_atomic_store_release_u64(&interim->due_calls, calls + 1 + calls / SHARE);
        qi_atomic_store_release_u64(&interim->due_ns, qi_clock() + INTERVAL_NS);
        return;
    }
    layer_say("%s cannot be written", interim->path);
    stop(interim);
}

static bool is_due(const layer_interim *interim)
{
    return qi_atomic_load_u64(&interim->calls) >= qi_atomic_load_u64(&interim->due_calls) ||
           qi_clock() >= qi_atomic_load_u64(&interim->due_ns);
}

/* Pipes and terminals get only the final statistics. */
void layer_interim_open(layer_device *device)
{
    layer_interim *interim = &device->interim;
    const char *path = device->settings.statistics_file;
    struct stat found;
    if (device->settings.statistics == LAYER_NO_STATISTICS || !*path ||
        (!stat(path, &found) && !S_ISREG(found.st_mode)))
        return;
    if (!create(interim, path, device->number)) {
        layer_say("%s cannot be written", interim->path);
        return;
    }
    interim->is_on = true;
    write_now(device);
}

/* A forked child must not write the file of its parent. It does not take the mutex either, which
   another thread of the parent may have held. */
void layer_interim_update(layer_device *device)
{
    layer_interim *interim = &device->interim;
    if (!interim->is_on)
        return;
    qi_atomic_add_u64(&interim->calls, 1);
    if (!is_due(interim) || device->process != getpid())
        return;
    pthread_mutex_lock(&interim->mutex);
    if (is_due(interim))
        write_now(device);
    pthread_mutex_unlock(&interim->mutex);
}

bool layer_lock_at_end(pthread_mutex_t *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += EXIT_WAIT_NS;
    until.tv_sec += until.tv_nsec / NS_PER_SECOND;
    until.tv_nsec %= NS_PER_SECOND;
    return !pthread_mutex_timedlock(mutex, &until);
}

void layer_interim_remove(layer_device *device)
{
    layer_interim *interim = &device->interim;
    if (!interim->is_on)
        return;
    bool is_locked = layer_lock_at_end(&interim->mutex);
    stop(interim);
    unlink(interim->path);
    if (is_locked)
        pthread_mutex_unlock(&interim->mutex);
}
