/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * address_table.h - a hash table from addresses to handles, as a program keeps it that frees by
 * address through an allocator with handles: open addressing, linear probing, removal that closes
 * gaps, at most half full. It does not grow, and it has no lock.
 */
#ifndef QUIRE_BENCH_ADDRESS_TABLE_H
#define QUIRE_BENCH_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct address_entry {
    uint64_t address, handle; /* address 0: empty */
} address_entry;

typedef struct address_table {
    address_entry *entries;
    uint32_t bits;
} address_table;

/* Makes room for `count` entries. Exits the program without memory. */
address_table address_table_make(uint64_t count);
void address_table_end(address_table *table);

void address_table_put(address_table *table, uint64_t address, uint64_t handle);

/* Returns 0 if the address is not in the table. */
uint64_t address_table_find(const address_table *table, uint64_t address);

/* Removes an address and returns its handle; 0 if it is not in the table. */
uint64_t address_table_take(address_table *table, uint64_t address);

#endif
