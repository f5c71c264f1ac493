/*
 * name.c - see name.h; and the public calls that limit names and tell what they hold.
 */
#include "src/core/slot/name_limit.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/state/memory.h"

static uint64_t held_by(const qi_slot *record)
{
    return record->size + record->left_padding - qi_checked_front(record);
}

static bool begins(const char *name, const char *prefix, size_t length)
{
    return name && !strncmp(name, prefix, length);
}

static bool is_of(const qi_name_limit *limit, const char *name)
{
    return begins(name, limit->prefix, limit->length);
}

static void release(qi_name_limit *limit, qi_host *host)
{
    qi_host_release_text(host, limit->prefix);
    qi_host_release(host, limit, 1, sizeof *limit);
}

void qi_names_finish(qi_names *names, qi_host *host)
{
    for (qi_name_limit *limit = names->first, *next; limit; limit = next) {
        next = limit->next;
        release(limit, host);
    }
    names->first = NULL;
}

/* ---- counting ----------------------------------------------------------------------------- */

static quire_result refuse(const qi_name_limit *limit, uint64_t bytes, uint64_t held)
{
    return qi_fail_text(QUIRE_ERROR_OVER_BUDGET,
                        "names that begin with '%s' hold %s and may hold %s: %s more are asked",
                        limit->prefix, qi_bytes(held).text,
                        qi_bytes(qi_account_max(&limit->held)).text, qi_bytes(bytes).text);
}

quire_result qi_names_admit_any(const qi_names *names, const char *name, uint64_t bytes)
{
    for (const qi_name_limit *limit = names->first; limit; limit = limit->next) {
        uint64_t held = qi_account_used(&limit->held), most = qi_account_max(&limit->held);
        if (is_of(limit, name) && (held > most || bytes > most - held))
            return refuse(limit, bytes, held);
    }
    return QUIRE_SUCCESS;
}

static void give(qi_name_limit *limit, const qi_slot *record)
{
    qi_account_give(&limit->held, held_by(record));
    qi_atomic_sub_u64(&limit->requested, record->requested);
    qi_atomic_sub_u64(&limit->count, 1);
}

/* Gives back what the limits before `end` have taken for `name` and not for `old`. */
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
    uint64_t bytes = held_by(record), held = 0;
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

/* ---- all allocations ---------------------------------------------------------------------- */

/* With the locks of all shards: what the allocations hold whose names begin so. */
static quire_name_usage sum_of(const quire_memory *memory, const char *prefix)
{
    quire_name_usage sum = {0};
    size_t length = strlen(prefix);
    uint32_t top = qi_slots_top(&memory->slots);
    for (uint32_t i = 0; i < top; i++) {
        if (qi_slot_phase(&memory->slots, i) == QI_PHASE_FREE)
            continue;
        const qi_slot *record = qi_memory_slot(memory, i);
        if (!record->meta || !begins(record->meta->name, prefix, length))
            continue;
        sum.held_bytes += held_by(record);
        sum.requested_bytes += record->requested;
        sum.allocation_count++;
    }
    return sum;
}

static quire_name_usage usage_of(const qi_name_limit *limit)
{
    return (quire_name_usage){
        .limit = qi_atomic_load_u64(&limit->held.limit),
        .held_bytes = qi_account_used(&limit->held),
        .requested_bytes = qi_atomic_load_u64(&limit->requested),
        .allocation_count = qi_atomic_load_u64(&limit->count),
    };
}

bool qi_names_agree(const quire_memory *memory)
{
    for (const qi_name_limit *limit = memory->names.first; limit; limit = limit->next) {
        quire_name_usage sum = sum_of(memory, limit->prefix), kept = usage_of(limit);
        if (sum.held_bytes != kept.held_bytes || sum.requested_bytes != kept.requested_bytes ||
            sum.allocation_count != kept.allocation_count)
            return false;
    }
    return true;
}

/* ---- public calls ------------------------------------------------------------------------- */

/* With the locks of all shards: the link to the limit of exactly this prefix, or to the end. */
static qi_name_limit **find(qi_names *names, const char *prefix)
{
    qi_name_limit **link = &names->first;
    while (*link && strcmp((*link)->prefix, prefix))
        link = &(*link)->next;
    return link;
}

static qi_name_limit *make(quire_memory *memory, const char *prefix)
{
    qi_name_limit *limit = qi_host_allocate(&memory->host, 1, sizeof *limit);
    if (!limit)
        return NULL;
    limit->length = strlen(prefix);
    limit->prefix = qi_host_copy_text(&memory->host, prefix);
    if (limit->prefix)
        return limit;
    release(limit, &memory->host);
    return NULL;
}

/*
 * With the locks of all shards: sets the limit, with `made` where there was none before; returns
 * what is to be released.
 */
static qi_name_limit *set(quire_memory *memory, const char *prefix, uint64_t bytes,
                          qi_name_limit *made)
{
    qi_name_limit **link = find(&memory->names, prefix), *limit = *link;
    if (!bytes) {
        *link = limit ? limit->next : NULL;
        return limit;
    }
    if (!limit) {
        quire_name_usage sum = sum_of(memory, prefix);
        qi_atomic_init_u64(&made->requested, sum.requested_bytes);
        qi_atomic_init_u64(&made->count, sum.allocation_count);
        qi_atomic_init_u64(&made->held.used, sum.held_bytes);
        *link = limit = made;
        made = NULL;
    }
    qi_account_set_limit(&limit->held, bytes);
    return made;
}

static quire_result check_prefix(const quire_memory *memory, const char *prefix, const char *call)
{
    if (!memory || !prefix)
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: memory or prefix is null", call);
    if (strlen(prefix) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a prefix of %u bytes: %u are allowed",
                            strlen(prefix), QUIRE_MAX_NAME);
    return memory->device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
}

quire_result quire_memory_set_name_limit(quire_memory *memory, const char *prefix, uint64_t bytes)
{
    quire_result result = check_prefix(memory, prefix, "quire_memory_set_name_limit");
    if (result)
        return result;
    qi_name_limit *made = bytes ? make(memory, prefix) : NULL;
    if (bytes && !made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the limit of a name");
    qi_shards_acquire(memory);
    qi_name_limit *left = set(memory, prefix, bytes, made);
    qi_shards_release(memory);
    if (left)
        release(left, &memory->host);
    return QUIRE_SUCCESS;
}

quire_result quire_memory_get_name_usage(quire_memory *memory, const char *prefix,
                                         quire_name_usage *usage)
{
    if (usage)
        *usage = (quire_name_usage){0};
    quire_result result = check_prefix(memory, prefix, "quire_memory_get_name_usage");
    if (!result && !usage)
        result =
            qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_get_name_usage: usage is null");
    if (result)
        return result;
    qi_shards_acquire(memory);
    const qi_name_limit *limit = *find(&memory->names, prefix);
    *usage = limit ? usage_of(limit) : sum_of(memory, prefix);
    qi_shards_release(memory);
    return QUIRE_SUCCESS;
}
