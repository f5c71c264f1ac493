/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay_course.c - see replay_course.h.
 *
 * The memory may report a page after the first allocation in it, so a page begins with whichever
 * event comes first.
 */
#include "src/tool/page/replay_course.h"

#include <stdlib.h>

#include "src/base/result.h"
#include "src/tool/array.h"
#include "src/tool/page/data.h"

/* Refusals with a report. Later ones are mostly alike. */
enum { MOST_REPORTS = 20 };

/* The moment at which what happens now is seen. */
static uint64_t moment_of(const replay_course *r)
{
    return r->event + 1;
}

/* ---- pages -------------------------------------------------------------------------------- */

static void add_change(replay_course *r, uint32_t page, uint64_t bytes)
{
    course_add_change(&r->course, (course_change){moment_of(r), bytes, page});
}

typedef struct stretch_walk {
    replay_course *replay;
    uint32_t page;
    bool has_memory;
} stretch_walk;

static void add_stretch(void *user, uint64_t begin, uint64_t end)
{
    const stretch_walk *walk = user;
    course_add_stretch(&walk->replay->course, (course_stretch){moment_of(walk->replay), begin, end,
                                                               walk->page, walk->has_memory});
}

/* Adds what an elastic page got and lost since it was last read. */
static void read_stretches(replay_course *r, uint32_t page)
{
    stretches now = {.count = 0};
    stretch_walk lost = {r, page, false}, got = {r, page, true};
    if (!r->course.pages[page].is_elastic)
        return;
    r->course.failed |= !r->course.pages[page].is_gone &&
                        !stretches_read(&now, r->memory, r->course.pages[page].number);
    stretches_differ(&r->backed, &now, add_stretch, &lost);
    stretches_differ(&now, &r->backed, add_stretch, &got);
    free(r->backed.items);
    r->backed = now;
}

static bool make_room_for_number(replay_course *r, uint32_t number)
{
    uint64_t before = r->number_room;
    if (number < before)
        return true;
    uint32_t *larger = grow_array(r->current, &r->number_room, number, sizeof *r->current);
    r->course.failed |= !larger;
    if (!larger)
        return false;
    r->current = larger;
    for (uint64_t i = before; i < r->number_room; i++)
        r->current[i] = 0;
    return true;
}

/* Adds the page that has a number now, with its bytes. */
static void add_page(replay_course *r, uint32_t number)
{
    quire_page_info info = {.size = 0};
    if (quire_page_get_info(r->memory, number, &info))
        return;
    course_add_page(&r->course, (course_page){.number = number,
                                              .is_dedicated = info.dedicated,
                                              .is_elastic = r->is_elastic && !info.dedicated});
    if (r->course.failed)
        return;
    r->current[number] = (uint32_t)r->course.page_count;
    add_change(r, r->current[number] - 1, info.size);
    read_stretches(r, r->current[number] - 1);
}

/* Sets `index` to the page that has a number now. Returns false if there is none, or no memory. */
static bool find_page(replay_course *r, uint32_t number, uint32_t *index)
{
    if (!make_room_for_number(r, number))
        return false;
    if (!r->current[number])
        add_page(r, number);
    if (!r->current[number])
        return false;
    *index = r->current[number] - 1;
    return true;
}

static void resize_page(replay_course *r, const quire_event *event)
{
    uint32_t page;
    if (!find_page(r, event->page, &page))
        return;
    add_change(r, page, event->size);
    read_stretches(r, page);
}

static void end_page(replay_course *r, uint32_t number)
{
    if (number >= r->number_room || !r->current[number])
        return;
    const uint32_t page = r->current[number] - 1;
    r->course.pages[page].is_gone = true;
    add_change(r, page, 0);
    read_stretches(r, page);
    r->current[number] = 0;
}

/* ---- ranges ------------------------------------------------------------------------------- */

static void begin_range(replay_course *r, const quire_event *event, const quire_trace_event *cause)
{
    uint32_t page;
    if (!find_page(r, event->page, &page))
        return;
    course_add_range(&r->course, (course_range){.begin = moment_of(r),
                                                .end = COURSE_ALWAYS,
                                                .offset = event->offset,
                                                .size = event->size,
                                                .requested = event->requested,
                                                .page = page,
                                                .name = course_name(&r->course, cause->label)});
    r->live[cause->range] = r->course.range_count;
}

static void end_range(replay_course *r, const quire_trace_event *cause)
{
    if (r->live[cause->range])
        r->course.ranges[r->live[cause->range] - 1].end = moment_of(r);
    r->live[cause->range] = 0;
}

static void add_refusal(replay_course *r, const quire_event *event, const quire_trace_event *cause)
{
    course_add_refusal(&r->course, (course_refusal){.event = moment_of(r),
                                                    .size = event->size,
                                                    .name = course_name(&r->course, cause->label)});
}

/* The text of quire_memory_write_report: what the last refused request tried, and what is free.
   NULL without host memory. */
static char *report_of(quire_memory *memory)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    const bool is_whole = file && !quire_memory_write_report(memory, write_to_file, file);
    if (file && !fclose(file) && is_whole)
        return text;
    free(text);
    return NULL;
}

static void add_free(replay_course *r)
{
    quire_memory_stats stats;
    if (!quire_memory_get_stats(r->memory, &stats))
        course_add_free(&r->course,
                        (course_free){r->event, stats.fragmentation.split, stats.largest_free});
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    replay_course *r = user;
    quire_trace_event cause;
    (void)memory;
    if (r->course.failed || quire_trace_get_event(r->course.trace, r->event, &cause))
        return;
    switch (event->kind) {
    case QUIRE_EVENT_ALLOCATED:
        begin_range(r, event, &cause);
        break;
    case QUIRE_EVENT_FREED:
        end_range(r, &cause);
        break;
    case QUIRE_EVENT_REFUSED:
        add_refusal(r, event, &cause);
        break;
    case QUIRE_EVENT_PAGE_GONE:
        end_page(r, event->page);
        break;
    default: /* made or resized */
        resize_page(r, event);
    }
}

/* ---- the replay --------------------------------------------------------------------------- */

/* After the calls for the event have returned: within a hook a memory cannot be asked. */
void replay_course_step(replay_course *r, uint64_t done)
{
    r->event = done;
    const uint64_t refusals = r->course.refusal_count;
    course_refusal *last = refusals ? &r->course.refusals[refusals - 1] : NULL;
    if (last && last->event == done && refusals <= MOST_REPORTS)
        last->report = report_of(r->memory);
    if (done % r->every == 0)
        add_free(r);
}

/* Pages that exist before the first event have their bytes from moment 1 on. */
static bool add_first_page(void *user, const quire_item *item)
{
    replay_course *r = user;
    uint32_t page;
    return find_page(r, item->page, &page) || !r->course.failed;
}

bool replay_course_begin(replay_course *r, const replay_setup *setup)
{
    const quire_hook hook = {.event = on_event,
                             .user = r,
                             .kinds = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED |
                                      QUIRE_EVENT_REFUSED | QUIRE_EVENT_PAGE_MADE |
                                      QUIRE_EVENT_PAGE_GONE | QUIRE_EVENT_PAGE_RESIZED};
    *r = (replay_course){.memory = setup->memory,
                         .is_elastic = setup->memory_choice.options.elastic};
    course_begin(&r->course);
    r->course.trace = setup->trace;
    r->course.last = setup->info.event_count;
    r->course.peak = setup->info.event_count ? setup->info.peak_event + 1 : 0;
    r->every = setup->info.event_count / PAGE_MOST_TIMES + 1;
    r->live = calloc(setup->info.peak_ranges + 1, sizeof *r->live);
    if (!r->live) {
        print_problem("quire: no host memory for the course of the replay");
        return false;
    }
    if (quire_memory_walk(r->memory, add_first_page, r) ||
        quire_memory_set_hook(r->memory, &hook)) {
        fail_with_last_error();
        return false;
    }
    return true;
}

bool replay_course_stop(replay_course *r)
{
    qi_ignore(quire_memory_set_hook(r->memory, NULL));
    if (r->course.failed)
        print_problem("quire: no host memory for the course of the replay");
    return !r->course.failed;
}

void replay_course_end(replay_course *r)
{
    course_end(&r->course);
    free(r->backed.items);
    free(r->live);
    free(r->current);
    *r = (replay_course){.memory = NULL};
}
