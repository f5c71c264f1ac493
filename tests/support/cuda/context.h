/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * context.h - contexts of the fake CUDA driver, and the current context of each thread.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H
#define QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H

#include "tests/support/cuda/driver.h"

typedef struct fc_context {
    fc_object object;
    int device;
    uint64_t primary;  /* of a green context: the handle of its device's primary context; or 0 */
    uint32_t retained; /* references as a primary context; 0: it is not one */
    uint32_t peers;    /* bits of the devices whose memory it may access */
    uint64_t end;      /* when the work of its default stream is done */
    uint64_t orphaned; /* when the work of its destroyed streams is done */
} fc_context;

/* The calling thread's current context if it is alive; NULL otherwise. */
fc_context *fc_context_peek(void);

/* The same; *result gives the error if there is none. */
fc_context *fc_context_current(fc_call call, qi_cu_result *result);

/* Begins a call that needs a current context. A *result other than 0 must be passed to fc_leave. */
fc_context *fc_enter_context(fc_call call, qi_cu_result *result);

/* Returns true if streams of the context with this handle are the context's: it is the same one, or
   a green one of this primary context. */
bool fc_context_has(const fc_context *context, uint64_t handle);

/* The primary context of a device, retained once more. */
fc_context *fc_primary_retain(int device);
void fc_primary_release(fc_context *context, fc_call call);

/* The number of the calling thread; no later thread has the same. */
uint64_t fc_thread(void);

/* Destroys a context with everything in it; messages name `call`. */
void fc_context_end(fc_context *context, fc_call call);

/* Returns true if the calling thread runs a function passed to cuLaunchHostFunc. */
bool fc_in_host_function(void);
void fc_set_in_host_function(bool is);

#endif
