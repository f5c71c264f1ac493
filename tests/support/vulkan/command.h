/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.h - command pools, command buffers and recorded commands.
 *
 * A command stores the handles of its objects and looks them up again when it is executed. So a
 * buffer that was destroyed after the recording is detected and not accessed.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_COMMAND_H
#define QUIRE_TESTS_SUPPORT_VULKAN_COMMAND_H

#include "tests/support/vulkan/image.h"

/* An image barrier of vkCmdPipelineBarrier. */
typedef struct fv_transition {
    uint64_t image;
    VkImageLayout from, to;
    VkImageSubresourceRange range;
} fv_transition;

typedef struct fv_command {
    struct fv_command *next;
    fv_call call;
    uint64_t source, target; /* handles; 0: none */
    VkImageLayout layout;    /* of the image */
    uint64_t offset, size;   /* of a fill */
    uint32_t value;
    VkClearColorValue color;
    uint32_t count;
    void *items; /* regions, ranges or transitions; owned */
} fv_command;

typedef enum fv_state {
    FV_INITIAL = 0,
    FV_RECORDING,
    FV_EXECUTABLE,
    FV_PENDING,
    FV_INVALID
} fv_state;

typedef struct fv_pool {
    fv_object object;
    uint32_t family;
    VkCommandPoolCreateFlags flags;
} fv_pool;

typedef struct fv_command_buffer {
    fv_object object;
    uint64_t pool;
    uint32_t family;              /* of the pool */
    bool resettable, once, again; /* reset flag of the pool; one-time and simultaneous use */
    fv_state state;
    fv_command *first, *last;
} fv_command_buffer;

/* command.c */
void fv_commands_forget(fv_command_buffer *buffer);
void fv_pool_end(fv_pool *pool);

/* execute.c: executes recorded commands. */
void fv_execute(fv_device *device, const fv_command_buffer *buffer);

/* access.c: the bytes of a resource, through its memory or its sparse pieces. */
void fv_read(fv_resource *resource, fv_call call, uint64_t offset, void *to, uint64_t size);
void fv_write(fv_resource *resource, fv_call call, uint64_t offset, const void *from,
              uint64_t size);

#endif
