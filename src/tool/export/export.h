/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * export.h - what quire export writes: the memory at one moment of a trace, and what happened in it
 * until then.
 */
#ifndef QUIRE_SRC_TOOL_EXPORT_EXPORT_H
#define QUIRE_SRC_TOOL_EXPORT_EXPORT_H

#include "src/tool/replay_setup.h"
#include "src/tool/stretches.h"

/* ---- the events of a replay --------------------------------------------------------------- */

typedef enum export_action {
    EXPORT_ALLOC,
    EXPORT_FREE,
    EXPORT_REFUSED,
    EXPORT_MAP,  /* a page is made, or a stretch of an elastic page gets memory */
    EXPORT_UNMAP /* the reverse */
} export_action;

typedef struct export_event {
    export_action action;
    uint32_t page; /* its number; 0 for a refusal */
    bool is_elastic;
    uint64_t address;  /* of the range or the stretch; of a refusal: bytes available in the heap */
    uint64_t size;     /* bytes; of a range the requested ones */
    uint64_t number;   /* of the event of the trace that caused it */
    uint64_t time_ns;  /* of the trace */
    uint64_t stream;   /* likewise */
    const char *label; /* of the allocation; "" if it has none; valid as long as the trace */
} export_event;

/* The sums of the memory after an event of the trace. */
typedef struct export_sample {
    uint64_t number;                    /* of the event */
    uint64_t live, requested, reserved; /* bytes */
    uint64_t pages;
} export_sample;

/* A page that was reported. */
typedef struct export_page {
    bool is_elastic;
    uint64_t address;
    stretches memory; /* empty: no page has this number */
} export_page;

/*
 * The events in an order in which each range lies in memory that the page has: quire may report a
 * page after its first allocation. One thread uses a history.
 */
typedef struct export_history {
    const replay_setup *setup;
    uint32_t kind, heap; /* of the memory */
    uint64_t now; /* number of the event of the trace that is replayed; at the end their number */
    export_event *events;
    uint64_t count, room;
    export_sample *samples;
    uint64_t sample_count, sample_room;
    export_page *pages; /* by number */
    uint32_t page_room;
    const char **labels;    /* of live ranges, by their numbers in the trace */
    uint64_t address_space; /* of its elastic page; 0: it has none */
    uint64_t chosen;        /* of addresses: qi_viz_choose */
    bool failed;            /* host memory is exhausted */
} export_history;

/* Starts to record the memory of a set-up. Prints the error and returns false. */
bool history_begin(export_history *h, const replay_setup *setup);

/* Adds a sample after the event `now` if a sum changed since the last one. */
void history_sample(export_history *h);

/* Stops to record. Prints an error and returns false if an event was lost. */
bool history_stop(export_history *h);

/* Frees the events. A zeroed one is allowed. */
void history_end(export_history *h);

/* The address of a page that lives now: the native one, or one that does not overlap others. */
uint64_t history_address(const export_history *h, uint32_t page);

/* ---- formats ------------------------------------------------------------------------------ */

/* Each writes a file about the memory and the history, an export_history. */
quire_result export_memory_viz(void *history, quire_sink sink, void *user);
quire_result export_perfetto(void *history, quire_sink sink, void *user); /* needs the samples */

#endif
