/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * record.c - the public functions of quire/record.h: each zeroes its outputs, checks its arguments,
 * refuses a device that did not survive a fork, and calls the core.
 */
#include "quire/record.h"

#include "src/api/check.h"
#include "src/core/record/recorder.h"

static quire_result check_options(const quire_record_options *options)
{
    if (!options->memory == !options->device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_record_options needs either memory or device");
    if (!options->path == !options->sink)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_record_options needs either path or sink");
    const quire_device *device = options->memory ? options->memory->device : options->device;
    return device->is_disabled ? qi_refuse_disabled()
                               : qi_check_unused(options, "quire_record_options");
}

quire_result quire_record_start(const quire_record_options *options, quire_recorder **recorder)
{
    if (recorder)
        *recorder = NULL;
    if (!options || !recorder)
        return qi_fail_null("quire_record_start", !options ? "options" : "recorder");
    quire_result result = check_options(options);
    return result ? result : qi_recorder_start(options, recorder);
}

quire_result quire_record_frame(quire_recorder *recorder)
{
    if (!recorder)
        return qi_fail_null("quire_record_frame", "recorder");
    qi_recorder_frame(recorder);
    return QUIRE_SUCCESS;
}

quire_result quire_record_flush(quire_recorder *recorder)
{
    return recorder ? qi_recorder_flush(recorder) : qi_fail_null("quire_record_flush", "recorder");
}

quire_result quire_record_stop(quire_recorder **recorder)
{
    if (!recorder)
        return qi_fail_null("quire_record_stop", "recorder");
    quire_recorder *stopped = *recorder;
    *recorder = NULL;
    return stopped ? qi_recorder_stop(stopped) : QUIRE_SUCCESS;
}
