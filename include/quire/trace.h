/*
 * quire/trace.h - allocation traces: reading them and replaying them on a memory.
 *
 * A trace is CSV text, described in docs/formats.md:
 *
 *     op,id,size,alignment,time_ns,stream,label
 *     alloc,1,4096,256,0,0,weights
 *     free,1,,,1000,0,
 */
#ifndef QUIRE_TRACE_H
#define QUIRE_TRACE_H

#include "quire/insight.h"
#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_trace quire_trace;

typedef enum quire_trace_op {
    QUIRE_TRACE_ALLOC = 0,
    QUIRE_TRACE_FREE,
    QUIRE_TRACE_USE,  /* the range is used at this time */
    QUIRE_TRACE_FRAME /* a boundary */
} quire_trace_op;

typedef struct quire_trace_event {
    quire_trace_op op;
    uint32_t range;     /* number of the range among those live, used again after its free */
    uint64_t id;        /* as the trace has it; 0 for a frame */
    uint64_t size;      /* of an alloc, bytes */
    uint64_t alignment; /* of an alloc */
    uint64_t time_ns;   /* since the first event, whose own is 0 */
    uint64_t stream;    /* 0 where the trace has none */
    const char *label;  /* "" without one; lives as long as the trace */
} quire_trace_event;

typedef struct quire_trace_info {
    uint64_t event_count;
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t use_count;
    uint64_t frame_count;
    uint64_t peak_bytes;  /* most bytes live at one time, as asked for */
    uint64_t peak_event;  /* the event that first reached it */
    uint64_t peak_ranges; /* most ranges live at one time */
    uint64_t left_count;  /* ranges live at the end */
    uint64_t left_bytes;
    uint64_t largest; /* bytes */
    uint64_t end_ns;  /* time_ns of the last event */
    uint64_t unused[4];
} quire_trace_info;

/*
 * Reads a whole trace. `name` stands in front of error sentences; `text` need not end with 0 and is
 * not used after the call. host_memory as everywhere; what is taken of it follows the events and
 * labels that were read, and the longest line. Errors: BAD_FILE with the sentence
 * "NAME:LINE:COLUMN: what is wrong" (for empty text "NAME: ..."), INVALID_ARGUMENT,
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_parse(const char *name, const char *text,
                                                        size_t size,
                                                        const quire_host_memory *host_memory,
                                                        quire_trace **trace);
QUIRE_API void quire_trace_destroy(quire_trace **trace);

/* Errors: INVALID_ARGUMENT. Thread-safety: a trace does not change; safe. */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_get_info(const quire_trace *trace,
                                                           quire_trace_info *info);

/* One event by its number. Errors: INVALID_ARGUMENT, OUT_OF_RANGE. Thread-safety: safe. */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_get_event(const quire_trace *trace,
                                                            uint64_t number,
                                                            quire_trace_event *event);

/* ---- replay --------------------------------------------------------------------------------- */

typedef struct quire_replay_options {
    uint64_t event_count; /* replay this many events; 0: all */
    bool keep;            /* leave what lives at the end in the memory, for a look at it */
    bool name;            /* name the allocations by their labels, see docs/formats.md */
    /*
     * Called with the events done and the events to do, before the first event, after each
     * `progress_events` of them, and after the last; false stops the replay there. It is outside of
     * what is timed, but for `wall_ns`. NULL: not called.
     */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    uint64_t progress_events; /* 0: as many as make about 2000 calls */
    uint64_t unused[3];       /* must be zero */
} quire_replay_options;

/* Nanoseconds of single calls, the cost of reading the clock subtracted; within 1.6 %. */
typedef struct quire_latency {
    uint64_t p50, p99, p999, max;
} quire_latency;

typedef struct quire_replay_report {
    uint64_t operations; /* events replayed */
    uint64_t allocations;
    uint64_t frees;
    uint64_t uses;
    uint64_t frames;
    uint64_t failures;        /* allocations refused; their frees and uses are passed over */
    uint64_t peak_live_bytes; /* from here to `metadata_bytes_peak`: the memory's figures */
    uint64_t peak_requested_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t pages_created; /* until the last event, as are the next two */
    uint64_t pages_destroyed;
    uint64_t backend_calls;
    uint64_t peak_pages;
    uint64_t metadata_bytes_peak;
    uint64_t left_at_end; /* allocations live after the last event */
    uint64_t left_bytes;
    uint64_t wall_ns;
    quire_latency alloc_ns;
    quire_latency free_ns;
    /* `reserved` over the whole replay; the other three when the most bytes were live. */
    quire_fragmentation fragmentation;
    bool stopped; /* by `progress` */
    uint64_t unused[4];
} quire_replay_report;

/*
 * Plays a trace on a memory, which should be fresh: the figures of the report are the memory's own.
 * A refused allocation is counted and the replay goes on; the first refusal is the thread's last
 * error then. Unless `keep` is set, everything the replay made is freed at the end.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_replay(const quire_trace *trace,
                                                         quire_memory *memory,
                                                         const quire_replay_options *options,
                                                         quire_replay_report *report);

#ifdef __cplusplus
}
#endif

#endif
