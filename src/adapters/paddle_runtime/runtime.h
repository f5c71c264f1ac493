/*
 * runtime.h - quire as the memory of a CustomDevice runtime: what the files of the adapter share.
 *
 * The adapter is a plugin that wraps another one. The host program's interface is filled in by the
 * wrapped plugin; then its functions for memory are replaced by ours, which hand out ranges of
 * quire's pages. The pages come from the wrapped plugin, which the adapter has loaded as a backend
 * of quire; everything else (streams, events, copies, kernels) stays the wrapped plugin's own.
 *
 * Thread-safety: as the interface's. One mutex guards which devices are open; each device has one
 * for its blocks, which is not held while quire or the plugin work.
 */
#ifndef QUIRE_SRC_ADAPTERS_PADDLE_RUNTIME_RUNTIME_H
#define QUIRE_SRC_ADAPTERS_PADDLE_RUNTIME_RUNTIME_H

#include <pthread.h>

#include "backends/plugin/library.h"
#include "quire/insight.h"
#include "quire/plugin.h"
#include "src/trace/id_map.h"

/* Whose memory a block is; the order of the functions in the interface. */
typedef enum runtime_role { RUNTIME_DEVICE = 0, RUNTIME_HOST, RUNTIME_UNIFIED } runtime_role;

enum { RUNTIME_ROLES = 3, RUNTIME_MOST_DEVICES = 64, RUNTIME_LONGEST_PATH = 4095 };

/* ---- blocks.c: what the host program holds, by address --------------------------------------- */

typedef struct runtime_block {
    quire_allocation allocation;
    uint64_t size; /* as it was asked for */
    runtime_role role;
    uint32_t next_free; /* among records that hold nothing */
} runtime_block;

typedef struct runtime_blocks {
    pthread_mutex_t mutex;
    qi_host host;
    qi_id_map by_address;
    runtime_block *records;
    uint32_t room, used, first_free; /* UINT32_MAX: none is free */
} runtime_blocks;

QUIRE_MUST_USE bool runtime_blocks_init(runtime_blocks *blocks);
void runtime_blocks_finish(runtime_blocks *blocks);

/* False: no host memory. */
QUIRE_MUST_USE bool runtime_blocks_add(runtime_blocks *blocks, uint64_t address,
                                       const runtime_block *block);

/*
 * Takes a block out: exactly one of several threads that give it back gets it. False: there is none
 * with this address, size and role.
 */
QUIRE_MUST_USE bool runtime_blocks_take(runtime_blocks *blocks, uint64_t address, uint64_t size,
                                        runtime_role role, runtime_block *taken);

/* ---- devices.c ------------------------------------------------------------------------------ */

/* One device of the wrapped plugin, while the host program has it initialised. */
typedef struct runtime_device {
    uint32_t users; /* 0: it is not open */
    int32_t id;     /* since init_device */
    uint64_t alignment;
    quire_device *device;
    quire_memory *memories[RUNTIME_ROLES]; /* NULL: the plugin has none of the kind */
    runtime_blocks blocks;
} runtime_device;

/* Forgets the device of another run; the path and functions of the wrapped plugin. */
void runtime_wrap(const char *path, const qi_pd_interface *functions);

/* The functions that the host program gets in the place of the wrapped plugin's. */
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

/* A line on standard error, begun with the adapter's name. */
void runtime_complain(const char *format, ...) QUIRE_PRINTF(1, 2);

#endif
