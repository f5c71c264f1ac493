/*
 * copy.c - copies and fills. Which of the plugin's functions serves is decided by what lies at the
 * two ends: memory of a device, or what the host reaches, pages of the two host-visible kinds
 * included.
 *
 * A plugin may have a way of copying on streams alone. Then it is taken on a stream of the device's
 * own, which is waited for. What it has neither way is UNSUPPORTED.
 */
#include <string.h>

#include "backends/plugin/plugin.h"
#include "src/base/result.h"

/* One end of a copy. */
typedef struct end {
    const qi_plugin *plugin; /* NULL: the host reaches it */
    char *at;
} end;

typedef struct move {
    end to;
    end from;
    size_t size;
} move;

/* ---- ways ----------------------------------------------------------------------------------- */

static const char *const NAMES[] = {"memory_copy_h2d", "memory_copy_d2h", "memory_copy_d2d",
                                    "memory_copy_p2p"};
static const char *const NAMES_ON_STREAMS[] = {"async_memory_copy_h2d", "async_memory_copy_d2h",
                                               "async_memory_copy_d2d", "async_memory_copy_p2p"};

static qi_plugin_way way_of(const move *m)
{
    if (!m->to.plugin)
        return m->from.plugin ? QI_PLUGIN_D2H : QI_PLUGIN_WITHIN_HOST;
    if (!m->from.plugin)
        return QI_PLUGIN_H2D;
    return m->to.plugin->unit == m->from.plugin->unit ? QI_PLUGIN_D2D : QI_PLUGIN_P2P;
}

static bool has_at_once(const qi_pd_interface *f, qi_plugin_way way)
{
    const bool there[] = {f->memory_copy_h2d != NULL, f->memory_copy_d2h != NULL,
                          f->memory_copy_d2d != NULL, f->memory_copy_p2p != NULL};
    return way == QI_PLUGIN_WITHIN_HOST || there[way];
}

static bool has_on_streams(const qi_pd_interface *f, qi_plugin_way way)
{
    const bool there[] = {f->async_memory_copy_h2d != NULL, f->async_memory_copy_d2h != NULL,
                          f->async_memory_copy_d2d != NULL, f->async_memory_copy_p2p != NULL};
    return way != QI_PLUGIN_WITHIN_HOST && there[way];
}

static bool can_wait(const qi_pd_interface *f)
{
    return f->create_stream && f->destroy_stream &&
           (f->synchronize_stream || f->synchronize_device);
}

bool qi_plugin_can_copy(const qi_pd_interface *f, qi_plugin_way way)
{
    return has_at_once(f, way) || (has_on_streams(f, way) && can_wait(f));
}

bool qi_plugin_needs_stream(const qi_pd_interface *f)
{
    bool any = false;
    for (int way = QI_PLUGIN_H2D; way <= QI_PLUGIN_P2P; way++)
        any |= !has_at_once(f, (qi_plugin_way)way) && has_on_streams(f, (qi_plugin_way)way);
    return any && can_wait(f);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static qi_pd_status call_at_once(const qi_pd_interface *f, qi_plugin_way way, const move *m)
{
    switch (way) {
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

static qi_pd_status call_on_stream(const qi_pd_interface *f, qi_plugin_way way, void *stream,
                                   const move *m)
{
    qi_pd_device *to = m->to.plugin ? &m->to.plugin->unit->device : NULL;
    qi_pd_device *from = m->from.plugin ? &m->from.plugin->unit->device : NULL;
    switch (way) {
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
    return QI_PD_INTERNAL_ERROR; /* asked for nowhere */
}

/* The device that the plugin's function names first. */
static const qi_plugin *first_of(const move *m)
{
    return m->to.plugin ? m->to.plugin : m->from.plugin;
}

static quire_result no_way(const qi_plugin *plugin, qi_plugin_way way)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' has no %s",
                        plugin->library->device_type, NAMES[way]);
}

static qi_pd_status wait_for(const qi_pd_interface *f, qi_pd_device *device, void *stream)
{
    return f->synchronize_stream ? f->synchronize_stream(device, stream)
                                 : f->synchronize_device(device);
}

/* Once more, and for more, after a wait that failed: the caller takes the copy as over. */
static void wait_for_all(const qi_pd_interface *f, qi_pd_device *device, void *stream)
{
    if (f->synchronize_device)
        f->synchronize_device(device);
    else
        f->synchronize_stream(device, stream);
}

/* On a stream of the device's own, to its end. */
static quire_result copy_and_wait(qi_plugin_way way, const move *m)
{
    const qi_plugin *plugin = first_of(m);
    const qi_pd_interface *f = plugin->f;
    qi_pd_device *device = &plugin->unit->device;
    if (!plugin->own_stream)
        return no_way(plugin, way);
    qi_pd_status status = call_on_stream(f, way, plugin->own_stream, m);
    if (status)
        return qi_plugin_fail(plugin->library, status, NAMES_ON_STREAMS[way]);
    status = wait_for(f, device, plugin->own_stream);
    if (status)
        wait_for_all(f, device, plugin->own_stream);
    return status ? qi_plugin_fail(plugin->library, status, "waiting for a copy") : QUIRE_SUCCESS;
}

static quire_result copy_now(const move *m)
{
    qi_plugin_way way = way_of(m);
    const qi_plugin *plugin = first_of(m);
    qi_plugin_turn turn;
    if (way == QI_PLUGIN_WITHIN_HOST) {
        call_at_once(NULL, way, m);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    if (has_at_once(plugin->f, way)) {
        qi_pd_status status = call_at_once(plugin->f, way, m);
        result = status ? qi_plugin_fail(plugin->library, status, NAMES[way]) : QUIRE_SUCCESS;
    } else {
        result = copy_and_wait(way, m);
    }
    qi_plugin_leave(plugin, &turn);
    return result;
}

/* ---- the entries of the table --------------------------------------------------------------- */

static end page_end(const qi_plugin *plugin, const quire_native_page *page, uint64_t offset)
{
    return (end){.plugin = page->data == QI_PLUGIN_DEVICE ? plugin : NULL,
                 .at = (char *)(uintptr_t)page->address + offset};
}

/* The plugin's functions take what they only read as it is. */
static end host_end(const void *at)
{
    return (end){.at = (char *)(uintptr_t)at};
}

static move move_of(const quire_copy_job *job)
{
    return (move){
        .to = job->to ? page_end(job->to_state, job->to, job->to_offset) : host_end(job->host_to),
        .from = job->from ? page_end(job->from_state, job->from, job->from_offset)
                          : host_end(job->host_from),
        .size = job->size,
    };
}

quire_result qi_plugin_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size)
{
    const move m = {page_end(state, page, offset), host_end(data), size};
    return copy_now(&m);
}

quire_result qi_plugin_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size)
{
    const move m = {host_end(data), page_end(state, page, offset), size};
    return copy_now(&m);
}

/* Also between two devices; those of different plugins know nothing of each other. */
quire_result qi_plugin_copy_pages(void *state, const quire_copy_job *job)
{
    const qi_plugin *plugin = state;
    const move m = move_of(job);
    qi_plugin_way way = way_of(&m);
    const qi_plugin *to = job->to_state, *from = job->from_state;
    if (to->library != from->library)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the two devices are of different plugins");
    if (!qi_plugin_can_copy(plugin->f, way))
        return no_way(plugin, way);
    return copy_now(&m);
}

quire_result qi_plugin_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value)
{
    const qi_plugin *plugin = state;
    end to = page_end(plugin, page, offset);
    qi_plugin_turn turn;
    if (!to.plugin) {
        memset(to.at, value, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    qi_pd_status status = plugin->f->device_memory_set(&plugin->unit->device, to.at, value, size);
    qi_plugin_leave(plugin, &turn);
    return status ? qi_plugin_fail(plugin->library, status, "device_memory_set") : QUIRE_SUCCESS;
}

quire_result qi_plugin_copy_on(const qi_plugin *plugin, void *stream, const quire_copy_job *job)
{
    const move m = move_of(job);
    qi_plugin_way way = way_of(&m);
    qi_plugin_turn turn;
    if (way == QI_PLUGIN_WITHIN_HOST)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the host's memory is copied by the host");
    if (!has_on_streams(plugin->f, way))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' has no %s",
                            plugin->library->device_type, NAMES_ON_STREAMS[way]);
    if (m.to.plugin && m.from.plugin && m.to.plugin->library != m.from.plugin->library)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the two devices are of different plugins");
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    qi_pd_status status = call_on_stream(plugin->f, way, stream, &m);
    qi_plugin_leave(plugin, &turn);
    return status ? qi_plugin_fail(plugin->library, status, NAMES_ON_STREAMS[way]) : QUIRE_SUCCESS;
}
