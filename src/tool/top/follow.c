/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * follow.c - adds the events of a recording to its totals and to the sums of its names (see
 * follow.h).
 */
#include "src/tool/top/follow.h"

#include <string.h>

#include "src/base/result.h"
#include "src/base/recording.h"

static const char TEXT_HEADER[] = QI_TRACE_HEADER;

static bool make_room(follower *f, uint32_t range)
{
    if (range < f->range_room)
        return true;
    uint64_t room = f->recording.builder.range_room;
    followed_range *ranges =
        qi_host_resize(&f->trace.host, f->ranges, f->range_room, room, sizeof *ranges);
    if (!ranges)
        return false;
    f->ranges = ranges;
    f->range_room = room;
    return true;
}

static bool take(qi_recording *recording, const quire_trace_event *event)
{
    follower *f = (follower *)recording;
    if (event->op == QUIRE_TRACE_ALLOC) {
        if (!make_room(f, event->range))
            return false;
        followed_range *range = &f->ranges[event->range];
        range->size = event->size;
        if (!add_named_range(&f->names, event->label, event->size, &range->name))
            return false;
    } else if (event->op == QUIRE_TRACE_FREE) {
        const followed_range *range = &f->ranges[event->range];
        remove_named_range(&f->names, range->name, range->size);
    }
    qi_build_count(&recording->builder, event);
    return true;
}

quire_result begin_follower(follower *f, const char *name)
{
    *f = (follower){.recording = {.name = name, .take = take}};
    f->recording.builder.trace = &f->trace;
    f->names.host = &f->trace.host;
    return qi_host_init(&f->trace.host, NULL);
}

/* Refuses a file by its first bytes, which may be fewer than a header has. */
static quire_result check_begin(const follower *f, const char *bytes, size_t size)
{
    const size_t text = sizeof TEXT_HEADER - 1, magic = sizeof QI_RECORDING_MAGIC - 1;
    if (!memcmp(bytes, QI_RECORDING_MAGIC, size < magic ? size : magic))
        return QUIRE_SUCCESS;
    if (!memcmp(bytes, TEXT_HEADER, size < text ? size : text))
        return qi_fail_text(QUIRE_ERROR_BAD_FILE,
                            "%s: a trace of text; only a recording can be followed, which "
                            "QUIRE_TRACE or quire_record_start writes",
                            f->recording.name);
    return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: byte 0: no block of a recording begins here",
                        f->recording.name);
}

quire_result follow(follower *f, const char *bytes, size_t size, size_t *used)
{
    *used = 0;
    quire_result result = QUIRE_SUCCESS;
    if (size && !f->recording.offset)
        result = check_begin(f, bytes, size);
    return result ? result : qi_recording_follow(&f->recording, bytes, size, used);
}

void finish_follower(follower *f)
{
    finish_names(&f->names);
    qi_host_release(&f->trace.host, f->ranges, f->range_room, sizeof *f->ranges);
    qi_build_finish(&f->recording.builder);
    f->ranges = NULL;
    f->range_room = 0;
}
