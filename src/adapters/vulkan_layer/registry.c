/*
 * registry.c - the instances and devices, found by dispatch key, and the report of devices that the
 * program never destroys. The registry is the layer's only global state. A read-write lock protects
 * it.
 */
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"

static struct {
    pthread_rwlock_t lock;
    layer_instance *instances;
    layer_device *devices;
    uint32_t device_count; /* created so far */
} registry = {.lock = PTHREAD_RWLOCK_INITIALIZER};

void layer_add_instance(layer_instance *instance)
{
    pthread_rwlock_wrlock(&registry.lock);
    instance->after = registry.instances;
    registry.instances = instance;
    pthread_rwlock_unlock(&registry.lock);
}

void layer_add_device(layer_device *device)
{
    pthread_rwlock_wrlock(&registry.lock);
    device->number = ++registry.device_count;
    device->after = registry.devices;
    registry.devices = device;
    pthread_rwlock_unlock(&registry.lock);
}

layer_instance *layer_instance_of(const void *dispatchable)
{
    void *key = layer_key(dispatchable);
    pthread_rwlock_rdlock(&registry.lock);
    layer_instance *found = registry.instances;
    while (found && found->key != key)
        found = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_device *layer_device_of(const void *dispatchable)
{
    void *key = layer_key(dispatchable);
    pthread_rwlock_rdlock(&registry.lock);
    layer_device *found = registry.devices;
    while (found && found->key != key)
        found = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_instance *layer_take_instance(VkInstance handle)
{
    pthread_rwlock_wrlock(&registry.lock);
    layer_instance **link = &registry.instances;
    while (*link && (*link)->handle != handle)
        link = &(*link)->after;
    layer_instance *found = *link;
    if (found)
        *link = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

layer_device *layer_take_device(VkDevice handle)
{
    pthread_rwlock_wrlock(&registry.lock);
    layer_device **link = &registry.devices;
    while (*link && (*link)->handle != handle)
        link = &(*link)->after;
    layer_device *found = *link;
    if (found)
        *link = found->after;
    pthread_rwlock_unlock(&registry.lock);
    return found;
}

/*
 * Runs when the process exits with devices that were not destroyed. It writes statistics and trace.
 * It calls no Vulkan function, because the driver may be unloaded already; the operating system
 * frees the pages. The library is not unloaded earlier: it is linked with -z nodelete, because
 * quire has a thread-specific key with a destructor.
 */
__attribute__((destructor)) static void report_remaining_devices(void)
{
    /* Another thread may hold the lock and never release it. */
    if (pthread_rwlock_tryrdlock(&registry.lock))
        return;
    for (layer_device *device = registry.devices; device; device = device->after) {
        if (device->process != getpid()) /* a forked child: the device is its parent's */
            continue;
        layer_report(device);
        layer_trace_close(device);
    }
    pthread_rwlock_unlock(&registry.lock);
}
