/*
 * late.c - what a device may still be working on when its owner has gone: sparse objects whose last
 * change could not be waited for, and the pages that were given back since. All of it goes once the
 * changes are known to be done, or the device is lost or ends.
 */
#include "backends/vulkan/sparse.h"
#include "src/base/result.h"

void qi_vulkan_late_init(qi_vulkan *vulkan)
{
    pthread_mutex_init(&vulkan->late.mutex, NULL);
}

/* With the mutex: takes the objects that are done out of the list. */
static void settle(qi_vulkan_late *late)
{
    quire_vulkan_sparse **link = &late->objects;
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

void qi_vulkan_late_keep(quire_vulkan_sparse *s)
{
    qi_vulkan_late *late = &s->vulkan->late;
    pthread_mutex_lock(&late->mutex);
    s->next_late = late->objects;
    late->objects = s;
    pthread_mutex_unlock(&late->mutex);
}

void qi_vulkan_late_free(qi_vulkan *vulkan, qi_vulkan_page *page)
{
    qi_vulkan_late *late = &vulkan->late;
    pthread_mutex_lock(&late->mutex);
    settle(late);
    page->next_late = late->pages;
    late->pages = page;
    if (!late->objects)
        free_pages(vulkan);
    pthread_mutex_unlock(&late->mutex);
}

void qi_vulkan_late_finish(qi_vulkan *vulkan)
{
    qi_vulkan_late *late = &vulkan->late;
    settle(late);
    if (late->objects && vulkan->own_device) /* a caller's device, the caller knows to be idle */
        vulkan->f.DeviceWaitIdle(vulkan->device);
    while (late->objects) {
        quire_vulkan_sparse *s = late->objects;
        late->objects = s->next_late;
        qi_vulkan_sparse_finish(s);
    }
    free_pages(vulkan);
    pthread_mutex_destroy(&late->mutex);
}
