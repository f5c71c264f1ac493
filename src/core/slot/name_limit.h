/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * name_limit.h - limits by name: how much the allocations whose names start with a prefix may hold.
 *
 * Each prefix with a limit has an account. An allocation is counted in the accounts of its name's
 * prefixes exactly as long as the name is in its record. Both change together under the lock of the
 * allocation's shard. The list of limits changes under the locks of all shards.
 *
 * Invariant: the account of a prefix is the sum of size and left padding over the records with such
 * a name; `requested` and `count` likewise. quire_memory_check verifies it (stats/stats.h).
 *
 * A memory without limits costs one test of a pointer, and only for allocations with a name.
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
    qi_name_limit *first; /* NULL if no prefix has a limit */
} qi_names;

void qi_names_finish(qi_names *names, qi_host *host);

/* The calls below for a memory that has a limit. */
quire_result qi_names_admit_any(const qi_names *names, const char *name, uint64_t bytes);
quire_result qi_names_replace_any(qi_names *names, const char *old, const char *name,
                                  const qi_slot *record);

/* Returns OVER_BUDGET if a limit of the name leaves less than `bytes`. Takes nothing. */
QUIRE_MUST_USE static inline quire_result qi_names_admit(const qi_names *names, const char *name,
                                                         uint64_t bytes)
{
    return names->first ? qi_names_admit_any(names, name, bytes) : QUIRE_SUCCESS;
}

/*
 * Counts an allocation under `name` and no longer under `old` (NULL: no name). Fails with
 * OVER_BUDGET if a limit that did not count it before leaves too little; nothing changed then.
 */
QUIRE_MUST_USE static inline quire_result qi_names_replace(qi_names *names, const char *old,
                                                           const char *name, const qi_slot *record)
{
    return names->first ? qi_names_replace_any(names, old, name, record) : QUIRE_SUCCESS;
}

/* An allocation with this name (NULL: none) has got or lost bytes, `held` with padding. Growing
   fails with OVER_BUDGET if a limit leaves less; nothing changed then. */
QUIRE_MUST_USE quire_result qi_names_grow(qi_names *names, const char *name, uint64_t held,
                                          uint64_t requested);
void qi_names_shrink(qi_names *names, const char *name, uint64_t held, uint64_t requested);

/* Returns the bytes that an allocation counts for: size and left padding, without red zones. */
uint64_t qi_name_held_by(const qi_slot *record);

/* Whether a name (NULL: no name) starts with a prefix of `length` bytes. */
bool qi_name_begins(const char *name, const char *prefix, size_t length);

/* Returns the link to the limit of exactly this prefix, or the link at the end of the list. */
qi_name_limit **qi_name_limit_find(qi_names *names, const char *prefix);

/* Returns a limit that is in no list yet, or NULL if host memory is exhausted. */
qi_name_limit *qi_name_limit_create(qi_host *host, const char *prefix);
void qi_name_limit_release(qi_name_limit *limit, qi_host *host);

#endif
