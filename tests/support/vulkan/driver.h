/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.h - the internals of the fake driver: its state, its objects, and the begin and end of
 * every call.
 *
 * One lock per driver protects everything. A call holds it from fv_enter to fv_leave. Messages have
 * a separate lock, so that any code can write them.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_DRIVER_H
#define QUIRE_TESTS_SUPPORT_VULKAN_DRIVER_H

#include <inttypes.h>
#include <pthread.h>

#include <vulkan/vk_icd.h>

#include "tests/support/vulkan/entries.h"
#include "tests/support/vulkan/fake_vulkan.h"

#define FV_MAX_MESSAGES 64
#define FV_MAX_FAULTS 8
#define FV_MAX_HIDDEN 16
#define FV_MAX_CLAIMS 256
#define FV_MAX_FORMATS 16
#define FV_NAME_SIZE 80

#define FV_PRINTF(text, first) __attribute__((format(printf, text, first)))

typedef struct fv_device fv_device;
typedef struct fv_instance fv_instance;

/*
 * The header of every object. Dispatchable handles point to it; the loader requires that its word
 * comes first. All other handles are numbers in the driver's table and are never reused.
 */
typedef struct fv_object {
    VK_LOADER_DATA loader;
    fv_driver *driver;
    fv_device *device; /* NULL for instances and physical devices */
    struct fv_object
        *next; /* destroyed dispatchable objects, kept to detect the use of stale handles */
    uint64_t handle;
    fv_kind kind;
    bool dead;
    uint32_t pending; /* incomplete submissions that use it */
    char name[FV_NAME_SIZE];
} fv_object;

typedef struct fv_slot {
    uint64_t handle; /* 0: free */
    fv_object *object;
} fv_slot;

typedef struct fv_heap_state {
    fv_heap_usage usage;
    uint64_t budget, others, capacity;
} fv_heap_state;

typedef struct fv_physical_device {
    fv_object object;
    fv_layout layout;
    uint32_t index;
    fv_instance *instance;
} fv_physical_device;

struct fv_instance {
    fv_object object;
    uint32_t version; /* requested by the application */
    uint32_t extensions;
    fv_physical_device devices[FV_MAX_DEVICES];
};

typedef struct fv_armed {
    fv_fault fault;
    fv_call function; /* FV_CALL_COUNT: any */
    uint64_t seen;    /* matching calls so far */
} fv_armed;

typedef struct fv_claim {
    uint64_t handle;
    pthread_t thread;
    fv_call call;
} fv_claim;

typedef struct fv_format_override {
    VkFormat format;
    VkFormatFeatureFlags linear, optimal;
} fv_format_override;

struct fv_driver {
    pthread_mutex_t lock;
    pthread_cond_t
        changed; /* signalled when a fence or semaphore is signalled, or a device is lost */
    fv_options options;
    fv_layout layouts[FV_MAX_DEVICES];
    char names[FV_MAX_DEVICES][FV_NAME_SIZE]; /* of the layouts */
    uint32_t device_count;

    fv_slot *slots; /* a power of two, open addressing by handle */
    uint64_t slot_count, slots_used, next_handle;
    fv_object *past;
    uint64_t live[FV_KINDS];

    uint64_t calls[FV_CALL_COUNT];
    uint64_t fallible_calls;
    uint64_t pending, most_pending; /* submissions that are not executed */
    fv_heap_state heaps[FV_MAX_DEVICES][VK_MAX_MEMORY_HEAPS];

    fv_armed faults[FV_MAX_FAULTS];
    uint32_t fault_count;
    fv_failure failure;
    bool lost;
    const char *hidden[FV_MAX_HIDDEN]; /* names of entries.h */
    uint32_t hidden_count;
    fv_format_override formats[FV_MAX_FORMATS];
    uint32_t format_count;

    pthread_mutex_t message_lock; /* protects the members below */
    uint32_t message_counts[FV_SEVERITIES];
    char *messages[FV_MAX_MESSAGES];
    uint32_t message_count;
    char allowed[FV_MAX_FAULTS][FV_NAME_SIZE];
    uint32_t allowed_count;
    fv_claim claims[FV_MAX_CLAIMS];
};

/* ---- message.c ---------------------------------------------------------------------------- */

/* Reports an error of the caller. The id is from the specification or begins with "fv-". */
void fv_say(fv_driver *driver, fv_severity severity, const char *id, fv_call call,
            const char *format, ...) FV_PRINTF(5, 6);

#define FV_WRONG(driver, id, call, ...)                                                            \
    fv_say((driver), FV_ERROR, (id), FV_CALL_##call, __VA_ARGS__)

/* ---- call.c ------------------------------------------------------------------------------- */

/*
 * Every call begins with fv_enter and ends with fv_leave. fv_enter counts the call, locks the
 * driver and decides whether the call fails. It returns the code that the function must then
 * return.
 */
VkResult fv_enter(fv_driver *driver, fv_call call);
void fv_leave(fv_driver *driver);

/*
 * For an externally synchronised parameter: claim it before fv_enter and release it after
 * fv_leave.
 */
void fv_claim_handle(fv_driver *driver, fv_call call, uint64_t handle);
void fv_release_handle(fv_driver *driver, uint64_t handle);

const char *fv_call_name(fv_call call);
uint32_t fv_call_codes(fv_call call);
fv_call fv_call_named(const char *function); /* FV_CALL_COUNT: none */

/* ---- object.c ----------------------------------------------------------------------------- */

/* Creates a zeroed object and counts it. Aborts if memory is exhausted. */
void *fv_object_new(fv_driver *driver, fv_device *device, fv_kind kind, size_t size);

/* For an object that is a member of another one: it is not counted and not in the table. */
void fv_object_init(fv_object *object, fv_driver *driver, fv_device *device, fv_kind kind);

/* Removes an object and frees it. Dispatchable objects are kept until the driver is destroyed. */
void fv_object_end(fv_object *object);

void fv_objects_end(fv_driver *driver);

/* Returns an object by its number, or NULL without a message. */
fv_object *fv_object_peek(fv_driver *driver, fv_kind kind, uint64_t handle);

/* Returns an object of this device and kind, or NULL with a message. */
void *fv_object_find(fv_device *device, fv_call call, fv_kind kind, uint64_t handle);

/* Returns the object of a valid dispatchable handle, or NULL with a message. */
bool fv_object_check(fv_object *object, fv_call call, fv_kind kind);

/* Iterates over the objects with numbers. Begin with index 0. NULL: no more. */
fv_object *fv_object_next(fv_driver *driver, uint64_t *index);

#define FV_FIND(device, call, kind, handle)                                                        \
    fv_object_find((device), FV_CALL_##call, (kind), (uint64_t)(handle))

#define FV_HANDLE(type, object) ((type)(object)->handle)

/* What a failed call writes instead of a handle, so that its use is detected. */
#define FV_GARBAGE UINT64_C(0xdeadbeefdeadbeef)

/* ---- chain.c ------------------------------------------------------------------------------ */

/* Returns a struct of a pNext chain. NULL: the chain does not have it. */
const void *fv_chained(const void *chain, VkStructureType type);

/* Reports structs of the chain that are not among the given ones, or occur twice. */
void fv_check_chain(fv_driver *driver, fv_call call, const void *chain, size_t count,
                    const VkStructureType *types);

#define FV_CHECK_CHAIN(driver, call, chain, ...)                                                   \
    fv_check_chain((driver), FV_CALL_##call, (chain),                                              \
                   sizeof((VkStructureType[]){__VA_ARGS__}) / sizeof(VkStructureType),             \
                   (VkStructureType[]){__VA_ARGS__})

/* ---- driver.c ----------------------------------------------------------------------------- */

/* The driver of vkCreateInstance and the other global functions. */
fv_driver *fv_current(void);

/* ---- extension.c -------------------------------------------------------------------------- */

/* Names of extensions, and their bit among the offered ones. UINT32_MAX: not offered. */
uint32_t fv_extension_bit(const char *name, bool of_instance, uint32_t offered);
uint32_t fv_extensions_list(bool of_instance, uint32_t offered, VkExtensionProperties *list,
                            uint32_t room);

#endif
