/*
 * layer.h - VK_LAYER_QUIRE_suballocate: what the files of the layer share.
 *
 * The layer stands between a program and its driver and answers vkAllocateMemory with ranges of
 * quire's pages. A VkDeviceMemory that it hands out is the number of a quire allocation, whose tag
 * tells the store it is from; every other one is the driver's, untouched. All calls that take a
 * VkDeviceMemory are intercepted, and memory and offset are translated in them.
 *
 * Thread-safety: as Vulkan's. What the program must synchronise by itself (a memory object that is
 * mapped, unmapped or freed) is not locked here either.
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

/* Handles as numbers: some platforms have them as pointers, others as integers. */
#if VK_USE_64_BIT_PTR_DEFINES
#define LAYER_NUMBER(handle) ((uint64_t)(uintptr_t)(handle))
#define LAYER_MEMORY(number) ((VkDeviceMemory)(uintptr_t)(number))
#else
#define LAYER_NUMBER(handle) ((uint64_t)(handle))
#define LAYER_MEMORY(number) ((VkDeviceMemory)(number))
#endif

enum { LAYER_MOST_STORES = 64 };

/* What became of a vkAllocateMemory; all but the first go to the driver as they are. */
#define LAYER_OUTCOMES(X)                                                                          \
    X(IN_A_PAGE, "in_a_page", "in pages of quire")                                                 \
    X(DEDICATED, "dedicated", "passed on: dedicated to a buffer or image")                         \
    X(EXTERNAL, "external", "passed on: exported or imported")                                     \
    X(LARGE, "large", "passed on: from the threshold on, or aligned beyond quire")                 \
    X(CHAINED, "chained", "passed on: capture and replay, device masks, unknown structs")          \
    X(KIND, "kind", "passed on: lazily allocated or protected kinds, placed maps")                 \
    X(REFUSED, "refused", "passed on: quire had no room")                                          \
    X(OFF, "off", "passed on: the layer stays out of this device")

typedef enum layer_outcome {
#define X(name, key, text) LAYER_##name,
    LAYER_OUTCOMES(X)
#undef X
        LAYER_OUTCOME_COUNT
} layer_outcome;

/* Memory of one kind and priority. */
typedef struct layer_store {
    quire_memory *memory;
    uint32_t kind;
    float priority;
    uint64_t threshold; /* bytes from which on allocations are passed on */
    qi_atomic_u64 tag;  /* of its allocations' numbers; 0: there was none yet */
} layer_store;

/* What the program holds as one VkDeviceMemory. */
typedef struct layer_memory {
    layer_store *store;
    quire_allocation allocation;
    VkDeviceMemory page;
    uint64_t offset; /* in the page */
    uint64_t size;   /* as the program asked */
    uint64_t held;   /* whole atoms */
    uint64_t number; /* in the trace */
    bool mapped;
    uint64_t map_end; /* in the memory */
} layer_memory;

/* vkSetPrivateData for memory objects that no driver knows. */
typedef struct layer_private {
    uint64_t slot;
    uint64_t handle;
    uint64_t value;
} layer_private;

typedef struct layer_counts {
    qi_atomic_u64 calls[LAYER_OUTCOME_COUNT]; /* that succeeded */
    qi_atomic_u64 bytes[LAYER_OUTCOME_COUNT];
    qi_atomic_u64 failed;      /* the driver refused as well */
    qi_atomic_u64 freed;       /* ranges of pages */
    qi_atomic_u64 passed_free; /* the driver's own */
} layer_counts;

typedef struct layer_trace {
    bool is_open;    /* false: none is written */
    bool has_failed; /* a row could not be written, and none is any more */
    int file;        /* closed where a program is executed */
    pid_t process;   /* that opened it; no other one writes to it */
    uint64_t start_ns;
    uint64_t count;
    pthread_mutex_t mutex;
} layer_trace;

typedef struct layer_instance {
    struct layer_instance *after;
    void *key;
    VkInstance handle;
    PFN_vkGetInstanceProcAddr get;
    PFN_GetPhysicalDeviceProcAddr get_physical; /* may be NULL */
    PFN_vkDestroyInstance destroy;
    uint32_t api_version;
    bool debug_utils;
} layer_instance;

typedef struct layer_device {
    struct layer_device *after;
    void *key;
    VkDevice handle;
    uint32_t number; /* in the process, from 1 */
    pid_t process;   /* that made it */
    PFN_vkGetDeviceProcAddr get;
    layer_functions next;
    layer_settings settings;
    qi_host host;
    quire_device *quire; /* NULL: the layer stays out */
    quire_device_info info;
    uint64_t least_alignment;
    qi_atomic_u64 least_sizes[64]; /* by exponent: the smallest resource that asked for such an
                                      alignment; 0: none did */
    bool has_placed_maps;

    pthread_mutex_t mutex; /* guards what follows */
    layer_store stores[LAYER_MOST_STORES];
    qi_atomic_u32 store_count; /* read without the mutex */
    layer_private *privates;
    uint64_t private_count, private_room;

    layer_counts counts;
    layer_trace trace;
} layer_device;

/* ---- registry.c: instances and devices by dispatch key --------------------------------------- */

/* What the loader puts first into every dispatchable object; queues share that of their device. */
static inline void *layer_key(const void *dispatchable)
{
    return *(void *const *)dispatchable;
}

void layer_add_instance(layer_instance *instance);
void layer_add_device(layer_device *device); /* numbers it */
layer_instance *layer_instance_of(const void *dispatchable);
layer_device *layer_device_of(const void *dispatchable);
layer_instance *layer_take_instance(VkInstance handle); /* out of the table; NULL: not in it */
layer_device *layer_take_device(VkDevice handle);

/* ---- device.c -------------------------------------------------------------------------------- */

/* Puts quire on a device that the next layer has made; without it the device is as it was. */
void layer_open(layer_device *device, const layer_instance *instance, VkPhysicalDevice physical,
                const VkDeviceCreateInfo *info);

/* Gives every page back, reports, and ends the record. */
void layer_close(layer_device *device);

/* ---- store.c --------------------------------------------------------------------------------- */

/* What vkAllocateMemory is to become, and from which store it is taken then. */
layer_outcome layer_plan(layer_device *device, const VkMemoryAllocateInfo *info,
                         layer_store **store);

/* A range in a page; NULL: quire has none. */
layer_memory *layer_allocate(layer_device *device, layer_store *store, uint64_t size);
void layer_free(layer_device *device, layer_memory *memory);

/* What the layer knows of a handle; NULL: nothing, it is the driver's. */
layer_memory *layer_find(layer_device *device, VkDeviceMemory handle);

/* Replaces one of the layer's own by its page, and moves the offset by where it lies there. */
void layer_translate(layer_device *device, VkDeviceMemory *memory, VkDeviceSize *offset);

/* A resource with these needs is going to be bound. */
void layer_learn(layer_device *device, const VkMemoryRequirements *needs);

/* Gives all empty pages back. */
void layer_trim(layer_device *device);

/* ---- name.c ---------------------------------------------------------------------------------- */

/* Forgets what a slot, or a memory object, had; 0: of any. */
void layer_forget_private(layer_device *device, uint64_t slot, uint64_t handle);

/* ---- report.c and trace.c -------------------------------------------------------------------- */

/* Writes the statistics where the settings say, if they do. Calls nothing of Vulkan. */
void layer_report(layer_device *device);

void layer_trace_open(layer_device *device);
void layer_trace_close(layer_device *device);
/* Numbers the memory. */
void layer_trace_allocated(layer_device *device, layer_memory *memory, uint64_t alignment);
void layer_trace_freed(layer_device *device, const layer_memory *memory);

/* ---- chain.c --------------------------------------------------------------------------------- */

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetInstanceProcAddr(VkInstance instance,
                                                                   const char *name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetDeviceProcAddr(VkDevice device, const char *name);
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL layer_GetPhysicalDeviceProcAddr(VkInstance instance,
                                                                         const char *name);

#endif
