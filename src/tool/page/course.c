/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* course.c - see course.h. */
#include "src/tool/page/course.h"

#include <stdlib.h>
#include <string.h>

#include "src/tool/array.h"

/* As grow_array. Without memory the course has failed. */
static void *grow(course *c, void *array, uint64_t *room, uint64_t at, size_t size)
{
    void *larger = grow_array(array, room, at, size);
    c->failed |= !larger;
    return larger;
}

/* ---- elements ----------------------------------------------------------------------------- */

void course_add_range(course *c, course_range range)
{
    course_range *larger = grow(c, c->ranges, &c->range_room, c->range_count, sizeof *c->ranges);
    if (!larger)
        return;
    c->ranges = larger;
    c->ranges[c->range_count++] = range;
}

void course_add_page(course *c, course_page page)
{
    course_page *larger = grow(c, c->pages, &c->page_room, c->page_count, sizeof *c->pages);
    if (!larger)
        return;
    c->pages = larger;
    c->pages[c->page_count++] = page;
}

void course_add_change(course *c, course_change change)
{
    course_change *larger =
        grow(c, c->changes, &c->change_room, c->change_count, sizeof *c->changes);
    if (!larger)
        return;
    c->changes = larger;
    c->changes[c->change_count++] = change;
}

void course_add_stretch(course *c, course_stretch stretch)
{
    course_stretch *larger =
        grow(c, c->stretches, &c->stretch_room, c->stretch_count, sizeof *c->stretches);
    if (!larger)
        return;
    c->stretches = larger;
    c->stretches[c->stretch_count++] = stretch;
}

void course_add_refusal(course *c, course_refusal refusal)
{
    course_refusal *larger =
        grow(c, c->refusals, &c->refusal_room, c->refusal_count, sizeof *c->refusals);
    if (!larger)
        return;
    c->refusals = larger;
    c->refusals[c->refusal_count++] = refusal;
}

void course_add_free(course *c, course_free now)
{
    course_free *larger = grow(c, c->frees, &c->free_room, c->free_count, sizeof *c->frees);
    if (!larger)
        return;
    c->frees = larger;
    c->frees[c->free_count++] = now;
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

uint32_t course_name(course *c, const char *text)
{
    uint64_t key = key_of(text);
    const uint32_t *known = qi_id_map_find(&c->by_text, key);
    while (known && strcmp(c->names[*known], text)) { /* another text with this key */
        key = key == UINT64_MAX ? 1 : key + 1;
        known = qi_id_map_find(&c->by_text, key);
    }
    if (known)
        return *known;
    const char **larger = grow(c, c->names, &c->name_room, c->name_count, sizeof *c->names);
    if (!larger)
        return 0;
    c->names = larger;
    c->names[c->name_count] = text;
    if (!qi_id_map_add(&c->by_text, &c->host, key, (uint32_t)c->name_count)) {
        c->failed = true;
        return 0;
    }
    return (uint32_t)c->name_count++;
}

/* ---- the course --------------------------------------------------------------------------- */

void course_begin(course *c)
{
    *c = (course){.trace = NULL};
    c->failed = qi_host_init(&c->host, NULL);
}

void course_end(course *c)
{
    qi_id_map_finish(&c->by_text, &c->host);
    free(c->ranges);
    free(c->pages);
    free(c->changes);
    free(c->stretches);
    for (uint64_t i = 0; i < c->refusal_count; i++)
        free(c->refusals[i].report);
    free(c->refusals);
    free(c->frees);
    free(c->names);
    free(c->times);
    *c = (course){.trace = NULL};
}
