/*
 * context.h - contexts of the fake CUDA driver, and which of them each thread has current.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H
#define QUIRE_TESTS_SUPPORT_CUDA_CONTEXT_H

#include "tests/support/cuda/driver.h"

typedef struct fc_context {
    fc_object object;
    int device;
    uint32_t retained; /* as a device's primary context; 0: it is none */
    uint32_t peers;    /* bits of the devices whose memory it may reach */
    uint64_t end;      /* of the clock: work of its default stream is done then */
    uint64_t orphaned; /* likewise that of streams that were destroyed */
} fc_context;

/* The calling thread's current one, which is alive; NULL: none. */
fc_context *fc_context_peek(void);

/* The same; *result says why there is none. */
fc_context *fc_context_current(fc_call call, qi_cu_result *result);

/* Begins a call that needs a current context; *result is to be given to fc_leave if not 0. */
fc_context *fc_enter_context(fc_call call, qi_cu_result *result);

/* Ends it with what lies in it; `call` is said to have done so. */
void fc_context_end(fc_context *context, fc_call call);

/* The calling thread runs a function that cuLaunchHostFunc was given. */
bool fc_in_host_function(void);
void fc_set_in_host_function(bool is);

#endif
