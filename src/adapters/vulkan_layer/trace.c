/*
 * trace.c - the ranges that a program allocates and frees, as a trace that quire replays
 * (docs/formats.md).
 */
#include <inttypes.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/clock.h"

/* Rows are numbered and timed in the order they are written, which the mutex makes. */
void layer_trace_open(layer_device *device)
{
    layer_trace *trace = &device->trace;
    char path[LAYER_LONGEST_PATH + 16];
    const char *name = device->settings.trace_file;
    if (!*name || !device->quire)
        return;
    if (device->number == 1)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s.%" PRIu32, name, device->number);
    trace->file = fopen(path, "w");
    if (!trace->file) {
        fprintf(stderr, "VK_LAYER_QUIRE_suballocate: %s cannot be written\n", path);
        return;
    }
    fputs("op,id,size,alignment,time_ns,stream,label\n", trace->file);
}

/* Since the first row. With the mutex. */
static uint64_t elapsed(layer_trace *trace)
{
    uint64_t now = qi_clock();
    if (!trace->start_ns)
        trace->start_ns = now;
    return now - trace->start_ns;
}

void layer_trace_close(layer_device *device)
{
    layer_trace *trace = &device->trace;
    pthread_mutex_lock(&trace->mutex);
    if (trace->file && fclose(trace->file))
        fprintf(stderr, "VK_LAYER_QUIRE_suballocate: the trace could not be written\n");
    trace->file = NULL;
    pthread_mutex_unlock(&trace->mutex);
}

void layer_trace_allocated(layer_device *device, layer_memory *memory, uint64_t alignment)
{
    layer_trace *trace = &device->trace;
    if (!*device->settings.trace_file)
        return;
    pthread_mutex_lock(&trace->mutex);
    memory->number = ++trace->count;
    if (trace->file)
        fprintf(trace->file,
                "alloc,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",0,type-%" PRIu32 "\n",
                memory->number, memory->size, alignment, elapsed(trace), memory->store->kind);
    pthread_mutex_unlock(&trace->mutex);
}

void layer_trace_freed(layer_device *device, const layer_memory *memory)
{
    layer_trace *trace = &device->trace;
    if (!*device->settings.trace_file)
        return;
    pthread_mutex_lock(&trace->mutex);
    if (trace->file)
        fprintf(trace->file, "free,%" PRIu64 ",,,%" PRIu64 ",0,\n", memory->number, elapsed(trace));
    pthread_mutex_unlock(&trace->mutex);
}
