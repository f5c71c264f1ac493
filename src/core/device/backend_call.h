/*
 * door.h - how a call goes into a backend and comes out: for who adds functions to the door
 * (device.h).
 */
#ifndef QUIRE_SRC_CORE_DEVICE_BACKEND_CALL_H
#define QUIRE_SRC_CORE_DEVICE_BACKEND_CALL_H

#include "src/core/device/device.h"

/* What is known when a call goes in. */
typedef struct qi_backend_call {
    uint64_t nanoseconds;
    uint64_t errors;
} qi_backend_call;

/* No lock may be held. */
qi_backend_call qi_backend_call_begin(void);

/* Counts the call and its time for the device and, unless NULL, for a memory, and turns what no
   backend may answer into BACKEND_FAILURE. */
quire_result qi_backend_call_end(quire_device *device, qi_calls *calls, qi_backend_call entered,
                                 quire_result result);

#endif
