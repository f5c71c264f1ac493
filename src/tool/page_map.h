/*
 * page_map.h - prints the pages of a memory as rows of block characters for a terminal.
 */
#ifndef QUIRE_SRC_TOOL_PAGE_MAP_H
#define QUIRE_SRC_TOOL_PAGE_MAP_H

#include "quire/quire.h"

/* Prints one row per page: the fill level of each 1/64 of it, its size and its allocations. */
quire_result print_page_map(quire_memory *memory);

#endif
