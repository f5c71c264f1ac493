/*
 * backend_call.c - begins and ends a call into a backend, and checks its answer (see
 * backend_call.h).
 *
 * A backend can come from outside of quire. Its answers are checked here, once for all callers, so
 * that the core can rely on them.
 */
#include "src/core/device/backend_call.h"

#include "src/base/result.h"
#include "src/base/system.h"

qi_backend_call qi_backend_call_begin(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.nanoseconds = qi_clock(), .errors = qi_error_count()};
}

qi_backend_call qi_backend_call_begin_untimed(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.errors = qi_error_count()};
}

/* Only the core returns the results that are missing: a backend knows no handles, names or
   states. */
static bool may_answer(quire_result result)
{
    switch (result) {
    case QUIRE_SUCCESS:
    case QUIRE_ERROR_INVALID_ARGUMENT:
    case QUIRE_ERROR_OUT_OF_DEVICE_MEMORY:
    case QUIRE_ERROR_OUT_OF_HOST_MEMORY:
    case QUIRE_ERROR_TOO_MANY_PAGES:
    case QUIRE_ERROR_UNSUPPORTED:
    case QUIRE_ERROR_NOT_PERMITTED:
    case QUIRE_ERROR_DEVICE_LOST:
    case QUIRE_ERROR_BACKEND_FAILURE:
        return true;
    default:
        return false;
    }
}

quire_result qi_backend_fail(quire_result result, int64_t native_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qi_fail_native(result, native_code, format, args);
    va_end(args);
    return result;
}

quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before)
{
    if (!may_answer(result))
        return qi_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, result,
                               "backend %s answered %d, which a backend must not", backend,
                               (int)result);
    if (result && qi_error_count() == errors_before)
        return qi_fail_text(result, "backend %s failed and gave no reason", backend);
    return result;
}

quire_result qi_backend_call_end(quire_device *device, qi_calls *calls, qi_backend_call call,
                                 quire_result result)
{
    uint64_t spent = qi_clock() - call.nanoseconds;
    qi_atomic_add_u64(&device->calls.count, 1);
    qi_atomic_add_u64(&device->calls.nanoseconds, spent);
    if (calls) {
        qi_atomic_add_u64(&calls->count, 1);
        qi_atomic_add_u64(&calls->nanoseconds, spent);
    }
    return qi_backend_answer(device->info.backend, result, call.errors);
}

quire_result qi_backend_call_end_untimed(quire_device *device, qi_calls *calls,
                                         qi_backend_call call, quire_result result)
{
    qi_atomic_add_u64(&device->calls.count, 1);
    if (calls)
        qi_atomic_add_u64(&calls->count, 1);
    return result ? qi_backend_answer(device->info.backend, result, call.errors) : QUIRE_SUCCESS;
}

quire_result qi_device_heap_budget(quire_device *device, uint32_t heap, quire_heap_budget *budget)
{
    *budget = (quire_heap_budget){0};
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, call,
                               device->table.heap_budget(device->state, heap, budget));
}
