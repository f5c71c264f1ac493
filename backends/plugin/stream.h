/*
 * stream.h - a stream of a plugin: what making it and marking points (stream.c) and waiting for
 * them (stream_wait.c) share.
 *
 * Any thread may call: a stream has a mutex, which is not held while a thread sleeps for an event;
 * the event is then counted as used and stays until the sleep is over.
 */
#ifndef QUIRE_BACKENDS_PLUGIN_STREAM_H
#define QUIRE_BACKENDS_PLUGIN_STREAM_H

#include <pthread.h>

#include "backends/plugin/plugin.h"

/* Events kept for the next points, so that a point need not make one. */
enum { QI_PLUGIN_MOST_IDLE = 8 };

typedef struct qi_plugin_point {
    uint64_t value;
    void *event;
    uint32_t users; /* threads that sleep for it, or order a stream behind it */
} qi_plugin_point;

typedef struct qi_plugin_stream {
    void *handle; /* NULL: the plugin made a stream and gave none */
    bool is_borrowed;
    pthread_mutex_t mutex;
    uint64_t marked, passed; /* values; passed <= marked */
    qi_plugin_point *points; /* that have events, the earliest first */
    uint64_t count, room;
    void *idle[QI_PLUGIN_MOST_IDLE];
    uint32_t idle_count;
} qi_plugin_stream;

static inline qi_plugin_stream *qi_plugin_stream_of(uint64_t stream)
{
    return (qi_plugin_stream *)(uintptr_t)stream;
}

/* ---- with the stream's mutex, and its device current ---------------------------------------- */

/* Asks how far the stream is. */
void qi_plugin_stream_ask(const qi_plugin *plugin, qi_plugin_stream *stream);

/* The first point at or behind a value that has an event; NULL: there is none. */
qi_plugin_point *qi_plugin_stream_point(qi_plugin_stream *stream, uint64_t value);

/* Notes that a value has passed, and takes back the events that nobody uses any more. */
void qi_plugin_stream_raise(const qi_plugin *plugin, qi_plugin_stream *stream, uint64_t value);

#endif
