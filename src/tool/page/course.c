/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * course.c - records the course of a replay by the events of its memory (see course.h).
 *
 * The memory may report a page after the first allocation in it, so a page begins with whichever
 * event comes first.
 */
#include "src/tool/page/course.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/tool/array.h"

/* As grow_array. Without memory the course has failed. */
static void *grow(course *c, void *array, uint64_t *room, uint64_t at, size_t size)
{
    void *larger = grow_array(array, room, at, size);
    c->failed |= !larger;
    return larger;
}

/* The moment at which what happens now is seen. */
static uint64_t moment_of(const course *c)
{
    return c->event + 1;
}

/* ---- pages -------------------------------------------------------------------------------- */

static void add_change(course *c, uint32_t page, uint64_t bytes)
{
    course_change *larger =
        grow(c, c->changes, &c->change_room, c->change_count, sizeof *c->changes);
    if (!larger)
        return;
    c->changes = larger;
    c->changes[c->change_count++] = (course_change){moment_of(c), bytes, page};
}

typedef struct stretch_walk {
    course *course;
    uint32_t page;
    bool has_memory;
} stretch_walk;

static void add_stretch(void *user, uint64_t begin, uint64_t end)
{
    const stretch_walk *walk = user;
    course *c = walk->course;
    course_stretch *larger =
        grow(c, c->stretches, &c->stretch_room, c->stretch_count, sizeof *c->stretches);
    if (!larger)
        return;
    c->stretches = larger;
    c->stretches[c->stretch_count++] =
        (course_stretch){moment_of(c), begin, end, walk->page, walk->has_memory};
}

/* Adds what an elastic page got and lost since it was last read. */
static void read_stretches(course *c, uint32_t page)
{
    stretches now = {.count = 0};
    stretch_walk lost = {c, page, false}, got = {c, page, true};
    if (!c->pages[page].is_elastic)
        return;
    c->failed |=
        !c->pages[page].is_gone && !stretches_read(&now, c->setup->memory, c->pages[page].number);
    stretches_differ(&c->backed, &now, add_stretch, &lost);
    stretches_differ(&now, &c->backed, add_stretch, &got);
    free(c->backed.items);
    c->backed = now;
}

static bool make_room_for_number(course *c, uint32_t number)
{
    uint64_t before = c->number_room;
    if (number < before)
        return true;
    uint32_t *larger = grow(c, c->current, &c->number_room, number, sizeof *c->current);
    if (!larger)
        return false;
    c->current = larger;
    for (uint64_t i = before; i < c->number_room; i++)
        c->current[i] = 0;
    return true;
}

/* Adds the page that has a number now, with its bytes. */
static void add_page(course *c, uint32_t number)
{
    quire_page_info info = {.size = 0};
    course_page *larger = grow(c, c->pages, &c->page_room, c->page_count, sizeof *c->pages);
    if (!larger || quire_page_get_info(c->setup->memory, number, &info))
        return;
    c->pages = larger;
    c->pages[c->page_count] =
        (course_page){.number = number,
                      .is_dedicated = info.dedicated,
                      .is_elastic = c->setup->memory_choice.options.elastic && !info.dedicated};
    c->current[number] = (uint32_t)++c->page_count;
    add_change(c, (uint32_t)c->page_count - 1, info.size);
    read_stretches(c, (uint32_t)c->page_count - 1);
}

/* Sets `index` to the page that has a number now. Returns false if there is none, or no memory. */
static bool find_page(course *c, uint32_t number, uint32_t *index)
{
    if (!make_room_for_number(c, number))
        return false;
    if (!c->current[number])
        add_page(c, number);
    if (!c->current[number])
        return false;
    *index = c->current[number] - 1;
    return true;
}

static void resize_page(course *c, const quire_event *event)
{
    uint32_t page;
    if (!find_page(c, event->page, &page))
        return;
    add_change(c, page, event->size);
    read_stretches(c, page);
}

static void end_page(course *c, uint32_t number)
{
    if (number >= c->number_room || !c->current[number])
        return;
    c->pages[c->current[number] - 1].is_gone = true;
    add_change(c, c->current[number] - 1, 0);
    read_stretches(c, c->current[number] - 1);
    c->current[number] = 0;
}

/* ---- names -------------------------------------------------------------------------------- */

/* The key of a text in `by_text`: FNV-1a of 64 bits. It is positive. */
static uint64_t key_of(const char *text)
{
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (const char *c = text; *c; c++)
        key = (key ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return key ? key : 1;
}

/* The name of a label. Without memory it is the first one, and the course has failed. */
static uint32_t name_of(course *c, const char *label)
{
    uint64_t key = key_of(label);
    const uint32_t *known = qi_id_map_find(&c->by_text, key);
    while (known && strcmp(c->names[*known], label)) { /* another text with this key */
        key = key == UINT64_MAX ? 1 : key + 1;
        known = qi_id_map_find(&c->by_text, key);
    }
    if (known)
        return *known;
    const char **larger = grow(c, c->names, &c->name_room, c->name_count, sizeof *c->names);
    if (!larger)
        return 0;
    c->names = larger;
    c->names[c->name_count] = label;
    if (!qi_id_map_add(&c->by_text, &c->host, key, (uint32_t)c->name_count)) {
        c->failed = true;
        return 0;
    }
    return (uint32_t)c->name_count++;
}

/* ---- ranges ------------------------------------------------------------------------------- */

static void begin_range(course *c, const quire_event *event, const quire_trace_event *cause)
{
    uint32_t page;
    course_range *larger = grow(c, c->ranges, &c->range_room, c->range_count, sizeof *c->ranges);
    if (!larger || !find_page(c, event->page, &page))
        return;
    c->ranges = larger;
    c->ranges[c->range_count++] = (course_range){.begin = moment_of(c),
                                                 .end = COURSE_ALWAYS,
                                                 .offset = event->offset,
                                                 .size = event->size,
                                                 .requested = event->requested,
                                                 .page = page,
                                                 .name = name_of(c, cause->label)};
    c->live[cause->range] = c->range_count;
}

static void end_range(course *c, const quire_trace_event *cause)
{
    if (c->live[cause->range])
        c->ranges[c->live[cause->range] - 1].end = moment_of(c);
    c->live[cause->range] = 0;
}

static void add_refusal(course *c, const quire_event *event, const quire_trace_event *cause)
{
    course_refusal *larger =
        grow(c, c->refusals, &c->refusal_room, c->refusal_count, sizeof *c->refusals);
    if (!larger)
        return;
    c->refusals = larger;
    c->refusals[c->refusal_count++] =
        (course_refusal){moment_of(c), event->size, name_of(c, cause->label)};
}

/* ---- events ------------------------------------------------------------------------------- */

static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    course *c = user;
    quire_trace_event cause;
    (void)memory;
    if (c->failed || quire_trace_get_event(c->setup->trace, c->event, &cause))
        return;
    switch (event->kind) {
    case QUIRE_EVENT_ALLOCATED:
        begin_range(c, event, &cause);
        break;
    case QUIRE_EVENT_FREED:
        end_range(c, &cause);
        break;
    case QUIRE_EVENT_REFUSED:
        add_refusal(c, event, &cause);
        break;
    case QUIRE_EVENT_PAGE_GONE:
        end_page(c, event->page);
        break;
    default: /* made or resized */
        resize_page(c, event);
    }
}

/* ---- a course ----------------------------------------------------------------------------- */

/* Pages that exist before the first event have their bytes from moment 1 on. */
static bool add_first_page(void *user, const quire_item *item)
{
    course *c = user;
    uint32_t page;
    return find_page(c, item->page, &page) || !c->failed;
}

bool course_begin(course *c, const replay_setup *setup)
{
    const quire_hook hook = {.event = on_event,
                             .user = c,
                             .kinds = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED |
                                      QUIRE_EVENT_REFUSED | QUIRE_EVENT_PAGE_MADE |
                                      QUIRE_EVENT_PAGE_GONE | QUIRE_EVENT_PAGE_RESIZED};
    *c = (course){.setup = setup};
    c->live = calloc(setup->info.peak_ranges + 1, sizeof *c->live);
    if (!c->live) {
        print_problem("quire: no host memory for the course of the replay");
        return false;
    }
    if (qi_host_init(&c->host, NULL) || quire_memory_walk(setup->memory, add_first_page, c) ||
        quire_memory_set_hook(setup->memory, &hook)) {
        fail_with_last_error();
        return false;
    }
    return true;
}

bool course_stop(course *c)
{
    qi_ignore(quire_memory_set_hook(c->setup->memory, NULL));
    if (c->failed)
        print_problem("quire: no host memory for the course of the replay");
    return !c->failed;
}

void course_end(course *c)
{
    if (!c->setup)
        return;
    qi_id_map_finish(&c->by_text, &c->host);
    free(c->ranges);
    free(c->pages);
    free(c->changes);
    free(c->stretches);
    free(c->backed.items);
    free(c->refusals);
    free(c->names);
    free(c->live);
    free(c->current);
    *c = (course){.setup = NULL};
}
