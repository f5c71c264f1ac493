/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layer.h - VK_LAYER_QUIRE_suballocate: the types and functions that the files of the layer share.
 *
 * The layer is between a program and its driver. It serves vkAllocateMemory with ranges of quire's
 * pages. The VkDeviceMemory of a range is the number of a quire allocation; a tag in the number
 * identifies the store of the allocation. All other handles are the driver's and are passed on
 * unchanged. The layer intercepts every call that takes a VkDeviceMemory and translates memory and
 * offset.
 *
 * Thread-safety: as Vulkan's. The layer does not lock what the program must synchronise itself: a
 * memory object that is mapped, unmapped or freed.
 */
#ifndef QUIRE_SRC_ADAPTERS_VULKAN_LAYER_LAYER_H
#define QUIRE_SRC_ADAPTERS_VULKAN_LAYER_LAYER_H

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

#include <vulkan/vk_layer.h>

#include "quire/insight.h"
#include "quire/vulkan.h"
#include "src/adapters/vulkan_layer/functions.h"
#include "src/adapters/vulkan_layer/settings.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* Converts handles to and from integers. Vulkan defines non-dispatchable handles as pointers on
   some platforms and as integers on others. */
#if VK_USE_64_BIT_PTR_DEFINES
#define LAYER_NUMBER(handle) ((uint64_t)(uintptr_t)(handle))
#define LAYER_MEMORY(number) ((VkDeviceMemory)(uintptr_t)(number))
#else
#define LAYER_NUMBER(handle) ((uint64_t)(handle))
#define LAYER_MEMORY(number) ((VkDeviceMemory)(number))
#endif

enum { LAYER_MAX_STORES = 64 };

/* The outcomes of vkAllocateMemory. All but the first are passed on to the driver unchanged. */
#define LAYER_OUTCOMES(X)                                                                          \
    X(IN_A_PAGE, "in_a_page", "in pages of quire")                                                 \
    X(DEDICATED, "dedicated", "passed on: dedicated to a buffer or image")                         \
    X(EXTERNAL, "external", "passed on: exported or imported")                                     \
    X(LARGE, "large", "passed on: size at or above the threshold, or alignment too large")         \
    X(CHAINED, "chained", "passed on: capture and replay, device masks, unknown structs")          \
    X(KIND, "kind", "passed on: lazily allocated or protected kinds, placed maps")                 \
    X(INVISIBLE, "invisible", "passed on: to be zeroed, but not host-visible")                     \
    X(REFUSED, "refused", "passed on: quire had no space")                                         \
    X(OFF, "off", "passed on: the layer is not active on this device")

typedef enum layer_outcome {
#define X(name, key, text) LAYER_##name,
    LAYER_OUTCOMES(X)
#undef X
        LAYER_OUTCOME_COUNT
} layer_outcome;

/* The quire memory of one memory kind and priority. All members but the atomic ones are
   constant. */
typedef struct layer_store {
    quire_memory *memory;
    uint32_t kind;
    float priority;
    uint64_t threshold; /* allocations of at least so many bytes are passed on */
    bool is_zeroed;     /* the host writes zeros into every range */
    qi_atomic_u64 tag;  /* in the numbers of its allocations; 0: it had none yet */
    /* The smallest size that quire refused, 0: none, and how often the program had freed memory
       before (store.c). */
    qi_atomic_u64 refused_size, refused_after;
    qi_atomic_u64 skipped; /* requests for which quire was not asked for that reason */
} layer_store;

/* A VkDeviceMemory that the layer handed out. */
typedef struct layer_memory {
    layer_store *store;
    quire_allocation allocation;
    VkDeviceMemory page;
    uint64_t offset; /* in the page */
    uint64_t size;   /* bytes that the program requested */
    uint64_t held;   /* the size rounded up to whole atoms (nonCoherentAtomSize), for flushes */
    uint64_t number; /* its id in the trace */
    bool mapped;
    uint64_t map_end; /* end of the mapped range, in the memory */
} layer_memory;

/* Private data (vkSetPrivateData) of a memory object of the layer, which no driver knows. */
typedef struct layer_private {
    uint64_t slot;
    uint64_t handle;
    uint64_t value;
} layer_private;

typedef struct layer_counts {
    qi_atomic_u64 calls[LAYER_OUTCOME_COUNT]; /* successful ones */
    qi_atomic_u64 bytes[LAYER_OUTCOME_COUNT];
    qi_atomic_u64 failed;      /* refused by quire or passed on, and refused by the driver */
    qi_atomic_u64 freed;       /* freed ranges of pages */
    qi_atomic_u64 passed_free; /* freed memory objects of the driver */
} layer_counts;

typedef struct layer_trace {
    bool is_open;    /* false: no trace is written */
    bool has_failed; /* a row could not be written: no more rows are written */
    int file;        /* closed on exec */
    pid_t process;   /* that opened the file; only this process writes to it */
    uint64_t start_ns;
    uint64_t count;
    pthread_mutex_t mutex;
} layer_trace;

/* The statistics so far, in a file (report.c). */
typedef struct layer_interim {
    bool is_on;                      /* constant after layer_interim_open */
    qi_atomic_u64 calls;             /* allocations and frees of the program */
    qi_atomic_u64 due_calls, due_ns; /* the file is written again at either of them */
    pthread_mutex_t mutex;           /* protects the file */
    char path[LAYER_MAX_PATH + 64];
} layer_interim;

typedef struct layer_instance {
    struct layer_instance *after;
    void *key;
    VkInstance handle;
    PFN_vkGetInstanceProcAddr get; /* layer_get_next has the functions of the next layer */
    PFN_GetPhysicalDeviceProcAddr get_physical; /* may be NULL */
    layer_instance_functions next;
    uint32_t api_version;
    bool debug_utils;
} layer_instance;

typedef struct layer_device {
    struct layer_device *after;
    void *key;
    VkDevice handle;
    uint32_t number; /* unique in the process, from 1 */
    pid_t process;   /* that created it */
    PFN_vkGetDeviceProcAddr get;
    layer_functions next;
    layer_settings settings;
    qi_host host;
    quire_device *quire; /* NULL: the layer is not active on this device */
    quire_device_info info;
    uint64_t min_alignment;
    qi_atomic_u64 min_sizes[64]; /* by log2 of an alignment: the size of the smallest resource that
                                    needed it; 0: no resource did */
    bool has_placed_maps;

    pthread_mutex_t mutex; /* protects the members below */
    layer_store stores[LAYER_MAX_STORES];
    qi_atomic_u32
        store_count; /* also read without the mutex: stores are complete before it grows */
    layer_private *privates;
    uint64_t private_count, private_capacity;

    layer_counts counts;
    layer_trace trace;
    layer_interim interim;
} layer_device;

/* ---- device.c ----------------------------------------------------------------------------- */

/* Returns the dispatch key: the loader stores it at the start of every dispatchable object. A queue
   has the key of its device. */
static inline void *layer_key(const void *dispatchable)
{
    return *(void *const *)dispatchable;
}

void layer_add_instance(layer_instance *instance);
void layer_add_device(layer_device *device); /* also sets its number */
layer_instance *layer_instance_of(const void *dispatchable);
layer_device *layer_device_of(const void *dispatchable);
/* Remove an entry from the registry and return it. NULL: the registry does not have it. */
layer_instance *layer_take_instance(VkInstance handle);
layer_device *layer_take_device(VkDevice handle);

/* Wraps a device that the next layer created in a quire device. After a failure the layer is not
   active on the device. */
void layer_open(layer_device *device, const layer_instance *instance, VkPhysicalDevice physical,
                const VkDeviceCreateInfo *info);

/* Writes the line that says that the layer is active, and with which settings, if they request
   it. Also writes what the device makes of a page size that it cannot use as it is. */
void layer_announce(const layer_device *device);

/* Writes the report, destroys the stores with their pages, and releases the record. */
void layer_close(layer_device *device);

/* ---- store.c ------------------------------------------------------------------------------ */

/* The size of the largest page in a heap. UINT64_MAX: the heap does not limit it. */
uint64_t layer_max_page(const layer_device *device, uint32_t heap);

/* Decides the outcome of a vkAllocateMemory. For LAYER_IN_A_PAGE it sets the store. */
layer_outcome layer_plan(layer_device *device, const VkMemoryAllocateInfo *info,
                         layer_store **store);

/* Allocates a range in a page, zeroed if the settings request it. NULL: quire has no space. */
layer_memory *layer_allocate(layer_device *device, layer_store *store, uint64_t size);
void layer_free(layer_device *device, layer_memory *memory);

/* Returns the layer's record of a handle. NULL: the handle is the driver's. */
layer_memory *layer_find(layer_device *device, VkDeviceMemory handle);

/* Replaces a handle of the layer by its page, and adds its offset in the page. Does not change a
   handle of the driver. */
void layer_translate(layer_device *device, VkDeviceMemory *memory, VkDeviceSize *offset);

/* Notes the requirements of a resource that the program will probably bind. */
void layer_learn(layer_device *device, const VkMemoryRequirements *needs);

/* Destroys all empty pages of the stores. Returns whether there were any. */
bool layer_trim(layer_device *device);

/* ---- name.c ------------------------------------------------------------------------------- */

/* Removes the private data of a slot and a memory object. 0 means all of them. */
void layer_forget_private(layer_device *device, uint64_t slot, uint64_t handle);

/* ---- report.c and trace.c ----------------------------------------------------------------- */

/* Writes the statistics to a file in the form of the settings. Returns whether that succeeded.
   Calls no Vulkan function. */
bool layer_write_statistics(const layer_device *device, FILE *file);

/* Writes the final statistics if the settings request them, and removes the interim ones. Calls no
   Vulkan function. */
void layer_report(layer_device *device);

/* Creates the interim file if the settings request statistics in a file. */
void layer_interim_open(layer_device *device);
/* To be called after each allocation and free of the program. */
void layer_interim_update(layer_device *device);
void layer_interim_remove(layer_device *device);

/* Locks the mutex of a file. Waits half a second for a thread that is writing the file, and not for
   ever: if the process exits within a signal handler the thread may hold the mutex itself. */
bool layer_lock_at_end(pthread_mutex_t *mutex);

void layer_trace_open(layer_device *device);
void layer_trace_close(layer_device *device);
/* Write a row. The first also sets the number of the memory. */
void layer_trace_allocated(layer_device *device, layer_memory *memory, uint64_t alignment);
void layer_trace_freed(layer_device *device, const layer_memory *memory);

/* ---- chain.c ------------------------------------------------------------------------------ */

/*
 * The vkGetInstanceProcAddr that quire calls: returns functions of the next layer only. The lookup
 * of the next layer does not. The loader's returns terminators until vkCreateInstance has returned,
 * and later the functions of the topmost layer. Therefore the layer looks LAYER_INSTANCE_CALLS up
 * in vkCreateInstance. NULL: the function is not in that list, or the next layer does not have it.
 */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_get_next(VkInstance instance, const char *name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetInstanceProcAddr(VkInstance instance,
                                                                   const char *name);

#endif
