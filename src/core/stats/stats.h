/*
 * figures.h - the figures of a memory, put together from its shards and pages.
 */
#ifndef QUIRE_SRC_CORE_STATS_STATS_H
#define QUIRE_SRC_CORE_STATS_STATS_H

#include "quire/insight.h"

/* With the locks of all shards and of the pages: what these count. */
quire_memory_stats qi_stats_counted(const quire_memory *memory);

/* With the locks of all shards, without which no page comes or goes: all there is to tell. */
quire_memory_stats qi_stats_of(quire_memory *memory);

#endif
