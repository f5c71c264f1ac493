/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.h - fault sweeps on the emulated drivers, and the scenarios that several backends have. A
 * scenario runs on a bench of tests/support/driver_bench.h: once without a fault, then while each
 * call of the driver fails, then while each allocation of host memory fails. The ends of the
 * benches check that nothing is left in the driver or in host memory, that the records of the
 * memories are whole, and that the driver, which checks its callers, has no message.
 */
#ifndef QUIRE_TESTS_FAULT_DRIVER_H
#define QUIRE_TESTS_FAULT_DRIVER_H

#include "quire/backend.h"
#include "tests/fault/fault.h"
#include "tests/support/driver_bench.h"

/* How a program runs a scenario on its bench, and lets a call of its driver fail. */
typedef struct fault_driver {
    driver_bench *bench;
    void (*begin)(const void *scenario);
    void (*run)(const void *scenario);
    void (*end)(void);
    uint64_t (*calls)(void);     /* that can fail, in this run */
    bool (*fail)(uint64_t call); /* plans the program's fault; false: this call has none such */
    bool (*has_failed)(void);
    void (*heal)(void);
    void (*advance)(void); /* the driver's clock, which stands otherwise; NULL: it runs */
} fault_driver;

/* Bytes to write, and room to read them back. */
enum { FAULT_DATA = 64 * 1024 };
extern unsigned char fault_data[FAULT_DATA], fault_back[FAULT_DATA];

/* fault_begin, with the driver of the sweeps. */
void fault_driver_begin(const fault_driver *driver, int argc, char **argv);

/* Runs a scenario without a fault, which has this result; returns the calls that can fail. The
   sweeps below are of this scenario. */
uint64_t fault_driver_calls(const void *scenario, quire_result expected);

/* Lets each of `calls` calls fail as the program plans it; returns how many were reached. */
uint64_t fault_driver_sweep(uint64_t calls);

/* Lets each allocation of host memory fail. */
void fault_driver_sweep_memory(void);

/* ---- scenarios ------------------------------------------------------------------------------ */

/* A range is written, read back and freed. */
void fault_range(driver_bench *b, quire_memory *m, uint64_t size, bool zero);

/* Pages come and go with `count` allocations. */
void fault_pages(driver_bench *b, quire_memory *m, uint64_t size, int count);

/* Rows are copied from the host, between two allocations and back, and some bytes filled. */
void fault_rows(driver_bench *b, quire_memory *to, quire_memory *from, uint32_t rows);

/* Work of two streams, one behind points of the other. `host` is copied from, or NULL. */
void fault_streams(driver_bench *b, quire_memory *m, quire_stream *first, quire_stream *second,
                   const void *host);

/* Ends a stream, which may be NULL. While calls fail it may not be known that what was freed on it
   has passed. */
void fault_end_stream(driver_bench *b, quire_stream *stream);

#endif
