/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_destroy.c - destroys objects that the device may still use: see deferred_destroy.h.
 *
 * What may be destroyed when:
 *  - a sparse object once its pending change is complete,
 *  - a stream once its semaphore has reached the last submitted value,
 *  - a buffer or an image once no pending staged work is left,
 *  - a page once no pending staged work and no sparse object is left, because either may name it,
 *    and once its own binds are complete if it is elastic.
 */
#include "backends/vulkan/deferred_destroy.h"

#include "backends/vulkan/elastic.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/sparse.h"
#include "backends/vulkan/staging.h"
#include "src/base/result.h"

/* A buffer or an image in the list. */
typedef struct qi_vulkan_deferred_object {
    quire_object object;
    uint64_t native;
    struct qi_vulkan_deferred_object *next;
} qi_vulkan_deferred_object;

void qi_vulkan_deferred_init(qi_vulkan *vulkan)
{
    pthread_mutex_init(&vulkan->deferred.mutex, NULL);
}

/* ---- emptying the lists ------------------------------------------------------------------- */

/* Destroys the sparse objects whose pending change is complete. Requires the mutex, or that no
   other thread uses the device. */
static void retire_sparse(qi_vulkan_deferred *deferred)
{
    quire_vulkan_sparse **link = &deferred->sparse;
    qi_error before;
    qi_error_save(&before);
    while (*link) {
        quire_vulkan_sparse *s = *link;
        if (qi_vulkan_sparse_retire(s)) {
            link = &s->next_deferred;
            continue;
        }
        *link = s->next_deferred;
        qi_vulkan_sparse_destroy_now(s);
    }
    qi_error_restore(&before);
}

/* If the counter cannot be read the stream counts as running, unless the device is lost. */
static bool is_running(const qi_vulkan *vulkan, const qi_vulkan_stream *stream)
{
    uint64_t passed = 0;
    quire_result result = qi_vulkan_stream_counter(vulkan, stream, &passed);
    return result ? result != QUIRE_ERROR_DEVICE_LOST : passed < stream->marked;
}

/* Destroys the streams on which nothing is running. Requires the mutex. */
static void retire_streams(qi_vulkan *vulkan)
{
    qi_vulkan_stream **link = &vulkan->deferred.streams;
    qi_error before;
    qi_error_save(&before);
    while (*link) {
        qi_vulkan_stream *stream = *link;
        if (is_running(vulkan, stream)) {
            link = &stream->next_deferred;
            continue;
        }
        *link = stream->next_deferred;
        qi_vulkan_stream_destroy_now(vulkan, stream);
    }
    qi_error_restore(&before);
}

static void destroy_objects(qi_vulkan *vulkan)
{
    qi_vulkan_deferred_object *object = vulkan->deferred.objects;
    vulkan->deferred.objects = NULL;
    while (object) {
        qi_vulkan_deferred_object *next = object->next;
        qi_vulkan_object_destroy_now(vulkan, object->object, object->native);
        qi_host_release(&vulkan->host, object, 1, sizeof *object);
        object = next;
    }
}

/* An elastic page whose binds are still running stays in the list, unless the device is idle. */
static void destroy_pages(qi_vulkan *vulkan, bool is_idle)
{
    qi_vulkan_page **link = &vulkan->deferred.pages;
    while (*link) {
        qi_vulkan_page *page = *link;
        if (!qi_vulkan_elastic_destroy(vulkan, page, is_idle)) {
            link = &page->next_deferred;
            continue;
        }
        *link = page->next_deferred;
        qi_vulkan_page_destroy_now(vulkan, page);
    }
}

/* Destroys everything that the device no longer uses. Requires the mutex. */
static void retire_all(qi_vulkan *vulkan, bool is_staged_done)
{
    retire_sparse(&vulkan->deferred);
    retire_streams(vulkan);
    if (is_staged_done)
        destroy_objects(vulkan);
    if (is_staged_done && !vulkan->deferred.sparse)
        destroy_pages(vulkan, false);
}

/* ---- filling the lists -------------------------------------------------------------------- */

void qi_vulkan_defer_sparse(quire_vulkan_sparse *s)
{
    qi_vulkan_deferred *deferred = &s->vulkan->deferred;
    pthread_mutex_lock(&deferred->mutex);
    s->next_deferred = deferred->sparse;
    deferred->sparse = s;
    pthread_mutex_unlock(&deferred->mutex);
}

void qi_vulkan_defer_stream(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    pthread_mutex_lock(&vulkan->deferred.mutex);
    retire_streams(vulkan);
    stream->next_deferred = vulkan->deferred.streams;
    vulkan->deferred.streams = stream;
    pthread_mutex_unlock(&vulkan->deferred.mutex);
}

/* Waits for the staging ring before it acquires the mutex, because a copy can hold the ring for a
   long time. */
void qi_vulkan_page_destroy(void *state, const quire_native_page *native)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_page *page = qi_vulkan_page_of(native);
    qi_vulkan_deferred *deferred = &vulkan->deferred;
    bool is_staged_done = qi_vulkan_staging_retire(vulkan);
    pthread_mutex_lock(&deferred->mutex);
    page->next_deferred = deferred->pages;
    deferred->pages = page;
    retire_all(vulkan, is_staged_done);
    pthread_mutex_unlock(&deferred->mutex);
}

void qi_vulkan_object_destroy(void *state, quire_object object, uint64_t native)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_deferred *deferred = &vulkan->deferred;
    if (qi_vulkan_staging_retire(vulkan)) {
        qi_vulkan_object_destroy_now(vulkan, object, native);
        return;
    }
    qi_vulkan_deferred_object *record = qi_host_allocate(&vulkan->host, 1, sizeof *record);
    if (!record) /* leak the object: the device may still use it */
        return;
    *record = (qi_vulkan_deferred_object){.object = object, .native = native};
    pthread_mutex_lock(&deferred->mutex);
    record->next = deferred->objects;
    deferred->objects = record;
    pthread_mutex_unlock(&deferred->mutex);
}

/* ---- the end of the device ---------------------------------------------------------------- */

/* No other thread uses the device. The caller of quire_device_destroy guarantees that a wrapped
   device is idle; quire waits for a device of its own. */
void qi_vulkan_deferred_finish(qi_vulkan *vulkan)
{
    qi_vulkan_deferred *deferred = &vulkan->deferred;
    bool is_staged_done = qi_vulkan_staging_retire(vulkan);
    retire_sparse(deferred);
    bool is_all_done = is_staged_done && !deferred->sparse && !deferred->streams;
    if (!is_all_done && vulkan->own_device)
        vulkan->f.DeviceWaitIdle(vulkan->device);
    while (deferred->sparse) {
        quire_vulkan_sparse *s = deferred->sparse;
        deferred->sparse = s->next_deferred;
        qi_vulkan_sparse_destroy_now(s);
    }
    while (deferred->streams) {
        qi_vulkan_stream *stream = deferred->streams;
        deferred->streams = stream->next_deferred;
        qi_vulkan_stream_destroy_now(vulkan, stream);
    }
    destroy_objects(vulkan);
    destroy_pages(vulkan, true);
    pthread_mutex_destroy(&deferred->mutex);
}
