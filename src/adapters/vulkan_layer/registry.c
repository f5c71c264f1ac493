/*
 * registry.c - instances and devices by dispatch key: the only state that is not an instance's or a
 * device's, and the report of devices that their program never destroys.
 */
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"

static struct {
    pthread_rwlock_t lock;
    layer_instance *instances;
    layer_device *devices;
    uint32_t device_count; /* ever */
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
 * The process ends with these devices alive. The driver may be gone, so that nothing of Vulkan is
 * called: figures and trace are written, the pages are left to the system. (The library is never
 * unloaded before: it is linked with -z nodelete, for quire has a key with a destructor.)
 */
__attribute__((destructor)) static void report_the_rest(void)
{
    if (pthread_rwlock_tryrdlock(&registry.lock))
        return;
    for (layer_device *device = registry.devices; device; device = device->after) {
        if (device->process != getpid()) /* this is a forked child: they are its parent's */
            continue;
        layer_report(device);
        layer_trace_close(device);
    }
    pthread_rwlock_unlock(&registry.lock);
}
