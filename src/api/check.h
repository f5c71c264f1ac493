/*
 * check.h - the refusal of arguments that several public functions share. No state, no lock.
 */
#ifndef QUIRE_SRC_API_CHECK_H
#define QUIRE_SRC_API_CHECK_H

#include "src/base/result.h"

/* Returns INVALID_ARGUMENT, for a call whose memory is null. */
static inline quire_result refuse_null_memory(void)
{
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is null");
}

#endif
