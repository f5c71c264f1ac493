/*
 * oom_record.h - the last refused allocation of a shard. Protected by the shard's lock.
 */
#ifndef QUIRE_SRC_CORE_STATE_OOM_RECORD_H
#define QUIRE_SRC_CORE_STATE_OOM_RECORD_H

#include "src/base/result.h"

typedef struct qi_oom_record {
    uint64_t number; /* counts the memory's refusals from 1; 0: none so far */
    quire_result code;
    uint64_t size; /* requested bytes */
    uint64_t alignment;
    qi_error report; /* its words are made when they are read */
} qi_oom_record;

#endif
