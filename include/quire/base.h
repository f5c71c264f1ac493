/*
 * quire/base.h - what every other header of quire shares: results, the thread's last error, the log
 * callback, host memory callbacks and the version.
 *
 * Conventions that hold everywhere and are not repeated at each function:
 *  - Sizes, offsets and alignments are bytes in uint64_t; counts are uint32_t or uint64_t.
 *  - Option structs are read only during the call; {0} is a good default; `reserved` must be zero.
 *  - Outputs are written fully on success and zeroed on failure, and on failure nothing changed
 *    (the bytes of a copy that failed half way excepted, and CORRUPTED from a free: see there).
 *  - `_destroy` takes a pointer to the handle and accepts a pointer to NULL. It sets the handle to
 *    NULL where it succeeds; where it fails, as with BUSY, the handle stays valid and unchanged.
 *  - Functions are not async-signal-safe.
 */
#ifndef QUIRE_BASE_H
#define QUIRE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUIRE_VERSION_MAJOR 0
#define QUIRE_VERSION_MINOR 1
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

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results -------------------------------------------------------------------------------- */

/*
 * X(name, value, sentence): the one list from which the enum, the names, the general sentences and
 * the table in docs/results.md are made. 0 is success, errors are negative, values never change.
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
 * The name ("QUIRE_ERROR_BUSY") and the general sentence of a result. For a value that is no result
 * both answer "unknown result". Never NULL; the text lives as long as the program.
 * Thread-safety: safe.
 */
QUIRE_API const char *quire_result_name(quire_result result);
QUIRE_API const char *quire_result_sentence(quire_result result);

/*
 * The sentence of the last call that failed on this thread, with the numbers of the case in it, or
 * "" if none failed yet. A later success does not clear it. The text is valid until the next
 * failing call of this thread; copy it to keep it. Thread-safety: safe, each thread has its own.
 */
QUIRE_API const char *quire_last_error(void);

/* The result of the last call that failed on this thread; QUIRE_SUCCESS if none failed yet. */
QUIRE_API quire_result quire_last_result(void);

/*
 * The backend's own code (errno, VkResult, CUresult) of the last failing call of this thread, or 0
 * where the failure did not come from a backend.
 */
QUIRE_API int64_t quire_last_native_code(void);

/* ---- log ------------------------------------------------------------------------------------ */

typedef enum quire_log_level {
    QUIRE_LOG_NONE = 0, /* as the level of a quire_log: QUIRE_LOG_WARNING */
    QUIRE_LOG_ERROR,    /* something was lost or damaged */
    QUIRE_LOG_WARNING, /* a refusal that changes nothing but that a developer wants to see: leaks */
    QUIRE_LOG_INFO,    /* rare events: devices and memories made and destroyed */
    QUIRE_LOG_DEBUG    /* each page made and given back, memory kinds chosen */
} quire_log_level;

/*
 * A log sink. `write` gets one line without line end, valid during the call. The thread that caused
 * the line calls it, never under a lock of quire, possibly several threads at once. NULL: nothing
 * is logged.
 *
 * The sink may call quire, on the memory that the line is about, too. When it is called, that
 * thread is not making, growing or giving back any page, so that the sink's calls wait for nothing
 * of the call that they are made from, and nothing they change makes that call begin again. But:
 *  - what the sink does writes lines of its own and so calls the sink again. A sink that allocates
 *    at a line must not do so at the lines of that allocation, or it never ends;
 *  - a memory that is being destroyed answers WRONG_STATE to requests that need a page, and to all
 *    once its pages are gone; a device that is being destroyed must not be used. Neither must be
 *    used after the last line about it;
 *  - for a line that begins with "vulkan: " the sink must not call quire (quire/vulkan.h).
 */
typedef struct quire_log {
    void (*write)(void *user, quire_log_level level, const char *line);
    void *user;
    quire_log_level level; /* lines above this level are not written */
} quire_log;

/* ---- host memory ---------------------------------------------------------------------------- */

/*
 * Where the library takes the host memory of its own records from; it never touches malloc
 * elsewhere. {0} means malloc and free. Either both functions are given or none.
 *  - allocate: `size` > 0 bytes aligned to `alignment` (a power of two up to 64), or NULL, which
 *    becomes QUIRE_ERROR_OUT_OF_HOST_MEMORY.
 *  - release: gives back what allocate returned, with the same size and alignment; never NULL.
 * Both must be thread-safe and must not call quire; both may be called under a lock of quire, so
 * that they must not fork either: the fork would wait for that lock for ever.
 * Freeing, unmapping and destroying never call allocate.
 */
typedef struct quire_host_memory {
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *pointer, size_t size, size_t alignment);
    void *user;
} quire_host_memory;

/* ---- text out ------------------------------------------------------------------------------- */

/*
 * Takes text piece by piece, `size` bytes without an end mark. False stops the writing, which then
 * answers BAD_FILE.
 */
typedef bool (*quire_sink)(void *user, const char *text, size_t size);

/* ---- version -------------------------------------------------------------------------------- */

/* The version of the library that runs, "0.1.0"; compare with the QUIRE_VERSION_ macros. */
QUIRE_API const char *quire_version(void);

#ifdef __cplusplus
}
#endif

#endif
