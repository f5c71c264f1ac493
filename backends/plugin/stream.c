/*
 * stream.c - streams of a plugin. A point is an event that is recorded behind what was submitted.
 * Where the plugin has no events, or hands none out, a point has passed once the whole stream was
 * found idle, or waited for, after it was set.
 */
#include <string.h>

#include "backends/plugin/stream.h"
#include "src/base/result.h"

enum { FIRST_ROOM = 16 };

void *qi_plugin_stream_handle(uint64_t stream)
{
    return qi_plugin_stream_of(stream)->handle;
}

/* ---- what the plugin has -------------------------------------------------------------------- */

static bool has_events(const qi_pd_interface *f)
{
    return f->create_event && f->record_event && f->destroy_event &&
           (f->query_event || f->synchronize_event);
}

static bool can_ask_stream(const qi_pd_interface *f)
{
    return f->query_stream || f->synchronize_stream || f->synchronize_device;
}

bool qi_plugin_has_streams(const qi_pd_interface *f)
{
    return f->create_stream && f->destroy_stream && (has_events(f) || can_ask_stream(f));
}

bool qi_plugin_has_order(const qi_pd_interface *f)
{
    return has_events(f) && f->stream_wait_event;
}

/* ---- events --------------------------------------------------------------------------------- */

static void put_event(const qi_plugin *plugin, qi_plugin_stream *s, void *event)
{
    if (s->idle_count < QI_PLUGIN_MOST_IDLE)
        s->idle[s->idle_count++] = event;
    else
        plugin->f->destroy_event(&plugin->unit->device, event);
}

/* With the mutex: events of points that have passed and that nobody uses are for other points. */
static void retire(const qi_plugin *plugin, qi_plugin_stream *s)
{
    uint64_t gone = 0;
    while (gone < s->count && s->points[gone].value <= s->passed && !s->points[gone].users)
        put_event(plugin, s, s->points[gone++].event);
    s->count -= gone;
    if (gone)
        memmove(s->points, s->points + gone, s->count * sizeof *s->points);
}

void qi_plugin_stream_raise(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value)
{
    if (value > s->passed)
        s->passed = value;
    retire(plugin, s);
}

/*
 * Whether the whole stream is idle. A plugin that hands out null streams has none and does all work
 * at once; where it cannot be asked either, waiting for it takes no time, and nothing else would
 * ever tell that a point has passed.
 */
static bool is_idle(const qi_plugin *plugin, const qi_plugin_stream *s)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_device *device = &plugin->unit->device;
    if (f->query_stream)
        return f->query_stream(device, s->handle) == QI_PD_SUCCESS;
    if (s->handle)
        return false;
    if (f->synchronize_stream)
        return f->synchronize_stream(device, NULL) == QI_PD_SUCCESS;
    return f->synchronize_device && f->synchronize_device(device) == QI_PD_SUCCESS;
}

/*
 * With the mutex: asks how far the stream is. Whatever is no success means "not yet": that is how
 * Paddle reads the answers to questions.
 */
void qi_plugin_stream_ask(const qi_plugin *plugin, qi_plugin_stream *s)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_device *device = &plugin->unit->device;
    uint64_t passed = s->passed;
    bool all = true;
    for (uint64_t i = 0; i < s->count && f->query_event; i++) {
        if (s->points[i].value <= s->passed)
            continue;
        all = f->query_event(device, s->points[i].event) == QI_PD_SUCCESS;
        if (!all)
            break;
        passed = s->points[i].value;
    }
    if (all && passed < s->marked && is_idle(plugin, s))
        passed = s->marked;
    qi_plugin_stream_raise(plugin, s, passed);
}

/* With the mutex: the first point at or behind a value that has an event. */
qi_plugin_point *qi_plugin_stream_point(qi_plugin_stream *s, uint64_t value)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (s->points[i].value >= value)
            return &s->points[i];
    return NULL;
}

static quire_result make_room(qi_plugin *plugin, qi_plugin_stream *s)
{
    if (s->count < s->room)
        return QUIRE_SUCCESS;
    uint64_t room = s->room ? 2 * s->room : FIRST_ROOM;
    qi_plugin_point *points =
        qi_host_resize(&plugin->host, s->points, s->room, room, sizeof *points);
    if (!points)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream's points");
    s->points = points;
    s->room = room;
    return QUIRE_SUCCESS;
}

/* An event recorded on the stream now; NULL: the plugin has none to give. */
static quire_result record(const qi_plugin *plugin, qi_plugin_stream *s, void **out)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_device *device = &plugin->unit->device;
    void *event = NULL;
    *out = NULL;
    if (!has_events(f))
        return QUIRE_SUCCESS;
    if (s->idle_count) {
        event = s->idle[--s->idle_count];
    } else {
        qi_pd_status status = f->create_event(device, &event);
        if (status)
            return qi_plugin_fail(plugin->library, status, "create_event");
    }
    qi_pd_status status = event ? f->record_event(device, s->handle, event) : QI_PD_SUCCESS;
    if (status) {
        put_event(plugin, s, event);
        return qi_plugin_fail(plugin->library, status, "record_event");
    }
    *out = event;
    return QUIRE_SUCCESS;
}

/* ---- making and ending ---------------------------------------------------------------------- */

static quire_result open_stream(const qi_plugin *plugin, qi_plugin_stream *s)
{
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    qi_pd_status status = plugin->f->create_stream(&plugin->unit->device, &s->handle);
    qi_plugin_leave(plugin, &turn);
    return status ? qi_plugin_fail(plugin->library, status, "create_stream") : QUIRE_SUCCESS;
}

/* `description`: a C_Stream of the caller's. */
quire_result qi_plugin_stream_create(void *state, const void *description, uint64_t *stream)
{
    qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_host_allocate(&plugin->host, 1, sizeof *s);
    quire_result result = QUIRE_SUCCESS;
    if (!s || pthread_mutex_init(&s->mutex, NULL)) {
        qi_host_release(&plugin->host, s, 1, sizeof *s);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin's stream");
    }
    s->is_borrowed = description != NULL;
    if (s->is_borrowed)
        s->handle = (void *)(uintptr_t)description;
    else
        result = open_stream(plugin, s);
    if (result) {
        pthread_mutex_destroy(&s->mutex);
        qi_host_release(&plugin->host, s, 1, sizeof *s);
        return result;
    }
    *stream = (uintptr_t)s;
    return QUIRE_SUCCESS;
}

/* What the plugin has of it. */
static void end_handles(qi_plugin *plugin, qi_plugin_stream *s)
{
    qi_pd_device *device = &plugin->unit->device;
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    for (uint64_t i = 0; i < s->count; i++)
        plugin->f->destroy_event(device, s->points[i].event);
    for (uint32_t i = 0; i < s->idle_count; i++)
        plugin->f->destroy_event(device, s->idle[i]);
    if (!s->is_borrowed)
        plugin->f->destroy_stream(device, s->handle);
    if (!result)
        qi_plugin_leave(plugin, &turn);
}

void qi_plugin_stream_destroy(void *state, uint64_t stream)
{
    qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    if (!plugin->library->has_forked)
        end_handles(plugin, s);
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(&plugin->host, s->points, s->room, sizeof *s->points);
    qi_host_release(&plugin->host, s, 1, sizeof *s);
}

/* ---- points --------------------------------------------------------------------------------- */

static quire_result mark(qi_plugin *plugin, qi_plugin_stream *s, uint64_t *value)
{
    void *event = NULL;
    quire_result result = make_room(plugin, s);
    if (!result)
        result = record(plugin, s, &event);
    if (result)
        return result;
    if (!event && !can_ask_stream(plugin->f))
        return qi_fail_text(QUIRE_ERROR_BACKEND_FAILURE,
                            "plugin '%s' gives no event, and its streams cannot be asked",
                            plugin->library->device_type);
    *value = ++s->marked;
    if (event)
        s->points[s->count++] = (qi_plugin_point){.value = *value, .event = event};
    return QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_mark(void *state, uint64_t stream, uint64_t *value)
{
    qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = mark(plugin, s, value);
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return result;
}

quire_result qi_plugin_stream_passed(void *state, uint64_t stream, uint64_t *value)
{
    const qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    qi_plugin_stream_ask(plugin, s);
    *value = s->passed;
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return QUIRE_SUCCESS;
}

/* ---- order and copies ----------------------------------------------------------------------- */

/* With the mutex of `s`, given up meanwhile. */
static quire_result order(const qi_plugin *plugin, qi_plugin_stream *later, qi_plugin_stream *s,
                          uint64_t value)
{
    qi_plugin_stream_ask(plugin, s);
    if (s->passed >= value)
        return QUIRE_SUCCESS;
    qi_plugin_point *at = qi_plugin_stream_point(s, value);
    if (!at)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' gave no event to order a stream by",
                            plugin->library->device_type);
    uint64_t place = at->value;
    void *event = at->event;
    at->users++;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = plugin->f->stream_wait_event(&plugin->unit->device, later->handle, event);
    pthread_mutex_lock(&s->mutex);
    qi_plugin_stream_point(s, place)->users--;
    retire(plugin, s);
    return status ? qi_plugin_fail(plugin->library, status, "stream_wait_event") : QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(earlier);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = order(plugin, qi_plugin_stream_of(later), s, value);
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return result;
}

quire_result qi_plugin_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_plugin *plugin = state;
    const qi_plugin_stream *s = qi_plugin_stream_of(stream);
    if (!s->handle)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' gave no stream to copy on",
                            plugin->library->device_type);
    return qi_plugin_copy_on(plugin, s->handle, job);
}
