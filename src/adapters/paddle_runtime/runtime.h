/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * runtime.h - quire as the memory of a CustomDevice runtime: the state of the adapter, and the
 * functions that its files call in each other.
 *
 * The adapter is a plugin that wraps another plugin. The wrapped plugin fills in the host program's
 * interface; then the adapter replaces the memory functions by its own, which return ranges of
 * quire's pages. The plugin backend creates the pages with the wrapped plugin's functions.
 * Everything else (streams, events, copies, kernels) remains the wrapped plugin's.
 *
 * Locks: any thread may call any function, as the interface permits. One mutex in devices.c
 * protects the list of open devices. Each device has a mutex for its blocks, which is released
 * while quire or the plugin works.
 */
#ifndef QUIRE_SRC_ADAPTERS_PADDLE_RUNTIME_RUNTIME_H
#define QUIRE_SRC_ADAPTERS_PADDLE_RUNTIME_RUNTIME_H

#include <pthread.h>

#include "backends/plugin/library.h"
#include "quire/insight.h"
#include "quire/plugin.h"
#include "src/base/id_map.h"

/* The kind of memory of a block, in the order of the functions in the interface. */
typedef enum runtime_role { RUNTIME_DEVICE = 0, RUNTIME_HOST, RUNTIME_UNIFIED } runtime_role;

enum { RUNTIME_ROLES = 3, RUNTIME_MAX_DEVICES = 64, RUNTIME_MAX_PATH = 4095 };

/*
 * ---- blocks.c: the blocks of the host program by address ---------------------------------------
 */

typedef struct runtime_block {
    quire_allocation allocation;
    uint64_t size; /* as requested */
    runtime_role role;
    uint32_t next_free; /* in the list of unused records */
} runtime_block;

typedef struct runtime_blocks {
    pthread_mutex_t mutex;
    qi_host host;
    qi_id_map by_address;
    runtime_block *records;
    uint32_t room, used, first_free; /* first_free: UINT32_MAX if none is unused */
} runtime_blocks;

/* Returns false if host memory is exhausted. */
QUIRE_MUST_USE bool runtime_blocks_init(runtime_blocks *blocks);
void runtime_blocks_finish(runtime_blocks *blocks);

/* Returns false if host memory is exhausted. */
QUIRE_MUST_USE bool runtime_blocks_add(runtime_blocks *blocks, uint64_t address,
                                       const runtime_block *block);

/* Removes and returns the block with this address, size and role. Returns false if there is none.
   If several threads free one block, exactly one of them succeeds. */
QUIRE_MUST_USE bool runtime_blocks_remove(runtime_blocks *blocks, uint64_t address, uint64_t size,
                                          runtime_role role, runtime_block *taken);

/* ---- devices.c ------------------------------------------------------------------------------ */

/* A device of the wrapped plugin. */
typedef struct runtime_device {
    uint32_t users; /* calls of init_device minus deinit_device; 0: not open */
    int32_t id;     /* the number that init_device assigned */
    uint64_t alignment;
    quire_device *device;
    quire_memory *memories[RUNTIME_ROLES]; /* NULL if the plugin lacks the kind */
    runtime_blocks blocks;
} runtime_device;

/* Sets the path and the functions of the wrapped plugin. */
void runtime_wrap(const char *path, const qi_pd_interface *functions);

/* The functions that replace the wrapped plugin's in the host program's interface. */
qi_pd_status runtime_initialize(void);
qi_pd_status runtime_finalize(void);
qi_pd_status runtime_init_device(qi_pd_device *device);
qi_pd_status runtime_deinit_device(qi_pd_device *device);
qi_pd_status runtime_device_allocate(qi_pd_device *device, void **pointer, size_t size);
qi_pd_status runtime_device_deallocate(qi_pd_device *device, void *pointer, size_t size);
qi_pd_status runtime_host_allocate(qi_pd_device *device, void **pointer, size_t size);
qi_pd_status runtime_host_deallocate(qi_pd_device *device, void *pointer, size_t size);
qi_pd_status runtime_unified_allocate(qi_pd_device *device, void **pointer, size_t size);
qi_pd_status runtime_unified_deallocate(qi_pd_device *device, void *pointer, size_t size);
qi_pd_status runtime_stats(qi_pd_device *device, size_t *total, size_t *free_bytes);
qi_pd_status runtime_min_chunk(qi_pd_device *device, size_t *size);
qi_pd_status runtime_max_chunk(qi_pd_device *device, size_t *size);

/* Writes a line with the adapter's name to standard error. */
void runtime_log(const char *format, ...) QUIRE_PRINTF(1, 2);

#endif
