/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * name_limit.c - a change of name counts the allocation under the new name first, because only this
 * can fail, and then no longer under the old one.
 *
 * Accounts are atomic, so that allocations in several shards can be counted at the same time. The
 * caller holds the lock of the allocation's shard, which keeps the list of limits as it is.
 */
#include "src/core/slot/name_limit.h"

#include <string.h>

#include "src/base/result.h"

uint64_t qi_name_held_by(const qi_slot *record)
{
    return record->size + record->left_padding - qi_checked_front(record);
}

bool qi_name_begins(const char *name, const char *prefix, size_t length)
{
    return name && !strncmp(name, prefix, length);
}

static bool is_of(const qi_name_limit *limit, const char *name)
{
    return qi_name_begins(name, limit->prefix, limit->length);
}

void qi_name_limit_release(qi_name_limit *limit, qi_host *host)
{
    qi_host_release_text(host, limit->prefix);
    qi_host_release(host, limit, 1, sizeof *limit);
}

void qi_names_finish(qi_names *names, qi_host *host)
{
    for (qi_name_limit *limit = names->first, *next; limit; limit = next) {
        next = limit->next;
        qi_name_limit_release(limit, host);
    }
    names->first = NULL;
}

/* ---- counting ----------------------------------------------------------------------------- */

/* `held` is the value that the decision was based on; the account may have changed since. */
static quire_result refuse(const qi_name_limit *limit, uint64_t bytes, uint64_t held)
{
    uint64_t max = qi_account_max(&limit->held);
    if (bytes > max)
        return qi_fail_at_limit(
            QI_LIMIT_NAMES, max,
            qi_fail_naming(QUIRE_ERROR_OVER_BUDGET,
                           "%b can never fit: the limit of names that start with '%t' is %b",
                           limit->prefix, bytes, max));
    return qi_fail_at_limit(
        QI_LIMIT_NAMES, max,
        qi_fail_naming(
            QUIRE_ERROR_OVER_BUDGET,
            "%b more would exceed the %b limit of names that start with '%t' (%b in use)",
            limit->prefix, bytes, max, held));
}

quire_result qi_names_admit_any(const qi_names *names, const char *name, uint64_t bytes)
{
    for (const qi_name_limit *limit = names->first; limit; limit = limit->next) {
        uint64_t held = qi_account_used(&limit->held), max = qi_account_max(&limit->held);
        if (is_of(limit, name) && (held > max || bytes > max - held))
            return refuse(limit, bytes, held);
    }
    return QUIRE_SUCCESS;
}

/* Stops counting an allocation in an account. */
static void give(qi_name_limit *limit, const qi_slot *record)
{
    qi_account_give(&limit->held, qi_name_held_by(record));
    qi_atomic_sub_u64(&limit->requested, record->requested);
    qi_atomic_sub_u64(&limit->count, 1);
}

/* Reverts what the limits before `end` have counted for `name` and not for `old`. */
static void undo(const qi_names *names, const qi_name_limit *end, const char *old, const char *name,
                 const qi_slot *record)
{
    for (qi_name_limit *limit = names->first; limit != end; limit = limit->next)
        if (is_of(limit, name) && !is_of(limit, old))
            give(limit, record);
}

quire_result qi_names_replace_any(qi_names *names, const char *old, const char *name,
                                  const qi_slot *record)
{
    uint64_t bytes = qi_name_held_by(record), held = 0;
    /* count the new name first, because only this can fail */
    for (qi_name_limit *limit = names->first; limit; limit = limit->next) {
        if (!is_of(limit, name) || is_of(limit, old))
            continue;
        if (!qi_account_take(&limit->held, bytes, qi_account_max(&limit->held), &held)) {
            undo(names, limit, old, name, record);
            return refuse(limit, bytes, held);
        }
        qi_atomic_add_u64(&limit->requested, record->requested);
        qi_atomic_add_u64(&limit->count, 1);
    }
    for (qi_name_limit *limit = names->first; limit; limit = limit->next)
        if (is_of(limit, old) && !is_of(limit, name))
            give(limit, record);
    return QUIRE_SUCCESS;
}

static void shrink_before(const qi_names *names, const qi_name_limit *end, const char *name,
                          uint64_t held, uint64_t requested)
{
    for (qi_name_limit *limit = names->first; limit != end; limit = limit->next)
        if (is_of(limit, name)) {
            qi_account_give(&limit->held, held);
            qi_atomic_sub_u64(&limit->requested, requested);
        }
}

quire_result qi_names_grow(qi_names *names, const char *name, uint64_t held, uint64_t requested)
{
    uint64_t used = 0;
    for (qi_name_limit *limit = names->first; limit; limit = limit->next) {
        if (!is_of(limit, name))
            continue;
        if (!qi_account_take(&limit->held, held, qi_account_max(&limit->held), &used)) {
            shrink_before(names, limit, name, held, requested);
            return refuse(limit, held, used);
        }
        qi_atomic_add_u64(&limit->requested, requested);
    }
    return QUIRE_SUCCESS;
}

void qi_names_shrink(qi_names *names, const char *name, uint64_t held, uint64_t requested)
{
    shrink_before(names, NULL, name, held, requested);
}

qi_name_limit **qi_name_limit_find(qi_names *names, const char *prefix)
{
    qi_name_limit **link = &names->first;
    while (*link && strcmp((*link)->prefix, prefix))
        link = &(*link)->next;
    return link;
}

qi_name_limit *qi_name_limit_create(qi_host *host, const char *prefix)
{
    qi_name_limit *limit = qi_host_allocate(host, 1, sizeof *limit);
    if (!limit)
        return NULL;
    limit->length = strlen(prefix);
    limit->prefix = qi_host_copy_text(host, prefix);
    if (limit->prefix)
        return limit;
    qi_name_limit_release(limit, host);
    return NULL;
}
