/*
 * late.c - what a device may still be working on when its owner has gone, because the work could
 * not be waited for, for want of memory say: sparse objects with their last change, streams with
 * submissions, what a staged copy named, and the pages that were given back since. All of it goes
 * once the work is known to be done, or the device is lost or ends.
 */
#include "backends/vulkan/sparse.h"
#include "backends/vulkan/staging.h"
#include "backends/vulkan/stream.h"
#include "src/base/result.h"

/* A buffer or an image. */
typedef struct qi_vulkan_late_object {
    quire_object object;
    uint64_t native;
    struct qi_vulkan_late_object *next;
} qi_vulkan_late_object;

void qi_vulkan_late_init(qi_vulkan *vulkan)
{
    pthread_mutex_init(&vulkan->late.mutex, NULL);
}

/* With the mutex: takes the sparse objects that are done out of the list. */
static void settle(qi_vulkan_late *late)
{
    quire_vulkan_sparse **link = &late->sparse;
    qi_error before = qi_error_save();
    while (*link) {
        quire_vulkan_sparse *s = *link;
        if (qi_vulkan_sparse_settle(s)) {
            link = &s->next_late;
            continue;
        }
        *link = s->next_late;
        qi_vulkan_sparse_finish(s);
    }
    qi_error_restore(&before);
}

/* What cannot be asked for is taken to run on, unless the device is lost. */
static bool is_running(const qi_vulkan *vulkan, const qi_vulkan_stream *stream)
{
    uint64_t passed = 0;
    quire_result result = qi_vulkan_stream_counter(vulkan, stream, &passed);
    return result ? result != QUIRE_ERROR_DEVICE_LOST : passed < stream->marked;
}

/* With the mutex: ends the streams of which nothing runs any more. */
static void settle_streams(qi_vulkan *vulkan)
{
    qi_vulkan_stream **link = &vulkan->late.streams;
    qi_error before = qi_error_save();
    while (*link) {
        qi_vulkan_stream *stream = *link;
        if (is_running(vulkan, stream)) {
            link = &stream->next_late;
            continue;
        }
        *link = stream->next_late;
        qi_vulkan_stream_finish(vulkan, stream);
    }
    qi_error_restore(&before);
}

void qi_vulkan_late_end(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    pthread_mutex_lock(&vulkan->late.mutex);
    settle_streams(vulkan);
    stream->next_late = vulkan->late.streams;
    vulkan->late.streams = stream;
    pthread_mutex_unlock(&vulkan->late.mutex);
}

static void destroy_objects(qi_vulkan *vulkan)
{
    qi_vulkan_late_object *object = vulkan->late.objects;
    vulkan->late.objects = NULL;
    while (object) {
        qi_vulkan_late_object *next = object->next;
        qi_vulkan_object_end(vulkan, object->object, object->native);
        qi_host_release(&vulkan->host, object, 1, sizeof *object);
        object = next;
    }
}

static void free_pages(qi_vulkan *vulkan)
{
    qi_vulkan_page *page = vulkan->late.pages;
    vulkan->late.pages = NULL;
    while (page) {
        qi_vulkan_page *next = page->next_late;
        qi_vulkan_page_free(vulkan, page);
        page = next;
    }
}

/* With the mutex: what may go, given that staged work is known to be done or not. */
static void let_go(qi_vulkan *vulkan, bool is_staged_done)
{
    settle(&vulkan->late);
    settle_streams(vulkan);
    if (is_staged_done)
        destroy_objects(vulkan);
    if (is_staged_done && !vulkan->late.sparse)
        free_pages(vulkan);
}

void qi_vulkan_late_keep(quire_vulkan_sparse *s)
{
    qi_vulkan_late *late = &s->vulkan->late;
    pthread_mutex_lock(&late->mutex);
    s->next_late = late->sparse;
    late->sparse = s;
    pthread_mutex_unlock(&late->mutex);
}

void qi_vulkan_late_free(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    qi_vulkan_late *late = &vulkan->late;
    bool is_staged_done = qi_vulkan_staging_settle(vulkan);
    pthread_mutex_lock(&late->mutex);
    page->next_late = late->pages;
    late->pages = page;
    let_go(vulkan, is_staged_done);
    pthread_mutex_unlock(&late->mutex);
}

void qi_vulkan_late_destroy(qi_vulkan *vulkan, quire_object object, uint64_t native)
{
    qi_vulkan_late *late = &vulkan->late;
    if (qi_vulkan_staging_settle(vulkan)) {
        qi_vulkan_object_end(vulkan, object, native);
        return;
    }
    qi_vulkan_late_object *record = qi_host_allocate(&vulkan->host, 1, sizeof *record);
    if (!record) /* better lost than gone while the device uses it */
        return;
    *record = (qi_vulkan_late_object){.object = object, .native = native};
    pthread_mutex_lock(&late->mutex);
    record->next = late->objects;
    late->objects = record;
    pthread_mutex_unlock(&late->mutex);
}

void qi_vulkan_late_finish(qi_vulkan *vulkan)
{
    qi_vulkan_late *late = &vulkan->late;
    bool is_staged_done = qi_vulkan_staging_settle(vulkan);
    settle(late);
    bool is_all_done = is_staged_done && !late->sparse && !late->streams;
    if (!is_all_done && vulkan->own_device) /* a caller's device, the caller knows to be idle */
        vulkan->f.DeviceWaitIdle(vulkan->device);
    while (late->sparse) {
        quire_vulkan_sparse *s = late->sparse;
        late->sparse = s->next_late;
        qi_vulkan_sparse_finish(s);
    }
    while (late->streams) {
        qi_vulkan_stream *stream = late->streams;
        late->streams = stream->next_late;
        qi_vulkan_stream_finish(vulkan, stream);
    }
    destroy_objects(vulkan);
    free_pages(vulkan);
    pthread_mutex_destroy(&late->mutex);
}
