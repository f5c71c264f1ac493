/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * live.h - the allocations that are live at one point of an imported file, by their addresses.
 *
 * Addresses repeat over time and say where a program ran. A trace has numbers instead: 1 for the
 * first allocation, 2 for the second.
 */
#ifndef QUIRE_SRC_TOOL_IMPORT_LIVE_H
#define QUIRE_SRC_TOOL_IMPORT_LIVE_H

#include "src/base/id_map.h"

typedef struct import_live {
    qi_host host;
    qi_id_map map; /* from the address to the id */
    uint32_t last; /* id */
} import_live;

/* Only without host memory it fails. import_live_end follows whatever it returned. */
QUIRE_MUST_USE bool import_live_begin(import_live *live);
void import_live_end(import_live *live);

/* Returns the id of the live allocation at an address above 0, or 0. */
uint64_t import_live_find(const import_live *live, uint64_t address);

/* Returns a new id for an address above 0 where nothing is live; 0 without host memory, or after
   2^32 - 1 allocations. */
QUIRE_MUST_USE uint64_t import_live_add(import_live *live, uint64_t address);

/* Ends the life of the allocation at an address. Returns its id; 0 if there is none. */
uint64_t import_live_remove(import_live *live, uint64_t address);

#endif
