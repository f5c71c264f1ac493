/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * watch.h - looks at the file of a recording again and again: what came since the last look,
 * whether it began again, and whether its process still records.
 */
#ifndef QUIRE_SRC_TOOL_TOP_WATCH_H
#define QUIRE_SRC_TOOL_TOP_WATCH_H

#include "src/base/recording.h"
#include "src/tool/top/follow.h"

typedef enum watch_state {
    WATCH_UNKNOWN,   /* no process has locked the file */
    WATCH_RECORDING, /* a process has: the recorder of QUIRE_TRACE */
    WATCH_ENDED      /* one had at an earlier look */
} watch_state;

typedef struct watch {
    const char *path;
    int file; /* -1: not open */
    follower follower;
    watch_state state;
    bool has_grown;                      /* since the look before, or begun again */
    uint64_t pending;                    /* bytes of the incomplete block at the end */
    uint64_t restarts;                   /* how often the recording began again */
    uint64_t silent_ns;                  /* since the file was written */
    char first[sizeof(qi_block_header)]; /* the first bytes of the file */
    size_t first_size;
    char *bytes;
} watch;

/* Opens the file. Prints the error and returns false. The caller ends the watch in any case. */
bool begin_watch(watch *w, const char *path);

/* Reads what came since the look before. Prints the error and returns false. */
bool look_at_file(watch *w);

void end_watch(watch *w);

#endif
