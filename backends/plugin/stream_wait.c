/*
 * stream_wait.c - waits for a point of a stream. A wait without a timeout uses the plugin's own
 * wait functions. They have no timeout, so a wait with one polls.
 */
#include <time.h>

#include "backends/plugin/stream.h"
#include "src/base/result.h"
#include "src/base/system.h"

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
    qi_plugin_stream_point(s, value)->users--;
    qi_plugin_stream_advance(plugin, s, status ? 0 : value);
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
    qi_plugin_stream_advance(plugin, s, status ? 0 : value);
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
        qi_plugin_stream_poll(plugin, s);
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
    qi_plugin_stream_poll(plugin, s);
    if (s->passed >= value || !nanoseconds)
        return QUIRE_SUCCESS;
    qi_plugin_point *at = f->synchronize_event ? qi_plugin_stream_point(s, value) : NULL;
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
