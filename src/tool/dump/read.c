/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * read.c - reads a dump (see dump.h). The members of an object may be in any order; unknown ones
 * are skipped, because the schema allows more of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "quire/insight.h"
#include "src/base/text.h"
#include "src/tool/array.h"
#include "src/tool/dump/dump.h"
#include "src/tool/import/json_reader.h"

typedef struct dump_reader {
    json_reader json;
    import_source *source;
    dump *dump;
} dump_reader;

static bool refuse_host_memory(dump_reader *r)
{
    return import_refuse(r->source, "no host memory for the dump");
}

/* ---- objects ------------------------------------------------------------------------------ */

/* Where a value begins. */
typedef struct place {
    uint64_t line, column;
} place;

static place next_place(dump_reader *r)
{
    json_peek(&r->json); /* to the first byte */
    return (place){r->source->line, r->source->column};
}

/* Has the next refusal name a place that was read before. */
static import_source *at(dump_reader *r, place where)
{
    r->source->line = where.line;
    r->source->column = where.column;
    return r->source;
}

/* Reads a member of an object into the target of the object. */
typedef struct member {
    const char *key;
    bool (*read)(dump_reader *r, void *target);
    bool is_required;
} member;

/* `what` is the object in messages. */
static bool check_members(dump_reader *r, place where, const char *what, const member *members,
                          uint32_t missing)
{
    for (size_t i = 0; members[i].key; i++)
        if (missing & 1u << i)
            return import_refuse(at(r, where), "%s needs \"%s\"", what, members[i].key);
    return true;
}

/* Reads an object. A row without a key ends `members`; *found gets a bit for each one. */
static bool read_object(dump_reader *r, const char *what, const member *members, void *target,
                        uint32_t *found)
{
    const place where = next_place(r);
    uint32_t required = 0;
    *found = 0;
    for (size_t i = 0; members[i].key; i++)
        required |= members[i].is_required ? 1u << i : 0;
    for (json_enter(&r->json, '{'); json_next_member(&r->json);) {
        size_t i = 0;
        while (members[i].key && strcmp(members[i].key, r->json.text))
            i++;
        if (*found & 1u << i)
            return import_refuse(r->source, "\"%s\" is there twice", members[i].key);
        *found |= members[i].key ? 1u << i : 0;
        if (members[i].key ? !members[i].read(r, target) : !json_skip(&r->json))
            return false;
    }
    return json_is_good(&r->json) && check_members(r, where, what, members, required & ~*found);
}

/* Reads an array, each element by `read`. */
static bool read_array(dump_reader *r, bool (*read)(dump_reader *r, void *target), void *target)
{
    for (json_enter(&r->json, '['); json_next_element(&r->json);)
        if (!read(r, target))
            return false;
    return json_is_good(&r->json);
}

/* ---- values ------------------------------------------------------------------------------- */

static bool read_flag(dump_reader *r, bool *value)
{
    const char first = json_peek(&r->json);
    if (first != 't' && first != 'f')
        return import_refuse(r->source, "there must be true or false");
    *value = first == 't';
    return json_skip(&r->json);
}

/* Reads a string without control characters into `json.text`, or "" for null. */
static bool read_text(dump_reader *r)
{
    if (json_peek(&r->json) == 'n') {
        if (!json_skip(&r->json))
            return false;
        r->json.text[0] = '\0';
        return true;
    }
    if (!json_read_text(&r->json))
        return false;
    qi_make_printable(r->json.text);
    return true;
}

/* Reads a string that the caller frees. */
static bool read_copy(dump_reader *r, char **text)
{
    if (!read_text(r))
        return false;
    *text = strdup(r->json.text);
    return *text || refuse_host_memory(r);
}

/* Reads a string into `size` bytes. */
static bool read_word(dump_reader *r, char *word, size_t size)
{
    const place where = next_place(r);
    if (!read_text(r))
        return false;
    const size_t length = strlen(r->json.text);
    if (length >= size)
        return import_refuse(at(r, where), "the text has %zu bytes, which is too long here",
                             length);
    memcpy(word, r->json.text, length + 1);
    return true;
}

/* Null is a value that is not there. */
static bool read_value(dump_reader *r, dump_unit unit, dump_value *value)
{
    if (json_peek(&r->json) == 'n')
        return json_skip(&r->json);
    value->is_there = true;
    if (unit != DUMP_SHARE)
        return json_read_integer(&r->json, &value->number);
    if (!json_read_number(&r->json))
        return false;
    value->share = strtod(r->json.text, NULL);
    return true;
}

/* ---- statistics --------------------------------------------------------------------------- */

const dump_stat dump_stats[DUMP_STAT_COUNT] = {
    {"live_bytes", "held", DUMP_BYTES},
    {"requested_bytes", "requested", DUMP_BYTES},
    {"deferred_bytes", "freed, and still in use by the device", DUMP_BYTES},
    {"asleep_bytes", "asleep", DUMP_BYTES},
    {"reserved_bytes", "reserved", DUMP_BYTES},
    {"free_bytes", "free", DUMP_BYTES},
    {"empty_bytes", "free in pages without allocations", DUMP_BYTES},
    {"largest_free", "largest free range", DUMP_BYTES},
    {".reserved", "fragmentation: reserved and not held, at the peaks", DUMP_SHARE},
    {".free", "free and not in the largest free range", DUMP_SHARE},
    {".internal", "unused inside allocations", DUMP_BYTES},
    {".split", "free in pages in use", DUMP_BYTES},
    {"allocation_count", "live allocations", DUMP_COUNT},
    {"deferred_count", "freed allocations, still in use by the device", DUMP_COUNT},
    {"asleep_count", "sleeping allocations", DUMP_COUNT},
    {"page_count", "pages", DUMP_COUNT},
    {"memory_count", "memories", DUMP_COUNT},
    {"peak_live_bytes", "peak held", DUMP_BYTES},
    {"peak_requested_bytes", "peak requested", DUMP_BYTES},
    {"peak_reserved_bytes", "peak reserved", DUMP_BYTES},
    {"peak_allocation_count", "peak allocations", DUMP_COUNT},
    {"peak_page_count", "peak pages", DUMP_COUNT},
    {"allocations", "allocations so far", DUMP_COUNT},
    {"frees", "frees so far", DUMP_COUNT},
    {"failures", "refused requests", DUMP_COUNT},
    {"full_passes", "searches of every page", DUMP_COUNT},
    {"full_pass_hits", "searches of every page that found a range", DUMP_COUNT},
    {"pages_created", "pages created", DUMP_COUNT},
    {"pages_destroyed", "pages destroyed", DUMP_COUNT},
    {"pages_over_budget", "pages created beyond the budget", DUMP_COUNT},
    {"backend_calls", "backend calls", DUMP_COUNT},
    {"backend_nanoseconds", "time in the backend, ns", DUMP_COUNT},
    {"metadata_bytes", "metadata", DUMP_BYTES},
    {"metadata_peak", "metadata, peak", DUMP_BYTES},
};

const dump_stat dump_heap_stats[DUMP_HEAP_VALUES] = {
    {"size", "size", DUMP_BYTES},         {"limit", "limit", DUMP_LIMIT},
    {"reserved", "reserved", DUMP_BYTES}, {"budget", "budget", DUMP_BYTES},
    {"usage", "in use", DUMP_BYTES},      {"available", "available", DUMP_BYTES},
};

/* The members of an object that `rows` names, behind a prefix. */
static bool read_values(dump_reader *r, const dump_stat *rows, size_t count, const char *prefix,
                        dump_value *values)
{
    const size_t length = strlen(prefix);
    for (json_enter(&r->json, '{'); json_next_member(&r->json);) {
        size_t i = 0;
        while (i < count &&
               (strncmp(rows[i].key, prefix, length) || strcmp(rows[i].key + length, r->json.text)))
            i++;
        const bool is_nested = !length && !strcmp(r->json.text, "fragmentation");
        if (is_nested    ? !read_values(r, rows, count, ".", values)
            : i == count ? !json_skip(&r->json)
                         : !read_value(r, rows[i].unit, &values[i]))
            return false;
    }
    return json_is_good(&r->json);
}

static bool read_heap(dump_reader *r, void *target)
{
    dump *d = target;
    json_peek(&r->json);
    if (d->heap_count == QUIRE_MAX_HEAPS)
        return import_refuse(r->source, "a device has at most %d heaps", QUIRE_MAX_HEAPS);
    return read_values(r, dump_heap_stats, DUMP_HEAP_VALUES, "", d->heaps[d->heap_count++].values);
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* A page that is read, and the part of it that its ranges so far take. */
typedef struct page_target {
    dump_memory *memory;
    uint32_t index; /* in the course */
    uint64_t number, size, bytes;
    bool is_dedicated;
    uint64_t end;    /* of the last range */
    uint64_t filled; /* bytes of all ranges */
} page_target;

typedef struct range_target {
    uint64_t offset, size, left_padding, requested, backed;
    bool is_free;
    char name[JSON_MOST_TEXT];
} range_target;

static bool read_offset(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((range_target *)target)->offset);
}

static bool read_size(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((range_target *)target)->size);
}

static bool read_kind(dump_reader *r, void *target)
{
    static const char *const live[] = {"range", "buffer", "image"};
    range_target *t = target;
    const place where = next_place(r);
    if (!read_text(r))
        return false;
    t->is_free = !strcmp(r->json.text, "free");
    for (size_t i = 0; i < sizeof live / sizeof *live; i++)
        if (t->is_free || !strcmp(r->json.text, live[i]))
            return true;
    return import_refuse(at(r, where), "a range is free, range, buffer or image, not '%s'",
                         r->json.text);
}

static bool read_left_padding(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((range_target *)target)->left_padding);
}

static bool read_requested(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((range_target *)target)->requested);
}

static bool read_backed(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((range_target *)target)->backed);
}

static bool read_range_name(dump_reader *r, void *target)
{
    range_target *t = target;
    return read_word(r, t->name, sizeof t->name);
}

/* The members of any range, and those of one that is not free. */
static const member RANGE[] = {
    {"offset", read_offset, true},
    {"size", read_size, true},
    {"kind", read_kind, true},
    {"left_padding", read_left_padding, false},
    {"requested", read_requested, false},
    {"name", read_range_name, false},
    {"backed", read_backed, false},
    {NULL, NULL, false},
};

/* Bits of members: those of each range that is not free; and one without which all is backed. */
enum { RANGE_MEMBERS = (1 << 6) - 1, RANGE_BACKED = 1 << 6 };

static bool check_end(dump_reader *r, place where, uint64_t end, uint64_t page_size)
{
    return end <= page_size ||
           import_refuse(at(r, where),
                         "a range ends at %" PRIu64 ", outside its page of %" PRIu64 " bytes", end,
                         page_size);
}

/* The ranges of a page are in the order of their addresses. None reaches 2^64. The page may say its
   size behind them, and check_page looks again. */
static bool check_range(dump_reader *r, place where, const page_target *page,
                        const range_target *range)
{
    if (!range->size)
        return import_refuse(at(r, where), "the range has no bytes");
    if (range->backed > range->size)
        return import_refuse(at(r, where),
                             "the range has %" PRIu64 " bytes with memory, of %" PRIu64,
                             range->backed, range->size);
    if (range->left_padding > range->offset)
        return import_refuse(at(r, where), "the left padding begins before the page");
    if (range->size > UINT64_MAX - range->offset)
        return import_refuse(at(r, where), "the range ends beyond 2^64 bytes");
    if (range->offset - range->left_padding < page->end)
        return import_refuse(at(r, where),
                             "the range begins at %" PRIu64 ", before the end of the one before "
                             "it, %" PRIu64,
                             range->offset - range->left_padding, page->end);
    return !page->size || check_end(r, where, range->offset + range->size, page->size);
}

/* A stretch ends where a range does not continue it. */
static void add_stretch(course *c, uint32_t page, uint64_t begin, uint64_t end)
{
    course_stretch *last = c->stretch_count ? &c->stretches[c->stretch_count - 1] : NULL;
    if (last && last->page == page && last->end == begin)
        last->end = end;
    else
        course_add_stretch(c, (course_stretch){0, begin, end, page, true});
}

/* The course owns texts that are new to it. */
static bool name_range(dump_reader *r, const char *text, uint32_t *name)
{
    course *c = &r->dump->course;
    char *copy = strdup(text);
    const uint64_t before = c->name_count;
    if (!copy)
        return refuse_host_memory(r);
    *name = course_name(c, copy);
    if (c->name_count == before)
        free(copy);
    return !c->failed || refuse_host_memory(r);
}

static bool add_range(dump_reader *r, page_target *page, const range_target *range)
{
    course *c = &r->dump->course;
    course_range added = {.end = COURSE_ALWAYS,
                          .offset = range->offset,
                          .size = range->size,
                          .requested = range->requested,
                          .unbacked = range->size - range->backed,
                          .page = page->index};
    if (added.unbacked && added.requested > range->backed)
        added.requested = range->backed;
    if (!name_range(r, range->name, &added.name))
        return false;
    course_add_range(c, added);
    page->memory->range_count++;
    page->memory->held += range->backed;
    return !c->failed || refuse_host_memory(r);
}

static bool read_range(dump_reader *r, void *target)
{
    page_target *page = target;
    range_target range = {.offset = 0};
    uint32_t found = 0;
    const place where = next_place(r);
    if (!read_object(r, "a range", RANGE, &range, &found))
        return false;
    if (range.is_free || !(found & RANGE_BACKED))
        range.backed = range.size;
    if (range.is_free)
        range.left_padding = 0;
    else if (!check_members(r, where, "a range that is not free", RANGE, RANGE_MEMBERS & ~found))
        return false;
    if (!check_range(r, where, page, &range))
        return false;
    const uint64_t begin = range.offset - range.left_padding;
    page->end = range.offset + range.size;
    page->filled += range.left_padding + range.backed;
    if (range.backed == range.size) /* else nothing says which part has memory */
        add_stretch(&r->dump->course, page->index, begin, page->end);
    return range.is_free ? !r->dump->course.failed || refuse_host_memory(r)
                         : add_range(r, page, &range);
}

/* ---- pages -------------------------------------------------------------------------------- */

static bool read_page_number(dump_reader *r, void *target)
{
    const place where = next_place(r);
    page_target *page = target;
    if (!json_read_integer(&r->json, &page->number))
        return false;
    return page->number <= UINT32_MAX ||
           import_refuse(at(r, where), "the number of a page is at most %" PRIu32, UINT32_MAX);
}

static bool read_page_size(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((page_target *)target)->size);
}

static bool read_page_bytes(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((page_target *)target)->bytes);
}

static bool read_dedicated(dump_reader *r, void *target)
{
    return read_flag(r, &((page_target *)target)->is_dedicated);
}

static bool read_ranges(dump_reader *r, void *target)
{
    return read_array(r, read_range, target);
}

static const member PAGE[] = {
    {"page", read_page_number, true}, {"size", read_page_size, true},
    {"bytes", read_page_bytes, true}, {"dedicated", read_dedicated, true},
    {"ranges", read_ranges, true},    {NULL, NULL, false},
};

/* All pages together have less than 2^64 bytes, so that no sum wraps around. */
static bool check_page(dump_reader *r, place where, const page_target *page)
{
    uint64_t reserved = 0;
    for (uint64_t i = 0; i < r->dump->memory_count; i++)
        reserved += r->dump->memories[i].reserved;
    if (!page->bytes || page->bytes > page->size)
        return import_refuse(at(r, where),
                             "the page has %" PRIu64 " bytes with memory, of %" PRIu64, page->bytes,
                             page->size);
    if (!check_end(r, where, page->end, page->size))
        return false;
    if (page->filled > page->bytes)
        return import_refuse(at(r, where),
                             "the ranges have %" PRIu64 " bytes, more than the page, %" PRIu64,
                             page->filled, page->bytes);
    return page->bytes <= UINT64_MAX - reserved ||
           import_refuse(at(r, where), "all pages together have 2^64 bytes or more");
}

/* A page with less memory than its size is elastic. */
static bool read_page(dump_reader *r, void *target)
{
    course *c = &r->dump->course;
    page_target page = {.memory = target, .index = (uint32_t)c->page_count};
    const uint64_t stretches = c->stretch_count;
    uint32_t found = 0;
    const place where = next_place(r);
    if (!read_object(r, "a page", PAGE, &page, &found) || !check_page(r, where, &page))
        return false;
    const bool is_elastic = page.bytes < page.size;
    if (!is_elastic)
        c->stretch_count = stretches;
    page.memory->page_count++;
    page.memory->reserved += page.bytes;
    course_add_page(c, (course_page){.number = (uint32_t)page.number,
                                     .memory = (uint32_t)r->dump->memory_count - 1,
                                     .is_dedicated = page.is_dedicated,
                                     .is_elastic = is_elastic});
    course_add_change(c, (course_change){0, page.bytes, page.index});
    return !c->failed || refuse_host_memory(r);
}

/* ---- a memory ----------------------------------------------------------------------------- */

static bool read_schema(dump_reader *r, void *target)
{
    uint64_t schema = 0;
    const place where = next_place(r);
    (void)target;
    if (!json_read_integer(&r->json, &schema))
        return false;
    return schema == QUIRE_JSON_SCHEMA ||
           import_refuse(at(r, where), "the dump has schema %" PRIu64 "; this version reads %d",
                         schema, QUIRE_JSON_SCHEMA);
}

static bool read_what(dump_reader *r, void *target)
{
    const place where = next_place(r);
    (void)target;
    if (!read_text(r))
        return false;
    return !strcmp(r->json.text, "memory") ||
           import_refuse(at(r, where), "there must be a memory, not '%s'", r->json.text);
}

static bool read_name(dump_reader *r, void *target)
{
    return read_copy(r, &((dump_memory *)target)->name);
}

static bool read_memory_kind(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((dump_memory *)target)->kind);
}

/* Joins the names with bars. */
static bool read_memory_flag(dump_reader *r, void *target)
{
    dump_memory *memory = target;
    char *end = memory->flags + strlen(memory->flags);
    if (end > memory->flags)
        *end++ = '|';
    return read_word(r, end, sizeof memory->flags - (size_t)(end - memory->flags));
}

static bool read_flags(dump_reader *r, void *target)
{
    return read_array(r, read_memory_flag, target);
}

static bool read_fit(dump_reader *r, void *target)
{
    dump_memory *memory = target;
    return read_word(r, memory->fit, sizeof memory->fit);
}

static bool read_granule(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((dump_memory *)target)->granule);
}

static bool read_usual_page(dump_reader *r, void *target)
{
    return json_read_integer(&r->json, &((dump_memory *)target)->page_size);
}

static bool read_memory_stats(dump_reader *r, void *target)
{
    return read_values(r, dump_stats, DUMP_STAT_COUNT, "", ((dump_memory *)target)->stats);
}

static bool read_pages(dump_reader *r, void *target)
{
    return read_array(r, read_page, target);
}

static const member MEMORY[] = {
    {"schema", read_schema, true},
    {"what", read_what, true},
    {"name", read_name, true},
    {"kind", read_memory_kind, true},
    {"flags", read_flags, true},
    {"fit", read_fit, true},
    {"granule", read_granule, true},
    {"page_size", read_usual_page, true},
    {"stats", read_memory_stats, true},
    {"pages", read_pages, true},
    {NULL, NULL, false},
};

/* The target is the dump. The array of memories stays where it is while one of them is read. */
static bool read_memory(dump_reader *r, void *target)
{
    dump *d = target;
    uint32_t found = 0;
    dump_memory *larger =
        grow_array(d->memories, &d->memory_room, d->memory_count, sizeof *d->memories);
    if (!larger)
        return refuse_host_memory(r);
    d->memories = larger;
    d->memories[d->memory_count] = (dump_memory){.name = NULL};
    return read_object(r, "a memory", MEMORY, &d->memories[d->memory_count++], &found);
}

/* ---- a device ----------------------------------------------------------------------------- */

static bool read_device_what(dump_reader *r, void *target)
{
    const place where = next_place(r);
    dump *d = target;
    if (!read_text(r))
        return false;
    d->is_device = !strcmp(r->json.text, "device");
    return d->is_device || !strcmp(r->json.text, "memory") ||
           import_refuse(at(r, where), "this is the JSON of a %s, not of a memory or a device",
                         r->json.text);
}

static bool read_device_name(dump_reader *r, void *target)
{
    return read_copy(r, &((dump *)target)->name);
}

static bool read_backend(dump_reader *r, void *target)
{
    return read_copy(r, &((dump *)target)->backend);
}

static bool read_device_stats(dump_reader *r, void *target)
{
    return read_values(r, dump_stats, DUMP_STAT_COUNT, "", ((dump *)target)->stats);
}

static bool read_heaps(dump_reader *r, void *target)
{
    return read_array(r, read_heap, target);
}

static bool read_memories(dump_reader *r, void *target)
{
    return read_array(r, read_memory, target);
}

static const member DEVICE[] = {
    {"name", read_device_name, true},   {"backend", read_backend, true},
    {"stats", read_device_stats, true}, {"heaps", read_heaps, true},
    {"memories", read_memories, true},  {NULL, NULL, false},
};

/* What the file is, wherever its members say so. */
static const member KIND[] = {
    {"schema", read_schema, true},
    {"what", read_device_what, true},
    {NULL, NULL, false},
};

/* ---- the dump ----------------------------------------------------------------------------- */

/* The labels tell memories of one name apart. A single memory has none. */
static bool label_memories(dump_reader *r)
{
    dump *d = r->dump;
    if (d->memory_count < 2)
        return true;
    d->labels = calloc(d->memory_count, sizeof *d->labels);
    for (uint64_t i = 0; d->labels && i < d->memory_count; i++) {
        const size_t size = strlen(d->memories[i].name) + 32;
        d->labels[i] = malloc(size);
        if (!d->labels[i])
            return refuse_host_memory(r);
        snprintf(d->labels[i], size, "%" PRIu64 ": %s", i, d->memories[i].name);
    }
    d->course.memories = (const char *const *)d->labels;
    d->course.memory_count = d->memory_count;
    return d->labels || refuse_host_memory(r);
}

/* Reads the file twice: first what it is. */
bool dump_read(dump *d, import_source *source)
{
    dump_reader r = {.source = source, .dump = d};
    uint32_t found = 0;
    FILE *file = source->file;
    *d = (dump){.name = NULL};
    course_begin(&d->course);
    json_begin(&r.json, source);
    if (!read_object(&r, "a dump of a memory or a device", KIND, d, &found) || !json_end(&r.json))
        return false;
    rewind(file);
    import_begin(source, file);
    json_begin(&r.json, source);
    return (d->is_device ? read_object(&r, "a device", DEVICE, d, &found) : read_memory(&r, d)) &&
           label_memories(&r);
}

void dump_end(dump *d)
{
    for (uint64_t i = 0; i < d->memory_count; i++) {
        free(d->memories[i].name);
        if (d->labels)
            free(d->labels[i]);
    }
    for (uint64_t i = 0; i < d->course.name_count; i++)
        free((char *)(uintptr_t)d->course.names[i]);
    free(d->memories);
    free(d->labels);
    free(d->name);
    free(d->backend);
    course_end(&d->course);
    *d = (dump){.name = NULL};
}
