/*
 * inside.h - what the files of the test plugin share. One mutex guards all of it.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_INSIDE_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_INSIDE_H

#include <pthread.h>

#include "tests/support/plugin/test_plugin.h"

/* What C_Device points to. */
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
    uint32_t inits[TP_MOST_DEVICES];
    uint64_t told_bytes, freed, objects;
    uint32_t generation; /* of resets */
} tp_state;

extern tp_state tp;
extern pthread_mutex_t tp_mutex;

/* Notes what is wrong; returns TP_ERROR. With the mutex. */
int32_t tp_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The index of a device by its id, or -1. */
int32_t tp_index(const tp_device *device);
int32_t tp_id(int32_t index);

/* Whether it is the calling thread's. */
bool tp_is_current(const tp_device *device);

/*
 * Begins a call of the function at an offset, takes the mutex, and checks the device (NULL: the
 * function names none; `current`: it must be the thread's). False: the call is to answer *status
 * at once, without the mutex.
 */
bool tp_begin(uint32_t offset, const tp_device *device, bool current, int32_t *status);
/* Ends it: what the call answers, the planned fault considered. */
int32_t tp_end(uint32_t offset, int32_t status);

/* ---- memory.c ------------------------------------------------------------------------------- */

void tp_memory_reset(void);
void tp_memory_put(unsigned char *block); /* its functions into an interface */

/* Copies between live memory, each end of a device or (-1) of the host. With the mutex. */
bool tp_can_reach(int32_t device, uint64_t address, uint64_t size);
void tp_move(int32_t to_device, void *to, int32_t from_device, const void *from, size_t size);

uint64_t tp_blocks(void);
uint64_t tp_bytes(uint32_t device);
bool tp_look(uint64_t address, void *data, uint64_t size);

/* ---- stream.c ------------------------------------------------------------------------------- */

void tp_stream_reset(void);
void tp_stream_put(unsigned char *block);

/* Puts a function at an offset, unless the options leave it out. */
void tp_put(unsigned char *block, uint32_t offset, void (*function)(void));
#define TP_PUT(block, offset, function) tp_put((block), (offset), (void (*)(void))(function))

#endif
