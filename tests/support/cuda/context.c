/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * context.c - see context.h. Each thread has a stack of context numbers. A number of a destroyed
 * context, or of an earlier fc_reset, is not found among the live ones.
 */
#include "tests/support/cuda/context.h"

#include <string.h>

#include "tests/support/cuda/capture.h"
#include "tests/support/cuda/leak.h"

#define DEPTH 32
#define SCHEDULES 0x07u /* all flags that contexts have */
#define MAX_FLAGS 0x1fu

typedef struct stack {
    uint64_t generation;
    uint32_t depth;
    uint64_t contexts[DEPTH];
} stack;

static _Thread_local stack current;
static _Thread_local bool in_host_function;

uint64_t fc_thread(void)
{
    static _Thread_local uint64_t number;
    static uint64_t last; /* the driver's lock protects it */
    if (!number)
        number = ++last;
    return number;
}

bool fc_in_host_function(void)
{
    return in_host_function;
}

void fc_set_in_host_function(bool is)
{
    in_host_function = is;
}

/* ---- the stack ---------------------------------------------------------------------------- */

static stack *own(void)
{
    if (current.generation != fc.generation)
        current = (stack){.generation = fc.generation};
    return &current;
}

static uint64_t top(void)
{
    const stack *s = own();
    return s->depth ? s->contexts[s->depth - 1] : 0;
}

uint32_t fc_depth(void)
{
    fc_lock();
    uint32_t depth = own()->depth;
    fc_unlock();
    return depth;
}

fc_context *fc_context_peek(void)
{
    return fc_object_peek(FC_CONTEXT, top());
}

fc_context *fc_context_current(fc_call call, qi_cu_result *result)
{
    fc_context *context = fc_context_peek();
    *result = context ? 0 : QI_CUDA_ERROR_INVALID_CONTEXT;
    if (!context && top()) {
        fc_say("fc-context", call, "the current context was destroyed");
        *result = QI_CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return context;
}

fc_context *fc_enter_context(fc_call call, qi_cu_result *result)
{
    *result = fc_enter(call);
    return *result ? NULL : fc_context_current(call, result);
}

qi_cu_result fc_CtxGetCurrent(qi_cu_context *context)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxGetCurrent);
    FC_REFUSE_IF(!context, INVALID_VALUE);
    if (!result)
        *context = (qi_cu_context)(uintptr_t)top();
    return fc_leave(result);
}

qi_cu_result fc_CtxPushCurrent_v2(qi_cu_context handle)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxPushCurrent_v2);
    stack *s = own();
    FC_REFUSE_IF(!fc_object_find(FC_CALL_CtxPushCurrent_v2, FC_CONTEXT, FC_NUMBER(handle)),
                 INVALID_CONTEXT);
    FC_REFUSE_IF(s->depth == DEPTH, INVALID_VALUE);
    if (!result)
        s->contexts[s->depth++] = FC_NUMBER(handle);
    return fc_leave(result);
}

qi_cu_result fc_CtxPopCurrent_v2(qi_cu_context *context)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxPopCurrent_v2);
    stack *s = own();
    FC_REFUSE_IF(!s->depth, INVALID_CONTEXT);
    if (!result) {
        s->depth--;
        if (context)
            *context = (qi_cu_context)(uintptr_t)s->contexts[s->depth];
    }
    return fc_leave(result);
}

qi_cu_result fc_CtxSetCurrent(qi_cu_context handle)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxSetCurrent);
    stack *s = own();
    FC_REFUSE_IF(handle && !fc_object_find(FC_CALL_CtxSetCurrent, FC_CONTEXT, FC_NUMBER(handle)),
                 INVALID_CONTEXT);
    if (!result) { /* replaces the topmost one */
        s->depth -= s->depth > 0;
        if (handle)
            s->contexts[s->depth++] = FC_NUMBER(handle);
    }
    return fc_leave(result);
}

qi_cu_result fc_CtxGetDevice(qi_cu_device *device)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_CtxGetDevice, &result);
    FC_REFUSE_IF(!device, INVALID_VALUE);
    if (!result)
        *device = context->device;
    return fc_leave(result);
}

qi_cu_result fc_CtxSynchronize(void)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_CtxSynchronize, &result);
    if (!result)
        result = fc_capture_check_context(context);
    if (!result)
        result = fc_finish_context(context);
    return fc_leave(result);
}

bool fc_context_has(const fc_context *context, uint64_t handle)
{
    const fc_context *other = fc_object_peek(FC_CONTEXT, handle);
    return handle == context->object.handle || (other && other->primary == context->object.handle);
}

/* ---- beginning and end -------------------------------------------------------------------- */

static fc_context *begin(int device)
{
    fc_context *context = fc_object_new(FC_CONTEXT, sizeof *context);
    context->device = device;
    return context;
}

/* A lost device recovers when its last context is gone. */
static void recover(int device)
{
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index))
        if (object->kind == FC_CONTEXT && ((fc_context *)object)->device == device)
            return;
    fc.devices[device].lost = 0;
}

void fc_context_end(fc_context *context, fc_call call)
{
    int device = context->device;
    (void)fc_finish_context(context);
    fc_context_leaked(context, call);
    if (fc.devices[device].primary == context->object.handle)
        fc.devices[device].primary = 0;
    fc_object_end(&context->object);
    recover(device);
}

fc_context *fc_primary_retain(int device)
{
    fc_device_state *state = &fc.devices[device];
    fc_context *context = fc_object_peek(FC_CONTEXT, state->primary);
    context = context ? context : begin(device);
    context->retained++;
    state->primary = context->object.handle;
    return context;
}

void fc_primary_release(fc_context *context, fc_call call)
{
    if (!--context->retained)
        fc_context_end(context, call);
}

qi_cu_result fc_DevicePrimaryCtxRetain(qi_cu_context *out, qi_cu_device device)
{
    qi_cu_result result = fc_enter(FC_CALL_DevicePrimaryCtxRetain);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        *out = FC_HANDLE(qi_cu_context, &fc_primary_retain(device)->object);
    return fc_leave(result);
}

qi_cu_result fc_DevicePrimaryCtxRelease_v2(qi_cu_device device)
{
    qi_cu_result result = fc_enter(FC_CALL_DevicePrimaryCtxRelease_v2);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    fc_context *context = result ? NULL : fc_object_peek(FC_CONTEXT, fc.devices[device].primary);
    if (!result && !context) {
        fc_say("fc-primary", FC_CALL_DevicePrimaryCtxRelease_v2, "it is not retained");
        result = QI_CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!result)
        fc_primary_release(context, FC_CALL_DevicePrimaryCtxRelease_v2);
    return fc_leave(result);
}

qi_cu_result fc_DevicePrimaryCtxGetState(qi_cu_device device, unsigned int *flags, int *active)
{
    qi_cu_result result = fc_enter(FC_CALL_DevicePrimaryCtxGetState);
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    FC_REFUSE_IF(!flags || !active, INVALID_VALUE);
    if (!result) {
        *flags = 0;
        *active = fc.devices[device].primary != 0;
    }
    return fc_leave(result);
}

qi_cu_result fc_CtxCreate_v2(qi_cu_context *out, unsigned int flags, qi_cu_device device)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxCreate_v2);
    stack *s = own();
    FC_REFUSE_IF(!fc_is_device(device), INVALID_DEVICE);
    FC_REFUSE_IF(!out || flags > MAX_FLAGS || (flags & SCHEDULES) > 4 || s->depth == DEPTH,
                 INVALID_VALUE);
    if (!result) {
        fc_context *context = begin(device);
        s->contexts[s->depth++] = context->object.handle;
        *out = FC_HANDLE(qi_cu_context, &context->object);
    }
    return fc_leave(result);
}

qi_cu_result fc_CtxDestroy_v2(qi_cu_context handle)
{
    qi_cu_result result = fc_enter(FC_CALL_CtxDestroy_v2);
    stack *s = own();
    fc_context *context =
        result ? NULL : fc_object_find(FC_CALL_CtxDestroy_v2, FC_CONTEXT, FC_NUMBER(handle));
    FC_REFUSE_IF(!context || context->retained || context->primary, INVALID_CONTEXT);
    if (!result) {
        s->depth -= top() == context->object.handle;
        fc_context_end(context, FC_CALL_CtxDestroy_v2);
    }
    return fc_leave(result);
}

/* ---- peers -------------------------------------------------------------------------------- */

static bool can_access(int device, int peer)
{
    return device != peer && fc.options.peers[peer] >> device & 1;
}

qi_cu_result fc_DeviceCanAccessPeer(int *can, qi_cu_device device, qi_cu_device peer)
{
    qi_cu_result result = fc_enter(FC_CALL_DeviceCanAccessPeer);
    FC_REFUSE_IF(!fc_is_device(device) || !fc_is_device(peer), INVALID_DEVICE);
    FC_REFUSE_IF(!can, INVALID_VALUE);
    if (!result)
        *can = can_access(device, peer);
    return fc_leave(result);
}

qi_cu_result fc_CtxEnablePeerAccess(qi_cu_context handle, unsigned int flags)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_CtxEnablePeerAccess, &result);
    fc_context *peer =
        result ? NULL : fc_object_find(FC_CALL_CtxEnablePeerAccess, FC_CONTEXT, FC_NUMBER(handle));
    if (!result && !peer)
        result = QI_CUDA_ERROR_INVALID_CONTEXT;
    else if (!result && flags)
        result = QI_CUDA_ERROR_INVALID_VALUE;
    else if (!result && !can_access(context->device, peer->device))
        result = QI_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    else if (!result && context->peers >> peer->device & 1)
        result = QI_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (!result)
        context->peers |= UINT32_C(1) << peer->device;
    return fc_leave(result);
}

qi_cu_result fc_CtxDisablePeerAccess(qi_cu_context handle)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_CtxDisablePeerAccess, &result);
    fc_context *peer =
        result ? NULL : fc_object_find(FC_CALL_CtxDisablePeerAccess, FC_CONTEXT, FC_NUMBER(handle));
    if (!result && !peer)
        result = QI_CUDA_ERROR_INVALID_CONTEXT;
    else if (!result && !(context->peers >> peer->device & 1))
        result = QI_CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (!result)
        context->peers &= ~(UINT32_C(1) << peer->device);
    return fc_leave(result);
}
