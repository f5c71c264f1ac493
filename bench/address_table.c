/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * address_table.c - see address_table.h.
 */
#include "bench/address_table.h"

#include <stdio.h>
#include <stdlib.h>

address_table address_table_make(uint64_t count)
{
    address_table table = {.bits = 4};
    while (UINT64_C(1) << table.bits < 2 * count)
        table.bits++;
    table.entries = calloc(UINT64_C(1) << table.bits, sizeof *table.entries);
    if (!table.entries) {
        fprintf(stderr, "no memory for a table of addresses\n");
        exit(1);
    }
    return table;
}

void address_table_end(address_table *table)
{
    free(table->entries);
}

static uint64_t mask_of(const address_table *table)
{
    return (UINT64_C(1) << table->bits) - 1;
}

/* Multiplication by 2^64 divided by the golden ratio. */
static uint64_t home_of(const address_table *table, uint64_t address)
{
    return address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - table->bits);
}

/* Returns the place of an address, or the empty place where it belongs. */
static uint64_t place_of(const address_table *table, uint64_t address)
{
    uint64_t i = home_of(table, address), mask = mask_of(table);
    while (table->entries[i].address && table->entries[i].address != address)
        i = (i + 1) & mask;
    return i;
}

void address_table_put(address_table *table, uint64_t address, uint64_t handle)
{
    table->entries[place_of(table, address)] = (address_entry){address, handle};
}

uint64_t address_table_find(const address_table *table, uint64_t address)
{
    return table->entries[place_of(table, address)].handle;
}

uint64_t address_table_take(address_table *table, uint64_t address)
{
    address_entry *entries = table->entries;
    uint64_t gap = place_of(table, address), mask = mask_of(table), handle = entries[gap].handle;
    if (!handle)
        return 0;
    for (uint64_t i = (gap + 1) & mask; entries[i].address; i = (i + 1) & mask)
        if (((i - home_of(table, entries[i].address)) & mask) >= ((i - gap) & mask)) {
            entries[gap] = entries[i];
            gap = i;
        }
    entries[gap] = (address_entry){0, 0};
    return handle;
}
