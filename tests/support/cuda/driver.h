/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.h - the internals of the fake CUDA driver: its state, its objects, and what every call
 * does first and last.
 *
 * One lock protects everything. A call holds it from fc_enter to fc_leave.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_DRIVER_H
#define QUIRE_TESTS_SUPPORT_CUDA_DRIVER_H

#include <inttypes.h>
#include <pthread.h>
#include <sys/types.h>

#include "tests/support/cuda/entries.h"
#include "tests/support/cuda/fake_cuda.h"

#define FC_MAX_MESSAGES 64
#define FC_MAX_FAULTS 8
#define FC_MAX_HIDDEN 128
#define FC_NAME_SIZE 64
#define FC_HOST (-1) /* instead of a device number */

#define FC_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The first member of every object with a handle. Handles are numbers that are never reused. */
typedef struct fc_object {
    uint64_t handle;
    fc_kind kind;
} fc_object;

typedef struct fc_slot {
    uint64_t handle; /* 0: free */
    fc_object *object;
} fc_slot;

typedef struct fc_device_state {
    fc_model model;
    char name[FC_NAME_SIZE];
    uint64_t capacity, others; /* bytes; capacity 0 means all */
    fc_usage usage;
    qi_cu_result lost;     /* the error of every call; 0: the device is not lost */
    uint64_t primary;      /* handle of its primary context; 0: none */
    uint64_t pool;         /* of its default pool; 0: not created yet */
    uint64_t current_pool; /* of cuMemAllocAsync; 0: the default pool */
} fc_device_state;

typedef struct fc_armed {
    fc_fault fault;
    fc_call call;  /* FC_CALL_COUNT means any */
    uint64_t seen; /* matching calls so far */
} fc_armed;

struct fc_span;
struct fc_reservation;
struct fc_work;

typedef struct fc_driver {
    fc_options options;
    uint64_t generation; /* counts fc_reset; contexts of older generations are void */
    bool started, initialized, gone;
    pid_t process; /* the process that initialised it */
    int device_count;
    fc_device_state devices[FC_MAX_DEVICES];
    fc_usage host;
    uint64_t host_capacity;

    fc_slot *slots; /* open addressing by handle; slot_count is a power of two */
    uint64_t slot_count, slots_used, next_handle;
    uint64_t live[FC_KINDS];

    struct fc_span **spans; /* by address */
    uint32_t span_count, span_room;
    struct fc_reservation *reservations; /* by address */
    uint32_t reservation_count, reservation_room;

    int store; /* the file with most of the memory; -1: not created */
    uint64_t store_end;

    struct fc_work *work; /* sorted by time */
    uint64_t clock, work_sequence, pending;
    uint64_t pooled_bytes; /* that all pools hold */

    uint64_t calls[FC_CALL_COUNT], fallible_calls;
    fc_armed faults[FC_MAX_FAULTS];
    uint32_t fault_count;
    fc_failure failure;
    qi_cu_result after; /* the error that the running call returns after doing its work */
    uint32_t slow_us[FC_CALL_COUNT];
    uint64_t busy_calls; /* further calls of cuMemSetAccess that return NOT_READY */
    fc_call hidden[FC_MAX_HIDDEN];
    uint32_t hidden_count;

    char *messages[FC_MAX_MESSAGES];
    uint32_t message_count, messages_kept;
} fc_driver;

extern fc_driver fc;

/* ---- driver.c ----------------------------------------------------------------------------- */

/* Starts the driver with options from the environment, or with none, if fc_reset was not called
   yet. */
void fc_start(void);

/* The function that fc_start calls; NULL means fc_reset(NULL). */
extern void (*fc_starter)(void);

void fc_lock(void);
void fc_unlock(void);

/* The usage of a device or of FC_HOST. */
fc_usage *fc_usage_at(int device);

/* Takes bytes of a device or the host. Returns false if they are not available. */
bool fc_take(int device, uint64_t bytes);
void fc_give(int device, uint64_t bytes);
uint64_t fc_capacity_of(int device);

bool fc_is_device(int device);

/* ---- call.c ------------------------------------------------------------------------------- */

/*
 * Every call starts with fc_enter, which counts it, decides whether it fails, and locks the driver.
 * It ends with fc_leave, which returns the result of the call. If fc_enter returns an error, the
 * call does nothing and passes the error to fc_leave.
 */
qi_cu_result fc_enter(fc_call call);
qi_cu_result fc_leave(qi_cu_result result);

/* Refuses the call, whose `result` is good so far, with a code without QI_CUDA_ERROR_. */
#define FC_REFUSE_IF(condition, code)                                                              \
    do {                                                                                           \
        if (!result && (condition))                                                                \
            result = QI_CUDA_ERROR_##code;                                                         \
    } while (0)

const char *fc_call_name(fc_call call);
fc_call fc_call_named(const char *function); /* FC_CALL_COUNT if there is none */
bool fc_is_hidden(fc_call call);
uint32_t fc_call_codes(fc_call call);

/* ---- message.c ---------------------------------------------------------------------------- */

/* Adds a message: the caller does something that no driver is required to survive. */
void fc_say(const char *id, fc_call call, const char *format, ...) FC_PRINTF(3, 4);

void fc_forget_locked(void);

/* ---- object.c ----------------------------------------------------------------------------- */

/* Creates a zeroed object that counts as alive. Ends the program without memory. */
void *fc_object_new(fc_kind kind, size_t size);

/* Frees an object, which no longer counts as alive. */
void fc_object_end(fc_object *object);

/* Returns NULL if no object of this kind has the handle. */
void *fc_object_peek(fc_kind kind, uint64_t handle);

/* The same, with a message if there is none. */
void *fc_object_find(fc_call call, fc_kind kind, uint64_t handle);

/* Iterates over the live objects; start with index 0; NULL after the last. No object may be created
   or destroyed in between. */
fc_object *fc_object_next(uint64_t *index);

const char *fc_kind_name(fc_kind kind);

void fc_objects_end(void);

/* For handles that are opaque pointers to the caller. */
#define FC_HANDLE(type, object) ((type)(uintptr_t)(object)->handle)
#define FC_NUMBER(pointer) ((uint64_t)(uintptr_t)(pointer))

#endif
