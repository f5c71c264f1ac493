/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/trace.h - allocation traces: reads them and replays them on a memory.
 *
 * A trace is CSV text, or what a recorder wrote (quire/record.h); docs/formats.md describes both:
 *
 *     op,id,size,alignment,time_ns,stream,label
 *     alloc,1,4096,256,0,0,weights
 *     free,1,,,1000,0,
 *
 * Thread-safety: a trace never changes, so that any thread may call any function on it, except
 * quire_trace_destroy. A replay is a call on its memory.
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
    QUIRE_TRACE_FRAME /* the boundary between two frames */
} quire_trace_op;

typedef struct quire_trace_event {
    quire_trace_op op;
    uint32_t range;     /* number of the range; numbers of freed ranges are used again */
    uint64_t id;        /* as in the trace; 0 for a frame */
    uint64_t size;      /* bytes, of an alloc */
    uint64_t alignment; /* bytes, of an alloc */
    uint64_t time_ns;   /* since the first event */
    uint64_t stream;    /* 0 if the trace has none */
    const char *label;  /* "" if it has none; valid as long as the trace */
} quire_trace_event;

typedef struct quire_trace_info {
    uint64_t event_count;
    uint64_t alloc_count;
    uint64_t free_count;
    uint64_t use_count;
    uint64_t frame_count;
    uint64_t peak_bytes;  /* maximum of the requested bytes live at one time */
    uint64_t peak_event;  /* number of the event that first reached it */
    uint64_t peak_ranges; /* maximum of the ranges live at one time */
    uint64_t left_count;  /* ranges live at the end */
    uint64_t left_bytes;  /* their requested bytes */
    uint64_t largest;     /* bytes of the largest alloc */
    uint64_t end_ns;      /* time_ns of the last event */
    uint64_t cut_bytes;   /* of a recording that ends in an incomplete block: the bytes of it, whose
                             events are left out; 0 otherwise */
    uint64_t unused[4];
} quire_trace_info;

/*
 * Parses a whole trace of `size` bytes, text or a recording. `name` is the prefix of error
 * sentences. `text` needs no alignment and no terminating 0, and is not used after the call.
 * `host_memory` provides the memory of the trace (NULL: malloc and free); the amount depends on the
 * events, the labels and the longest line.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE with the sentence "NAME:LINE:COLUMN: what
 * is wrong" (for empty text "NAME: ...", for a recording "NAME: byte N: ...").
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_parse(const char *name, const char *text,
                                                        size_t size,
                                                        const quire_host_memory *host_memory,
                                                        quire_trace **trace);

/* Destroys a trace. Never fails. */
QUIRE_API void quire_trace_destroy(quire_trace **trace);

/* Writes the totals of a trace. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_get_info(const quire_trace *trace,
                                                           quire_trace_info *info);

/* Writes one event by its number, from 0. Errors: INVALID_ARGUMENT, OUT_OF_RANGE. */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_get_event(const quire_trace *trace,
                                                            uint64_t number,
                                                            quire_trace_event *event);

/*
 * Writes a trace as CSV text, which quire_trace_parse reads back to the same events, with times
 * since the first one. Errors: INVALID_ARGUMENT, BAD_FILE (the sink returned false).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_write_csv(const quire_trace *trace,
                                                            quire_sink sink, void *user);

/* ---- replay --------------------------------------------------------------------------------- */

typedef struct quire_replay_options {
    uint64_t event_count; /* number of events to replay; 0: all */
    bool keep;            /* leave allocations that live at the end in the memory, to inspect it */
    bool name;            /* name the allocations by their labels, see docs/formats.md; the names
                             count in metadata_bytes_peak */
    /*
     * Called with the events done and the total: before the first event, after every
     * `progress_events`, and after the last. Returning false stops the replay. Its time counts in
     * `wall_ns` only. NULL: not called.
     */
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
    uint64_t progress_events; /* 0: chosen so that there are about 2000 calls */
    uint64_t *time;           /* receives time_ns of each event before it is replayed, for a
                                 quire_clock of the memory; NULL: not wanted */
    /* Every requested size in percent of that in the trace, to replay a smaller or larger run; 0:
       100. At least 1 byte. A size that is a multiple of its alignment remains one: it is rounded
       up. At most 1000. */
    uint32_t size_percent;
    uint64_t unused[4]; /* must be zero */
} quire_replay_options;

/* Nanoseconds of single calls, without the cost of reading the clock; accurate to 1.6 %. */
typedef struct quire_latency {
    uint64_t p50, p99, p999, max;
} quire_latency;

typedef struct quire_replay_report {
    uint64_t operations; /* events replayed */
    uint64_t allocations;
    uint64_t frees;
    uint64_t uses;
    uint64_t frames;
    uint64_t failures;        /* refused allocations; their frees and uses are skipped */
    uint64_t peak_live_bytes; /* up to metadata_bytes_peak: statistics of the memory */
    uint64_t peak_requested_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t pages_created; /* up to the last event, like the next two */
    uint64_t pages_destroyed;
    uint64_t backend_calls;
    uint64_t peak_pages;
    uint64_t metadata_bytes_peak;
    uint64_t left_at_end; /* allocations live after the last event */
    uint64_t left_bytes;
    uint64_t wall_ns; /* of all events, without the frees at the end */
    quire_latency alloc_ns;
    quire_latency free_ns;
    /* `reserved` over the whole replay; the others at the peak of requested bytes */
    quire_fragmentation fragmentation;
    bool stopped; /* `progress` returned false */
    uint64_t unused[4];
} quire_replay_report;

/*
 * Replays a trace on a memory, which should be new, because the report contains statistics of the
 * memory. NULL options mean {0}. A refused allocation is counted, and the replay continues; the
 * first refusal is the thread's last error afterwards. All allocations of the replay are freed at
 * the end unless `keep` is set. Errors: INVALID_ARGUMENT (also if the scaled sizes that live at one
 * time may exceed 64 bits), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_trace_replay(const quire_trace *trace,
                                                         quire_memory *memory,
                                                         const quire_replay_options *options,
                                                         quire_replay_report *report);

#ifdef __cplusplus
}
#endif

#endif
