/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * minimalloc.c - ranges with known lifetimes, which quire plan reads too (docs/formats.md).
 *
 * A range is allocated at its lower time and freed at its upper one. One unit of time becomes a
 * microsecond. At equal times frees come first, as in a plan: ranges that only touch share no time.
 */
#include <stdlib.h>
#include <string.h>

#include "src/plan/read.h"
#include "src/tool/import/import.h"

enum { UNIT_NS = 1000, FIRST_ROOM = 1 << 12 };

typedef struct event {
    uint64_t time;
    uint32_t item;
    bool is_alloc;
} event;

typedef struct reader {
    import_source *source;
    qi_host host;
    char *text;
    uint64_t length, room;
    uint64_t *lines; /* where each item stands */
    uint64_t line_count, line_room;
    qi_plan_file file;
    event *events;
} reader;

static bool no_memory(reader *r)
{
    return import_refuse(r->source, "no host memory");
}

/* Makes room for one more element of a growing array. */
static void *grow(reader *r, void *array, uint64_t count, uint64_t *room, size_t size)
{
    if (count < *room)
        return array;
    uint64_t larger = *room ? *room * 2 : FIRST_ROOM;
    void *moved = qi_host_resize(&r->host, array, *room, larger, size);
    *room = moved ? larger : *room;
    return moved;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* qi_plan_read leaves out empty lines, so an item's line is not its number. */
static bool note_line(reader *r)
{
    uint64_t *lines = grow(r, r->lines, r->line_count, &r->line_room, sizeof *lines);
    if (!lines)
        return no_memory(r);
    r->lines = lines;
    r->lines[r->line_count++] = r->source->line;
    return true;
}

/* The text ends with a zero byte that `length` does not count. */
static bool read_text(reader *r)
{
    import_source *s = r->source;
    for (int c = 0; c != EOF; r->length += c != EOF) {
        char *text = grow(r, r->text, r->length, &r->room, 1);
        if (!text)
            return no_memory(r);
        r->text = text;
        c = import_peek(s);
        if (c == 0)
            return import_refuse(s, "the file has a zero byte");
        if (c != EOF && c != '\n' && s->column == 1 && s->line > 1 && !note_line(r))
            return false;
        import_next(s);
        r->text[r->length] = (char)(c == EOF ? 0 : c);
    }
    return true;
}

/* The message of qi_plan_read is "NAME:LINE: what is wrong". It has no column. */
static bool refuse_as_plan(reader *r)
{
    char *what;
    const char *message = quire_last_error();
    uint64_t line = strncmp(message, "file:", 5) ? 0 : strtoull(message + 5, &what, 10);
    if (!line)
        return import_refuse(r->source, "%s", message);
    r->source->line = line;
    r->source->column = 1;
    return import_refuse(r->source, "%s", what + 2);
}

static bool refuse_item(reader *r, uint32_t item, const char *what)
{
    r->source->line = r->lines[item];
    r->source->column = 1;
    return import_refuse(r->source, "%s", what);
}

/* A plan allows what a trace does not. */
static bool check_items(reader *r)
{
    for (uint32_t i = 0; i < r->file.count; i++) {
        const quire_plan_item *item = &r->file.items[i];
        if (item->last_use >= UINT64_MAX / UNIT_NS)
            return refuse_item(r, i, "the upper time, in nanoseconds, does not fit 64 bits");
        if (item->alignment & (item->alignment - 1))
            return refuse_item(r, i, "the alignment is no power of two");
    }
    return true;
}

static bool read_items(reader *r)
{
    if (qi_host_init(&r->host, NULL) || !read_text(r))
        return r->source->sentence[0] ? false : no_memory(r);
    if (qi_plan_read("file", r->text, r->length, &r->host, &r->file))
        return refuse_as_plan(r);
    return check_items(r);
}

/* ---- the rows ----------------------------------------------------------------------------- */

/* At equal times frees come first, then the order of the file decides. */
static int compare(const void *one, const void *other)
{
    const event *a = one, *b = other;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->is_alloc != b->is_alloc)
        return a->is_alloc ? 1 : -1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static bool write_rows(reader *r, import_rows *rows)
{
    const uint64_t count = (uint64_t)r->file.count * 2;
    if (!count)
        return true;
    r->events = qi_host_allocate(&r->host, count, sizeof *r->events);
    if (!r->events)
        return no_memory(r);
    for (uint32_t i = 0; i < r->file.count; i++) {
        const quire_plan_item *item = &r->file.items[i];
        r->events[2 * (uint64_t)i] = (event){item->first_use, i, true};
        r->events[2 * (uint64_t)i + 1] = (event){item->last_use + 1, i, false};
    }
    qsort(r->events, count, sizeof *r->events, compare);
    for (uint64_t i = 0; i < count; i++) {
        const event *e = &r->events[i];
        const quire_plan_item *item = &r->file.items[e->item];
        const uint64_t id = (uint64_t)e->item + 1;
        if (e->is_alloc)
            import_alloc(rows, id, item->size, item->alignment ? item->alignment : 1,
                         e->time * UNIT_NS, 0, item->name ? item->name : "");
        else
            import_free(rows, id, e->time * UNIT_NS, 0);
    }
    return true;
}

bool import_minimalloc(import_source *source, import_rows *rows)
{
    reader r = {.source = source};
    bool is_good = read_items(&r) && write_rows(&r, rows);
    qi_host_release(&r.host, r.events, (uint64_t)r.file.count * 2, sizeof *r.events);
    qi_plan_file_release(&r.file, &r.host);
    qi_host_release(&r.host, r.lines, r.line_room, sizeof *r.lines);
    qi_host_release(&r.host, r.text, r.room, 1);
    return is_good;
}
