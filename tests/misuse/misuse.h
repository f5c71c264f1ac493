/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * misuse.h - the misuse tests: an area for each group of public headers, with a table of cases. The
 * rows of a case are calls by REFUSE, REFUSE_OUT and HARMLESS: the expected result, the output, the
 * call. The harness checks that an area calls every public
 * function of its headers, and that every public header belongs to an area.
 *
 *     misuse [--root SOURCE_FOLDER] [AREA]
 */
#ifndef QUIRE_TESTS_MISUSE_MISUSE_H
#define QUIRE_TESTS_MISUSE_MISUSE_H

#include "tests/support/state.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define OUTSIDE QUIRE_ERROR_OUT_OF_RANGE
#define STALE QUIRE_ERROR_STALE_HANDLE
#define FOREIGN QUIRE_ERROR_FOREIGN_HANDLE
#define WRONG_STATE QUIRE_ERROR_WRONG_STATE
#define BUSY QUIRE_ERROR_BUSY
#define NOT_VISIBLE QUIRE_ERROR_NOT_HOST_VISIBLE
#define NOT_MAPPED QUIRE_ERROR_NOT_MAPPED
#define NO_MEMORY QUIRE_ERROR_OUT_OF_DEVICE_MEMORY
#define NO_SPACE QUIRE_ERROR_NO_SPACE
#define BAD_FILE QUIRE_ERROR_BAD_FILE
#define LOST QUIRE_ERROR_DEVICE_LOST

/* The call is refused, and changes nothing of the bench `b` of the file. */
#define REFUSE(code, call) REFUSED(&b, code, call)
#define REFUSE_OUT(code, out, call) REFUSED_OUT(&b, code, out, call)

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

extern const misuse_area misuse_base, misuse_compact, misuse_memory, misuse_plan, misuse_resource,
    misuse_space, misuse_stream, misuse_transfer, misuse_vulkan, misuse_cuda, misuse_plugin;

#endif
