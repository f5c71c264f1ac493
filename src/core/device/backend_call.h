/*
 * backend_call.h - begins and ends a call into a backend: for code that adds calls to those of
 * device.h.
 *
 * A call is written as begin, the function of the table, end. The begin asserts that the thread
 * holds no lock. The end counts the call and checks the answer. The counters are atomic. Invariant:
 * no call into a backend is made with a lock held.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_BACKEND_CALL_H
#define QUIRE_SRC_CORE_DEVICE_BACKEND_CALL_H

#include "src/core/device/device.h"

/* What the end of a call needs from its beginning. */
typedef struct qi_backend_call {
    uint64_t nanoseconds; /* of the clock; 0 in untimed calls */
    uint64_t errors;      /* the thread's errors so far: shows whether the backend gave a reason */
} qi_backend_call;

qi_backend_call qi_backend_call_begin(void);

/*
 * Counts the call and its time for the device and, unless `calls` is NULL, for a memory. Returns
 * `result`, or BACKEND_FAILURE where a backend may not answer that.
 */
quire_result qi_backend_call_end(quire_device *device, qi_calls *calls, qi_backend_call call,
                                 quire_result result);

/*
 * Like the pair above, without reading the clock. For objects: programs create and destroy
 * thousands of them, and two readings of the clock cost as much as a driver's call.
 */
qi_backend_call qi_backend_call_begin_untimed(void);
quire_result qi_backend_call_end_untimed(quire_device *device, qi_calls *calls,
                                         qi_backend_call call, quire_result result);

/*
 * Returns what a backend answered. Fails with BACKEND_FAILURE where a backend may not answer that,
 * and adds a sentence where the backend failed without one. `errors_before` is qi_error_count from
 * before the call.
 */
quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before);

/* Sets the thread's last error with a backend's native code, and returns `result`. */
quire_result qi_backend_fail(quire_result result, int64_t native_code, const char *format, ...)
    QUIRE_PRINTF(3, 4);

#endif
