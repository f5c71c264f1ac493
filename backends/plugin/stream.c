/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - streams of a plugin and their points. A point is an event, recorded after the work
 * submitted so far. If the plugin has no events, or returns null events, a point has passed once
 * the whole stream was found idle, or was waited for, after the mark.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backends/plugin/plugin.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* ---- the record --------------------------------------------------------------------------- */

/*
 * Lock: qi_plugin_stream.mutex protects the record below it. It is released while a thread waits
 * for an event or orders another stream after it; `users` of the point keeps the event until then.
 *
 * Invariants: passed <= marked. `points` is sorted by value and has no two equal values. A point
 * without an event is not in the list.
 */

/* Events kept for further points, so that a point need not create one. */
enum { QI_PLUGIN_MAX_IDLE = 8 };

typedef struct qi_plugin_point {
    uint64_t value;
    void *event;
    uint32_t users; /* threads that wait for the event, or order a stream after it */
} qi_plugin_point;

typedef struct qi_plugin_stream {
    void *handle;     /* NULL: the plugin created a stream and returned none */
    bool is_borrowed; /* the caller's: never destroyed */
    pthread_mutex_t mutex;
    uint64_t marked, passed; /* value of the last point, and of the last one that has passed */
    qi_plugin_point *points; /* with an event and not retired yet, in the order of their values */
    uint64_t count, room;
    void *idle[QI_PLUGIN_MAX_IDLE]; /* events of retired points */
    uint32_t idle_count;
} qi_plugin_stream;

static qi_plugin_stream *qi_plugin_stream_of(uint64_t stream)
{
    return (qi_plugin_stream *)(uintptr_t)stream;
}

enum { FIRST_CAPACITY = 16 };

void *qi_plugin_stream_handle(uint64_t stream)
{
    return qi_plugin_stream_of(stream)->handle;
}

/* ---- capabilities ------------------------------------------------------------------------- */

static bool has_events(const qi_pd_interface *f)
{
    return f->create_event && f->record_event && f->destroy_event &&
           (f->query_event || f->synchronize_event);
}

static bool can_query_stream(const qi_pd_interface *f)
{
    return f->query_stream || f->synchronize_stream || f->synchronize_device;
}

bool qi_plugin_has_streams(const qi_pd_interface *f)
{
    return f->create_stream && f->destroy_stream && (has_events(f) || can_query_stream(f));
}

bool qi_plugin_has_order(const qi_pd_interface *f)
{
    return has_events(f) && f->stream_wait_event;
}

/* ---- events ------------------------------------------------------------------------------- */

/* The functions require the mutex, and that qi_plugin_enter has made the device current. */

/* Keeps the event for a further point, or destroys it. */
static void recycle_event(const qi_plugin *plugin, qi_plugin_stream *s, void *event)
{
    if (s->idle_count < QI_PLUGIN_MAX_IDLE)
        s->idle[s->idle_count++] = event;
    else
        plugin->f->destroy_event(&plugin->unit->device, event);
}

/* Removes the leading points that have passed and have no users. A point in use keeps the later
   ones, so that the list stays sorted. */
static void retire(const qi_plugin *plugin, qi_plugin_stream *s)
{
    uint64_t gone = 0;
    while (gone < s->count && s->points[gone].value <= s->passed && !s->points[gone].users)
        recycle_event(plugin, s, s->points[gone++].event);
    s->count -= gone;
    if (gone)
        memmove(s->points, s->points + gone, s->count * sizeof *s->points);
}

/* Raises `passed` to a value and recycles the events of passed points that have no users. */
static void advance(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value)
{
    if (value > s->passed)
        s->passed = value;
    retire(plugin, s);
}

/*
 * Returns true if the whole stream is idle. A plugin that returns null streams completes all work
 * within its calls. Without query_stream, synchronising such a stream therefore returns at once,
 * and is the only way to learn that a point has passed.
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

/* Queries the progress of the stream and advances `passed`. Every status but C_SUCCESS means "not
   yet", errors included: Paddle reads query results so. */
static void query_progress(const qi_plugin *plugin, qi_plugin_stream *s)
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
    advance(plugin, s, passed);
}

/* Returns the first point with an event whose value is at least `value`, or NULL. */
static qi_plugin_point *find_point(qi_plugin_stream *s, uint64_t value)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (s->points[i].value >= value)
            return &s->points[i];
    return NULL;
}

/* Makes room for one more point. */
static quire_result grow_points(qi_plugin *plugin, qi_plugin_stream *s)
{
    if (s->count < s->room)
        return QUIRE_SUCCESS;
    uint64_t room = s->room ? 2 * s->room : FIRST_CAPACITY;
    qi_plugin_point *points =
        qi_host_resize(&plugin->host, s->points, s->room, room, sizeof *points);
    if (!points)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a stream's points");
    s->points = points;
    s->room = room;
    return QUIRE_SUCCESS;
}

/* Records an event on the stream; *out is NULL if the plugin has no events or returned a null
   one. */
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
        recycle_event(plugin, s, event);
        return qi_plugin_fail(plugin->library, status, "record_event");
    }
    *out = event;
    return QUIRE_SUCCESS;
}

/* ---- creation and destruction ------------------------------------------------------------- */

static quire_result open_stream(const qi_plugin *plugin, qi_plugin_stream *s)
{
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    qi_pd_status status = plugin->f->create_stream(&plugin->unit->device, &s->handle);
    qi_plugin_leave(plugin, &saved);
    return status ? qi_plugin_fail(plugin->library, status, "create_stream") : QUIRE_SUCCESS;
}

/* `description` is a C_Stream of the caller, which stays the caller's; NULL creates one. */
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

/* Destroys the events and the stream in the plugin, even if the device cannot be made current. */
static void destroy_handles(qi_plugin *plugin, qi_plugin_stream *s)
{
    qi_pd_device *device = &plugin->unit->device;
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    for (uint64_t i = 0; i < s->count; i++)
        plugin->f->destroy_event(device, s->points[i].event);
    for (uint32_t i = 0; i < s->idle_count; i++)
        plugin->f->destroy_event(device, s->idle[i]);
    if (!s->is_borrowed)
        plugin->f->destroy_stream(device, s->handle);
    if (!result)
        qi_plugin_leave(plugin, &saved);
}

void qi_plugin_stream_destroy(void *state, uint64_t stream)
{
    qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    if (!plugin->library->has_forked)
        destroy_handles(plugin, s);
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(&plugin->host, s->points, s->room, sizeof *s->points);
    qi_host_release(&plugin->host, s, 1, sizeof *s);
}

/* ---- points ------------------------------------------------------------------------------- */

/* Requires the mutex. On failure no point is added. */
static quire_result mark(qi_plugin *plugin, qi_plugin_stream *s, uint64_t *value)
{
    void *event = NULL;
    quire_result result = grow_points(plugin, s);
    if (!result)
        result = record(plugin, s, &event);
    if (result)
        return result;
    if (!event && !can_query_stream(plugin->f))
        return qi_fail_text(QUIRE_ERROR_BACKEND_FAILURE,
                            "plugin '%s' returns no event and has no query or wait for a stream",
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
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = mark(plugin, s, value);
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &saved);
    return result;
}

quire_result qi_plugin_stream_passed(void *state, uint64_t stream, uint64_t *value)
{
    const qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    query_progress(plugin, s);
    *value = s->passed;
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &saved);
    return QUIRE_SUCCESS;
}

/* ---- order and copies --------------------------------------------------------------------- */

/*
 * Requires the mutex of `s`; releases it while the plugin is called, because that call may block.
 * Other threads may move the point in the list: it is found again by its value.
 */
static quire_result order(const qi_plugin *plugin, qi_plugin_stream *later, qi_plugin_stream *s,
                          uint64_t value)
{
    query_progress(plugin, s);
    if (s->passed >= value)
        return QUIRE_SUCCESS;
    qi_plugin_point *at = find_point(s, value);
    if (!at)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' has no event for the point to wait for",
                            plugin->library->device_type);
    uint64_t place = at->value;
    void *event = at->event;
    at->users++;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = plugin->f->stream_wait_event(&plugin->unit->device, later->handle, event);
    pthread_mutex_lock(&s->mutex);
    find_point(s, place)->users--;
    retire(plugin, s);
    return status ? qi_plugin_fail(plugin->library, status, "stream_wait_event") : QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(earlier);
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = order(plugin, qi_plugin_stream_of(later), s, value);
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &saved);
    return result;
}

quire_result qi_plugin_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_plugin *plugin = state;
    const qi_plugin_stream *s = qi_plugin_stream_of(stream);
    if (!s->handle)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "plugin '%s' returned no stream to copy on",
                            plugin->library->device_type);
    return qi_plugin_copy_on(plugin, s->handle, job);
}

/* ---- waiting ------------------------------------------------------------------------------ */

/*
 * A wait without a timeout uses the plugin's own wait functions. They have no timeout, so a wait
 * with one polls.
 */

/* Pauses between two queries of a wait with a timeout, in nanoseconds: they double from the first
   to the longest. */
enum { FIRST_PAUSE = 50000, MAX_PAUSE = 1000000 };

/* Requires the mutex; releases and reacquires it. Waits for the event of a point. */
static qi_pd_status wait_for_event(const qi_plugin *plugin, qi_plugin_stream *s,
                                   qi_plugin_point *at)
{
    uint64_t value = at->value;
    void *event = at->event;
    at->users++;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = plugin->f->synchronize_event(&plugin->unit->device, event);
    pthread_mutex_lock(&s->mutex);
    find_point(s, value)->users--;
    advance(plugin, s, status ? 0 : value);
    return status;
}

/* Requires the mutex; releases and reacquires it. Waits for everything submitted so far. */
static qi_pd_status wait_for_stream(const qi_plugin *plugin, qi_plugin_stream *s)
{
    const qi_pd_interface *f = plugin->f;
    uint64_t value = s->marked;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = f->synchronize_stream
                              ? f->synchronize_stream(&plugin->unit->device, s->handle)
                              : f->synchronize_device(&plugin->unit->device);
    pthread_mutex_lock(&s->mutex);
    advance(plugin, s, status ? 0 : value);
    return status;
}

static void pause_for(uint64_t nanoseconds)
{
    const struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                                  .tv_nsec = (long)(nanoseconds % 1000000000)};
    nanosleep(&time, NULL);
}

/*
 * Requires the mutex; releases it during pauses. Queries the stream until the value has passed or
 * the time is over. Without a query function it sleeps for the whole time and looks once.
 */
static void poll(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value, uint64_t nanoseconds)
{
    bool can_query = plugin->f->query_event || plugin->f->query_stream;
    uint64_t start = qi_clock(), pause = can_query ? FIRST_PAUSE : nanoseconds, spent = 0;
    while (s->passed < value && spent < nanoseconds) {
        pthread_mutex_unlock(&s->mutex);
        pause_for(pause < nanoseconds - spent ? pause : nanoseconds - spent);
        pthread_mutex_lock(&s->mutex);
        query_progress(plugin, s);
        pause = pause < MAX_PAUSE / 2 ? 2 * pause : pause;
        spent = qi_clock() - start;
    }
}

/* Requires the mutex; releases it while the thread sleeps. */
static quire_result await(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value,
                          uint64_t nanoseconds)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_status status = QI_PD_SUCCESS;
    query_progress(plugin, s);
    if (s->passed >= value || !nanoseconds)
        return QUIRE_SUCCESS;
    qi_plugin_point *at = f->synchronize_event ? find_point(s, value) : NULL;
    if (nanoseconds != UINT64_MAX)
        poll(plugin, s, value, nanoseconds);
    else if (at)
        status = wait_for_event(plugin, s, at);
    else if (f->synchronize_stream || f->synchronize_device)
        status = wait_for_stream(plugin, s);
    else
        poll(plugin, s, value, nanoseconds);
    return status ? qi_plugin_fail(plugin->library, status, "waiting for a stream") : QUIRE_SUCCESS;
}

quire_result qi_plugin_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    const qi_plugin *plugin = state;
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
    qi_plugin_saved_device saved;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    pthread_mutex_lock(&s->mutex);
    result = await(plugin, s, value, nanoseconds);
    *has_passed = s->passed >= value;
    pthread_mutex_unlock(&s->mutex);
    qi_plugin_leave(plugin, &saved);
    return result;
}
