/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * test_plugin.h - a CustomDevice runtime for tests: a shared object with InitPlugin, written from
 * the table of offsets alone. Its device memory is memory of this process.
 *
 * It checks its callers: the named device is current on the calling thread; memory is freed on the
 * same device with exactly its size; copies stay inside live blocks; streams and events are its
 * own; nothing is left at finalize. It records the first error as a message and refuses the call.
 * The host cannot access device addresses. Work on streams runs in order when a caller queries (one
 * step) or waits (all steps).
 *
 * It can pose as any malformed plugin that a loader must handle. Every function can be left out,
 * and can fail at any of its calls. Thread-safe except reset and fail.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_TEST_PLUGIN_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_TEST_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bit of the function at an offset of C_DeviceInterface. */
#define TP_BIT(offset) (UINT64_C(1) << ((offset)-8) / 8)

enum { TP_SUCCESS = 0, TP_WARNING, TP_FAILED, TP_ERROR, TP_INTERNAL_ERROR };

enum { TP_MAX_DEVICES = 4 };

/* The size callbacks in the order of the interface. */
enum { TP_MIN_CHUNK = 0, TP_MAX_CHUNK, TP_MAX_ALLOC, TP_PADDING, TP_INIT, TP_REALLOC, TP_SIZES };

typedef struct tp_options {
    size_t params_size;    /* the only size that it accepts, 88 or 96: it ignores others; 0: any */
    size_t interface_size; /* bytes that it clears, `size` included; 0: none */
    size_t version[3];     /* {0}: 0.1.1 */
    bool is_old;           /* 0.1.0 */
    bool has_no_type;
    uint64_t absent; /* functions that it lacks: TP_BIT */
    uint32_t device_count;
    bool has_no_devices;
    uint64_t bytes;       /* of each device; 0 means 1 GiB */
    uint64_t base_offset; /* distance of addresses from a multiple of 4096 */
    uint64_t sizes[TP_SIZES];
    int32_t renumber;      /* init_device adds it to the id */
    bool gives_no_streams; /* create_stream and create_event succeed without a result */
    bool gives_no_events;
} tp_options;

/* A planned failure: the n-th call, from 1, of one function (an offset) or of all (0). */
typedef struct tp_fault {
    uint32_t offset;
    uint64_t call;
    int32_t status;
    bool works; /* does its work and returns the status nevertheless */
} tp_fault;

typedef struct tp_control {
    /* Starts afresh with options, NULL means {0}. Drops all live objects. */
    void (*reset)(const tp_options *options);
    void (*fail)(const tp_fault *fault); /* NULL: none; counts calls from 0 again */
    bool (*has_failed)(void);
    uint64_t (*calls)(uint32_t offset); /* calls of a function so far; 0: of all */
    const char *(*message)(void);       /* the first error; NULL if there was none */
    uint64_t (*blocks)(void);           /* live blocks of all kinds */
    uint64_t (*bytes)(uint32_t device); /* live bytes of a device's own memory */
    uint64_t (*freed)(void);            /* freed blocks */
    uint64_t (*objects)(void);          /* live streams and events */
    void (*tell)(uint64_t bytes); /* the total that device_memory_stats reports; 0: the true one */
    /* Reads device memory without a callback. Returns false if the memory does not exist. */
    bool (*look)(uint64_t address, void *data, uint64_t size);
    void (*hold)(bool holds); /* with true, queries no longer advance streams */
} tp_control;

/* The second exported symbol. */
typedef const tp_control *(*tp_entry)(void);

#endif
