/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.c - creation and destruction of a fake driver, and the state of its heaps for tests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/table.h"

/* The driver of global functions such as vkCreateInstance, which have no object. */
static fv_driver *current;

fv_driver *fv_current(void)
{
    if (!current)
        abort(); /* fv_door was not called */
    return current;
}

static void take_layouts(fv_driver *driver)
{
    const fv_options *options = &driver->options;
    while (driver->device_count < FV_MAX_DEVICES && options->layouts[driver->device_count]) {
        driver->layouts[driver->device_count] = *options->layouts[driver->device_count];
        driver->device_count++;
    }
    if (!driver->device_count)
        driver->layouts[driver->device_count++] = *fv_layout_named("amd-bar");
    for (uint32_t i = 0; i < driver->device_count; i++) {
        snprintf(driver->names[i], sizeof driver->names[i], "%s", driver->layouts[i].name);
        driver->layouts[i].name = driver->names[i];
        fv_layout_complete(&driver->layouts[i]);
    }
}

fv_driver *fv_create(const fv_options *options)
{
    fv_driver *driver = calloc(1, sizeof *driver);
    if (!driver)
        abort();
    driver->options = options ? *options : (fv_options){0};
    if (!driver->options.instance_version)
        driver->options.instance_version = VK_API_VERSION_1_3;
    driver->next_handle = 1;
    pthread_mutex_init(&driver->lock, NULL);
    pthread_mutex_init(&driver->message_lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&driver->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    take_layouts(driver);
    return driver;
}

void fv_destroy(fv_driver *driver)
{
    if (driver->live[FV_INSTANCE]) {
        fprintf(stderr, "fake vulkan: an instance is still alive\n");
        abort();
    }
    fv_objects_end(driver);
    fv_forget(driver);
    pthread_cond_destroy(&driver->changed);
    pthread_mutex_destroy(&driver->message_lock);
    pthread_mutex_destroy(&driver->lock);
    current = current == driver ? NULL : current;
    free(driver);
}

PFN_vkGetInstanceProcAddr fv_door(fv_driver *driver)
{
    current = driver;
    return fv_vkGetInstanceProcAddr;
}

/* ---- heaps -------------------------------------------------------------------------------- */

/* Returns the state of a heap. Requires the lock. Aborts if the heap does not exist. */
static fv_heap_state *heap_at(fv_driver *driver, uint32_t physical_device, uint32_t heap)
{
    if (physical_device >= driver->device_count ||
        heap >= driver->layouts[physical_device].heap_count)
        abort();
    return &driver->heaps[physical_device][heap];
}

fv_heap_usage fv_usage(fv_driver *driver, uint32_t physical_device, uint32_t heap)
{
    pthread_mutex_lock(&driver->lock);
    fv_heap_usage usage = heap_at(driver, physical_device, heap)->usage;
    pthread_mutex_unlock(&driver->lock);
    return usage;
}

void fv_set_budget(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t budget,
                   uint64_t others)
{
    pthread_mutex_lock(&driver->lock);
    fv_heap_state *state = heap_at(driver, physical_device, heap);
    state->budget = budget;
    state->others = others;
    pthread_mutex_unlock(&driver->lock);
}

void fv_set_capacity(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t bytes)
{
    pthread_mutex_lock(&driver->lock);
    heap_at(driver, physical_device, heap)->capacity = bytes;
    pthread_mutex_unlock(&driver->lock);
}

uint64_t fv_most_pending(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    uint64_t most = driver->most_pending;
    pthread_mutex_unlock(&driver->lock);
    return most;
}

void fv_reset_counters(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    memset(driver->calls, 0, sizeof driver->calls);
    driver->most_pending = driver->pending;
    driver->fallible_calls = 0;
    for (uint32_t i = 0; i < driver->device_count; i++)
        for (uint32_t heap = 0; heap < driver->layouts[i].heap_count; heap++) {
            fv_heap_usage *usage = &driver->heaps[i][heap].usage;
            usage->peak_bytes = usage->bytes;
        }
    pthread_mutex_unlock(&driver->lock);
}

void fv_lose_devices(fv_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    driver->lost = true;
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}
