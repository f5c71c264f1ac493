/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recorder.h - a watcher that writes the events of a memory or device as a recording.
 *
 * The recorder's lock orders the records: a thread reports a free before it returns the range, and
 * an allocation after it took the range. The recorder belongs to its memory or device, because
 * threads can still report to it after its end; the next recording uses it again.
 */
#ifndef QUIRE_SRC_CORE_RECORD_RECORDER_H
#define QUIRE_SRC_CORE_RECORD_RECORDER_H

#include "quire/record.h"
#include "src/core/state/event.h"

/* As the public functions of quire/record.h, for checked arguments. No lock is held. */
QUIRE_MUST_USE quire_result qi_recorder_start(const quire_record_options *options,
                                              quire_recorder **recorder);
void qi_recorder_frame(quire_recorder *recorder);
QUIRE_MUST_USE quire_result qi_recorder_flush(quire_recorder *recorder);
QUIRE_MUST_USE quire_result qi_recorder_stop(quire_recorder *recorder);

/* Starts the recording that the variable QUIRE_TRACE asks for. A failure is a warning in the log of
   the device. */
void qi_recorder_start_by_environment(quire_device *device);

#endif
