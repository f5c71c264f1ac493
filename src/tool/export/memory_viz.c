/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.c - a snapshot for https://pytorch.org/memory_viz with the events of a replay. The
 * viewer goes back from the segments through the events, so that both have the same addresses.
 */
#include "src/render/memory_viz.h"

#include "src/tool/export/export.h"

static uint64_t address_of(void *user, uint32_t page)
{
    return history_address(user, page);
}

static const char *action_of(const export_event *event)
{
    switch (event->action) {
    case EXPORT_ALLOC:
        return "alloc";
    case EXPORT_FREE:
        return "free_completed";
    case EXPORT_REFUSED:
        break;
    case EXPORT_MAP:
        return event->is_elastic ? "segment_map" : "segment_alloc";
    case EXPORT_UNMAP:
        return event->is_elastic ? "segment_unmap" : "segment_free";
    }
    return "oom";
}

/* Segments have stream 0, as quire serves every stream from each page. */
static void write_event(qi_pickle *pickle, const export_event *event, const char *action,
                        const char *memory)
{
    const bool is_page = event->action == EXPORT_MAP || event->action == EXPORT_UNMAP;
    qi_pickle_dict(pickle, NULL);
    qi_pickle_text(pickle, "action", action);
    qi_pickle_number(pickle, event->action == EXPORT_REFUSED ? "device_free" : "addr",
                     event->address);
    qi_pickle_number(pickle, "size", event->size);
    qi_pickle_number(pickle, "stream", is_page ? 0 : event->stream);
    qi_pickle_number(pickle, "time_us", event->time_ns / 1000);
    qi_viz_write_frames(pickle, event->label, memory, event->page);
    qi_pickle_end_dict(pickle);
}

/* The range of a free is available at once. */
quire_result export_memory_viz(void *history, quire_sink sink, void *user)
{
    export_history *h = history;
    qi_viz viz;
    qi_viz_begin(&viz, sink, user);
    viz.address = address_of;
    viz.user = h;
    quire_result result = qi_viz_write_memory(&viz, h->setup->memory);
    qi_viz_begin_events(&viz);
    for (uint64_t i = 0; i < h->count && !result; i++) {
        if (h->events[i].action == EXPORT_FREE)
            write_event(&viz.pickle, &h->events[i], "free_requested", viz.info.name);
        write_event(&viz.pickle, &h->events[i], action_of(&h->events[i]), viz.info.name);
    }
    return result ? result : qi_viz_finish(&viz);
}
