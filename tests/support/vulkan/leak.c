/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * leak.c - destroys the objects that a caller did not destroy.
 */
#include "tests/support/vulkan/leak.h"

#include "tests/support/vulkan/command.h"

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
    case FV_COMMAND_POOL:
        fv_pool_end((fv_pool *)object);
        break;
    case FV_COMMAND_BUFFER: /* its pool destroys it */
        fv_commands_forget((fv_command_buffer *)object);
        fv_object_end(object);
        break;
    default:
        fv_object_end(object);
        break;
    }
}
