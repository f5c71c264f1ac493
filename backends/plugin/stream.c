/*
 * stream.c - streams of a plugin. A point is an event that is recorded behind what was submitted.
 * Where the plugin has no events, or hands none out, a point has passed once the whole stream was
 * found idle, or waited for, after it was set.
 *
 * Any thread may call: a stream has a mutex, which is not held while a thread sleeps for an event;
 * the event is then counted as used and stays until the sleep is over.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backends/plugin/plugin.h"
#include "src/base/clock.h"
#include "src/base/result.h"

/* Events kept for the next points, so that a point need not make one. */
enum { MOST_IDLE = 8, FIRST_ROOM = 16 };

/* Between two questions of a thread that waits with a limit: first, and most, nanoseconds. */
enum { FIRST_PAUSE = 50000, LONGEST_PAUSE = 1000000 };

typedef struct point {
    uint64_t value;
    void *event;
    uint32_t users; /* threads that sleep for it, or order a stream behind it */
} point;

typedef struct plugin_stream {
    void *handle; /* NULL: the plugin made a stream and gave none */
    bool is_borrowed;
    pthread_mutex_t mutex;
    uint64_t marked, passed; /* values; passed <= marked */
    point *points;           /* that have events, the earliest first */
    uint64_t count, room;
    void *idle[MOST_IDLE];
    uint32_t idle_count;
} plugin_stream;

static plugin_stream *stream_of(uint64_t stream)
{
    return (plugin_stream *)(uintptr_t)stream;
}

void *qi_plugin_stream_handle(uint64_t stream)
{
    return stream_of(stream)->handle;
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

static void put_event(const qi_plugin *plugin, plugin_stream *s, void *event)
{
    if (s->idle_count < MOST_IDLE)
        s->idle[s->idle_count++] = event;
    else
        plugin->f->destroy_event(&plugin->unit->device, event);
}

/* With the mutex: events of points that have passed and that nobody uses are for other points. */
static void retire(const qi_plugin *plugin, plugin_stream *s)
{
    uint64_t gone = 0;
    while (gone < s->count && s->points[gone].value <= s->passed && !s->points[gone].users)
        put_event(plugin, s, s->points[gone++].event);
    s->count -= gone;
    if (gone)
        memmove(s->points, s->points + gone, s->count * sizeof *s->points);
}

static void raise_passed(const qi_plugin *plugin, plugin_stream *s, uint64_t value)
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
static bool is_idle(const qi_plugin *plugin, const plugin_stream *s)
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
static void ask(const qi_plugin *plugin, plugin_stream *s)
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
    raise_passed(plugin, s, passed);
}

/* With the mutex: the first point at or behind a value that has an event. */
static point *point_at(plugin_stream *s, uint64_t value)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (s->points[i].value >= value)
            return &s->points[i];
    return NULL;
}

static quire_result make_room(qi_plugin *plugin, plugin_stream *s)
{
    if (s->count < s->room)
        return QUIRE_SUCCESS;
    uint64_t room = s->room ? 2 * s->room : FIRST_ROOM;
    point *points = qi_host_resize(&plugin->host, s->points, s->room, room, sizeof *points);
    if (!points)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream's points");
    s->points = points;
    s->room = room;
    return QUIRE_SUCCESS;
}

/* An event recorded on the stream now; NULL: the plugin has none to give. */
static quire_result record(const qi_plugin *plugin, plugin_stream *s, void **out)
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

static quire_result open_stream(const qi_plugin *plugin, plugin_stream *s)
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
    plugin_stream *s = qi_host_allocate(&plugin->host, 1, sizeof *s);
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

void qi_plugin_stream_destroy(void *state, uint64_t stream)
{
    qi_plugin *plugin = state;
    plugin_stream *s = stream_of(stream);
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
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(&plugin->host, s->points, s->room, sizeof *s->points);
    qi_host_release(&plugin->host, s, 1, sizeof *s);
}

/* ---- points --------------------------------------------------------------------------------- */

static quire_result mark(qi_plugin *plugin, plugin_stream *s, uint64_t *value)
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
        s->points[s->count++] = (point){.value = *value, .event = event};
    return QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_mark(void *state, uint64_t stream, uint64_t *value)
{
    qi_plugin *plugin = state;
    plugin_stream *s = stream_of(stream);
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
    plugin_stream *s = stream_of(stream);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    ask(plugin, s);
    *value = s->passed;
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return QUIRE_SUCCESS;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* With the mutex, given up meanwhile: sleeps for the event of a point. */
static qi_pd_status sleep_for_event(const qi_plugin *plugin, plugin_stream *s, point *at)
{
    uint64_t value = at->value;
    void *event = at->event;
    at->users++;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = plugin->f->synchronize_event(&plugin->unit->device, event);
    pthread_mutex_lock(&s->mutex);
    point_at(s, value)->users--;
    raise_passed(plugin, s, status ? 0 : value);
    return status;
}

/* Likewise for all that was submitted. */
static qi_pd_status sleep_for_stream(const qi_plugin *plugin, plugin_stream *s)
{
    const qi_pd_interface *f = plugin->f;
    uint64_t value = s->marked;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = f->synchronize_stream
                              ? f->synchronize_stream(&plugin->unit->device, s->handle)
                              : f->synchronize_device(&plugin->unit->device);
    pthread_mutex_lock(&s->mutex);
    raise_passed(plugin, s, status ? 0 : value);
    return status;
}

static void pause_for(uint64_t nanoseconds)
{
    const struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                                  .tv_nsec = (long)(nanoseconds % 1000000000)};
    nanosleep(&time, NULL);
}

/*
 * With the mutex, given up meanwhile: asks now and then, for the plugin's own ways of waiting have
 * no limit. Where it cannot be asked the time is slept out.
 */
static void poll(const qi_plugin *plugin, plugin_stream *s, uint64_t value, uint64_t nanoseconds)
{
    bool can_ask = plugin->f->query_event || plugin->f->query_stream;
    uint64_t start = qi_clock(), pause = can_ask ? FIRST_PAUSE : nanoseconds, spent = 0;
    while (s->passed < value && spent < nanoseconds) {
        pthread_mutex_unlock(&s->mutex);
        pause_for(pause < nanoseconds - spent ? pause : nanoseconds - spent);
        pthread_mutex_lock(&s->mutex);
        ask(plugin, s);
        pause = pause < LONGEST_PAUSE / 2 ? 2 * pause : pause;
        spent = qi_clock() - start;
    }
}

/* With the mutex. */
static quire_result await(const qi_plugin *plugin, plugin_stream *s, uint64_t value,
                          uint64_t nanoseconds)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_status status = QI_PD_SUCCESS;
    ask(plugin, s);
    if (s->passed >= value || !nanoseconds)
        return QUIRE_SUCCESS;
    point *at = f->synchronize_event ? point_at(s, value) : NULL;
    if (nanoseconds != UINT64_MAX)
        poll(plugin, s, value, nanoseconds);
    else if (at)
        status = sleep_for_event(plugin, s, at);
    else if (f->synchronize_stream || f->synchronize_device)
        status = sleep_for_stream(plugin, s);
    else
        poll(plugin, s, value, nanoseconds);
    return status ? qi_plugin_fail(plugin->library, status, "waiting for a stream") : QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    const qi_plugin *plugin = state;
    plugin_stream *s = stream_of(stream);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = await(plugin, s, value, nanoseconds);
    *has_passed = s->passed >= value;
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return result;
}

/* ---- order and copies ----------------------------------------------------------------------- */

/* With the mutex of `s`, given up meanwhile. */
static quire_result order(const qi_plugin *plugin, plugin_stream *later, plugin_stream *s,
                          uint64_t value)
{
    ask(plugin, s);
    if (s->passed >= value)
        return QUIRE_SUCCESS;
    point *at = point_at(s, value);
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
    point_at(s, place)->users--;
    retire(plugin, s);
    return status ? qi_plugin_fail(plugin->library, status, "stream_wait_event") : QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const qi_plugin *plugin = state;
    plugin_stream *s = stream_of(earlier);
    qi_plugin_turn turn;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = order(plugin, stream_of(later), s, value);
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &turn);
    return result;
}

quire_result qi_plugin_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_plugin *plugin = state;
    const plugin_stream *s = stream_of(stream);
    if (!s->handle)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' gave no stream to copy on",
                            plugin->library->device_type);
    return qi_plugin_copy_on(plugin, s->handle, job);
}
