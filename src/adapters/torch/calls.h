/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * calls.h - what torch calls, without the C++ types of its interface: exports.cpp adds those. The
 * tests call these functions as torch would.
 *
 * Thread-safety: any thread may call any function. In the child of a fork frees do nothing, and
 * everything else fails with NOT_PERMITTED.
 *
 * Streams are cudaStream_t: NULL and 1 are the legacy default stream, 2 is the default stream of
 * the calling thread. A result that is not QUIRE_SUCCESS comes with a sentence: torch_message.
 */
#ifndef QUIRE_SRC_ADAPTERS_TORCH_CALLS_H
#define QUIRE_SRC_ADAPTERS_TORCH_CALLS_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The pair of numbers that identifies a pool of torch. */
typedef struct torch_pool_id {
    uint64_t first, second;
} torch_pool_id;

/* Selects the streams, or the thread, whose allocations go to a pool. */
typedef struct torch_filter {
    bool (*matches)(void *state, void *stream); /* must not call the adapter */
    void (*destroy)(void *state); /* called once, when the pool no longer gets allocations */
    void *state;
} torch_filter;

/*
 * Checks the number of devices and remembers it; later calls refuse a device beyond it. Opens none.
 * Without this call the driver decides which devices exist.
 */
quire_result torch_init(int device_count);

/*
 * Allocates in the order of the stream. Opens the device on its primary context at the first call.
 * 0 bytes give NULL. If memory is exhausted, and no stream captures, waits for the work of the
 * device, releases what is free, and tries again.
 */
quire_result torch_allocate(int64_t size, int device, void *stream, void **pointer);

/* Whether a result of torch_allocate says that memory is exhausted. */
bool torch_is_exhausted(quire_result result);

/* Frees in the order of the stream that allocated. A NULL pointer does nothing. */
quire_result torch_free(void *pointer, int device, void *stream);

/* Waits for the work of the device first, as cudaFree does, unless a stream captures. */
quire_result torch_free_segment(void *pointer, int device, void *stream);

/* A later free of the memory also waits for the work of this stream. A pointer that the adapter did
   not allocate does nothing, because torch passes these as well. */
quire_result torch_record_stream(void *pointer, void *stream);

/* The first byte and the size of the page that contains an address. For an address of others the
   address itself and 0. */
void *torch_get_base(void *pointer, size_t *size);

/* Waits for the work of all open devices, releases pools without users and all empty pages. While a
   stream captures, it releases only empty pages. */
quire_result torch_reset(void);

/* Limits the pages of a device to a share of its memory, from 0 to 1. */
quire_result torch_set_fraction(double fraction, int device);

/*
 * Begin directs the allocations that the filter selects to a pool, and counts a user of the pool.
 * End stops that for the filter that was begun first. Release ends a use. The memory of a pool
 * without users is released by torch_reset, or when memory is exhausted. begin owns the filter,
 * also when it fails.
 */
quire_result torch_begin_pool(int device, torch_pool_id id, const torch_filter *filter);
quire_result torch_end_pool(int device, torch_pool_id id);
quire_result torch_release_pool(int device, torch_pool_id id);

/*
 * The tag of the calling thread names what it allocates from now on, in the memory of a device or
 * of a pool. NULL: no tag. Fails with INVALID_ARGUMENT for an empty tag, and one of more than
 * QUIRE_MAX_NAME bytes.
 */
quire_result torch_set_tag(const char *tag);

/* NULL: the thread has no tag. Valid until the thread's next torch_set_tag. */
const char *torch_tag(void);

/*
 * Put to sleep what lies in the device's own memory under tags that begin with `prefix`, and wake
 * it: quire_memory_sleep, quire_memory_wake. NULL: everything, also without a tag. Without `keep`
 * the contents are lost. *bytes receives the bytes of device memory that were given up or taken; 0
 * on failure. Both wait for the work of the device first, and collect what was freed.
 * Errors: those of quire, INVALID_ARGUMENT (as torch_set_tag; nothing was allocated on the device),
 * BUSY (a stream captures, a pool is begun), NOT_PERMITTED.
 */
quire_result torch_sleep(int device, const char *prefix, bool keep, uint64_t *bytes);
quire_result torch_wake(int device, const char *prefix, uint64_t *bytes);

/* Starts the statistics' peaks of a device again from the present values. */
quire_result torch_reset_peaks(int device);

/* Records the last `count` allocations, frees, refusals, and pages made and released, for
   torch_snapshot; 0 stops and forgets them. */
quire_result torch_record_history(uint64_t count);

/* JSON, to be released by free; NULL if host memory is exhausted. docs/adapters/pytorch.md has the
   keys. */
char *torch_statistics(void);
char *torch_snapshot(void);

/* The sentence of the last failed call of this thread. */
const char *torch_message(void);

/* Closes all devices and forgets everything. For tests: no other call may run, and the work of the
   devices is done. */
void torch_close(void);

#ifdef __cplusplus
}
#endif

#endif
