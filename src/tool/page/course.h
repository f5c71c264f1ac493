/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * course.h - the course of a memory: every range with its place and its lifetime, the pages with
 * their bytes over time, and what was refused. The pages of quire replay --html and quire plan
 * --html show it.
 *
 * A moment is a number of events that have happened, from 0 to all of them; or, with `times`, the
 * rank of a time, from 0. Moments never fall from one element of an array to the next.
 */
#ifndef QUIRE_SRC_TOOL_PAGE_COURSE_H
#define QUIRE_SRC_TOOL_PAGE_COURSE_H

#include "quire/trace.h"
#include "src/base/id_map.h"

/* A range lives at the moments from `begin` up to, and without, `end`. */
typedef struct course_range {
    uint64_t begin, end; /* end: COURSE_ALWAYS if it lives after the last event */
    uint64_t offset;     /* in its page, bytes */
    uint64_t size;       /* bytes, without left padding */
    uint64_t requested;  /* bytes; of a lazy allocation those that have memory */
    uint64_t unbacked;   /* bytes of `size` without memory, which are not held */
    uint32_t page;       /* index in `pages` */
    uint32_t name;       /* index in `names` */
} course_range;

#define COURSE_ALWAYS UINT64_MAX

/* A page from its creation to its release. Later pages may have its number again. */
typedef struct course_page {
    uint32_t number;
    uint32_t memory; /* index in `memories`; 0 without them */
    bool is_dedicated;
    bool is_elastic;
    bool is_gone;
} course_page;

/* From this moment on a page has this many bytes; 0: it is released. */
typedef struct course_change {
    uint64_t moment, bytes;
    uint32_t page; /* index in `pages` */
} course_change;

/* From this moment on a part of an elastic page has memory, or no longer. */
typedef struct course_stretch {
    uint64_t moment, begin, end; /* offsets in the page, bytes */
    uint32_t page;               /* index in `pages` */
    bool has_memory;
} course_stretch;

typedef struct course_refusal {
    uint64_t event; /* the first is 1: the moment after it */
    uint64_t size;  /* bytes requested */
    uint32_t name;  /* index in `names` */
    char *report;   /* what the memory said about it; NULL: nothing is known. The course frees it */
} course_refusal;

/* What is free at a moment. */
typedef struct course_free {
    uint64_t moment;
    uint64_t split;   /* bytes in pages that also have ranges */
    uint64_t largest; /* bytes of the largest free range */
} course_free;

/* Arrays grow; each has a count and the room that is allocated. */
typedef struct course {
    const quire_trace
        *trace;      /* with the times and the frames of the events; NULL: there are none */
    uint64_t last;   /* the moment after the last event, or of the last time */
    uint64_t peak;   /* the moment that is shown first */
    uint64_t *times; /* of the moments 0 to `last`, rising; NULL: moments are events */
    bool is_plan;    /* the pages are arenas */
    course_range *ranges;
    uint64_t range_count, range_room;
    course_page *pages;
    uint64_t page_count, page_room;
    course_change *changes;
    uint64_t change_count, change_room;
    course_stretch *stretches; /* of the elastic page, of which a memory has one */
    uint64_t stretch_count, stretch_room;
    course_refusal *refusals;
    uint64_t refusal_count, refusal_room;
    course_free *frees; /* of some moments */
    uint64_t free_count, free_room;
    const char **names; /* each text once; who adds them owns them */
    uint64_t name_count, name_room;
    const char *const *memories; /* names of the memories that the pages are of, if they are of
                                    more than one; who sets them owns them */
    uint64_t memory_count;
    qi_host host;      /* of `by_text` */
    qi_id_map by_text; /* from a key of a text, or a number after it, to its name */
    bool failed;       /* host memory was exhausted: what was to be added is lost */
} course;

/* Makes an empty course. */
void course_begin(course *c);

/* Adds an element at the end of an array. Without host memory the course has failed. */
void course_add_range(course *c, course_range range);
void course_add_page(course *c, course_page page);
void course_add_change(course *c, course_change change);
void course_add_stretch(course *c, course_stretch stretch);
void course_add_refusal(course *c, course_refusal refusal);
void course_add_free(course *c, course_free now);

/* The index of a text in `names`. Without host memory it is 0, and the course has failed. */
uint32_t course_name(course *c, const char *text);

/* Frees a course, or one that is zeroed. */
void course_end(course *c);

#endif
