/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * call.c - the begin and end of every call: counters, faults, the lock, and the detection of two
 * threads that use the same object at the same time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/vulkan/driver.h"

typedef struct entry {
    const char *name;
    uint32_t codes;
} entry;

static const entry ENTRIES[FV_CALL_COUNT] = {
#define X(function, scope, version, extension, codes) {#function, codes},
    FV_ENTRIES(X)
#undef X
};

static const VkResult RESULTS[FV_CODE_COUNT] = {
#define X(code, result) result,
    FV_CODES(X)
#undef X
};

const char *fv_call_name(fv_call call)
{
    return call < FV_CALL_COUNT ? ENTRIES[call].name : "(no function)";
}

uint32_t fv_call_codes(fv_call call)
{
    return call < FV_CALL_COUNT ? ENTRIES[call].codes : 0;
}

fv_call fv_call_named(const char *function)
{
    static const struct {
        const char *alias;
        fv_call call;
    } ALIASES[] = {
#define Y(alias, function) {#alias, FV_CALL_##function},
        FV_ALIASES(Y)
#undef Y
    };
    for (uint32_t i = 0; i < FV_CALL_COUNT; i++)
        if (!strcmp(ENTRIES[i].name, function))
            return (fv_call)i;
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
        if (!strcmp(ALIASES[i].alias, function))
            return ALIASES[i].call;
    return FV_CALL_COUNT;
}

/* Returns the code with this index among those of the call. VK_SUCCESS: the call has fewer
   codes. */
static VkResult code_at(fv_call call, uint32_t index)
{
    for (uint32_t i = 0; i < FV_CODE_COUNT; i++)
        if (ENTRIES[call].codes & (1u << i) && !index--)
            return RESULTS[i];
    return VK_SUCCESS;
}

static bool may_return(fv_call call, VkResult result)
{
    for (uint32_t i = 0; i < FV_CODE_COUNT; i++)
        if (ENTRIES[call].codes & (1u << i) && RESULTS[i] == result)
            return true;
    return false;
}

uint32_t fv_codes(const char *function, VkResult *codes, uint32_t room)
{
    fv_call call = fv_call_named(function);
    uint32_t count = 0;
    if (call == FV_CALL_COUNT)
        return 0;
    for (VkResult code = code_at(call, 0); code; code = code_at(call, ++count))
        if (count < room)
            codes[count] = code;
    return count;
}

static void sleep_us(uint64_t microseconds)
{
    struct timespec time = {(time_t)(microseconds / 1000000),
                            (long)(microseconds % 1000000) * 1000L};
    if (microseconds)
        nanosleep(&time, NULL);
}

/* ---- faults ------------------------------------------------------------------------------- */

static VkResult code_of_fault(const fv_fault *fault, fv_call call)
{
    if (!fault->result)
        return code_at(call, fault->code_index);
    return may_return(call, fault->result) ? fault->result : VK_SUCCESS;
}

/* Returns the code with which a fault makes this call fail. */
static VkResult hit(fv_driver *driver, fv_call call)
{
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < driver->fault_count; i++) {
        fv_armed *armed = &driver->faults[i];
        if (armed->function != FV_CALL_COUNT && armed->function != call)
            continue;
        uint64_t number = ++armed->seen;
        bool now =
            armed->fault.from_then ? number >= armed->fault.call : number == armed->fault.call;
        if (now && !result)
            result = code_of_fault(&armed->fault, call);
    }
    return result;
}

static VkResult decide(fv_driver *driver, fv_call call)
{
    if (!ENTRIES[call].codes)
        return VK_SUCCESS;
    driver->fallible_calls++;
    VkResult result = hit(driver, call);
    if (result) {
        driver->failure.times++;
        driver->failure.function = ENTRIES[call].name;
        driver->failure.result = result;
    }
    if (!result && driver->lost && may_return(call, VK_ERROR_DEVICE_LOST))
        result = VK_ERROR_DEVICE_LOST;
    return result;
}

VkResult fv_enter(fv_driver *driver, fv_call call)
{
    pthread_mutex_lock(&driver->lock);
    driver->calls[call]++;
    return decide(driver, call);
}

void fv_leave(fv_driver *driver)
{
    pthread_mutex_unlock(&driver->lock);
}

bool fv_fail(fv_driver *driver, const fv_fault *fault)
{
    fv_call call = fault->function ? fv_call_named(fault->function) : FV_CALL_COUNT;
    if (fault->function && (call == FV_CALL_COUNT || !code_of_fault(fault, call)))
        return false;
    pthread_mutex_lock(&driver->lock);
    bool room = driver->fault_count < FV_MAX_FAULTS;
    if (room)
        driver->faults[driver->fault_count++] = (fv_armed){.fault = *fault, .function = call};
    pthread_mutex_unlock(&driver->lock);
    return room;
}

fv_failure fv_failed(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    fv_failure failure = driver->failure;
    pthread_mutex_unlock(&driver->lock);
    return failure;
}

void fv_heal(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    driver->fault_count = driver->hidden_count = 0;
    driver->failure = (fv_failure){0};
    pthread_mutex_unlock(&driver->lock);
}

void fv_hide(fv_driver *driver, const char *function)
{
    fv_call call = fv_call_named(function);
    pthread_mutex_lock(&driver->lock);
    if (call == FV_CALL_COUNT || driver->hidden_count == FV_MAX_HIDDEN)
        abort();
    driver->hidden[driver->hidden_count++] = fv_call_name(call);
    pthread_mutex_unlock(&driver->lock);
}

/* ---- counters ----------------------------------------------------------------------------- */

uint64_t fv_calls(fv_driver *driver, const char *function)
{
    fv_call call = function ? fv_call_named(function) : FV_CALL_COUNT;
    uint64_t count = 0;
    pthread_mutex_lock(&driver->lock);
    for (uint32_t i = 0; i < FV_CALL_COUNT; i++)
        if (!function || i == call)
            count += driver->calls[i];
    pthread_mutex_unlock(&driver->lock);
    return count;
}

uint64_t fv_fallible_calls(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    uint64_t count = driver->fallible_calls;
    pthread_mutex_unlock(&driver->lock);
    return count;
}

/* ---- external synchronization ------------------------------------------------------------- */

/*
 * Requires the message lock. Takes a free slot. If another thread's call uses the handle at this
 * time, returns that call.
 */
static fv_call take_claim(fv_driver *driver, fv_call call, uint64_t handle)
{
    fv_claim *vacant = NULL;
    fv_call other = FV_CALL_COUNT;
    for (uint32_t i = 0; i < FV_MAX_CLAIMS; i++) {
        fv_claim *claim = &driver->claims[i];
        if (claim->handle == handle && !pthread_equal(claim->thread, pthread_self()))
            other = claim->call;
        if (!claim->handle)
            vacant = claim;
    }
    if (!vacant) {
        fprintf(stderr, "fake vulkan: more than %d objects are in use at once\n", FV_MAX_CLAIMS);
        abort();
    }
    *vacant = (fv_claim){handle, pthread_self(), call};
    return other;
}

void fv_claim_handle(fv_driver *driver, fv_call call, uint64_t handle)
{
    if (!handle)
        return;
    pthread_mutex_lock(&driver->message_lock);
    fv_call other = take_claim(driver, call, handle);
    pthread_mutex_unlock(&driver->message_lock);
    if (other != FV_CALL_COUNT)
        fv_say(driver, FV_ERROR, "fv-threads", call,
               "another thread is in %s with the same object 0x%" PRIx64, fv_call_name(other),
               handle);
    sleep_us(driver->options.linger_us);
}

void fv_release_handle(fv_driver *driver, uint64_t handle)
{
    pthread_mutex_lock(&driver->message_lock);
    for (uint32_t i = 0; handle && i < FV_MAX_CLAIMS; i++) {
        fv_claim *claim = &driver->claims[i];
        if (claim->handle == handle && pthread_equal(claim->thread, pthread_self())) {
            claim->handle = 0;
            break;
        }
    }
    pthread_mutex_unlock(&driver->message_lock);
}
