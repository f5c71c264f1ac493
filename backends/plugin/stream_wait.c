/*
 * stream_wait.c - waiting for a point of a stream: without a limit by the plugin's own functions,
 * with one by asking now and then, for those have none.
 */
#include <time.h>

#include "backends/plugin/stream.h"
#include "src/base/clock.h"
#include "src/base/result.h"

/* Between two questions of a thread that waits with a limit: first, and most, nanoseconds. */
enum { FIRST_PAUSE = 50000, MAX_PAUSE = 1000000 };

/* With the mutex, given up meanwhile: sleeps for the event of a point. */
static qi_pd_status sleep_for_event(const qi_plugin *plugin, qi_plugin_stream *s,
                                    qi_plugin_point *at)
{
    uint64_t value = at->value;
    void *event = at->event;
    at->users++;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = plugin->f->synchronize_event(&plugin->unit->device, event);
    pthread_mutex_lock(&s->mutex);
    qi_plugin_stream_point(s, value)->users--;
    qi_plugin_stream_raise(plugin, s, status ? 0 : value);
    return status;
}

/* Likewise for all that was submitted. */
static qi_pd_status sleep_for_stream(const qi_plugin *plugin, qi_plugin_stream *s)
{
    const qi_pd_interface *f = plugin->f;
    uint64_t value = s->marked;
    pthread_mutex_unlock(&s->mutex);
    qi_pd_status status = f->synchronize_stream
                              ? f->synchronize_stream(&plugin->unit->device, s->handle)
                              : f->synchronize_device(&plugin->unit->device);
    pthread_mutex_lock(&s->mutex);
    qi_plugin_stream_raise(plugin, s, status ? 0 : value);
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
static void poll(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value, uint64_t nanoseconds)
{
    bool can_ask = plugin->f->query_event || plugin->f->query_stream;
    uint64_t start = qi_clock(), pause = can_ask ? FIRST_PAUSE : nanoseconds, spent = 0;
    while (s->passed < value && spent < nanoseconds) {
        pthread_mutex_unlock(&s->mutex);
        pause_for(pause < nanoseconds - spent ? pause : nanoseconds - spent);
        pthread_mutex_lock(&s->mutex);
        qi_plugin_stream_ask(plugin, s);
        pause = pause < MAX_PAUSE / 2 ? 2 * pause : pause;
        spent = qi_clock() - start;
    }
}

/* With the mutex. */
static quire_result await(const qi_plugin *plugin, qi_plugin_stream *s, uint64_t value,
                          uint64_t nanoseconds)
{
    const qi_pd_interface *f = plugin->f;
    qi_pd_status status = QI_PD_SUCCESS;
    qi_plugin_stream_ask(plugin, s);
    if (s->passed >= value || !nanoseconds)
        return QUIRE_SUCCESS;
    qi_plugin_point *at = f->synchronize_event ? qi_plugin_stream_point(s, value) : NULL;
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
    qi_plugin_stream *s = qi_plugin_stream_of(stream);
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
