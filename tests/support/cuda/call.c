/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * call.c - the beginning and the end of every call: counting, faults, delays, the lock, and whether
 * the driver is present.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cuda/capture.h"

static const char *const NAMES[FC_CALL_COUNT] = {
#define X(name, suffix, version, presence, parameters) "cu" #name #suffix,
    FC_ENTRIES(X)
#undef X
};

/* The function names without their version suffix. */
static const char *const PLAIN_NAMES[FC_CALL_COUNT] = {
#define X(name, suffix, version, presence, parameters) "cu" #name,
    FC_ENTRIES(X)
#undef X
};

static const uint32_t CODES[FC_CALL_COUNT] = {
#define X(name, codes) [FC_CALL_##name] = codes,
    FC_CODES_OF_DEVICES(X) FC_CODES_OF_MEMORY(X) FC_CODES_OF_STREAMS(X) FC_CODES_OF_ENDS(X)
        FC_CODES_OF_KERNELS(X)
#undef X
};

static const bool ENDS[FC_CALL_COUNT] = {
#define X(name, codes) [FC_CALL_##name] = true,
    FC_CODES_OF_ENDS(X)
#undef X
};

static const qi_cu_result RESULTS[FC_CODE_COUNT] = {
#define X(code, name) QI_CUDA_ERROR_##name,
    FC_CODES(X)
#undef X
};

const char *fc_call_name(fc_call call)
{
    return call < FC_CALL_COUNT ? NAMES[call] : "(no function)";
}

uint32_t fc_call_codes(fc_call call)
{
    return call < FC_CALL_COUNT ? CODES[call] : 0;
}

fc_call fc_call_named(const char *function)
{
    for (uint32_t i = 0; i < FC_CALL_COUNT; i++)
        if (!strcmp(NAMES[i], function))
            return (fc_call)i;
    for (uint32_t i = 0; i < FC_CALL_COUNT; i++)
        if (!strcmp(PLAIN_NAMES[i], function))
            return (fc_call)i;
    return FC_CALL_COUNT;
}

/* Returns the code with this index among the codes of the call; 0 if it has fewer. */
static qi_cu_result code_at(fc_call call, uint32_t index)
{
    for (uint32_t i = 0; i < FC_CODE_COUNT; i++)
        if (CODES[call] & (1u << i) && !index--)
            return RESULTS[i];
    return 0;
}

static bool may_return(fc_call call, qi_cu_result result)
{
    for (uint32_t i = 0; i < FC_CODE_COUNT; i++)
        if (CODES[call] & (1u << i) && RESULTS[i] == result)
            return true;
    return false;
}

uint32_t fc_codes(const char *function, qi_cu_result *codes, uint32_t room)
{
    fc_call call = fc_call_named(function);
    uint32_t count = 0;
    if (call == FC_CALL_COUNT)
        return 0;
    for (qi_cu_result code = code_at(call, 0); code; code = code_at(call, ++count))
        if (count < room)
            codes[count] = code;
    return count;
}

/* ---- faults ------------------------------------------------------------------------------- */

static qi_cu_result code_of_fault(const fc_fault *fault, fc_call call)
{
    if (!fault->result)
        return code_at(call, fault->code_index);
    return fault->done || may_return(call, fault->result) ? fault->result : 0;
}

static qi_cu_result fault_of(fc_call call)
{
    qi_cu_result result = 0;
    for (uint32_t i = 0; i < fc.fault_count; i++) {
        fc_armed *armed = &fc.faults[i];
        const fc_fault *fault = &armed->fault;
        if (armed->call == FC_CALL_COUNT ? ENDS[call] : armed->call != call)
            continue;
        armed->seen++;
        if (armed->seen != fault->call && !(fault->from_then && armed->seen > fault->call))
            continue;
        qi_cu_result code = code_of_fault(fault, call);
        if (!code)
            continue;
        fc.failure = (fc_failure){fc.failure.times + 1, NAMES[call], code};
        if (fault->done)
            fc.after = code;
        else
            result = code;
    }
    return result;
}

bool fc_fail(const fc_fault *fault)
{
    fc_call call = fault->function ? fc_call_named(fault->function) : FC_CALL_COUNT;
    if (fault->function && (call == FC_CALL_COUNT || !code_of_fault(fault, call)))
        return false;
    fc_lock();
    bool room = fc.fault_count < FC_MAX_FAULTS;
    if (room)
        fc.faults[fc.fault_count++] = (fc_armed){.fault = *fault, .call = call};
    fc_unlock();
    return room;
}

fc_failure fc_failed(void)
{
    fc_lock();
    fc_failure failure = fc.failure;
    fc_unlock();
    return failure;
}

void fc_heal(void)
{
    fc_lock();
    fc.fault_count = fc.hidden_count = 0;
    fc.busy_calls = 0;
    fc.failure = (fc_failure){0};
    memset(fc.slow_us, 0, sizeof fc.slow_us);
    fc_unlock();
}

/* Microseconds per piece of 2 MiB, as others have published them for an A100. */
static const struct {
    fc_call call;
    uint32_t microseconds;
} SLOWNESS[] = {
    {FC_CALL_MemAddressReserve, 19}, {FC_CALL_MemCreate, 193}, {FC_CALL_MemMap, 2},
    {FC_CALL_MemSetAccess, 36},      {FC_CALL_MemUnmap, 26},
};

void fc_slow(const char *function, uint32_t microseconds)
{
    fc_call call = function ? fc_call_named(function) : FC_CALL_COUNT;
    fc_lock();
    if (call < FC_CALL_COUNT)
        fc.slow_us[call] = microseconds;
    for (size_t i = 0; !function && i < sizeof SLOWNESS / sizeof *SLOWNESS; i++)
        fc.slow_us[SLOWNESS[i].call] = SLOWNESS[i].microseconds * microseconds;
    fc_unlock();
}

bool fc_hide(const char *function)
{
    fc_call call = fc_call_named(function);
    fc_lock();
    bool room = call < FC_CALL_COUNT && fc.hidden_count < FC_MAX_HIDDEN;
    if (room)
        fc.hidden[fc.hidden_count++] = call;
    fc_unlock();
    return room;
}

bool fc_is_hidden(fc_call call)
{
    for (uint32_t i = 0; i < fc.hidden_count; i++)
        if (fc.hidden[i] == call)
            return true;
    return false;
}

/* ---- entering ----------------------------------------------------------------------------- */

/* Returns true for calls that succeed in every state of the driver. */
static bool works_always(fc_call call)
{
    switch ((int)call) {
    case FC_CALL_Init:
    case FC_CALL_DriverGetVersion:
    case FC_CALL_GetErrorName:
    case FC_CALL_GetErrorString:
    case FC_CALL_GetProcAddress:
    case FC_CALL_GetProcAddress_v2:
        return true;
    default:
        return false;
    }
}

/* Calls that belong to no context, so that one with an error that stays does not fail them. An H100
   answered all but the last five; these are of the same family. */
static const bool WITHOUT_CONTEXT[FC_CALL_COUNT] = {
    [FC_CALL_CtxPushCurrent_v2] = true,
    [FC_CALL_CtxPopCurrent_v2] = true,
    [FC_CALL_DevicePrimaryCtxRelease_v2] = true,
    [FC_CALL_MemCreate] = true,
    [FC_CALL_MemRelease] = true,
    [FC_CALL_MemAddressReserve] = true,
    [FC_CALL_MemAddressFree] = true,
    [FC_CALL_MemMap] = true,
    [FC_CALL_MemUnmap] = true,
    [FC_CALL_MemSetAccess] = true,
    [FC_CALL_MemGetAccess] = true,
    [FC_CALL_MemGetAllocationGranularity] = true,
    [FC_CALL_MemExportToShareableHandle] = true,
    [FC_CALL_MemImportFromShareableHandle] = true,
    [FC_CALL_MemRetainAllocationHandle] = true,
};

/* Returns true for calls that a lost device does not fail. */
static bool outlives_loss(fc_call call)
{
    return works_always(call) || WITHOUT_CONTEXT[call] ||
           (call >= FC_CALL_DeviceGetCount && call <= FC_CALL_DeviceCanAccessPeer);
}

static qi_cu_result loss(void)
{
    const fc_context *current = fc_context_peek();
    if (current)
        return fc.devices[current->device].lost;
    for (int i = 0; i < fc.device_count; i++)
        if (fc.devices[i].lost)
            return fc.devices[i].lost;
    return 0;
}

static qi_cu_result state_of(fc_call call)
{
    if (fc.gone)
        return QI_CUDA_ERROR_DEINITIALIZED;
    if (works_always(call))
        return 0;
    if (!fc.initialized || fc.process != getpid())
        return QI_CUDA_ERROR_NOT_INITIALIZED;
    qi_cu_result lost = outlives_loss(call) ? 0 : loss();
    if (!ENDS[call])
        return lost;
    fc.after = lost;
    return 0;
}

static void sleep_us(uint32_t microseconds)
{
    struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000L};
    if (microseconds)
        nanosleep(&time, NULL);
}

qi_cu_result fc_enter(fc_call call)
{
    if (fc_in_host_function()) { /* this thread holds the lock in an outer call */
        fc_say("fc-callback", call, "a host function calls CUDA");
        return QI_CUDA_ERROR_NOT_PERMITTED;
    }
    fc_start();
    fc_lock();
    uint32_t slow = fc.slow_us[call];
    if (slow) { /* without the lock, so that other threads continue */
        fc_unlock();
        sleep_us(slow);
        fc_lock();
    }
    fc.after = 0;
    fc.calls[call]++;
    if (CODES[call] && !ENDS[call])
        fc.fallible_calls++;
    qi_cu_result result = state_of(call);
    FC_REFUSE_IF(!fc_capture_permits(call), STREAM_CAPTURE_UNSUPPORTED);
    return result ? result : fault_of(call);
}

qi_cu_result fc_leave(qi_cu_result result)
{
    if (fc_in_host_function())
        return result;
    result = result ? result : fc.after;
    fc_unlock();
    return result;
}

/* ---- counters ----------------------------------------------------------------------------- */

uint64_t fc_calls(const char *function)
{
    fc_call call = function ? fc_call_named(function) : FC_CALL_COUNT;
    uint64_t count = 0;
    fc_lock();
    for (uint32_t i = 0; i < FC_CALL_COUNT; i++)
        if (!function || i == call)
            count += fc.calls[i];
    fc_unlock();
    return count;
}

uint64_t fc_fallible_calls(void)
{
    fc_lock();
    uint64_t count = fc.fallible_calls;
    fc_unlock();
    return count;
}
