/*
 * stream.h - the record of a plugin's stream, shared by stream.c (creation, points) and
 * stream_wait.c (waiting).
 *
 * Lock: qi_plugin_stream.mutex protects the record below it. It is released while a thread waits
 * for an event or orders another stream after it; `users` of the point keeps the event until then.
 *
 * Invariants: passed <= marked. `points` is sorted by value and has no two equal values. A point
 * without an event is not in the list.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_STREAM_H
#define QUIRE_BACKENDS_PLUGIN_STREAM_H

#include <pthread.h>

#include "backends/plugin/plugin.h"

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

static inline qi_plugin_stream *qi_plugin_stream_of(uint64_t stream)
{
    return (qi_plugin_stream *)(uintptr_t)stream;
}

/* ---- stream.c: all three require the mutex, between qi_plugin_enter and qi_plugin_leave ---- */

/* Queries the progress of the stream and advances `passed`. */
void qi_plugin_stream_poll(const qi_plugin *plugin, qi_plugin_stream *stream);

/* Returns the first point with an event whose value is at least `value`, or NULL. */
qi_plugin_point *qi_plugin_stream_point(qi_plugin_stream *stream, uint64_t value);

/* Raises `passed` to a value and recycles the events of passed points that have no users. */
void qi_plugin_stream_advance(const qi_plugin *plugin, qi_plugin_stream *stream, uint64_t value);

#endif
