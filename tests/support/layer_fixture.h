/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layer_fixture.h - the layer over the fake driver, and the calls that a program without an
 * allocator makes with it.
 */
#ifndef QUIRE_TESTS_SUPPORT_LAYER_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_LAYER_FIXTURE_H

#include "tests/support/vulkan/fixture.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define COHERENT_FLAGS (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define COPIES (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

/* fv_fixture_close destroys it and checks that no message was written and nothing remains. */
void lf_open(fv_fixture *f, const fv_layout *layout, uint32_t flags);
void lf_open_named(fv_fixture *f, const char *layout);

/* As a program of Vulkan 1.0 without VkApplicationInfo does, on a driver without a function (NULL:
   it has all). */
void lf_open_bare(fv_fixture *f, const char *hidden);

/* Returns the result of vkCreateDevice, which the settings refuse. Nothing remains. */
VkResult lf_try(void);

uint64_t lf_driver_allocations(fv_fixture *f);

VkDeviceMemory lf_allocate(fv_fixture *f, uint64_t size, uint32_t type, const void *chain);
void lf_release(fv_fixture *f, VkDeviceMemory memory);

/* Returns whether the driver knows the handle, which means that the layer passed it on. */
bool lf_is_passed(fv_fixture *f, VkDeviceMemory memory);

/* The layer passes such an allocation on to the driver. */
void lf_expect_passed(fv_fixture *f, uint64_t size, uint32_t type, const void *chain);

/* A buffer with separate memory, as in the simplest programs. */
typedef struct lf_piece {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t size, needed;
} lf_piece;

lf_piece lf_make_piece(fv_fixture *f, uint64_t size, uint32_t type);
void lf_end_piece(fv_fixture *f, const lf_piece *piece);

/* A small buffer that the caller binds. */
VkImage lf_make_image(fv_fixture *f, VkImageTiling tiling);

/* Commands that the caller records between these two calls. */
VkCommandBuffer lf_begin_commands(fv_fixture *f, VkCommandPool *pool);
void lf_run_commands(fv_fixture *f, VkCommandBuffer commands, VkCommandPool pool);

/* Sets a variable to the path of a new, empty file; each call has the same buffer for it. */
char *lf_name_file(const char *variable);

/* Returns the text of a file, until the next call. */
const char *lf_read(const char *path);

uint64_t lf_random(uint64_t *state);

/* A unit test of a program on a layout; its body has the fixture `f`. */
#define LAYER_CASE(suite, name, layout)                                                            \
    UNIT_ON(suite, name, fv_fixture, f, lf_open_named(f, layout), fv_fixture_close)

#endif
