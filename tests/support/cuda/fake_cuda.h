/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda.h - a CUDA driver for tests that runs on the processor. Device memory is shared memory,
 * mapped where cuMemMap maps it, also several times. Work waits in streams for a logical clock. The
 * driver refuses what the real one refuses, with the same codes.
 *
 * There are two ways to use it. A test program links it and uses fake_cuda()->find as
 * cuGetProcAddress. It is also built as the shared object libcuda.so.1, which an unchanged program
 * or backend loads as the real driver. Then dlsym finds fake_cuda(), which returns the functions
 * below, and the environment sets its options: see environment.c.
 *
 * As with the real driver there is one per process. fc_reset starts it afresh. Any thread may at
 * any time use fc_reset's results: messages, counters, live objects. fc_reset itself must not run
 * at the same time as a CUDA call.
 *
 * It has the functions that memory needs, and two kernels (kernel.h). It lacks textures. Captures
 * of streams exist so that tests find disturbed ones (capture.h has the rules); they end with a
 * graph if the test asks for it (graph.h). Green contexts exist for their streams. Multicast
 * objects can be bound, mapped and shared with other processes, and nothing is written through
 * them.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_FAKE_CUDA_H
#define QUIRE_TESTS_SUPPORT_CUDA_FAKE_CUDA_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/support/cuda/model.h"
#include "tests/support/cuda/more.h"

/* ---- what it is --------------------------------------------------------------------------- */

/*
 * Deviations from the documented behaviour, to find fragile callers; 0 means none.
 *
 * LATE: work in streams runs only when a thread waits for it or fc_advance is called.
 *
 * DIRTY: the first 64 KiB of fresh device memory hold garbage.
 *
 * NEEDS_CONTEXT: functions for physical memory and addresses require a current context, as copies
 * do. The documentation does not require it; the flag finds backends without one.
 *
 * UNSAFE_CALLS: during captures, further calls are unsafe of which the documentation does not say
 * whether they are (capture.h); the flag finds callers that rely on the answer.
 *
 * UNMAPS_ONE: cuMemUnmap of several mappings is INVALID_VALUE: the documentation asks for the range
 * that was mapped, and drivers accept several.
 *
 * ACCESS_ONE: likewise cuMemSetAccess.
 *
 * KEEPS_MEMORY: memory that is unmapped and released counts until its addresses are freed, as with
 * HIP (vllm-project/vllm #37533).
 *
 * NEEDS_IDLE: a change of mappings or access while work is not done adds a message, because devices
 * exist on which it faults (ovg-project/kvcached #465).
 *
 * CRASHES_AT_NODE: cuMemCreate of memory of a host node ends the process, as drivers from r560 on
 * do on some machines (NVIDIA/nccl #2106).
 *
 * GRAPHS: no deviation; work in a stream that captures is a node of a graph that can be launched.
 * Without it, such work is a message, because quire must not submit any.
 *
 * PRINT: messages are also printed to stderr.
 */
#define FC_LATE UINT32_C(0x01)
#define FC_DIRTY UINT32_C(0x02)
#define FC_NEEDS_CONTEXT UINT32_C(0x04)
#define FC_PRINT UINT32_C(0x40)
#define FC_UNSAFE_CALLS UINT32_C(0x80)
#define FC_UNMAPS_ONE UINT32_C(0x100)
#define FC_CRASHES_AT_NODE UINT32_C(0x200)
#define FC_ACCESS_ONE UINT32_C(0x400)
#define FC_KEEPS_MEMORY UINT32_C(0x800)
#define FC_NEEDS_IDLE UINT32_C(0x1000)
#define FC_GRAPHS UINT32_C(0x2000)

typedef struct fc_options {
    const fc_model *models[FC_MAX_DEVICES]; /* the devices, copied; empty means one "h200" */
    bool no_devices;                        /* the driver has no device */
    int version;                            /* of the driver; 0 means 13000 */
    uint32_t flags;                         /* FC_LATE, ... */
    /* per device: bit i is set if device i can access its memory as a peer */
    uint32_t peers[FC_MAX_DEVICES];
    /* handles of physical memory at a time; 0: any number. With HIP each is a file descriptor
       (ROCm/rocm-systems #10604). */
    uint32_t max_handles;
    uint32_t numa_nodes; /* of the host, numbered from 0; 0 means one */
    uint32_t
        refused_nodes;    /* bit i: creating memory at node i is INVALID_VALUE, as in containers */
    qi_cu_result no_init; /* the error of cuInit; 0: it succeeds */
} fc_options;

/* Destroys everything, leaked objects included, and starts afresh. NULL means all zero. No thread
   has a current context afterwards. */
void fc_reset(const fc_options *options);

/* ---- messages ----------------------------------------------------------------------------- */

/* Misuse that is undefined behaviour with the real driver, or that the real driver accepts. Calls
   that the real driver refuses add no message. */

/* The number of messages since the start or fc_forget. */
uint32_t fc_message_count(void);

/* One of the first 64 messages in order, as "fc-id: cuFunction: what is wrong"; NULL beyond the
   last. Valid until fc_forget or fc_reset. */
const char *fc_message(uint32_t index);

void fc_forget(void);

/* ---- counters ----------------------------------------------------------------------------- */

/* The kinds of objects that are counted. */
#define FC_KINDS_OF_OBJECTS(X)                                                                     \
    X(CONTEXT, "context")                                                                          \
    X(STREAM, "stream")                                                                            \
    X(EVENT, "event")                                                                              \
    X(GRAPH, "graph")                                                                              \
    X(EXEC, "executable graph")                                                                    \
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
    X(BUFFER, "buffer of external memory")                                                         \
    X(OPENED, "block of another process")

typedef enum fc_kind {
#define X(kind, name) FC_##kind,
    FC_KINDS_OF_OBJECTS(X)
#undef X
        FC_KINDS
} fc_kind;

/* The number of live objects. Default streams and the default pools of devices are not counted. */
uint64_t fc_live(fc_kind kind);

/* The number of live objects of all kinds: 0 after a program that released everything. */
uint64_t fc_leaks(void);

/* The number of calls of a function ("cuMemCreate"), or of all functions (NULL). */
uint64_t fc_calls(const char *function);

typedef struct fc_usage {
    uint64_t bytes, peak; /* device memory used by this process */
} fc_usage;

/* Device -1 means pinned and physical memory of the host. */
fc_usage fc_usage_of(int device);

/* Sets the counts of calls to 0 and the peaks to the present use. */
void fc_reset_counters(void);

/* Writes calls, peaks, live objects and messages, one line each. */
void fc_report(FILE *file);

/* ---- faults ------------------------------------------------------------------------------- */

/* Returns the number of documented error codes of a function, and writes at most `room` of them. */
uint32_t fc_codes(const char *function, qi_cu_result *codes, uint32_t room);

typedef struct fc_fault {
    const char
        *function;  /* NULL: every function that can fail, except those that release something */
    uint64_t call;  /* which call fails, from 1, counted from now on */
    bool from_then; /* and all later calls */
    /* the function does its work and fails nevertheless, as the driver reports errors of earlier
       work */
    bool done;
    qi_cu_result result; /* 0 means the code with index code_index of fc_codes */
    uint32_t code_index;
} fc_fault;

/*
 * Adds a fault, at most 8. The fault does not apply to functions for which the code is not
 * documented. Returns false if it can never apply, if the function is unknown, or if there are 8
 * faults.
 */
bool fc_fail(const fc_fault *fault);

typedef struct fc_failure {
    uint64_t times; /* calls that failed because of fc_fail; 0: the other members are not set */
    const char *function; /* of the last failure */
    qi_cu_result result;
} fc_failure;

fc_failure fc_failed(void);

/* Removes all faults, hidden functions and delays. A lost device stays lost. */
void fc_heal(void);

/* The calls since the last fc_reset_counters to which a fault with NULL applies. */
uint64_t fc_fallible_calls(void);

/*
 * Delays a function; with NULL and 1 microsecond all functions take as long as measured on an A100.
 */
void fc_slow(const char *function, uint32_t microseconds);

/* Makes every call on the device fail with this code until its last context is destroyed, releasing
   calls included. */
void fc_lose(int device, qi_cu_result code);

/* Makes every call fail with DEINITIALIZED, as at the end of a process. No object counts as alive
   then. */
void fc_deinitialize(void);

/* Hides a function ("cuMemCreate") from cuGetProcAddress and dlsym; at most 128. Returns false if
   it is unknown. */
bool fc_hide(const char *function);

/* Sets the available bytes of a device, less than its size; 0 means its size. Device -1 is the
   host, which has 64 GiB. */
void fc_set_capacity(int device, uint64_t bytes);

/* Sets the bytes of a device that other processes use. */
void fc_set_others(int device, uint64_t bytes);

/* Makes the next `calls` calls of cuMemSetAccess or cuMemPoolSetAccess return NOT_READY, as drivers
   do for a while when other threads submit work. */
void fc_busy(uint64_t calls);

/* ---- the clock ---------------------------------------------------------------------------- */

/* Advances the clock and runs the work whose time has come, in order. */
void fc_advance(uint64_t ticks);

/* The number of pieces of work that wait in streams. */
uint64_t fc_pending(void);

/* ---- what it knows ------------------------------------------------------------------------ */

typedef struct fc_address_info {
    uint64_t base, size;  /* of the mapping or allocation */
    qi_cu_handle handle;  /* the mapped handle; 0: no mapping */
    uint32_t read, write; /* bits of the devices with access */
    bool host_reads, host_writes;
} fc_address_info;

/* Returns false if nothing is at the address. */
bool fc_address_of(qi_cu_ptr address, fc_address_info *info);

/* The number of contexts on the stack of the calling thread. */
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
    X(busy)                                                                                        \
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
