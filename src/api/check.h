/*
 * check.h - arguments that several public functions check alike.
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
