/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - copies and fills. The two operands decide which function of the plugin serves: each is
 * device memory or memory that the host reaches, which includes pages of the host-visible kinds.
 *
 * If a plugin has a direction on streams only, a synchronous copy uses the device's own stream and
 * waits for it. A direction that the plugin lacks altogether is UNSUPPORTED.
 */
#include <string.h>

#include "backends/plugin/plugin.h"
#include "src/base/result.h"

/* Source or target of a copy. */
typedef struct operand {
    const qi_plugin *plugin; /* NULL: the host reaches `at` */
    char *at;
} operand;

typedef struct transfer {
    operand to;
    operand from;
    size_t size;
} transfer;

/* ---- directions ------------------------------------------------------------------------- */

static const char *const NAMES[] = {"memory_copy_h2d", "memory_copy_d2h", "memory_copy_d2d",
                                    "memory_copy_p2p"};
static const char *const NAMES_ON_STREAMS[] = {"async_memory_copy_h2d", "async_memory_copy_d2h",
                                               "async_memory_copy_d2d", "async_memory_copy_p2p"};

static qi_plugin_direction direction_of(const transfer *m)
{
    if (!m->to.plugin)
        return m->from.plugin ? QI_PLUGIN_D2H : QI_PLUGIN_WITHIN_HOST;
    if (!m->from.plugin)
        return QI_PLUGIN_H2D;
    return m->to.plugin->unit == m->from.plugin->unit ? QI_PLUGIN_D2D : QI_PLUGIN_P2P;
}

static bool has_sync(const qi_pd_interface *f, qi_plugin_direction direction)
{
    const bool there[] = {f->memory_copy_h2d != NULL, f->memory_copy_d2h != NULL,
                          f->memory_copy_d2d != NULL, f->memory_copy_p2p != NULL};
    return direction == QI_PLUGIN_WITHIN_HOST || there[direction];
}

static bool has_async(const qi_pd_interface *f, qi_plugin_direction direction)
{
    const bool there[] = {f->async_memory_copy_h2d != NULL, f->async_memory_copy_d2h != NULL,
                          f->async_memory_copy_d2d != NULL, f->async_memory_copy_p2p != NULL};
    return direction != QI_PLUGIN_WITHIN_HOST && there[direction];
}

/* Returns true if the plugin can create a stream and wait for it. */
static bool can_wait(const qi_pd_interface *f)
{
    return f->create_stream && f->destroy_stream &&
           (f->synchronize_stream || f->synchronize_device);
}

bool qi_plugin_can_copy(const qi_pd_interface *f, qi_plugin_direction direction)
{
    return has_sync(f, direction) || (has_async(f, direction) && can_wait(f));
}

bool qi_plugin_needs_stream(const qi_pd_interface *f)
{
    bool any = false;
    for (int direction = QI_PLUGIN_H2D; direction <= QI_PLUGIN_P2P; direction++)
        any |= !has_sync(f, (qi_plugin_direction)direction) &&
               has_async(f, (qi_plugin_direction)direction);
    return any && can_wait(f);
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Requires has_sync. */
static qi_pd_status call_sync(const qi_pd_interface *f, qi_plugin_direction direction,
                              const transfer *m)
{
    switch (direction) {
    case QI_PLUGIN_H2D:
        return f->memory_copy_h2d(&m->to.plugin->unit->device, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_D2H:
        return f->memory_copy_d2h(&m->from.plugin->unit->device, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_D2D:
        return f->memory_copy_d2d(&m->to.plugin->unit->device, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_P2P:
        return f->memory_copy_p2p(&m->to.plugin->unit->device, &m->from.plugin->unit->device,
                                  m->to.at, m->from.at, m->size);
    case QI_PLUGIN_WITHIN_HOST:
        memcpy(m->to.at, m->from.at, m->size);
    }
    return QI_PD_SUCCESS;
}

/* Requires has_async. */
static qi_pd_status call_async(const qi_pd_interface *f, qi_plugin_direction direction,
                               void *stream, const transfer *m)
{
    qi_pd_device *to = m->to.plugin ? &m->to.plugin->unit->device : NULL;
    qi_pd_device *from = m->from.plugin ? &m->from.plugin->unit->device : NULL;
    switch (direction) {
    case QI_PLUGIN_H2D:
        return f->async_memory_copy_h2d(to, stream, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_D2H:
        return f->async_memory_copy_d2h(from, stream, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_D2D:
        return f->async_memory_copy_d2d(to, stream, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_P2P:
        return f->async_memory_copy_p2p(to, from, stream, m->to.at, m->from.at, m->size);
    case QI_PLUGIN_WITHIN_HOST:
        break;
    }
    return QI_PD_INTERNAL_ERROR; /* unreachable: callers check has_async first */
}

/* The device that is the first parameter of the plugin's function: the target's, if it has one. */
static const qi_plugin *first_of(const transfer *m)
{
    return m->to.plugin ? m->to.plugin : m->from.plugin;
}

static quire_result fail_missing(const qi_plugin *plugin, qi_plugin_direction direction)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' has no %s",
                        plugin->library->device_type, NAMES[direction]);
}

static qi_pd_status wait_for_stream(const qi_pd_interface *f, qi_pd_device *device, void *stream)
{
    return f->synchronize_stream ? f->synchronize_stream(device, stream)
                                 : f->synchronize_device(device);
}

/* A second wait after one that failed, for the whole device if possible: the caller reuses its
   memory as soon as the copy returns. */
static void wait_for_all(const qi_pd_interface *f, qi_pd_device *device, void *stream)
{
    if (f->synchronize_device)
        f->synchronize_device(device);
    else
        f->synchronize_stream(device, stream);
}

/* Copies on the device's own stream and waits for the end. Requires qi_plugin_enter. */
static quire_result copy_and_wait(qi_plugin_direction direction, const transfer *m)
{
    const qi_plugin *plugin = first_of(m);
    const qi_pd_interface *f = plugin->f;
    qi_pd_device *device = &plugin->unit->device;
    if (!plugin->own_stream)
        return fail_missing(plugin, direction);
    qi_pd_status status = call_async(f, direction, plugin->own_stream, m);
    if (status)
        return qi_plugin_fail(plugin->library, status, NAMES_ON_STREAMS[direction]);
    status = wait_for_stream(f, device, plugin->own_stream);
    if (status)
        wait_for_all(f, device, plugin->own_stream);
    return status ? qi_plugin_fail(plugin->library, status, "waiting for a copy") : QUIRE_SUCCESS;
}

/* Copies and returns when the bytes have moved. Between host operands no plugin is called. */
static quire_result copy_and_complete(const transfer *m)
{
    qi_plugin_direction direction = direction_of(m);
    const qi_plugin *plugin = first_of(m);
    qi_plugin_saved_device saved;
    if (direction == QI_PLUGIN_WITHIN_HOST) {
        call_sync(NULL, direction, m);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    if (has_sync(plugin->f, direction)) {
        qi_pd_status status = call_sync(plugin->f, direction, m);
        result = status ? qi_plugin_fail(plugin->library, status, NAMES[direction]) : QUIRE_SUCCESS;
    } else {
        result = copy_and_wait(direction, m);
    }
    qi_plugin_leave(plugin, &saved);
    return result;
}

/* ---- entries of the backend table ------------------------------------------------------- */

static operand page_operand(const qi_plugin *plugin, const quire_native_page *page, uint64_t offset)
{
    return (operand){.plugin = page->data == QI_PLUGIN_DEVICE ? plugin : NULL,
                     .at = (char *)(uintptr_t)page->address + offset};
}

/* Casts const away because one type serves sources and targets; a source is only read. */
static operand host_operand(const void *at)
{
    return (operand){.at = (char *)(uintptr_t)at};
}

static transfer transfer_of(const quire_copy_job *job)
{
    return (transfer){
        .to = job->to ? page_operand(job->to_state, job->to, job->to_offset)
                      : host_operand(job->host_to),
        .from = job->from ? page_operand(job->from_state, job->from, job->from_offset)
                          : host_operand(job->host_from),
        .size = job->size,
    };
}

quire_result qi_plugin_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size)
{
    const transfer m = {page_operand(state, page, offset), host_operand(data), size};
    return copy_and_complete(&m);
}

quire_result qi_plugin_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size)
{
    const transfer m = {host_operand(data), page_operand(state, page, offset), size};
    return copy_and_complete(&m);
}

/* Serves copy_peer too. Devices of different plugins cannot copy to each other. */
quire_result qi_plugin_copy_pages(void *state, const quire_copy_job *job)
{
    const qi_plugin *plugin = state;
    const transfer m = transfer_of(job);
    qi_plugin_direction direction = direction_of(&m);
    const qi_plugin *to = job->to_state, *from = job->from_state;
    if (to->library != from->library)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the two devices are of different plugins");
    if (!qi_plugin_can_copy(plugin->f, direction))
        return fail_missing(plugin, direction);
    return copy_and_complete(&m);
}

quire_result qi_plugin_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value)
{
    const qi_plugin *plugin = state;
    operand to = page_operand(plugin, page, offset);
    qi_plugin_saved_device saved;
    if (!to.plugin) {
        memset(to.at, value, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    qi_pd_status status = plugin->f->device_memory_set(&plugin->unit->device, to.at, value, size);
    qi_plugin_leave(plugin, &saved);
    return status ? qi_plugin_fail(plugin->library, status, "device_memory_set") : QUIRE_SUCCESS;
}

/* Refuses what the core must do instead: UNSUPPORTED makes it copy after the stream's work. */
quire_result qi_plugin_copy_on(const qi_plugin *plugin, void *stream, const quire_copy_job *job)
{
    const transfer m = transfer_of(job);
    qi_plugin_direction direction = direction_of(&m);
    qi_plugin_saved_device saved;
    if (direction == QI_PLUGIN_WITHIN_HOST)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "both ends are host memory: the plugin has no such copy");
    if (!has_async(plugin->f, direction))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' has no %s",
                            plugin->library->device_type, NAMES_ON_STREAMS[direction]);
    if (m.to.plugin && m.from.plugin && m.to.plugin->library != m.from.plugin->library)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the two devices are of different plugins");
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    qi_pd_status status = call_async(plugin->f, direction, stream, &m);
    qi_plugin_leave(plugin, &saved);
    return status ? qi_plugin_fail(plugin->library, status, NAMES_ON_STREAMS[direction])
                  : QUIRE_SUCCESS;
}
