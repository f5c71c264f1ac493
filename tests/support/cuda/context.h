/*
 * context.h - contexts of the fake CUDA driver, and the current context of each thread.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H
#define QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H

#include "tests/support/cuda/driver.h"

typedef struct fc_context {
    fc_object object;
    int device;
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

/* Destroys a context with everything in it; messages name `call`. */
void fc_context_end(fc_context *context, fc_call call);

/* Returns true if the calling thread runs a function passed to cuLaunchHostFunc. */
bool fc_in_host_function(void);
void fc_set_in_host_function(bool is);

#endif
