/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_answers.c - documented behaviour of the CUDA driver that quire relies on or that programs
 * meet, row by row: what a device answers.
 *
 *     cuda_answers --library|--table PATH      see tests/support/cuda_rows.h
 *
 * The expected answers are those of an H100 with the driver of CUDA 13.0, which are those of the
 * documentation except where a comment says otherwise. That device has no multicast, whose rows
 * follow the documentation. No row uses undefined behaviour, and each has its own scene.
 * cuda_codes.c has the limits of memory and addresses.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/plain/cuda_answers.h"
#include "tests/support/child.h"
#include "tests/support/cuda_rows.h"
#include "tests/support/plain.h"

/* ---- contexts ------------------------------------------------------------------------------- */

static qi_cu_context current(void)
{
    qi_cu_context context = NULL;
    MUST(cu.CtxGetCurrent(&context));
    return context;
}

static qi_cu_context retained(void)
{
    qi_cu_context context = NULL;
    MUST(cu.DevicePrimaryCtxRetain(&context, 0));
    return context;
}

static bool is_active(void)
{
    unsigned flags;
    int active;
    MUST(cu.DevicePrimaryCtxGetState(0, &flags, &active));
    return active;
}

static qi_cu_result create_early(void)
{
    size_t size = 0;
    qi_cu_handle handle = 0;
    qi_cu_allocation_prop prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    qi_cu_result result =
        cu.MemGetAllocationGranularity(&size, &prop, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (!result)
        result = cu.MemCreate(&handle, size, &prop, 0);
    return result ? result : cu.MemRelease(handle);
}

/* Another context, which is current. */
static void create_second(answer_scene *s)
{
    MUST(cu.CtxCreate(&s->second, 0, 0));
}

static void destroy_second(answer_scene *s)
{
    MUST(cu.CtxDestroy(s->second));
    s->second = NULL;
}

/* ---- threads and processes ------------------------------------------------------------------ */

static void in_thread(void *(*body)(void *), void *user)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, user) || pthread_join(thread, NULL))
        check_failed(__FILE__, __LINE__, "no thread");
}

static void *see_current(void *seen)
{
    *(qi_cu_context *)seen = current();
    return NULL;
}

static qi_cu_context current_in_thread(answer_scene *s)
{
    qi_cu_context seen = s->context;
    in_thread(see_current, &seen);
    return seen;
}

typedef struct thread_call {
    answer_scene *scene;
    qi_cu_result answer;
} thread_call;

static void *allocate_there(void *user)
{
    thread_call *call = user;
    MUST(cu.CtxPushCurrent(call->scene->context));
    call->answer = cu.MemAlloc(&call->scene->made, 64);
    MUST(cu.CtxPopCurrent(NULL));
    return NULL;
}

static qi_cu_result allocate_in_thread(answer_scene *s)
{
    thread_call call = {.scene = s};
    in_thread(allocate_there, &call);
    return call.answer;
}

static bool fork_is_uninitialized(answer_scene *s)
{
    pid_t child = fork();
    if (!child)
        child_end(cu.MemGetInfo(&s->size, &s->total) == QI_CUDA_ERROR_NOT_INITIALIZED);
    return child_was_well(child);
}

/* ---- memory --------------------------------------------------------------------------------- */

static qi_cu_result granularity(qi_cu_allocation_prop prop, qi_cu_granularity option)
{
    size_t size;
    return cu.MemGetAllocationGranularity(&size, &prop, option);
}

static qi_cu_allocation_prop of_type(const answer_scene *s, qi_cu_allocation_type type)
{
    qi_cu_allocation_prop prop = s->prop;
    prop.type = type;
    return prop;
}

static qi_cu_allocation_prop located(const answer_scene *s, qi_cu_location_type type)
{
    qi_cu_allocation_prop prop = s->prop;
    prop.location.type = type;
    return prop;
}

static qi_cu_result create(answer_scene *s, qi_cu_allocation_prop prop, unsigned long long flags)
{
    return cu.MemCreate(&s->made_handle, s->piece, &prop, flags);
}

static qi_cu_result reserve(answer_scene *s, qi_cu_ptr hint, unsigned long long flags)
{
    return cu.MemAddressReserve(&s->reserved, s->piece, 0, hint, flags);
}

static qi_cu_result access_at(qi_cu_ptr address, qi_cu_location_type type,
                              unsigned long long *flags)
{
    qi_cu_location location = {type, 0};
    *flags = 9; /* none that a driver answers */
    return cu.MemGetAccess(flags, &location, address);
}

static qi_cu_result access_code(qi_cu_ptr address, qi_cu_location_type type)
{
    unsigned long long flags;
    return access_at(address, type, &flags);
}

static unsigned long long access_flags(qi_cu_ptr address)
{
    unsigned long long flags;
    MUST(access_at(address, QI_CU_MEM_LOCATION_TYPE_DEVICE, &flags));
    return flags;
}

/* The memory has the mapping and one reference, which is retained by address. */
static void retain_again(answer_scene *s)
{
    MUST(cu.MemRelease(s->handle));
    MUST(cu.MemRetainAllocationHandle(&s->handle, (void *)(uintptr_t)s->range));
}

static qi_cu_result release_twice(answer_scene *s)
{
    qi_cu_handle handle = s->handle;
    s->handle = 0;
    MUST(cu.MemRelease(handle));
    return cu.MemRelease(handle);
}

static void unmap(answer_scene *s)
{
    MUST(cu.MemUnmap(s->range, 2 * s->piece));
}

static qi_cu_result map_again(answer_scene *s)
{
    retain_again(s);
    unmap(s);
    return cu.MemMap(s->range, 2 * s->piece, 0, s->handle, 0);
}

static qi_cu_allocation_prop properties_of(qi_cu_handle handle)
{
    qi_cu_allocation_prop prop;
    memset(&prop, 0, sizeof prop);
    MUST(cu.MemGetAllocationPropertiesFromHandle(&prop, handle));
    return prop;
}

static uint32_t memory_type(qi_cu_ptr address)
{
    uint32_t type = 0;
    MUST(cu.PointerGetAttribute(&type, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    return type;
}

static qi_cu_ptr range_start(qi_cu_ptr address)
{
    qi_cu_ptr start = 0;
    MUST(cu.PointerGetAttribute(&start, QI_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address));
    return start;
}

/* A boolean of the driver is one byte. */
static bool is_legacy_capable(qi_cu_ptr address)
{
    unsigned char value[8] = {7};
    MUST(
        cu.PointerGetAttribute(value, QI_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address));
    return value[0] != 0;
}

static qi_cu_ptr allocate(answer_scene *s, size_t size)
{
    MUST(cu.MemAlloc(&s->made, size));
    return s->made;
}

static size_t block_size(qi_cu_ptr address)
{
    qi_cu_ptr base;
    size_t size;
    MUST(cu.MemGetAddressRange(&base, &size, address));
    return size;
}

static bool free_is_within_total(answer_scene *s)
{
    MUST(cu.MemGetInfo(&s->size, &s->total));
    return s->size <= s->total;
}

/* Returns the two pages. */
static char *register_area(void)
{
    MUST(cu.MemHostRegister(answer_area, ANSWER_AREA_SIZE, 0));
    return answer_area;
}

/* ---- streams, events and captures ----------------------------------------------------------- */

static bool is_of_context(const answer_scene *s)
{
    qi_cu_context context = NULL;
    MUST(cu.StreamGetCtx(s->stream, &context));
    return context == s->context;
}

static qi_cu_result elapsed_untimed(answer_scene *s)
{
    float milliseconds;
    MUST(cu.EventCreate(&s->made_event, QI_CU_EVENT_DISABLE_TIMING));
    MUST(cu.EventRecord(s->event, s->stream));
    MUST(cu.EventRecord(s->made_event, s->stream));
    MUST(cu.StreamSynchronize(s->stream));
    return cu.EventElapsedTime(&milliseconds, s->event, s->made_event);
}

static qi_cu_result elapsed_unrecorded(answer_scene *s)
{
    float milliseconds;
    qi_cu_event start;
    MUST(cu.EventCreate(&start, QI_CU_EVENT_DEFAULT));
    MUST(cu.EventCreate(&s->made_event, QI_CU_EVENT_DEFAULT));
    qi_cu_result result = cu.EventElapsedTime(&milliseconds, start, s->made_event);
    MUST(cu.EventDestroy(start));
    return result;
}

static qi_cu_result record_of_second(answer_scene *s)
{
    create_second(s);
    MUST(cu.EventCreate(&s->made_event, QI_CU_EVENT_DISABLE_TIMING));
    return cu.EventRecord(s->made_event, s->stream);
}

static qi_cu_result begin(answer_scene *s, qi_cu_stream stream, qi_cu_capture_mode mode)
{
    qi_cu_result result = cu.StreamBeginCapture(stream, mode);
    if (!result)
        s->capturing = stream;
    return result;
}

static void capture(answer_scene *s)
{
    MUST(begin(s, s->stream, QI_CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static qi_cu_capture_mode exchange(qi_cu_capture_mode mode)
{
    MUST(cu.ThreadExchangeStreamCaptureMode(&mode));
    return mode;
}

/* The mode that the thread had, which it has again afterwards. */
static qi_cu_capture_mode first_mode(void)
{
    qi_cu_capture_mode mode = exchange(QI_CU_STREAM_CAPTURE_MODE_RELAXED);
    (void)exchange(mode);
    return mode;
}

static qi_cu_result allocate_relaxed(answer_scene *s)
{
    capture(s);
    qi_cu_capture_mode mode = exchange(QI_CU_STREAM_CAPTURE_MODE_RELAXED);
    qi_cu_result result = cu.MemAlloc(&s->made, 64);
    (void)exchange(mode);
    return result;
}

/* ---- pools, exports, multicast -------------------------------------------------------------- */

static void find_pool(answer_scene *s)
{
    MUST(cu.DeviceGetDefaultMemPool(&s->pool, 0));
}

static bool is_default_current(answer_scene *s)
{
    find_pool(s);
    MUST(cu.DeviceGetMemPool(&s->other_pool, 0));
    return s->pool == s->other_pool;
}

static qi_cu_result revoke_own(answer_scene *s)
{
    qi_cu_access_desc none = {s->prop.location, QI_CU_MEM_ACCESS_FLAGS_PROT_NONE};
    find_pool(s);
    return cu.MemPoolSetAccess(s->pool, &none, 1);
}

static uint64_t threshold(answer_scene *s)
{
    uint64_t bytes = 1;
    find_pool(s);
    MUST(cu.MemPoolGetAttribute(s->pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
    return bytes;
}

static qi_cu_ptr allocate_pooled(answer_scene *s)
{
    MUST(cu.MemAllocAsync(&s->made, 1000, s->stream));
    return s->made;
}

/* The caller synchronizes the streams, as the documentation demands. */
static qi_cu_result free_in_other_stream(answer_scene *s)
{
    allocate_pooled(s);
    MUST(cu.StreamSynchronize(s->stream));
    qi_cu_result result = cu.MemFreeAsync(s->made, s->blocking);
    s->made = result ? s->made : 0;
    return result;
}

static qi_cu_result free_pooled(answer_scene *s)
{
    qi_cu_result result = cu.MemFree(allocate_pooled(s));
    s->made = result ? s->made : 0;
    return result;
}

static qi_cu_result open_own(answer_scene *s)
{
    qi_cu_result result = cu.IpcGetMemHandle(&s->ipc, s->block);
    return result ? result
                  : cu.IpcOpenMemHandle(&s->address, s->ipc, QI_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static qi_cu_result export_as(answer_scene *s, qi_cu_handle_type type)
{
    qi_cu_result result = cu.MemExportToShareableHandle(&s->shared, s->handle, type, 0);
    s->has_shared = !result;
    return result;
}

static qi_cu_result import(answer_scene *s)
{
    return cu.MemImportFromShareableHandle(&s->made_handle, (void *)(intptr_t)s->shared,
                                           QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static qi_cu_result import_own(answer_scene *s)
{
    MUST(export_as(s, QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    return import(s);
}

/* The import does not take the file descriptor. */
static bool is_still_open(answer_scene *s)
{
    MUST(import_own(s));
    s->has_shared = false;
    return !close(s->shared);
}

static qi_cu_result import_closed(answer_scene *s)
{
    MUST(export_as(s, QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    s->has_shared = false;
    close(s->shared);
    return import(s);
}

static qi_cu_result multicast_granularity(answer_scene *s)
{
    qi_cu_multicast_prop prop = {.numDevices = 1, .size = s->piece};
    return cu.MulticastGetGranularity(&s->size, &prop, QI_CU_MULTICAST_GRANULARITY_MINIMUM);
}

static qi_cu_result create_multicast(answer_scene *s, size_t size)
{
    qi_cu_multicast_prop prop = {.numDevices = 1, .size = size};
    return cu.MulticastCreate(&s->made_handle, &prop);
}

/* ---- the rows: X(row, description, expected answer, question) with the scene at `s` --------- */

#define CODE(name) CUDA_ROW_CODE, QI_CUDA_ERROR_##name
#define NUMBER(value) CUDA_ROW_NUMBER, (value)
#define YES CUDA_ROW_TRUTH, true
#define NO CUDA_ROW_TRUTH, false

#define QI_CUDA_ERROR_SUCCESS QI_CUDA_SUCCESS

#define INIT() MUST(cu.Init(0))
#define GLOBAL QI_CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL QI_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

/* The scene is empty. */
#define EARLY_ROWS(X)                                                                              \
    X(early_count, "count the devices before cuInit", CODE(NOT_INITIALIZED),                       \
      cu.DeviceGetCount(&s->number))                                                               \
    X(early_flags, "cuInit with flags", CODE(INVALID_VALUE), cu.Init(1))                           \
    X(early_init, "cuInit", CODE(SUCCESS), cu.Init(0))                                             \
    X(early_device, "device -1", CODE(INVALID_DEVICE), (INIT(), cu.DeviceGet(&s->number, -1)))     \
    X(early_attribute, "attribute 9999 of the device", CODE(INVALID_VALUE),                        \
      (INIT(), cu.DeviceGetAttribute(&s->number, 9999, 0)))                                        \
    X(early_block, "allocate a block without a context", CODE(INVALID_CONTEXT),                    \
      (INIT(), cu.MemAlloc(&s->made, ANSWER_BLOCK_SIZE)))                                          \
    X(early_current, "ask for the current context, there is none", CODE(SUCCESS),                  \
      (INIT(), cu.CtxGetCurrent(&s->context)))                                                     \
    X(early_null, "a thread has a current context from the start", NO, (INIT(), !!current()))      \
    X(early_memory, "create and release memory without a context", CODE(SUCCESS),                  \
      (INIT(), create_early()))                                                                    \
    X(early_inactive, "the primary context is active before it is retained", NO,                   \
      (INIT(), is_active()))                                                                       \
    X(early_retain, "retain the primary context", CODE(SUCCESS),                                   \
      (INIT(), cu.DevicePrimaryCtxRetain(&s->context, 0)))                                         \
    X(early_same, "the primary context is the same each time", YES,                                \
      (INIT(), retained() == retained()))                                                          \
    X(early_retained, "a context becomes current when it is retained", NO,                         \
      (INIT(), (void)retained(), !!current()))                                                     \
    X(early_release, "release the primary context once of twice", CODE(SUCCESS),                   \
      (INIT(), (void)retained(), (void)retained(), cu.DevicePrimaryCtxRelease(0)))                 \
    X(early_active, "the primary context is active after one release of two", YES,                 \
      (INIT(), (void)retained(), (void)retained(), MUST(cu.DevicePrimaryCtxRelease(0)),            \
       is_active()))                                                                               \
    X(early_pop, "pop a context, there is none", CODE(INVALID_CONTEXT),                            \
      (INIT(), (void)retained(), cu.CtxPopCurrent(&s->context)))                                   \
    X(early_push, "push the primary context", CODE(SUCCESS),                                       \
      (INIT(), cu.CtxPushCurrent(retained())))

#define CONTEXT_ROWS(X)                                                                            \
    X(context_thread, "a new thread has the current context of its creator", NO,                   \
      !!current_in_thread(s))                                                                      \
    X(context_created, "a context is current when it is created", YES,                             \
      (create_second(s), current() == s->second))                                                  \
    X(context_destroyed, "destroying the current context makes the one below current", YES,        \
      (create_second(s), destroy_second(s), current() == s->context))                              \
    X(context_peer, "access of a device to itself as a peer is refused", YES,                      \
      !!cu.CtxEnablePeerAccess(s->context, 0))                                                     \
    X(context_itself, "a device can access itself as a peer", NO,                                  \
      (MUST(cu.DeviceCanAccessPeer(&s->number, 0, 0)), s->number != 0))

#define BLOCK_ROWS(X)                                                                              \
    X(block_none, "allocate 0 bytes", CODE(INVALID_VALUE), cu.MemAlloc(&s->made, 0))               \
    X(block_aligned, "a block of one byte is aligned to 256", YES, allocate(s, 1) % 256 == 0)      \
    X(block_range, "the size of a block of one byte", NUMBER(1), block_size(allocate(s, 1)))       \
    X(block_inside, "free 256 bytes behind the start of a block", CODE(INVALID_VALUE),             \
      cu.MemFree(s->block + 256))                                                                  \
    X(block_null, "free 0", CODE(SUCCESS), cu.MemFree(0))                                          \
    X(block_free, "free a block", CODE(SUCCESS), cu.MemFree(s->block))                             \
    X(block_twice, "free a block twice", CODE(INVALID_VALUE),                                      \
      (MUST(cu.MemFree(s->block)), cu.MemFree(s->block)))                                          \
    X(block_other, "free a block of another context", CODE(SUCCESS),                               \
      (create_second(s), cu.MemFree(s->block)))                                                    \
    X(block_info, "not more is free than there is", YES, free_is_within_total(s))

/* The driver does not read the type of an allocation or of a location for the granularity, against
   the documentation. */
#define RANGE_ROWS(X)                                                                              \
    X(range_granule, "the granularity", CODE(SUCCESS), granularity(s->prop, 0))                    \
    X(range_size, "the granularity in bytes", NUMBER(2 << 20), s->piece)                           \
    X(range_option, "granularity of option 7", CODE(INVALID_VALUE), granularity(s->prop, 7))       \
    X(range_type, "granularity of allocation type 9", CODE(SUCCESS),                               \
      granularity(of_type(s, 9), 0))                                                               \
    X(range_location, "granularity of location type 77", CODE(SUCCESS),                            \
      granularity(located(s, 77), 0))                                                              \
    X(range_create, "create memory of type 9", CODE(INVALID_VALUE), create(s, of_type(s, 9), 0))   \
    X(range_create_flags, "create memory with flags", CODE(INVALID_VALUE), create(s, s->prop, 1))  \
    X(range_reserve_flags, "reserve with flags", CODE(INVALID_VALUE), reserve(s, 0, 1))            \
    X(range_hint, "reserve at an address", CODE(SUCCESS), reserve(s, 0x700000000000, 0))           \
    X(range_free, "free a reservation", CODE(SUCCESS),                                             \
      (MUST(reserve(s, 0, 0)), cu.MemAddressFree(s->reserved, s->piece)))                          \
    X(range_free_twice, "free a reservation twice", CODE(INVALID_VALUE),                           \
      (MUST(reserve(s, 0, 0)), MUST(cu.MemAddressFree(s->reserved, s->piece)),                     \
       cu.MemAddressFree(s->reserved, s->piece)))                                                  \
    X(range_release_twice, "release memory twice that is mapped", CODE(INVALID_VALUE),             \
      release_twice(s))                                                                            \
    X(range_access, "ask for the access inside a mapping", CODE(SUCCESS),                          \
      access_code(s->range + s->piece + 5, QI_CU_MEM_LOCATION_TYPE_DEVICE))                        \
    X(range_access_flags, "the access flags inside a mapping",                                     \
      NUMBER(QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE), access_flags(s->range + s->piece + 5))        \
    X(range_access_location, "ask for the access of location type 77 is refused", YES,             \
      !!access_code(s->range, 77))                                                                 \
    X(range_properties, "ask for the properties of retained memory", CODE(SUCCESS),                \
      (retain_again(s), cu.MemGetAllocationPropertiesFromHandle(&s->prop, s->handle)))             \
    X(range_block, "free mapped memory as a block", CODE(INVALID_VALUE), cu.MemFree(s->range))     \
    X(range_unmap, "unmap", CODE(SUCCESS), cu.MemUnmap(s->range, 2 * s->piece))                    \
    X(range_map_again, "map retained memory again", CODE(SUCCESS), map_again(s))                   \
    X(range_no_access, "the access flags after memory is mapped again",                            \
      NUMBER(QI_CU_MEM_ACCESS_FLAGS_PROT_NONE), (MUST(map_again(s)), access_flags(s->range)))

#define POINTER_ROWS(X)                                                                            \
    X(pointer_legacy, "ask whether mapped memory has a legacy handle", CODE(SUCCESS),              \
      cu.PointerGetAttribute(&s->address, QI_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,      \
                             s->range))                                                            \
    X(pointer_no_legacy, "mapped memory has a legacy handle", NO, is_legacy_capable(s->range))     \
    X(pointer_unknown, "ask for the device of an unknown address", CODE(INVALID_VALUE),            \
      cu.PointerGetAttribute(&s->number, QI_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 0x1234))          \
    X(pointer_type, "the memory type of mapped memory", NUMBER(QI_CU_MEMORYTYPE_DEVICE),           \
      memory_type(s->range))                                                                       \
    X(pointer_start, "the range of an address starts at its mapping", YES,                         \
      range_start(s->range + 100) == s->range)                                                     \
    X(pointer_unmapped, "ask for the memory type where nothing is mapped any more",                \
      CODE(INVALID_VALUE),                                                                         \
      (unmap(s),                                                                                   \
       cu.PointerGetAttribute(&s->number, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, s->range)))

#define HOST_ROWS(X)                                                                               \
    X(host_pointer, "ask for the device address of pinned memory", CODE(SUCCESS),                  \
      cu.MemHostGetDevicePointer(&s->address, s->pinned, 0))                                       \
    X(host_same, "the device address of pinned memory is that of the host", YES,                   \
      (MUST(cu.MemHostGetDevicePointer(&s->address, s->pinned, 0)),                                \
       s->address == (uintptr_t)s->pinned))                                                        \
    X(host_type, "the memory type of pinned memory", NUMBER(QI_CU_MEMORYTYPE_HOST),                \
      memory_type((uintptr_t)s->pinned))                                                           \
    X(host_free, "free pinned memory", CODE(SUCCESS), cu.MemFreeHost(s->pinned))                   \
    X(host_free_twice, "free pinned memory twice", CODE(INVALID_VALUE),                            \
      (MUST(cu.MemFreeHost(s->pinned)), cu.MemFreeHost(s->pinned)))

#define REGISTER_ROWS(X)                                                                           \
    X(host_register, "register two pages", CODE(SUCCESS),                                          \
      cu.MemHostRegister(answer_area, ANSWER_AREA_SIZE, 0))                                        \
    X(host_register_again, "register a registered page", CODE(HOST_MEMORY_ALREADY_REGISTERED),     \
      cu.MemHostRegister(register_area(), ANSWER_AREA_SIZE / 2, 0))                                \
    X(host_unregister_inside, "unregistering the second page of two is refused", YES,              \
      !!cu.MemHostUnregister(register_area() + ANSWER_AREA_SIZE / 2))                              \
    X(host_unregister, "unregister two pages", CODE(SUCCESS),                                      \
      cu.MemHostUnregister(register_area()))                                                       \
    X(host_unregister_twice, "unregister two pages twice", CODE(HOST_MEMORY_NOT_REGISTERED),       \
      (MUST(cu.MemHostUnregister(register_area())), cu.MemHostUnregister(answer_area)))

#define STREAM_ROWS(X)                                                                             \
    X(stream_flags, "create a stream with flags that are none", CODE(INVALID_VALUE),               \
      cu.StreamCreate(&s->other_stream, 99))                                                       \
    X(stream_idle, "query an idle stream", CODE(SUCCESS), cu.StreamQuery(s->stream))               \
    X(stream_other_query, "query a stream of another context", CODE(SUCCESS),                      \
      (create_second(s), cu.StreamQuery(s->stream)))                                               \
    X(stream_context, "a stream has the context that was current", YES, is_of_context(s))          \
    X(stream_event_query, "query an event that was never recorded", CODE(SUCCESS),                 \
      cu.EventQuery(s->event))                                                                     \
    X(stream_event_wait, "wait for an event that was never recorded", CODE(SUCCESS),               \
      cu.StreamWaitEvent(s->stream, s->event, 0))                                                  \
    X(stream_elapsed, "the time between events without timing", CODE(INVALID_HANDLE),              \
      elapsed_untimed(s))                                                                          \
    X(stream_unrecorded, "the time between events that were never recorded", CODE(INVALID_HANDLE), \
      elapsed_unrecorded(s))                                                                       \
    X(stream_other, "record an event of another context", CODE(INVALID_HANDLE), record_of_second(s))

#define CAPTURE_ROWS(X)                                                                            \
    X(capture_mode, "capture in mode 9", CODE(INVALID_VALUE), begin(s, s->stream, 9))              \
    X(capture_begin, "capture", CODE(SUCCESS), begin(s, s->stream, GLOBAL))                        \
    X(capture_of_null, "capture the NULL stream", CODE(STREAM_CAPTURE_UNSUPPORTED),                \
      begin(s, NULL, GLOBAL))                                                                      \
    X(capture_twice, "capture twice", CODE(ILLEGAL_STATE),                                         \
      (capture(s), cu.StreamBeginCapture(s->stream, GLOBAL)))                                      \
    X(capture_no_begin, "end a capture that did not begin", CODE(ILLEGAL_STATE),                   \
      cu.StreamEndCapture(s->stream, &s->graph))                                                   \
    X(capture_status, "the status of a stream that captures", NUMBER(1),                           \
      (capture(s), MUST(cu.StreamIsCapturing(s->stream, &s->status)), s->status))                  \
    X(capture_null, "ask for the status of the NULL stream", CODE(SUCCESS),                        \
      (capture(s), cu.StreamIsCapturing(NULL, &s->status)))                                        \
    X(capture_block, "allocate a block in a global capture", CODE(STREAM_CAPTURE_UNSUPPORTED),     \
      (capture(s), cu.MemAlloc(&s->made, 64)))                                                     \
    X(capture_lost, "end a capture in which a block was allocated",                                \
      CODE(STREAM_CAPTURE_INVALIDATED),                                                            \
      (capture(s), (void)cu.MemAlloc(&s->made, 64), answer_end_capture(s)))                        \
    X(capture_record, "record an event in a stream that captures", CODE(SUCCESS),                  \
      (capture(s), cu.EventRecord(s->event, s->stream)))                                           \
    X(capture_event, "query an event that was recorded into a capture", CODE(CAPTURED_EVENT),      \
      (capture(s), MUST(cu.EventRecord(s->event, s->stream)), cu.EventQuery(s->event)))            \
    X(capture_query, "query a stream that captures", CODE(STREAM_CAPTURE_UNSUPPORTED),             \
      (capture(s), cu.StreamQuery(s->stream)))                                                     \
    X(capture_wait, "synchronize a stream that captures", CODE(STREAM_CAPTURE_UNSUPPORTED),        \
      (capture(s), cu.StreamSynchronize(s->stream)))                                               \
    X(capture_implicit, "query the NULL stream while a blocking stream captures",                  \
      CODE(STREAM_CAPTURE_IMPLICIT), (MUST(begin(s, s->blocking, GLOBAL)), cu.StreamQuery(NULL)))  \
    X(capture_context, "synchronize the context of a stream that captures",                        \
      CODE(STREAM_CAPTURE_UNSUPPORTED), (capture(s), cu.CtxSynchronize()))                         \
    X(capture_thread, "allocate a block in a global capture of another thread",                    \
      CODE(STREAM_CAPTURE_UNSUPPORTED), (capture(s), allocate_in_thread(s)))                       \
    X(capture_local, "allocate a block in a thread-local capture of another thread",               \
      CODE(SUCCESS), (MUST(begin(s, s->stream, THREAD_LOCAL)), allocate_in_thread(s)))             \
    X(capture_local_end, "end a thread-local capture, another thread allocated", CODE(SUCCESS),    \
      (MUST(begin(s, s->stream, THREAD_LOCAL)), MUST(allocate_in_thread(s)),                       \
       answer_end_capture(s)))                                                                     \
    X(capture_first, "the mode of a thread from the start", NUMBER(GLOBAL), first_mode())          \
    X(capture_relaxed, "allocate a block in a global capture in relaxed mode", CODE(SUCCESS),      \
      allocate_relaxed(s))                                                                         \
    X(capture_relaxed_end, "end a capture, relaxed mode allocated", CODE(SUCCESS),                 \
      (MUST(allocate_relaxed(s)), answer_end_capture(s)))

#define POOL_ROWS(X)                                                                               \
    X(pool_default, "ask for the default pool", CODE(SUCCESS),                                     \
      cu.DeviceGetDefaultMemPool(&s->pool, 0))                                                     \
    X(pool_current, "the default pool is the current one", YES, is_default_current(s))             \
    X(pool_destroy, "destroy the default pool", CODE(INVALID_VALUE),                               \
      (find_pool(s), cu.MemPoolDestroy(s->pool)))                                                  \
    X(pool_revoke, "taking a pool from its own device is refused", YES, !!revoke_own(s))           \
    X(pool_threshold, "the release threshold of the default pool", NUMBER(0), threshold(s))        \
    X(pool_allocate, "allocate from the pool", CODE(SUCCESS),                                      \
      cu.MemAllocAsync(&s->made, 1000, s->stream))                                                 \
    X(pool_none, "allocate 0 bytes from the pool", CODE(SUCCESS),                                  \
      cu.MemAllocAsync(&s->made, 0, s->stream))                                                    \
    X(pool_other, "free memory of a pool in another stream", CODE(SUCCESS),                        \
      free_in_other_stream(s))                                                                     \
    X(pool_free, "free memory of a pool without a stream", CODE(SUCCESS), free_pooled(s))          \
    X(pool_legacy, "legacy handle of memory of a pool", CODE(INVALID_VALUE),                       \
      cu.IpcGetMemHandle(&s->ipc, allocate_pooled(s)))

#define PROCESS_ROWS(X)                                                                            \
    X(process_fork, "a forked child is refused as not initialized", YES, fork_is_uninitialized(s)) \
    X(process_own, "open a legacy handle in its own process", CODE(INVALID_CONTEXT), open_own(s))  \
    X(process_inside, "legacy handle of an address inside a block", CODE(SUCCESS),                 \
      cu.IpcGetMemHandle(&s->ipc, s->block + 512))

#define EXPORT_ROWS(X)                                                                             \
    X(process_mapped, "legacy handle of mapped memory", CODE(INVALID_VALUE),                       \
      cu.IpcGetMemHandle(&s->ipc, s->range))                                                       \
    X(process_types, "the handle types of retained memory",                                        \
      NUMBER(QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),                                         \
      (retain_again(s), properties_of(s->handle).requestedHandleTypes))                            \
    X(process_export, "export memory that was released and retained", CODE(SUCCESS),               \
      (retain_again(s), export_as(s, QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))                \
    X(process_other_type, "export memory as a type that it does not have", CODE(INVALID_VALUE),    \
      export_as(s, QI_CU_MEM_HANDLE_TYPE_FABRIC))                                                  \
    X(process_import, "import memory in its own process", CODE(SUCCESS), import_own(s))            \
    X(process_still_open, "a file descriptor is open after its import", YES, is_still_open(s))     \
    X(process_closed, "import of a closed file descriptor is refused", YES, !!import_closed(s))

#define MULTICAST_ROWS(X)                                                                          \
    X(multicast_granule, "the granularity of multicast", CODE(SUCCESS), multicast_granularity(s))  \
    X(multicast_odd, "multicast of part of a granule", CODE(INVALID_VALUE),                        \
      create_multicast(s, 12345))

#define COPY_ROWS(X)                                                                               \
    X(copy_wild, "filling an unknown address is refused", YES, !!cu.MemsetD8(0x1000, 0, 4))        \
    X(copy_odd, "fill 4 bytes at an odd address", CODE(INVALID_VALUE),                             \
      cu.MemsetD32(s->block + 1, 0, 1))                                                            \
    X(copy_none, "copy 0 bytes", CODE(SUCCESS), cu.MemcpyDtoD(s->block, s->block, 0))

#define ALL_ROWS(X)                                                                                \
    EARLY_ROWS(X)                                                                                  \
    CONTEXT_ROWS(X)                                                                                \
    BLOCK_ROWS(X)                                                                                  \
    RANGE_ROWS(X)                                                                                  \
    POINTER_ROWS(X)                                                                                \
    HOST_ROWS(X)                                                                                   \
    REGISTER_ROWS(X)                                                                               \
    STREAM_ROWS(X)                                                                                 \
    CAPTURE_ROWS(X)                                                                                \
    POOL_ROWS(X)                                                                                   \
    PROCESS_ROWS(X)                                                                                \
    EXPORT_ROWS(X)                                                                                 \
    MULTICAST_ROWS(X)                                                                              \
    COPY_ROWS(X)

#define X(row, text, expected, question)                                                           \
    static uint64_t row(void *scene)                                                               \
    {                                                                                              \
        answer_scene *s = scene;                                                                   \
        (void)s;                                                                                   \
        return question;                                                                           \
    }
ALL_ROWS(X)
#undef X

/* ---- the table ------------------------------------------------------------------------------ */

#define FOR_ALL(row, text, expected, question) {#row, text, expected, row, .needs = 0},
#define FOR_EARLY(row, text, expected, question) {#row, text, expected, row, .is_early = true},
#define FOR_RANGES(row, text, expected, question)                                                  \
    {#row, text, expected, row,                                                                    \
     .needs = QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED},
#define FOR_REGISTERING(row, text, expected, question)                                             \
    {#row, text, expected, row, .needs = QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
#define FOR_POOLS(row, text, expected, question)                                                   \
    {#row, text, expected, row, .needs = QI_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
#define FOR_EXPORTS(row, text, expected, question)                                                 \
    {#row, text, expected, row,                                                                    \
     .needs = QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
#define FOR_MULTICAST(row, text, expected, question)                                               \
    {#row, text, expected, row, .needs = QI_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED},

/* clang-format off */
static const cuda_row ROWS[] = {
    EARLY_ROWS(FOR_EARLY)
    CONTEXT_ROWS(FOR_ALL)
    BLOCK_ROWS(FOR_ALL)
    RANGE_ROWS(FOR_RANGES)
    POINTER_ROWS(FOR_RANGES)
    HOST_ROWS(FOR_ALL)
    REGISTER_ROWS(FOR_REGISTERING)
    STREAM_ROWS(FOR_ALL)
    CAPTURE_ROWS(FOR_ALL)
    POOL_ROWS(FOR_POOLS)
    PROCESS_ROWS(FOR_ALL)
    EXPORT_ROWS(FOR_EXPORTS)
    MULTICAST_ROWS(FOR_MULTICAST)
    COPY_ROWS(FOR_ALL)
};
/* clang-format on */

static uint64_t answer_to(const cuda_row *row)
{
    answer_scene s = {0};
    if (row->is_early)
        return row->ask(&s);
    answer_scene_open(&s);
    uint64_t answer = row->ask(&s);
    answer_scene_close(&s);
    return answer;
}

int main(int argc, char **argv)
{
    const cuda_rows all = {"cuda_answers", ROWS, sizeof ROWS / sizeof *ROWS, answer_to};
    return cuda_rows_main(&all, argc, argv);
}
