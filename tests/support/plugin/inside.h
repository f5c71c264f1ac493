/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * inside.h - the state of the test plugin, shared by its files. One mutex protects all of it.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_INSIDE_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_INSIDE_H

#include <pthread.h>

#include "tests/support/plugin/test_plugin.h"

/* C_Device points to it. */
typedef struct tp_device {
    int32_t id;
} tp_device;

typedef enum tp_kind { TP_ON_DEVICE = 0, TP_ON_HOST, TP_UNIFIED } tp_kind;

typedef struct tp_state {
    tp_options options;
    tp_fault fault;
    bool has_fault, has_failed, holds;
    uint64_t calls[64], all_calls;
    char message[256];
    bool is_initialized;
    uint32_t inits[TP_MAX_DEVICES];
    uint64_t told_bytes, freed, objects;
    uint32_t generation; /* counts resets */
} tp_state;

extern tp_state tp;
extern pthread_mutex_t tp_mutex;

/* Records the first error and returns TP_ERROR. Requires the mutex. */
int32_t tp_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the index of a device with an id, or -1. */
int32_t tp_index(const tp_device *device);
int32_t tp_id(int32_t index);

/* Returns true if it is the current device of the calling thread. */
bool tp_is_current(const tp_device *device);

/*
 * Begins a call of the function at an offset: takes the mutex and checks the device. NULL means
 * that the function takes no device; `current` requires that the device is the thread's. Returns
 * false if the call must return *status at once; the mutex is then released.
 */
bool tp_begin(uint32_t offset, const tp_device *device, bool current, int32_t *status);
/* Ends the call: releases the mutex and returns the status, or that of a planned fault. */
int32_t tp_end(uint32_t offset, int32_t status);

/* Enters a function at an offset, unless the options leave it out. */
void tp_put(unsigned char *block, uint32_t offset, void (*function)(void));
#define TP_PUT(block, offset, function) tp_put((block), (offset), (void (*)(void))(function))

/* ---- memory.c ------------------------------------------------------------------------------- */

void tp_memory_reset(void);
void tp_memory_put(unsigned char *block); /* enters its functions into an interface */

/* Copies between live memory; each end is on a device, or on the host (-1). Requires the mutex. */
bool tp_can_reach(int32_t device, uint64_t address, uint64_t size);
void tp_move(int32_t to_device, void *to, int32_t from_device, const void *from, size_t size);

uint64_t tp_blocks(void);
uint64_t tp_bytes(uint32_t device);
bool tp_look(uint64_t address, void *data, uint64_t size);

/* ---- stream.c ------------------------------------------------------------------------------- */

void tp_stream_reset(void);
void tp_stream_put(unsigned char *block);

#endif
