/*
 * name_usage.h - sets limits by name, and reads what names hold.
 *
 * The functions acquire the locks of all shards, except qi_names_agree, which requires them. These
 * locks protect the list of limits. Invariant: the account of a limit is the sum over the live
 * allocations whose names start with its prefix.
 */
#ifndef QUIRE_SRC_CORE_STATS_NAME_USAGE_H
#define QUIRE_SRC_CORE_STATS_NAME_USAGE_H

#include "src/core/state/memory.h"

/* Sets the limit of a prefix in bytes; 0 removes it. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_name_limit_set(quire_memory *memory, const char *prefix,
                                              uint64_t bytes);

/* Returns the limit of a prefix and what its allocations hold. */
quire_name_usage qi_name_usage_of(quire_memory *memory, const char *prefix);

/* Whether every account equals the sum over the allocations. */
bool qi_names_agree(const quire_memory *memory);

#endif
