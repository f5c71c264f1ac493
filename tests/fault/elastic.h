/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.h - the scenarios of elastic memories on the emulated drivers. Each gets an elastic
 * memory of 16 chunks or more in which nothing is allocated. Every call of the library does all
 * that it is to do, or nothing: after a failure the statistics are those from before, the driver
 * has given out no more than they say, and the bytes that were written can be read. What failed
 * succeeds when it is called again. After the loss of a device, and where calls go on to fail, the
 * statistics alone are checked.
 */
#ifndef QUIRE_TESTS_FAULT_ELASTIC_H
#define QUIRE_TESTS_FAULT_ELASTIC_H

#include "tests/fault/driver.h"

/* An elastic memory of a bench. */
typedef struct fault_elastic {
    driver_bench *bench;
    quire_memory *memory;
    /* Bytes of the device's memory that the driver gave out; other memories have none. */
    uint64_t (*used)(const driver_bench *bench);
    uint64_t kept; /* so many of them the backend may keep for later */
    /* Whether calls that failed go on to fail; NULL: one call fails. */
    bool (*fails_on)(const driver_bench *bench);
} fault_elastic;

/* Allocations of a chunk each; some are freed, and a larger one takes their memory. */
void fault_growth(const fault_elastic *e);

/* Lists of ranges of two lazy allocations get memory, and lose it. */
void fault_lazies(const fault_elastic *e);

/* Allocations fall asleep and wake, with their contents and without; some sleep at the end. */
void fault_sleep(const fault_elastic *e);

#endif
