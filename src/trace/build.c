/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * build.c - the live ranges of a trace that is being read, by their ids (see build.h).
 */
#include "src/trace/build.h"

#include "src/base/bits.h"

enum { FIRST_EVENTS = 64, FIRST_RANGES = 64 };

/* ---- ranges ------------------------------------------------------------------------------- */

/* Reuses the number freed last, or adds one, so that numbers stay below the peak of live ranges. */
static bool take_range(qi_builder *b, uint32_t *number)
{
    if (b->free_range) {
        *number = b->free_range - 1;
        b->free_range = b->ranges[*number].next_free;
        return true;
    }
    uint64_t room = b->range_room;
    if (b->trace->range_count == room) {
        uint64_t more = room ? room * 2 : FIRST_RANGES;
        qi_built_range *ranges =
            qi_host_resize(&b->trace->host, b->ranges, room, more, sizeof *ranges);
        if (!ranges)
            return false;
        b->ranges = ranges;
        b->range_room = more;
    }
    *number = b->trace->range_count++;
    return true;
}

/* peak_event is the first event that reaches the peak; equal peaks later do not replace it. */
static void raise_peak(qi_builder *b)
{
    quire_trace_info *info = &b->trace->info;
    if (b->live_bytes > info->peak_bytes) {
        info->peak_bytes = b->live_bytes;
        info->peak_event = info->event_count;
    }
    info->peak_ranges = b->live_count > info->peak_ranges ? b->live_count : info->peak_ranges;
}

const qi_built_range *qi_build_find(const qi_builder *b, uint64_t id, uint32_t *number)
{
    const uint32_t *live = qi_id_map_find(&b->ids, id);
    if (!live)
        return NULL;
    *number = *live;
    return &b->ranges[*live];
}

qi_build_result qi_build_alloc(qi_builder *b, quire_trace_event *event, uint64_t place)
{
    quire_trace_info *info = &b->trace->info;
    uint64_t bytes = 0;
    if (qi_id_map_find(&b->ids, event->id))
        return QI_BUILD_IS_LIVE;
    if (qi_add_overflows(b->live_bytes, event->size, &bytes))
        return QI_BUILD_OVERFLOW;
    if (!take_range(b, &event->range) ||
        !qi_id_map_add(&b->ids, &b->trace->host, event->id, event->range))
        return QI_BUILD_NO_MEMORY;
    b->ranges[event->range] = (qi_built_range){.size = event->size, .place = place};
    b->live_bytes = bytes;
    b->live_count++;
    info->largest = event->size > info->largest ? event->size : info->largest;
    raise_peak(b);
    return QI_BUILD_DONE;
}

bool qi_build_free(qi_builder *b, quire_trace_event *event)
{
    const qi_built_range *range = qi_build_find(b, event->id, &event->range);
    if (!range)
        return false;
    qi_id_map_remove(&b->ids, event->id);
    b->live_bytes -= range->size;
    b->live_count--;
    b->ranges[event->range].next_free = b->free_range;
    b->free_range = event->range + 1;
    return true;
}

/* ---- events ------------------------------------------------------------------------------- */

/* Makes room for one more event, by doubling. Returns false if host memory is exhausted. */
static bool make_room(quire_trace *trace)
{
    if (trace->info.event_count < trace->event_room)
        return true;
    uint64_t room = trace->event_room ? trace->event_room * 2 : FIRST_EVENTS;
    quire_trace_event *events =
        qi_host_resize(&trace->host, trace->events, trace->event_room, room, sizeof *events);
    if (!events)
        return false;
    trace->events = events;
    trace->event_room = room;
    return true;
}

void qi_build_count(qi_builder *b, const quire_trace_event *event)
{
    quire_trace_info *info = &b->trace->info;
    uint64_t *const counts[] = {[QUIRE_TRACE_ALLOC] = &info->alloc_count,
                                [QUIRE_TRACE_FREE] = &info->free_count,
                                [QUIRE_TRACE_USE] = &info->use_count,
                                [QUIRE_TRACE_FRAME] = &info->frame_count};
    info->event_count++;
    ++*counts[event->op];
    info->end_ns = event->time_ns;
}

bool qi_build_keep(qi_builder *b, const quire_trace_event *event)
{
    quire_trace *trace = b->trace;
    const char *label = qi_labels_add(&trace->labels, &trace->host, event->label);
    if (!label || !make_room(trace))
        return false;
    trace->events[trace->info.event_count] = *event;
    trace->events[trace->info.event_count].label = label;
    qi_build_count(b, event);
    return true;
}

void qi_build_finish(qi_builder *b)
{
    qi_host *host = &b->trace->host;
    b->trace->info.left_count = b->live_count;
    b->trace->info.left_bytes = b->live_bytes;
    qi_id_map_finish(&b->ids, host);
    qi_host_release(host, b->ranges, b->range_room, sizeof *b->ranges);
}
