/*
 * test_plugin.h - a CustomDevice runtime for tests: a shared object with InitPlugin, written from
 * the table of offsets alone, whose devices are memory of this process.
 *
 * It checks what it is asked: that the calling thread's device is the one named, that what is given
 * back was taken, from the same device and with exactly its size, that copies stay inside of live
 * blocks, that streams and events are its own, and that all is gone at finalize. Whatever is wrong
 * is kept as a message, and the call is refused. Device addresses cannot be touched by the host.
 * Work on streams is done when somebody asks or waits, a step a question, in order.
 *
 * It can be any of the malformed plugins that a loader must cope with; every function can be left
 * out, and can fail at any of its calls. Thread-safe but for reset and fail.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLUGIN_TEST_PLUGIN_H
#define QUIRE_TESTS_SUPPORT_PLUGIN_TEST_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function by its offset in a C_DeviceInterface. */
#define TP_BIT(offset) (UINT64_C(1) << ((offset)-8) / 8)

enum { TP_SUCCESS = 0, TP_WARNING, TP_FAILED, TP_ERROR, TP_INTERNAL_ERROR };

enum { TP_MOST_DEVICES = 4 };

/* The size callbacks, in the order of the interface. */
enum { TP_MIN_CHUNK = 0, TP_MAX_CHUNK, TP_MAX_ALLOC, TP_PADDING, TP_INIT, TP_REALLOC, TP_SIZES };

typedef struct tp_options {
    size_t params_size;    /* of the version it is compiled with, 88 or 96; else it returns without
                              a word. 0: takes any */
    size_t interface_size; /* bytes that it clears, `size` with them; 0: none */
    size_t version[3];     /* {0}: 0.1.1 */
    bool is_old;           /* 0.1.0 */
    bool has_no_type;
    uint64_t absent; /* functions that are left out: TP_BIT */
    uint32_t device_count;
    bool has_no_devices;
    uint64_t bytes;       /* of each device; 0: 1 GiB */
    uint64_t base_offset; /* addresses lie so far behind a multiple of 4096 */
    uint64_t sizes[TP_SIZES];
    int32_t renumber;      /* init_device adds it to the id */
    bool gives_no_streams; /* create_stream and create_event succeed and write nothing */
    bool gives_no_events;
} tp_options;

/* A call that goes wrong: the n-th, from 1, of one function (an offset) or of all (0). */
typedef struct tp_fault {
    uint32_t offset;
    uint64_t call;
    int32_t status;
    bool works; /* does what it was asked, and answers so all the same */
} tp_fault;

typedef struct tp_control {
    /* Everything anew; NULL: {0}. What lived is forgotten. */
    void (*reset)(const tp_options *options);
    void (*fail)(const tp_fault *fault); /* NULL: none; counts calls from 0 again */
    bool (*has_failed)(void);
    uint64_t (*calls)(uint32_t offset); /* so far; 0: of all */
    const char *(*message)(void);       /* the first thing that was wrong; NULL: nothing */
    uint64_t (*blocks)(void);           /* live ones of all kinds */
    uint64_t (*bytes)(uint32_t device); /* live ones of a device's own memory */
    uint64_t (*freed)(void);            /* blocks given back, each with exactly its size */
    uint64_t (*objects)(void);          /* live streams and events */
    void (*tell)(uint64_t bytes);       /* of device_memory_stats, as the total; 0: the truth */
    /* Reads device memory past all callbacks. False: there is none. */
    bool (*look)(uint64_t address, void *data, uint64_t size);
    void (*hold)(bool holds); /* questions do not make streams go on any more, or do again */
} tp_control;

/* Exported beside InitPlugin. */
typedef const tp_control *(*tp_entry)(void);

#endif
