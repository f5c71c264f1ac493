/*
 * driver.h - the inside of the fake CUDA driver: its state, its objects, and what every call begins
 * and ends with.
 *
 * One lock guards everything; a call holds it from fc_enter to fc_leave.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_DRIVER_H
#define QUIRE_TESTS_SUPPORT_CUDA_DRIVER_H

#include <inttypes.h>
#include <pthread.h>
#include <sys/types.h>

#include "tests/support/cuda/entries.h"
#include "tests/support/cuda/fake_cuda.h"

#define FC_MOST_MESSAGES 64
#define FC_MOST_FAULTS 8
#define FC_MOST_HIDDEN 128
#define FC_NAME_SIZE 64
#define FC_HOST (-1) /* in place of a device */

#define FC_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The head of every object that has a handle; handles are numbers that are never used twice. */
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
    uint64_t capacity, others; /* bytes; capacity 0: all */
    fc_usage usage;
    qi_cu_result lost; /* what everything answers; 0: it is not lost */
    uint64_t primary;  /* handle of its primary context; 0: none */
    uint64_t pool;     /* of the pool it has; 0: not yet asked for */
} fc_device_state;

typedef struct fc_armed {
    fc_fault fault;
    fc_call call;  /* FC_CALL_COUNT: any */
    uint64_t seen; /* calls so far */
} fc_armed;

struct fc_span;
struct fc_reservation;
struct fc_work;

typedef struct fc_driver {
    fc_options options;
    uint64_t generation; /* of fc_reset: what threads have on their stacks is of this one or void */
    bool started, initialized, gone;
    pid_t process; /* that initialized it */
    int device_count;
    fc_device_state devices[FC_MOST_DEVICES];
    fc_usage host;
    uint64_t host_capacity;

    fc_slot *slots; /* a power of two, open addressing by handle */
    uint64_t slot_count, slots_used, next_handle;
    uint64_t live[FC_KINDS];

    struct fc_span **spans; /* by address */
    uint32_t span_count, span_room;
    struct fc_reservation *reservations; /* by address */
    uint32_t reservation_count, reservation_room;

    int store; /* the file in which most memory lies; -1: not made */
    uint64_t store_end;

    struct fc_work *work; /* by time */
    uint64_t clock, work_sequence, pending;

    uint64_t calls[FC_CALL_COUNT], fallible_calls;
    fc_armed faults[FC_MOST_FAULTS];
    uint32_t fault_count;
    fc_failure failure;
    qi_cu_result after; /* with which the call that holds the lock ends, its work done */
    uint32_t slow_us[FC_CALL_COUNT];
    fc_call hidden[FC_MOST_HIDDEN];
    uint32_t hidden_count;

    char *messages[FC_MOST_MESSAGES];
    uint32_t message_count, messages_kept;
} fc_driver;

extern fc_driver fc;

/* ---- driver.c ----------------------------------------------------------------------------- */

/* The driver with options from the environment or none, if fc_reset was not yet called. */
void fc_start(void);

/* What fc_start begins with; NULL: fc_reset(NULL). */
extern void (*fc_starter)(void);

void fc_lock(void);
void fc_unlock(void);

/* Of the device, or FC_HOST. */
fc_usage *fc_usage_at(int device);

/* Takes bytes of a device or the host; false: it has not so many. */
bool fc_take(int device, uint64_t bytes);
void fc_give(int device, uint64_t bytes);
uint64_t fc_capacity_of(int device);

bool fc_is_device(int device);

/* ---- call.c ------------------------------------------------------------------------------- */

/*
 * Every call begins with fc_enter, which counts it, decides whether it fails and leaves the driver
 * locked, and ends with fc_leave, which answers what the call is to answer. fc_enter's code, if not
 * 0, is to be given to fc_leave with nothing done.
 */
qi_cu_result fc_enter(fc_call call);
qi_cu_result fc_leave(qi_cu_result result);

const char *fc_call_name(fc_call call);
fc_call fc_call_named(const char *function); /* FC_CALL_COUNT: none */
bool fc_is_hidden(fc_call call);
uint32_t fc_call_codes(fc_call call);

/* ---- message.c ---------------------------------------------------------------------------- */

/* Says that the caller does something that no driver promises to survive. */
void fc_say(const char *id, fc_call call, const char *format, ...) FC_PRINTF(3, 4);

void fc_forget_locked(void);

/* ---- object.c ----------------------------------------------------------------------------- */

/* Zeroed, counted as alive; ends the program where there is no memory. */
void *fc_object_new(fc_kind kind, size_t size);

/* No longer alive, and freed. */
void fc_object_end(fc_object *object);

/* NULL: none of this kind and handle. */
void *fc_object_peek(fc_kind kind, uint64_t handle);

/* The same with a message. */
void *fc_object_find(fc_call call, fc_kind kind, uint64_t handle);

/* Goes through the living; begin with index 0. NULL: no more. Nothing may be made or ended. */
fc_object *fc_object_next(uint64_t *index);

const char *fc_kind_name(fc_kind kind);

void fc_objects_end(void);

/* For handles that are pointers to the caller, who has none to look through. */
#define FC_HANDLE(type, object) ((type)(uintptr_t)(object)->handle)
#define FC_NUMBER(pointer) ((uint64_t)(uintptr_t)(pointer))

#endif
