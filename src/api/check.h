/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * check.h - the refusal of arguments that several public functions share. No state, no lock.
 */
#ifndef QUIRE_SRC_API_CHECK_H
#define QUIRE_SRC_API_CHECK_H

#include "quire/elastic.h"
#include "src/base/result.h"
#include "src/core/state/memory.h"

/* Refuses a null memory, by the name of the call, and one whose device a fork has disabled. */
static inline quire_result check_memory(const quire_memory *memory, const char *call)
{
    if (!memory)
        return qi_fail_null(call, "memory");
    return memory->device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
}

/* The same for a device. */
static inline quire_result check_device(const quire_device *device, const char *call)
{
    if (!device)
        return qi_fail_null(call, "device");
    return device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
}

/* Refuses a number that names no mode. */
static inline quire_result check_sleep_mode(const char *call, quire_sleep_mode mode)
{
    return mode == QUIRE_SLEEP_KEEP || mode == QUIRE_SLEEP_DISCARD
               ? QUIRE_SUCCESS
               : qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t: %u is no quire_sleep_mode", call,
                                (uint64_t)mode);
}

/* Refuses a call in which memory, options or else the argument `output` is null. */
static inline quire_result refuse_null_request(const char *call, const quire_memory *memory,
                                               const void *options, const char *output)
{
    return qi_fail_null(call, !memory ? "memory" : !options ? "options" : output);
}

/* Zeroes `count` descriptions that a failed call was asked for; NULL: none. Returns `result`. */
static inline quire_result zero_info(quire_result result, quire_allocation_info *info,
                                     uint64_t count)
{
    for (uint64_t i = 0; info && i < count; i++)
        info[i] = (quire_allocation_info){0};
    return result;
}

#endif
