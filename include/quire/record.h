/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/record.h - records what a program allocates and frees as a trace (docs/formats.md), which
 * the program quire replays, draws and tunes, and which quire/trace.h reads.
 *
 *     quire_recorder *recorder = NULL;
 *     const quire_record_options options = {.device = device, .path = "program.trace"};
 *     quire_record_start(&options, &recorder);
 *     ...
 *     quire_record_stop(&recorder);
 *
 * Without a change of the program: the environment variable QUIRE_TRACE names a file, and every
 * device is recorded from its creation to its end. The second device of the process writes a file
 * whose name ends in ".2", and so on; a process that finds the file in use appends its process id.
 * Setuid programs ignore the variable. quire_device_options.untraced leaves out a device.
 *
 * An event has name, requested size, alignment, time and stream, but no memory: a replay of a
 * recorded device puts all of its memories into one. Record each memory (`memory`) to tune it.
 * Streams after the 255th share a number. Frees of what was allocated before the recording are left
 * out when the recording is read. Events are in the order in which a range is used: a range is
 * freed before it is allocated again.
 *
 * A recording is binary, in blocks that are readable one by one. A block is written when it is
 * full, and when it is 0.2 seconds old or older as soon as the next event comes. What a crashed
 * process wrote is readable up to the last complete block.
 *
 * Thread-safety: any thread may call any function, also while others allocate; one thread stops a
 * recorder.
 */
#ifndef QUIRE_RECORD_H
#define QUIRE_RECORD_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_recorder quire_recorder;

typedef struct quire_record_options {
    /* What is recorded: one memory, or all memories of a device, also later ones. Set one. */
    quire_memory *memory;
    quire_device *device;
    /* Where the recording goes: to a file, which is replaced, or to a sink. Set one. A pipe must
       have a reader. A thread that allocates, frees or stops calls the sink, one at a time and
       under a lock: it must not call quire and must not fork. */
    const char *path;
    quire_sink sink;
    void *user;
    /* 0: every event is written. Otherwise the last events are kept in so many bytes of host memory
       until quire_record_flush or quire_record_stop writes them: 16 bytes for a free, 32 for an
       allocation. At least 128 KiB are used, at most 4 GiB. */
    uint64_t ring_bytes;
    uint64_t unused[4]; /* must be zero */
} quire_record_options;

/*
 * Starts a recording. Several may run at the same time. A recorder that is not stopped ends with
 * its memory or device, which it belongs to, and must not be used afterwards. In the child of a
 * fork it has ended; stopping it does nothing.
 * Errors: INVALID_ARGUMENT, BAD_FILE (the file cannot be opened; quire_last_native_code has errno),
 * OUT_OF_HOST_MEMORY. On failure *recorder is NULL.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_record_start(const quire_record_options *options,
                                                         quire_recorder **recorder);

/* Records the boundary between two frames. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_record_frame(quire_recorder *recorder);

/*
 * Writes the events so far to the file or the sink, and empties a ring. Errors as
 * quire_record_stop; NOT_PERMITTED in the child of a fork.
 */
QUIRE_API quire_result quire_record_flush(quire_recorder *recorder);

/*
 * Ends a recording: writes the last events and closes the file. *recorder is NULL afterwards, also
 * on failure. If it is NULL before, the call does nothing and succeeds. Errors: INVALID_ARGUMENT,
 * BAD_FILE (the file or the sink has failed; the recording then ends before the first block that is
 * missing).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_record_stop(quire_recorder **recorder);

#ifdef __cplusplus
}
#endif

#endif
