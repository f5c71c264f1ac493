/*
 * door.h - how a call goes into a backend and comes out: for who adds functions to the door
 * (device.h).
 */
#ifndef QUIRE_SRC_MEMORY_DOOR_H
#define QUIRE_SRC_MEMORY_DOOR_H

#include "src/memory/device.h"

/* What is known when a call goes in. */
typedef struct qi_passage {
    uint64_t nanoseconds;
    uint64_t errors;
} qi_passage;

/* No lock may be held. */
qi_passage qi_door_enter(void);

/* Counts the call and its time for the device and, unless NULL, for a memory, and turns what no
   backend may answer into BACKEND_FAILURE. */
quire_result qi_door_leave(quire_device *device, qi_calls *calls, qi_passage entered,
                           quire_result result);

#endif
