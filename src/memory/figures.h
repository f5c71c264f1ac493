/*
 * figures.h - the figures of a memory, put together from its shards and pages.
 */
#ifndef QUIRE_SRC_MEMORY_FIGURES_H
#define QUIRE_SRC_MEMORY_FIGURES_H

#include "quire/insight.h"

/* With the locks of all shards and of the pages: what these count. */
quire_memory_stats qi_figures_kept(const quire_memory *memory);

/* With the locks of all shards, without which no page comes or goes: all there is to tell. */
quire_memory_stats qi_figures(quire_memory *memory);

#endif
