/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_destroy.h - objects that the device may still use after their owner destroyed them.
 *
 * A wait for the device can fail, for example for lack of memory. Then it is unknown whether the
 * device is finished with the objects that the work names. Such objects go into lists of the device
 * and are destroyed once the work is known to be complete, or the device is lost or destroyed. A
 * page that is freed while the lists hold work is added to them, too.
 *
 * The lists are protected by qi_vulkan_deferred.mutex.
 */
#ifndef QUIRE_BACKENDS_VULKAN_DEFERRED_DESTROY_H
#define QUIRE_BACKENDS_VULKAN_DEFERRED_DESTROY_H

#include "backends/vulkan/stream.h"
#include "backends/vulkan/vulkan.h"

/* ---- entries of the backend table --------------------------------------------------------- */

/* Destroy a page or an object immediately if the device cannot be using it, otherwise later. */
void qi_vulkan_page_destroy(void *state, const quire_native_page *page);
void qi_vulkan_object_destroy(void *state, quire_object object, uint64_t native);

/* ---- the lists ---------------------------------------------------------------------------- */

void qi_vulkan_deferred_init(qi_vulkan *vulkan);

/* Destroys everything that is left. Called when the device is destroyed; waits for the device if
   quire created it. */
void qi_vulkan_deferred_finish(qi_vulkan *vulkan);

/* Takes ownership of a sparse object whose pending change could not be waited for. The object has
   no parts. */
void qi_vulkan_defer_sparse(quire_vulkan_sparse *sparse);

/* Takes ownership of a stream with submissions that are still running. */
void qi_vulkan_defer_stream(qi_vulkan *vulkan, qi_vulkan_stream *stream);

#endif
