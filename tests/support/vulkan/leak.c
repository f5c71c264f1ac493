/*
 * leak.c - ends what a caller left alive, each kind as its own file does.
 */
#include "tests/support/vulkan/leak.h"

#include "tests/support/vulkan/resource.h"

void fv_leaked(fv_object *object)
{
    object->pending = 0;
    switch ((int)object->kind) {
    case FV_MEMORY:
        fv_memory_end((fv_memory *)object);
        break;
    case FV_BUFFER:
    case FV_IMAGE:
        fv_resource_end((fv_resource *)object, FV_CALL_vkDestroyDevice);
        break;
    default:
        fv_object_end(object);
        break;
    }
}
