/*
 * stats_scope.h - statistics of a part of a program, between a push and its pop.
 *
 * A scope costs an allocation or a free nothing. A push saves the peaks and restarts them at the
 * present values; its pop subtracts what was counted before the push, and restores the higher of
 * the saved and the new peaks. The scopes of a memory are a stack, guarded by the locks of all its
 * shards.
 */
#ifndef QUIRE_SRC_CORE_STATS_STATS_SCOPE_H
#define QUIRE_SRC_CORE_STATS_STATS_SCOPE_H

#include "quire/insight.h"
#include "src/base/host_memory.h"

typedef struct qi_stats_scope {
    struct qi_stats_scope *outer;
    quire_memory_stats begun; /* statistics at the push, with the peaks until then */
} qi_stats_scope;

/* Frees the scopes that were never popped, when a memory is destroyed. */
void qi_stats_scopes_finish(qi_stats_scope *innermost, qi_host *host);

#endif
