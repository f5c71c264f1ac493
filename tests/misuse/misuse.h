/*
 * misuse.h - the misuse tests: an area for each group of public headers, with a table of cases. The
 * rows of a case are calls by REFUSED, REFUSED_OUT and HARMLESS of tests/support/state.h: the
 * expected result, the output, the call. The harness checks that an area calls every public
 * function of its headers, and that every public header belongs to an area.
 *
 *     misuse [--root SOURCE_FOLDER] [AREA]
 */
#ifndef QUIRE_TESTS_MISUSE_MISUSE_H
#define QUIRE_TESTS_MISUSE_MISUSE_H

typedef struct misuse_case {
    const char *name; /* NULL ends a table */
    void (*body)(void);
} misuse_case;

typedef struct misuse_area {
    const char *name;
    void (*begin)(void); /* before the cases; NULL: nothing to do */
    void (*end)(void);   /* after them */
    const misuse_case *cases;
    const char *const
        *headers; /* in include/quire, whose functions the area calls; NULL ends them */
} misuse_area;

extern const misuse_area misuse_base, misuse_memory, misuse_resource, misuse_space, misuse_stream,
    misuse_transfer, misuse_vulkan, misuse_cuda, misuse_plugin;

#endif
