/*
 * page_map.h - the pages of a memory as rows of blocks for a terminal.
 */
#ifndef QUIRE_SRC_CLI_PAGE_MAP_H
#define QUIRE_SRC_CLI_PAGE_MAP_H

#include "quire/quire.h"

/* Prints one row per page: how full each sixty-fourth of it is, the figures beside it. */
quire_result print_page_map(quire_memory *memory);

#endif
