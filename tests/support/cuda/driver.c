/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.c - the one fake CUDA driver of the process, from fc_reset to the next.
 */
#include "tests/support/cuda/driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cuda/leak.h"

#define HOST_BYTES (UINT64_C(64) << 30)
#define VERSION 13000

fc_driver fc = {.store = -1};
void (*fc_starter)(void);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fc_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fc_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- beginning ---------------------------------------------------------------------------- */

static void take_models(void)
{
    const fc_options *options = &fc.options;
    while (fc.device_count < FC_MAX_DEVICES && options->models[fc.device_count]) {
        fc.devices[fc.device_count].model = *options->models[fc.device_count];
        fc.device_count++;
    }
    if (!fc.device_count && !options->no_devices)
        fc.devices[fc.device_count++].model = *fc_model_named("h200");
    for (int i = 0; i < fc.device_count; i++) {
        fc_model *model = &fc.devices[i].model;
        snprintf(fc.devices[i].name, sizeof fc.devices[i].name, "%s", model->name);
        model->name = fc.devices[i].name;
    }
}

static void resolve(fc_options *options)
{
    options->version = options->version ? options->version : VERSION;
    options->numa_nodes = options->numa_nodes ? options->numa_nodes : 1;
}

void fc_reset(const fc_options *options)
{
    fc_lock();
    fc_leaked();
    fc_objects_end();
    fc_forget_locked();
    if (fc.store >= 0)
        close(fc.store);
    free(fc.spans);
    free(fc.reservations);
    uint64_t generation = fc.generation + 1, handle = fc.next_handle;
    fc_driver fresh = {.store = -1, .generation = generation, .started = true};
    fc = fresh;
    fc.next_handle = handle + !handle;
    fc.options = options ? *options : (fc_options){0};
    resolve(&fc.options);
    take_models();
    fc_unlock();
}

static void start(void)
{
    fc_lock();
    bool started = fc.started;
    fc_unlock();
    if (started)
        return;
    pthread_atfork(fc_lock, fc_unlock, fc_unlock); /* so that the lock is free in the child */
    if (fc_starter)
        fc_starter();
    else
        fc_reset(NULL);
}

void fc_start(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    start();
    pthread_mutex_unlock(&once);
}

void fc_deinitialize(void)
{
    fc_lock();
    fc_leaked();
    fc.gone = true;
    fc_unlock();
}

/* ---- memory of devices and of the host ---------------------------------------------------- */

bool fc_is_device(int device)
{
    return device >= 0 && device < fc.device_count;
}

fc_usage *fc_usage_at(int device)
{
    return device < 0 ? &fc.host : &fc.devices[device].usage;
}

uint64_t fc_capacity_of(int device)
{
    if (device < 0)
        return fc.host_capacity ? fc.host_capacity : HOST_BYTES;
    const fc_device_state *state = &fc.devices[device];
    uint64_t all = state->capacity ? state->capacity : state->model.bytes;
    return state->others < all ? all - state->others : 0;
}

bool fc_take(int device, uint64_t bytes)
{
    fc_usage *usage = fc_usage_at(device);
    uint64_t capacity = fc_capacity_of(device);
    if (usage->bytes > capacity || bytes > capacity - usage->bytes)
        return false;
    usage->bytes += bytes;
    usage->peak = usage->bytes > usage->peak ? usage->bytes : usage->peak;
    return true;
}

void fc_give(int device, uint64_t bytes)
{
    fc_usage_at(device)->bytes -= bytes;
}

/* Aborts the program if there is no such device. */
static void check_device(int device)
{
    if (device != FC_HOST && !fc_is_device(device))
        abort();
}

fc_usage fc_usage_of(int device)
{
    fc_lock();
    check_device(device);
    fc_usage usage = *fc_usage_at(device);
    fc_unlock();
    return usage;
}

void fc_set_capacity(int device, uint64_t bytes)
{
    fc_lock();
    check_device(device);
    if (device == FC_HOST)
        fc.host_capacity = bytes;
    else
        fc.devices[device].capacity = bytes;
    fc_unlock();
}

void fc_set_others(int device, uint64_t bytes)
{
    fc_lock();
    check_device(device);
    fc.devices[device].others = bytes;
    fc_unlock();
}

void fc_lose(int device, qi_cu_result code)
{
    fc_lock();
    check_device(device);
    fc.devices[device].lost = code;
    fc_unlock();
}

void fc_reset_counters(void)
{
    fc_lock();
    memset(fc.calls, 0, sizeof fc.calls);
    fc.fallible_calls = 0;
    for (int i = FC_HOST; i < fc.device_count; i++)
        fc_usage_at(i)->peak = fc_usage_at(i)->bytes;
    fc_unlock();
}
