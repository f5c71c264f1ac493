/*
 * name.h - limits of names: what the allocations of a memory hold whose names begin alike.
 *
 * Each prefix with a limit has an account. An allocation is counted in those that its name begins
 * with for exactly as long as the name is in its record, both under its shard's lock. The list of
 * limits changes under the locks of all shards.
 *
 * Invariant: held of a limit is the sum of size and left padding over the records that have such a
 * name, requested and count likewise. quire_memory_check verifies it.
 *
 * A memory without limits is asked for a pointer, and only where an allocation has a name.
 */
#ifndef QUIRE_SRC_CORE_SLOT_NAME_LIMIT_H
#define QUIRE_SRC_CORE_SLOT_NAME_LIMIT_H

#include "src/base/host_memory.h"
#include "src/core/device/budget.h"
#include "src/core/slot/slot.h"

typedef struct qi_name_limit {
    struct qi_name_limit *next;
    char *prefix;
    size_t length;
    qi_account held;
    qi_atomic_u64 requested;
    qi_atomic_u64 count;
} qi_name_limit;

typedef struct qi_names {
    qi_name_limit *first; /* NULL: no name has a limit */
} qi_names;

void qi_names_finish(qi_names *names, qi_host *host);

/* The general forms of the calls below, where there is a limit. */
quire_result qi_names_admit_any(const qi_names *names, const char *name, uint64_t bytes);
quire_result qi_names_replace_any(qi_names *names, const char *old, const char *name,
                                  const qi_slot *record);

/* Refuses bytes under a name that its limits do not leave. Takes nothing. OVER_BUDGET. */
QUIRE_MUST_USE static inline quire_result qi_names_admit(const qi_names *names, const char *name,
                                                         uint64_t bytes)
{
    return names->first ? qi_names_admit_any(names, name, bytes) : QUIRE_SUCCESS;
}

/*
 * Counts an allocation under `name` and no longer under `old` (NULL: none). OVER_BUDGET where a
 * limit that it did not count for before does not leave as much; nothing changed then.
 */
QUIRE_MUST_USE static inline quire_result qi_names_replace(qi_names *names, const char *old,
                                                           const char *name, const qi_slot *record)
{
    return names->first ? qi_names_replace_any(names, old, name, record) : QUIRE_SUCCESS;
}

/* Whether every limit has the figures of the allocations. */
bool qi_names_agree(const quire_memory *memory);

#endif
