/*
 * fake_cuda.h - a CUDA driver for tests, on the processor: device memory is shared memory that is
 * really mapped where cuMemMap says, several times where it is mapped several times, work waits in
 * streams for a logical clock, and what the driver refuses is refused with its codes.
 *
 * Two doors lead to the same code. A test program can have it linked in, with fake_cuda()->find for
 * cuGetProcAddress; and it is built as a shared object libcuda.so.1, which an unchanged program or
 * backend opens as the real one. Then fake_cuda(), found by dlsym, gives the functions below, and
 * the environment its options, see environment.c.
 *
 * As with the real driver there is one per process. fc_reset makes it anew; it and what a test
 * looks at afterwards (messages, counters, what is alive) may be used by any thread at any time,
 * but fc_reset only while no CUDA call runs.
 *
 * It has what memory needs. Kernels, modules, graphs, legacy interprocess handles, per-thread
 * default streams and textures are not there; captures of streams are what must not be disturbed,
 * and end without a graph; multicast objects are bound and mapped, but not given to other
 * processes, and nothing is written through them.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_FAKE_CUDA_H
#define QUIRE_TESTS_SUPPORT_CUDA_FAKE_CUDA_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/support/cuda/model.h"
#include "tests/support/cuda/more.h"

/* ---- what it is --------------------------------------------------------------------------- */

/*
 * How it answers, to be awkward; 0: as the driver is documented.
 *
 * LATE           work in streams is done when somebody waits for it or fc_advance is called
 * DIRTY          the first 64 KiB of fresh device memory hold garbage
 * NEEDS_CONTEXT  the functions for physical memory and addresses want a current context, as the
 *                copies do: more than is documented, so that a backend that always has one is told
 *                from one that does not
 * HOST_REACHES   the processor may touch device memory wherever the device may. Without it that is
 *                a segmentation fault, as on most machines
 * BAD_DEVICE_1   a location with a device that does not exist is INVALID_VALUE, which conformance
 *                tests of others see, not INVALID_DEVICE, as documented
 * BAD_SIZE_2     to reserve a size or alignment that is none is OUT_OF_MEMORY, likewise
 * PRINT          messages are printed to stderr, too
 */
#define FC_LATE UINT32_C(0x01)
#define FC_DIRTY UINT32_C(0x02)
#define FC_NEEDS_CONTEXT UINT32_C(0x04)
#define FC_HOST_REACHES UINT32_C(0x08)
#define FC_BAD_DEVICE_1 UINT32_C(0x10)
#define FC_BAD_SIZE_2 UINT32_C(0x20)
#define FC_PRINT UINT32_C(0x40)

typedef struct fc_options {
    const fc_model *models[FC_MOST_DEVICES]; /* devices; none: one "h200". Copied */
    bool no_devices;                         /* a driver without any */
    int version;                             /* of the driver; 0: 13000 */
    uint32_t flags;                          /* FC_LATE, ... */
    /* per device, bit i: device i can access its memory as a peer; 0 bits everywhere: none can */
    uint32_t peers[FC_MOST_DEVICES];
    uint32_t numa_nodes;  /* of the host, numbered from 0; 0: one */
    uint64_t host_bytes;  /* that all pinned and host memory may take; 0: 64 GiB */
    uint32_t work_ticks;  /* of the clock that each piece of work takes; 0: 1 */
    uint32_t poll_ticks;  /* by which every cuStreamQuery and cuEventQuery advances it */
    qi_cu_result no_init; /* what cuInit fails with; 0: it does not */
} fc_options;

/*
 * Ends what there is, leaks and all, and begins anew. NULL: all zero. Current contexts of all
 * threads are none then.
 */
void fc_reset(const fc_options *options);

/* ---- messages ----------------------------------------------------------------------------- */

/*
 * Wrong use that the real driver answers with undefined behaviour, or not at all; what it refuses
 * is refused in silence.
 */

/* How many there were since the start or fc_forget. */
uint32_t fc_message_count(void);

/*
 * One of the first 64, in order: "fc-id: cuFunction: what is wrong"; NULL: there are not so many.
 * Valid until fc_forget and fc_reset.
 */
const char *fc_message(uint32_t index);

void fc_forget(void);

/* ---- counters ----------------------------------------------------------------------------- */

/* What can be alive. */
#define FC_KINDS_OF_OBJECTS(X)                                                                     \
    X(CONTEXT, "context")                                                                          \
    X(STREAM, "stream")                                                                            \
    X(EVENT, "event")                                                                              \
    X(MEMORY, "physical memory")                                                                   \
    X(REFERENCE, "handle of physical memory")                                                      \
    X(RESERVATION, "reservation")                                                                  \
    X(MAPPING, "mapping")                                                                          \
    X(ALLOCATION, "allocation")                                                                    \
    X(POOLED, "allocation of a pool")                                                              \
    X(PINNED, "pinned memory")                                                                     \
    X(REGISTERED, "registered memory")                                                             \
    X(MANAGED, "managed memory")                                                                   \
    X(ARRAY, "array")                                                                              \
    X(MIPMAP, "mipmapped array")                                                                   \
    X(POOL, "pool")                                                                                \
    X(EXTERNAL, "external memory")                                                                 \
    X(BUFFER, "buffer of external memory")

typedef enum fc_kind {
#define X(kind, name) FC_##kind,
    FC_KINDS_OF_OBJECTS(X)
#undef X
        FC_KINDS
} fc_kind;

/* Alive now. Default streams, and the pools that devices have, are not counted. */
uint64_t fc_live(fc_kind kind);

/* All that is alive, of every kind: 0 after a program that gave back everything. */
uint64_t fc_leaks(void);

/* Calls of a function ("cuMemCreate"), or of all (NULL). */
uint64_t fc_calls(const char *function);

typedef struct fc_usage {
    uint64_t bytes, peak; /* of memory of the device taken by this process */
} fc_usage;

/* Device -1: pinned and physical memory of the host. */
fc_usage fc_usage_of(int device);

/* Counts calls from 0 again; what is taken becomes the peak. */
void fc_reset_counters(void);

/* Calls, peaks, what is alive, and the messages, a line each. */
void fc_report(FILE *file);

/* ---- faults ------------------------------------------------------------------------------- */

/*
 * The codes that are documented for a function; returns how many there are and writes at most
 * `room` of them.
 */
uint32_t fc_codes(const char *function, qi_cu_result *codes, uint32_t room);

typedef struct fc_fault {
    const char *function; /* NULL: all that can fail but those that end something */
    uint64_t call;        /* which call fails, from 1, counted from now on */
    bool from_then;       /* and all later ones */
    /* the function does its work and fails still: the driver tells of earlier work in this way */
    bool done;
    qi_cu_result result; /* 0: the code numbered code_index of those that fc_codes tells */
    uint32_t code_index;
} fc_fault;

/*
 * Adds a fault, at most 8. A function for which the code is not documented is let through. False
 * where that is sure beforehand, the function is not known or there are 8 already.
 */
bool fc_fail(const fc_fault *fault);

typedef struct fc_failure {
    uint64_t times;       /* calls that failed by fc_fail; 0: none, and the rest is not set */
    const char *function; /* the last of them */
    qi_cu_result result;
} fc_failure;

fc_failure fc_failed(void);

/* Takes all faults away, hidden functions and slowness too. A lost device stays lost. */
void fc_heal(void);

/* Calls that fc_fail with NULL counts, since the last fc_reset_counters. */
uint64_t fc_fallible_calls(void);

/* A function takes this long; NULL: all of them, as was measured on an A100 (`microseconds`: 1). */
void fc_slow(const char *function, uint32_t microseconds);

/* The device answers everything with this code until its last context is gone, teardown also. */
void fc_lose(int device, qi_cu_result code);

/* As at the end of a process: every call answers DEINITIALIZED. Nothing counts as alive then. */
void fc_deinitialize(void);

/*
 * The function ("cuMemCreate") is found neither by cuGetProcAddress nor by dlsym; at most 128.
 * False: not known.
 */
bool fc_hide(const char *function);

/* Bytes of a device that can be had, less than its size; 0: its size. -1: of the host. */
void fc_set_capacity(int device, uint64_t bytes);

/* Bytes of a device that other processes have. */
void fc_set_others(int device, uint64_t bytes);

/* ---- the clock ---------------------------------------------------------------------------- */

/* Advances it; work whose time has come is done, in order. */
void fc_advance(uint64_t ticks);

/* Pieces of work that wait in streams. */
uint64_t fc_pending(void);

/* ---- what it knows ------------------------------------------------------------------------ */

typedef struct fc_address_info {
    uint64_t base, size;  /* of the mapping or allocation */
    qi_cu_handle handle;  /* what is mapped; 0: no mapping */
    uint32_t read, write; /* bits of the devices that may, for the granule of the address */
    bool host_reads, host_writes;
} fc_address_info;

/* False: nothing is there. */
bool fc_address_of(qi_cu_ptr address, fc_address_info *info);

/* Contexts that the calling thread has on its stack. */
uint32_t fc_depth(void);

/* ---- all of this, through dlsym(library, "fake_cuda") -------------------------------------- */

#define FC_CONTROLS(X)                                                                             \
    X(reset)                                                                                       \
    X(message_count)                                                                               \
    X(message)                                                                                     \
    X(forget)                                                                                      \
    X(live)                                                                                        \
    X(leaks)                                                                                       \
    X(calls)                                                                                       \
    X(usage_of)                                                                                    \
    X(reset_counters)                                                                              \
    X(report)                                                                                      \
    X(codes)                                                                                       \
    X(fail)                                                                                        \
    X(failed)                                                                                      \
    X(heal)                                                                                        \
    X(fallible_calls)                                                                              \
    X(slow)                                                                                        \
    X(lose)                                                                                        \
    X(deinitialize)                                                                                \
    X(hide)                                                                                        \
    X(set_capacity)                                                                                \
    X(set_others)                                                                                  \
    X(advance)                                                                                     \
    X(pending)                                                                                     \
    X(address_of)                                                                                  \
    X(depth)

typedef struct fc_control {
#define X(name) __typeof__(fc_##name) *name;
    FC_CONTROLS(X)
#undef X
    qi_cu_result (*find)(const char *name, void **function, int version, uint64_t flags,
                         qi_cu_query_result *why); /* cuGetProcAddress_v2 */
} fc_control;

__attribute__((visibility("default"))) const fc_control *fake_cuda(void);

#endif
