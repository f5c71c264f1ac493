/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * test_plugin.c - see test_plugin.h. InitPlugin, devices, sizes, and the control functions.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/plugin/inside.h"

#define EXPORTED __attribute__((visibility("default")))

tp_state tp;
pthread_mutex_t tp_mutex = PTHREAD_MUTEX_INITIALIZER;

/* The calling thread's current device, and the generation in which it was set. */
static _Thread_local int32_t current_id = -1;
static _Thread_local uint32_t current_generation;

/* ---- calls ---------------------------------------------------------------------------------- */

int32_t tp_wrong(const char *format, ...)
{
    va_list args;
    if (!tp.message[0]) {
        va_start(args, format);
        vsnprintf(tp.message, sizeof tp.message, format, args);
        va_end(args);
    }
    return TP_ERROR;
}

static uint32_t device_count(void)
{
    return tp.options.has_no_devices ? 0 : tp.options.device_count ? tp.options.device_count : 1;
}

/* Devices are listed as 3, 4, ..., so that a test finds code that confuses a position with a
   number. */
static int32_t listed(uint32_t index)
{
    return (int32_t)index + 3;
}

int32_t tp_index(const tp_device *device)
{
    for (uint32_t i = 0; i < device_count(); i++)
        if (device->id == listed(i) + tp.options.renumber)
            return (int32_t)i;
    return -1;
}

static bool has_function(uint32_t offset)
{
    return !(tp.options.absent & TP_BIT(offset));
}

int32_t tp_id(int32_t index)
{
    return listed((uint32_t)index) + tp.options.renumber;
}

/* Returns true if the fault applies to this call. */
static bool is_hit(uint32_t offset)
{
    uint64_t number = tp.fault.offset ? tp.calls[(offset - 8) / 8] : tp.all_calls;
    return tp.has_fault && (!tp.fault.offset || tp.fault.offset == offset) &&
           tp.fault.call == number;
}

bool tp_is_current(const tp_device *device)
{
    return current_id == device->id && current_generation == tp.generation;
}

static bool check_device(uint32_t offset, const tp_device *device, bool current)
{
    int32_t index = tp_index(device);
    if (index < 0 || (has_function(24) && !tp.inits[index])) {
        tp_wrong("the function at %u is called for device %d, which is not initialised", offset,
                 device->id);
        return false;
    }
    if (current && !tp_is_current(device)) {
        tp_wrong("the function at %u is called for device %d on a thread with device %d", offset,
                 device->id, current_id);
        return false;
    }
    return true;
}

bool tp_begin(uint32_t offset, const tp_device *device, bool current, int32_t *status)
{
    pthread_mutex_lock(&tp_mutex);
    tp.calls[(offset - 8) / 8]++;
    tp.all_calls++;
    *status = TP_ERROR;
    bool goes = true;
    if (offset != 8 && has_function(8) && !tp.is_initialized) {
        tp_wrong("the function at %u is called before initialize", offset);
        goes = false;
    } else if (device) {
        goes = check_device(offset, device, current);
    }
    if (goes && is_hit(offset) && !tp.fault.works) {
        tp.has_failed = true;
        *status = tp.fault.status;
        goes = false;
    }
    if (!goes)
        pthread_mutex_unlock(&tp_mutex);
    return goes;
}

int32_t tp_end(uint32_t offset, int32_t status)
{
    if (is_hit(offset)) {
        tp.has_failed = true;
        status = tp.fault.status;
    }
    pthread_mutex_unlock(&tp_mutex);
    return status;
}

/* ---- the life of the plugin and its devices ------------------------------------------------- */

static int32_t initialize(void)
{
    int32_t status;
    if (!tp_begin(8, NULL, false, &status))
        return status;
    status = tp.is_initialized ? tp_wrong("initialize is called twice") : TP_SUCCESS;
    tp.is_initialized = true;
    return tp_end(8, status);
}

static int32_t finalize(void)
{
    int32_t status;
    if (!tp_begin(16, NULL, false, &status))
        return status;
    if (tp_blocks() || tp.objects)
        tp_wrong("finalize with %d blocks and %d streams and events", (int)tp_blocks(),
                 (int)tp.objects);
    for (uint32_t i = 0; i < device_count(); i++)
        if (tp.inits[i] && has_function(48))
            tp_wrong("finalize with device %d initialised", listed(i));
    tp.is_initialized = false;
    return tp_end(16, TP_SUCCESS);
}

static int32_t init_device(tp_device *device)
{
    int32_t status, index = device->id - listed(0);
    if (!tp_begin(24, NULL, false, &status))
        return status;
    if (index < 0 || (uint32_t)index >= device_count())
        return tp_end(24, tp_wrong("init_device of device %d", device->id));
    if (tp.inits[index]++)
        tp_wrong("init_device of device %d twice", device->id);
    device->id += tp.options.renumber;
    return tp_end(24, TP_SUCCESS);
}

/* A failing deinit_device releases the device nevertheless, because its caller does not retry. */
static int32_t deinit_device(tp_device *device)
{
    int32_t status;
    bool goes = tp_begin(48, device, false, &status);
    if (!goes)
        pthread_mutex_lock(&tp_mutex);
    int32_t index = tp_index(device);
    if (index >= 0 && tp_bytes((uint32_t)index))
        tp_wrong("deinit_device of device %d with live blocks", device->id);
    if (index >= 0)
        tp.inits[index] -= tp.inits[index] > 0;
    if (goes)
        return tp_end(48, TP_SUCCESS);
    pthread_mutex_unlock(&tp_mutex);
    return status;
}

static int32_t set_device(tp_device *device)
{
    int32_t status;
    if (!tp_begin(32, device, false, &status))
        return status;
    current_id = device->id;
    current_generation = tp.generation;
    return tp_end(32, TP_SUCCESS);
}

static int32_t get_device(tp_device *device)
{
    int32_t status;
    if (!tp_begin(40, NULL, false, &status))
        return status;
    if (current_generation != tp.generation)
        current_id = -1;
    device->id = current_id;
    return tp_end(40, current_id < 0 ? TP_ERROR : TP_SUCCESS);
}

static int32_t get_device_count(size_t *count)
{
    int32_t status;
    if (!tp_begin(400, NULL, false, &status))
        return status;
    *count = device_count();
    return tp_end(400, TP_SUCCESS);
}

static int32_t get_device_list(size_t *list)
{
    int32_t status;
    if (!tp_begin(408, NULL, false, &status))
        return status;
    for (uint32_t i = 0; i < device_count(); i++)
        list[i] = (size_t)listed(i);
    return tp_end(408, TP_SUCCESS);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static int32_t tell_size(uint32_t offset, const tp_device *device, size_t *size, int which)
{
    int32_t status;
    if (!tp_begin(offset, device, true, &status))
        return status;
    *size = tp.options.sizes[which];
    return tp_end(offset, TP_SUCCESS);
}

#define TELLS(name, offset, which)                                                                 \
    static int32_t name(tp_device *device, size_t *size)                                           \
    {                                                                                              \
        return tell_size(offset, device, size, which);                                             \
    }

TELLS(min_chunk, 424, TP_MIN_CHUNK)
TELLS(max_chunk, 432, TP_MAX_CHUNK)
TELLS(max_alloc, 440, TP_MAX_ALLOC)
TELLS(padding, 448, TP_PADDING)
TELLS(init_alloc, 456, TP_INIT)
TELLS(re_alloc, 464, TP_REALLOC)

/* ---- InitPlugin ----------------------------------------------------------------------------- */

void tp_put(unsigned char *block, uint32_t offset, void (*function)(void))
{
    if (has_function(offset))
        memcpy(block + offset, &function, sizeof function);
}

static void put_all(unsigned char *block)
{
    TP_PUT(block, 8, initialize);
    TP_PUT(block, 16, finalize);
    TP_PUT(block, 24, init_device);
    TP_PUT(block, 32, set_device);
    TP_PUT(block, 40, get_device);
    TP_PUT(block, 48, deinit_device);
    TP_PUT(block, 400, get_device_count);
    TP_PUT(block, 408, get_device_list);
    TP_PUT(block, 424, min_chunk);
    TP_PUT(block, 432, max_chunk);
    TP_PUT(block, 440, max_alloc);
    TP_PUT(block, 448, padding);
    TP_PUT(block, 456, init_alloc);
    TP_PUT(block, 464, re_alloc);
    tp_memory_put(block);
    tp_stream_put(block);
}

/* Offsets in CustomRuntimeParams: size 0, interface 8, version 16, 24, 32, types 40, 48. */
EXPORTED void InitPlugin(void *params);

EXPORTED void InitPlugin(void *params)
{
    static char type[] = "test_device", sub_type[] = "memory";
    unsigned char *bytes = params, *block = NULL;
    size_t size = 0, version[3] = {0, 1, tp.options.is_old ? 0 : 1};
    memcpy(&size, bytes, sizeof size);
    memcpy(&block, bytes + 8, sizeof block);
    if (tp.options.params_size && tp.options.params_size != size)
        return;
    if (tp.options.version[0] || tp.options.version[1] || tp.options.version[2])
        memcpy(version, tp.options.version, sizeof version);
    memset(block, 0, tp.options.interface_size);
    put_all(block);
    memcpy(bytes + 16, version, sizeof version);
    char *types[] = {tp.options.has_no_type ? NULL : type, sub_type};
    memcpy(bytes + 40, types, sizeof types);
}

/* ---- controls ------------------------------------------------------------------------------- */

static void reset(const tp_options *options)
{
    uint32_t generation = tp.generation + 1;
    tp_stream_reset();
    memset(&tp, 0, sizeof tp);
    tp.generation = generation;
    if (options)
        tp.options = *options;
    tp_memory_reset();
}

static void fail(const tp_fault *fault)
{
    tp.has_fault = fault != NULL;
    tp.has_failed = false;
    if (fault)
        tp.fault = *fault;
    memset(tp.calls, 0, sizeof tp.calls);
    tp.all_calls = 0;
}

static bool has_failed(void)
{
    return tp.has_failed;
}

static uint64_t calls(uint32_t offset)
{
    pthread_mutex_lock(&tp_mutex);
    uint64_t count = offset ? tp.calls[(offset - 8) / 8] : tp.all_calls;
    pthread_mutex_unlock(&tp_mutex);
    return count;
}

static const char *message(void)
{
    return tp.message[0] ? tp.message : NULL;
}

static uint64_t freed(void)
{
    return tp.freed;
}

static uint64_t objects(void)
{
    return tp.objects;
}

static void tell(uint64_t bytes)
{
    tp.told_bytes = bytes;
}

static void hold(bool holds)
{
    tp.holds = holds;
}

EXPORTED const tp_control *test_plugin(void);

EXPORTED const tp_control *test_plugin(void)
{
    static const tp_control control = {
        .reset = reset,
        .fail = fail,
        .has_failed = has_failed,
        .calls = calls,
        .message = message,
        .blocks = tp_blocks,
        .bytes = tp_bytes,
        .freed = freed,
        .objects = objects,
        .tell = tell,
        .look = tp_look,
        .hold = hold,
    };
    return &control;
}
