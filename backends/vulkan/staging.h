/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * staging.h - staging memory, which copies go through, and the staging ring: copies, fills and
 * layout changes that a call submits and waits for.
 */
#ifndef QUIRE_BACKENDS_VULKAN_STAGING_H
#define QUIRE_BACKENDS_VULKAN_STAGING_H

#include <pthread.h>

#include "backends/vulkan/vulkan.h"

/* ---- staging memory ----------------------------------------------------------------------- */

/*
 * Host-visible memory that copies go through: one buffer in one VkDeviceMemory, mapped while it
 * exists. The staging ring has one, and every stream that copies from host memory. The functions
 * take no lock: the owner of the record protects it.
 */

/* Parts that are flushed or invalidated separately begin at multiples of this many bytes: the
   largest nonCoherentAtomSize that Vulkan allows. */
#define QI_VULKAN_STAGING_ALIGNMENT UINT64_C(256)

/* All members are constant from make to destroy. Zero: not made. */
typedef struct qi_vulkan_staging_memory {
    VkDeviceMemory memory;
    VkBuffer buffer;
    char *bytes; /* the mapping */
    uint64_t size;
    bool is_coherent;
} qi_vulkan_staging_memory;

/*
 * Returns the memory kind of the mask for staging memory, UINT32_MAX if none is suitable. If the
 * host reads the memory, a cached kind is best: the host reads uncached memory word by word, and
 * quire invalidates if that is necessary. If the host only writes it, a coherent kind is best,
 * which needs no flush. Among equals, a kind that is not device-local: staging memory leaves the
 * small host-visible heap of a GPU to the program.
 */
uint32_t qi_vulkan_staging_kind(const qi_vulkan *vulkan, uint32_t mask, bool is_read);

/* Creates memory of a size that is a multiple of the alignment. On failure nothing is left. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_memory_make(const qi_vulkan *vulkan, uint64_t size,
                                                          bool is_read,
                                                          qi_vulkan_staging_memory *made);

/* The device must not use it any more. Accepts memory that was not made. */
void qi_vulkan_staging_memory_destroy(const qi_vulkan *vulkan, qi_vulkan_staging_memory *memory);

/* Make the host's writes to a part visible to the device, and the device's to the host. They do
   nothing if the memory is host-coherent. `offset` is a multiple of the alignment. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_memory_flush(const qi_vulkan *vulkan,
                                                           const qi_vulkan_staging_memory *memory,
                                                           uint64_t offset, uint64_t size);

/* ---- the ring ----------------------------------------------------------------------------- */

/*
 * One mapped buffer in two halves, created at the first use. While the device works on one half the
 * host fills or empties the other. One thread uses the ring at a time: it holds `mutex` from
 * qi_vulkan_staging_acquire to qi_vulkan_staging_release. No thread holds a lock of quire's core
 * when it acquires that mutex.
 */

enum { QI_VULKAN_HALVES = 2 };

/* All members but `queue_mutex` and `has_pending` are protected by `mutex`. */
struct qi_vulkan_staging {
    pthread_mutex_t mutex;
    pthread_mutex_t queue_mutex; /* innermost; locks the queue if the caller gave no lock */
    bool is_made;
    bool is_lost; /* the device was lost: every later use of the ring fails */
    qi_vulkan_staging_memory memory;
    uint64_t half;                         /* bytes of each half */
    VkCommandPool pools[QI_VULKAN_HALVES]; /* one for each half, reset as a whole */
    VkCommandBuffer commands[QI_VULKAN_HALVES];
    VkFence fences[QI_VULKAN_HALVES];
    bool is_running[QI_VULKAN_HALVES];  /* submitted, and not known to be complete */
    bool is_signaled[QI_VULKAN_HALVES]; /* the fence must be reset before its next use */
    qi_atomic_u32 has_pending;          /* 1: work is running that its call could not wait for */
};

/* Creates the record and its mutexes. Creates no Vulkan object. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_init(qi_vulkan *vulkan);

/* Waits for the work of the ring and destroys it. Accepts a state without a staging record. */
void qi_vulkan_staging_destroy(qi_vulkan *vulkan);

/*
 * Acquires the ring for the calling thread and creates it on the first call. UNSUPPORTED without a
 * queue. After a success the thread must call qi_vulkan_staging_release, which waits for both
 * halves, releases the ring and returns the first failure: `result`, or that of the waits.
 */
QUIRE_MUST_USE quire_result qi_vulkan_staging_acquire(qi_vulkan *vulkan);
quire_result qi_vulkan_staging_release(qi_vulkan *vulkan, quire_result result);

/*
 * Waits again for work that a call had to leave running because its wait failed. Returns true if
 * none is left. While it returns false, no object that such a call named may be destroyed. The
 * calling thread must not hold the ring.
 */
bool qi_vulkan_staging_retire(qi_vulkan *vulkan);

/* Waits until a half is idle. The thread holds the ring, here and below. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_wait(qi_vulkan *vulkan, int half);

/* Begins the commands of an idle half, with a barrier that makes all earlier submissions visible to
   its transfers. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_begin(qi_vulkan *vulkan, int half);

/* Make the host's writes to a half visible to the device, and the device's to the host. They do
   nothing if the ring is host-coherent. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_flush(qi_vulkan *vulkan, int half);
QUIRE_MUST_USE quire_result qi_vulkan_staging_invalidate(qi_vulkan *vulkan, int half);

/* Ends the commands of a half, with a barrier that makes their writes visible to everything later,
   and submits them. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_submit(qi_vulkan *vulkan, int half);

#endif
