/*
 * driver.h - the inside of the fake driver: its state, the objects, and what every call begins and
 * ends with.
 *
 * One lock per driver guards everything; a call holds it from fv_enter to fv_leave. Messages have a
 * lock of their own, so that they can be written from anywhere.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_DRIVER_H
#define QUIRE_TESTS_SUPPORT_VULKAN_DRIVER_H

#include <inttypes.h>
#include <pthread.h>

#include <vulkan/vk_icd.h>

#include "tests/support/vulkan/entries.h"
#include "tests/support/vulkan/fake_vulkan.h"

#define FV_MOST_MESSAGES 64
#define FV_MOST_FAULTS 8
#define FV_MOST_HIDDEN 16
#define FV_MOST_CLAIMS 256
#define FV_MOST_FORMATS 16
#define FV_NAME_SIZE 80

#define FV_PRINTF(text, first) __attribute__((format(printf, text, first)))

typedef struct fv_device fv_device;
typedef struct fv_instance fv_instance;

/*
 * The head of every object. Dispatchable handles point to it, which is why the loader's word comes
 * first; the others are numbers that are never used twice, looked up in the driver's table.
 */
typedef struct fv_object {
    VK_LOADER_DATA loader;
    fv_driver *driver;
    fv_device *device; /* NULL for instances and physical devices */
    struct fv_object
        *next; /* dispatchable objects of the past, kept so that stale use is noticed */
    uint64_t handle;
    fv_kind kind;
    bool dead;
    uint32_t pending; /* submissions not yet done that use it */
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
    uint32_t version; /* the one the application asked for */
    uint32_t extensions;
    fv_physical_device devices[FV_MOST_DEVICES];
};

typedef struct fv_armed {
    fv_fault fault;
    fv_call function; /* FV_CALL_COUNT: any */
    uint64_t seen;    /* calls so far */
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
    pthread_cond_t changed; /* a fence or semaphore was signalled, or a device lost */
    fv_options options;
    fv_layout layouts[FV_MOST_DEVICES];
    char names[FV_MOST_DEVICES][FV_NAME_SIZE]; /* of the layouts */
    uint32_t device_count;

    fv_slot *slots; /* a power of two, open addressing by handle */
    uint64_t slot_count, slots_used, next_handle;
    fv_object *past;
    uint64_t live[FV_KINDS];

    uint64_t calls[FV_CALL_COUNT];
    uint64_t fallible_calls;
    fv_heap_state heaps[FV_MOST_DEVICES][VK_MAX_MEMORY_HEAPS];

    fv_armed faults[FV_MOST_FAULTS];
    uint32_t fault_count;
    fv_failure failure;
    uint32_t slow_ms;
    bool lost;
    const char *hidden[FV_MOST_HIDDEN]; /* names of entries.h */
    uint32_t hidden_count;
    fv_format_override formats[FV_MOST_FORMATS];
    uint32_t format_count;

    pthread_mutex_t message_lock; /* guards what follows */
    uint32_t message_counts[FV_SEVERITIES];
    char *messages[FV_MOST_MESSAGES];
    uint32_t message_count;
    char allowed[FV_MOST_FAULTS][FV_NAME_SIZE];
    uint32_t allowed_count;
    fv_claim claims[FV_MOST_CLAIMS];
};

/* ---- message.c ---------------------------------------------------------------------------- */

/* Says that the caller does something wrong. The id is the specification's or begins with "fv-". */
void fv_say(fv_driver *driver, fv_severity severity, const char *id, fv_call call,
            const char *format, ...) FV_PRINTF(5, 6);

#define FV_WRONG(driver, id, call, ...)                                                            \
    fv_say((driver), FV_ERROR, (id), FV_CALL_##call, __VA_ARGS__)

/* ---- call.c ------------------------------------------------------------------------------- */

/*
 * Every call begins with fv_enter, which counts it, decides whether it fails, and leaves the driver
 * locked, and ends with fv_leave. Answers the code to fail with, which is the function's to return.
 */
VkResult fv_enter(fv_driver *driver, fv_call call);
void fv_leave(fv_driver *driver);

/*
 * For a parameter that the caller must not use in two threads at once: claimed before fv_enter,
 * released after fv_leave.
 */
void fv_claim_handle(fv_driver *driver, fv_call call, uint64_t handle);
void fv_release_handle(fv_driver *driver, uint64_t handle);

const char *fv_call_name(fv_call call);
uint32_t fv_call_codes(fv_call call);
fv_call fv_call_named(const char *function); /* FV_CALL_COUNT: none */

void fv_sleep_us(uint64_t microseconds);

/* ---- object.c ----------------------------------------------------------------------------- */

/* Zeroed, counted as alive; ends the program where there is no memory. */
void *fv_object_new(fv_driver *driver, fv_device *device, fv_kind kind, size_t size);

/* For one that lies in another: neither counted nor looked up. */
void fv_object_init(fv_object *object, fv_driver *driver, fv_device *device, fv_kind kind);

/* No longer alive. Frees it, but keeps a dispatchable one until the driver ends. */
void fv_object_end(fv_object *object);

void fv_objects_end(fv_driver *driver);

/* An object by its number, or NULL, without a word. */
fv_object *fv_object_peek(fv_driver *driver, fv_kind kind, uint64_t handle);

/* An object of this device and kind, or NULL and a message. */
void *fv_object_find(fv_device *device, fv_call call, fv_kind kind, uint64_t handle);

/* A dispatchable handle that is alive, or NULL and a message. */
bool fv_object_check(fv_object *object, fv_call call, fv_kind kind);

/* Goes through the living numbered objects; begin with index 0. NULL: no more. */
fv_object *fv_object_next(fv_driver *driver, uint64_t *index);

#define FV_FIND(device, call, kind, handle)                                                        \
    fv_object_find((device), FV_CALL_##call, (kind), (uint64_t)(handle))

#define FV_HANDLE(type, object) ((type)(object)->handle)

/* What a failed call writes where a handle would be, so that its use is noticed. */
#define FV_GARBAGE UINT64_C(0xdeadbeefdeadbeef)

/* ---- chain.c ------------------------------------------------------------------------------ */

/* The struct of a pNext chain; NULL: it has none. */
const void *fv_chained(const void *chain, VkStructureType type);

/* Says which structs of the chain are not among the given ones, or are there twice. */
void fv_check_chain(fv_driver *driver, fv_call call, const void *chain, size_t count,
                    const VkStructureType *types);

#define FV_CHECK_CHAIN(driver, call, chain, ...)                                                   \
    fv_check_chain((driver), FV_CALL_##call, (chain),                                              \
                   sizeof((VkStructureType[]){__VA_ARGS__}) / sizeof(VkStructureType),             \
                   (VkStructureType[]){__VA_ARGS__})

/* ---- driver.c ----------------------------------------------------------------------------- */

/* The driver that vkCreateInstance and the other global functions speak to. */
fv_driver *fv_current(void);

/* ---- extension.c -------------------------------------------------------------------------- */

/* Names of extensions, and their bits among those offered; UINT32_MAX: not offered. */
uint32_t fv_extension_bit(const char *name, bool of_instance, uint32_t offered);
uint32_t fv_extensions_list(bool of_instance, uint32_t offered, VkExtensionProperties *list,
                            uint32_t room);

#endif
