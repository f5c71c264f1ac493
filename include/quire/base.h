/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/base.h - what every other header shares: results, the last error of a thread, the log
 * callback, host memory callbacks and the version.
 *
 * Conventions of every function. The other headers do not repeat them:
 *  - Sizes, offsets and alignments are uint64_t numbers of bytes. Counts are uint32_t or uint64_t.
 *  - A function returns QUIRE_SUCCESS or an error. quire_last_error has the sentence of the error.
 *    Headers list errors without their prefix: BUSY is QUIRE_ERROR_BUSY. Unless the function says
 *    otherwise, a null pointer, an unknown value and contradictory arguments are INVALID_ARGUMENT.
 *    Where the result tells no more than whether the call was right (frees, unmaps, flushes,
 *    destroys, unlocks), it may be ignored without a warning of the compiler.
 *  - quire reads an option struct only during the call. {0} is a good default. Fields that are
 *    named `unused` must be zero in structs that the caller fills in.
 *  - On success a function writes all its outputs. On failure it zeroes them and changes nothing
 *    else. Two exceptions: a copy that fails half way may have written bytes, and a free that
 *    returns CORRUPTED has freed (see quire_free).
 *  - A `_destroy` function takes a pointer to the handle and accepts a pointer to NULL. On success
 *    it sets the handle to NULL. On failure, such as BUSY, the handle stays valid and unchanged.
 *  - Objects that a `_create`, `_open` or `_wrap` function returns belong to the caller, who
 *    destroys them. Strings that a function returns belong to quire.
 *  - In the child of a fork every call on a device that does not survive the fork, and on its
 *    memories and streams, is NOT_PERMITTED, except those that destroy (docs/threading.md, "Fork").
 *  - Thread-safety is stated at the top of each header and at each exception. Functions are not
 *    async-signal-safe.
 *  - A callback returns to quire. It does not leave by longjmp, by a C++ exception, or by the end
 *    of its thread (pthread_exit, pthread_cancel): what the interrupted call had taken would stay
 *    taken, and the behaviour of later calls is undefined. docs/threading.md, "What callbacks may
 *    do", has the consequences. C++ callbacks catch what they throw. A callback that runs without a
 *    lock may end the process with exit.
 */
#ifndef QUIRE_BASE_H
#define QUIRE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIRE_VERSION_MAJOR 0
#define QUIRE_VERSION_MINOR 2
#define QUIRE_VERSION_PATCH 0

#if defined(__GNUC__)
#define QUIRE_API __attribute__((visibility("default")))
#define QUIRE_MUST_USE __attribute__((warn_unused_result))
#define QUIRE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define QUIRE_API
#define QUIRE_MUST_USE
#define QUIRE_PRINTF(text, first)
#endif

/* The null pointer of inline functions, without a warning of C++ compilers. */
#ifdef __cplusplus
#define QUIRE_NULL nullptr
#else
#define QUIRE_NULL NULL
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results -------------------------------------------------------------------------------- */

/*
 * X(name, value, sentence): the one list behind the enum, the names, the general sentences and the
 * table in docs/results.md. 0 is success. Errors are negative. Values never change.
 */
#define QUIRE_RESULTS(X)                                                                           \
    X(QUIRE_SUCCESS, 0, "success")                                                                 \
    X(QUIRE_ERROR_INVALID_ARGUMENT, -1, "an argument is null, zero, unknown or contradictory")     \
    X(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, -2, "the backend has no memory left for the request")      \
    X(QUIRE_ERROR_OUT_OF_HOST_MEMORY, -3, "the host memory callbacks returned nothing")            \
    X(QUIRE_ERROR_OVER_BUDGET, -4, "the request would exceed a budget")                            \
    X(QUIRE_ERROR_TOO_MANY_PAGES, -5, "the memory or the device has as many pages as it may")      \
    X(QUIRE_ERROR_TOO_MANY_ALLOCATIONS, -6, "a table of handles is full")                          \
    X(QUIRE_ERROR_UNSUPPORTED, -7, "the backend or this version does not offer it")                \
    X(QUIRE_ERROR_NOT_PERMITTED, -8, "the system or the driver refused the permission")            \
    X(QUIRE_ERROR_NOT_HOST_VISIBLE, -9, "the memory cannot be reached by a host pointer")          \
    X(QUIRE_ERROR_NOT_MAPPED, -10, "the allocation is not mapped")                                 \
    X(QUIRE_ERROR_STALE_HANDLE, -11, "the handle was freed before")                                \
    X(QUIRE_ERROR_FOREIGN_HANDLE, -12, "the handle belongs to another memory or space")            \
    X(QUIRE_ERROR_OUT_OF_RANGE, -13, "the range lies outside its parent")                          \
    X(QUIRE_ERROR_OVERLAP, -14, "two ranges overlap that must not")                                \
    X(QUIRE_ERROR_BUSY, -15, "something still uses the object")                                    \
    X(QUIRE_ERROR_WRONG_STATE, -16, "the object is not in the state that the call needs")          \
    X(QUIRE_ERROR_NO_SPACE, -17, "no free range of the space is large enough")                     \
    X(QUIRE_ERROR_DEVICE_LOST, -18, "the device is lost")                                          \
    X(QUIRE_ERROR_BACKEND_FAILURE, -19, "the backend failed; its own code is kept")                \
    X(QUIRE_ERROR_BAD_FILE, -20, "a file or text does not follow its format")                      \
    X(QUIRE_ERROR_CORRUPTED, -21, "a check found records or red zones damaged")

typedef enum quire_result {
#define QUIRE_RESULT_ENUM(name, value, sentence) name = (value),
    QUIRE_RESULTS(QUIRE_RESULT_ENUM)
#undef QUIRE_RESULT_ENUM
} quire_result;

/*
 * Returns the name ("QUIRE_ERROR_BUSY") or the general sentence of a result. Both return "unknown
 * result" for a value that is no result, and never NULL. The text is static. Thread-safe.
 */
QUIRE_API const char *quire_result_name(quire_result result);
QUIRE_API const char *quire_result_sentence(quire_result result);

/*
 * Returns the sentence of the last failed call of this thread, with the numbers of the case, or ""
 * if no call has failed yet. A later success does not clear it. The text is valid until the next
 * failed call of this thread; copy it to keep it. Thread-safe: each thread has its own.
 */
QUIRE_API const char *quire_last_error(void);

/* Returns the result of the last failed call of this thread; QUIRE_SUCCESS if none has failed. */
QUIRE_API quire_result quire_last_result(void);

/*
 * Returns the backend's own code (errno, VkResult, CUresult, ...) of the last failed call of this
 * thread, or 0 if the failure did not come from a backend.
 */
QUIRE_API int64_t quire_last_native_code(void);

/* ---- log ------------------------------------------------------------------------------------ */

typedef enum quire_log_level {
    QUIRE_LOG_DEFAULT = 0, /* as the level of a quire_log: QUIRE_LOG_WARNING */
    QUIRE_LOG_ERROR,       /* something is lost or damaged */
    QUIRE_LOG_WARNING, /* a refusal that changes nothing but matters to a developer, as of a leak */
    QUIRE_LOG_INFO,    /* rare events: devices and memories are created and destroyed */
    QUIRE_LOG_DEBUG,   /* every page that is created or destroyed, memory kinds that are chosen */
    QUIRE_LOG_NONE     /* as the level of a quire_log: no line is written */
} quire_log_level;

/*
 * A log sink. quire calls `write` with one line, without a line end, that is valid during the call.
 * The thread that caused the line makes the call. Several threads may call at the same time. quire
 * holds no lock during the call. NULL: nothing is logged.
 *
 * The sink may call quire, including on the memory that the line is about. At that time its thread
 * does not create, grow or release a page. Calls of the sink therefore never wait for the call that
 * caused the line, and nothing they change makes that call start again. Limits:
 *  - What the sink does can cause further lines and so call the sink again. A sink that allocates
 *    on a line must not allocate on the lines of that allocation, or the recursion never ends.
 *  - A memory that is being destroyed refuses requests that need a page with WRONG_STATE, and every
 *    request once its pages are destroyed. The sink must not use a device that is being destroyed.
 *    It must use neither of them after the last line about it.
 *  - For a line that begins with "vulkan: " the sink must not call quire (see quire/vulkan.h).
 *
 * Lines also go to standard error if the environment variable QUIRE_LOG is error, warning, info or
 * debug: those up to this level, of every device that is created from then on. Setuid programs
 * ignore it.
 */
typedef struct quire_log {
    void (*write)(void *user, quire_log_level level, const char *line);
    void *user;
    quire_log_level level; /* lines above this level are dropped; 0: those above WARNING */
} quire_log;

/* ---- host memory ---------------------------------------------------------------------------- */

/*
 * Callbacks that provide the host memory of quire's own records. quire calls malloc nowhere else.
 * {0} means malloc and free. Set both functions or neither.
 *  - allocate: returns `size` bytes, above 0, aligned to `alignment`, a power of two up to 64. NULL
 *    makes the call fail with OUT_OF_HOST_MEMORY.
 *  - release: takes back a pointer that allocate returned, never NULL, with the same size and
 *    alignment.
 * Both must be thread-safe and must not call quire. quire may call both under one of its locks, so
 * they must not fork: the fork would wait forever for that lock.
 * Functions that free, unmap or destroy never call allocate.
 */
typedef struct quire_host_memory {
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *pointer, size_t size, size_t alignment);
    void *user;
} quire_host_memory;

/* ---- text output ---------------------------------------------------------------------------- */

/*
 * Receives text in pieces of `size` bytes, without a terminating 0. Returning false stops the
 * writer, which then fails with BAD_FILE.
 */
typedef bool (*quire_sink)(void *user, const char *text, size_t size);

/* ---- version -------------------------------------------------------------------------------- */

/*
 * Returns the version of the library that is loaded, as "0.1.0". The QUIRE_VERSION_ macros have the
 * version of the header.
 */
QUIRE_API const char *quire_version(void);

#ifdef __cplusplus
}
#endif

#endif
