/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.h - reads a recording (src/base/recording.h): as a trace, or block by block while it
 * grows.
 */
#ifndef QUIRE_SRC_TRACE_RECORDING_H
#define QUIRE_SRC_TRACE_RECORDING_H

#include "src/trace/build.h"

/* Whether bytes begin as a recording does. */
bool qi_is_recording(const char *bytes, size_t size);

/*
 * Adds the events of all complete blocks to an empty trace. `name` is the prefix of errors:
 * BAD_FILE with "NAME: byte N: what is wrong", OUT_OF_HOST_MEMORY. The caller destroys the trace on
 * failure.
 */
QUIRE_MUST_USE quire_result qi_recording_read(quire_trace *trace, const char *name,
                                              const char *bytes, size_t size);

/*
 * What a reader keeps between two blocks. The caller sets builder.trace, name and take; the rest is
 * 0 at first. qi_build_finish frees the tables.
 */
typedef struct qi_recording {
    qi_builder builder;
    const char *name;    /* the prefix of errors */
    uint64_t offset;     /* in the file, of the next block */
    uint64_t first_time; /* of the first event, on the clock of the blocks */
    uint64_t last_end;   /* end_ns of the block before */
    uint64_t last_id;    /* of the trace: ranges are numbered as they come */
    /* Gets each event after the builder has it, and passes it to qi_build_count or qi_build_keep.
       The label is valid during the call. Returns false if host memory is exhausted. */
    bool (*take)(struct qi_recording *recording, const quire_trace_event *event);
} qi_recording;

/*
 * Reads the complete blocks of `bytes`, which begin at the offset of the recording in the file;
 * QI_RECORDING_BLOCK bytes have at least one. *used receives their size. The errors are those of
 * qi_recording_read; the recording can only be finished then.
 */
QUIRE_MUST_USE quire_result qi_recording_follow(qi_recording *recording, const char *bytes,
                                                size_t size, size_t *used);

#endif
