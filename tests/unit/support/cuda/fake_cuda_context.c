/* fake_cuda_context.c - the fake CUDA driver: contexts, and the current context of a thread. */
#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const fc_options *two_devices(void)
{
    static fc_options options;
    options.models[0] = options.models[1] = fc_model_named("h200");
    return &options;
}

UNIT(fake_cuda_context, what_needs_a_context_says_that_there_is_none)
{
    qi_cu_ptr pointer;
    qi_cu_stream stream;
    qi_cu_device device;
    size_t bytes;
    fc_fixture_load(NULL);
    CHECK_CU(cu.Init(0));
    CHECK_CODE(cu.MemAlloc(&pointer, 100), INVALID_CONTEXT);
    CHECK_CODE(cu.MemGetInfo(&bytes, &bytes), INVALID_CONTEXT);
    CHECK_CODE(cu.StreamCreate(&stream, 0), INVALID_CONTEXT);
    CHECK_CODE(cu.CtxGetDevice(&device), INVALID_CONTEXT);
    CHECK_CODE(cu.CtxPopCurrent(NULL), INVALID_CONTEXT);
    CHECK_CODE(cu.MemsetD8(4096, 0, 1), INVALID_CONTEXT);
    CHECK_EQ(fc_message_count(), 0);
}

UNIT(fake_cuda_context, a_thread_has_a_stack)
{
    qi_cu_context first, second, current;
    qi_cu_device device;
    first = fc_fixture_open(two_devices());
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    CHECK_CU(cu.CtxPushCurrent(second));
    CHECK_EQ(fc_depth(), 2);
    CHECK_CU(cu.CtxGetDevice(&device));
    CHECK_EQ(device, 1);
    CHECK_CU(cu.CtxPopCurrent(&current));
    CHECK(current == second);
    CHECK_CU(cu.CtxGetCurrent(&current));
    CHECK(current == first);
    CHECK_CU(cu.CtxSetCurrent(second)); /* replaces the first one */
    CHECK_EQ(fc_depth(), 1);
    CHECK_CU(cu.CtxSetCurrent(NULL));
    CHECK_EQ(fc_depth(), 0);
    CHECK_CU(cu.CtxGetCurrent(&current));
    CHECK(!current);
    CHECK_CU(cu.CtxPushCurrent(first));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    fc_fixture_close();
}

static void *look(void *user)
{
    CHECK_CU(cu.CtxGetCurrent(user));
    return NULL;
}

UNIT(fake_cuda_context, threads_have_stacks_of_their_own)
{
    pthread_t thread;
    qi_cu_context seen = (qi_cu_context)(uintptr_t)1;
    (void)fc_fixture_open(NULL);
    CHECK(!pthread_create(&thread, NULL, look, &seen));
    CHECK(!pthread_join(thread, NULL));
    CHECK(!seen);
    fc_fixture_close();
}

UNIT(fake_cuda_context, a_primary_context_lives_as_long_as_it_is_retained)
{
    qi_cu_context first = fc_fixture_open(NULL), second;
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 0));
    CHECK(first == second);
    CHECK_EQ(fc_live(FC_CONTEXT), 1);
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_CU(cu.CtxSynchronize());
    CHECK_CODE(cu.DevicePrimaryCtxRetain(&second, 1), INVALID_DEVICE);
    CHECK_CODE(cu.DevicePrimaryCtxRelease(-1), INVALID_DEVICE);
    CHECK_CODE(cu.CtxDestroy(first), INVALID_CONTEXT);
    fc_fixture_close();
    CHECK_CODE(cu.DevicePrimaryCtxRelease(0), INVALID_CONTEXT);
    fc_fixture_expect("fc-primary: cuDevicePrimaryCtxRelease_v2");
}

UNIT(fake_cuda_context, what_is_destroyed_is_not_used)
{
    qi_cu_context made, first = fc_fixture_open(NULL);
    qi_cu_ptr pointer;
    CHECK_CU(cu.CtxCreate(&made, 0, 0));
    CHECK(made != first);
    CHECK_EQ(fc_depth(), 2);
    CHECK_CU(cu.CtxDestroy(made));
    CHECK_EQ(fc_depth(), 1);
    CHECK_CODE(cu.CtxPushCurrent(made), INVALID_CONTEXT);
    fc_fixture_expect("fc-handle: cuCtxPushCurrent_v2");
    /* a destroyed context below the top of the stack stays there, and using it adds a message */
    CHECK_CU(cu.CtxCreate(&made, 0, 0));
    CHECK_CU(cu.CtxPushCurrent(first));
    CHECK_CU(cu.CtxDestroy(made));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CODE(cu.MemAlloc(&pointer, 100), CONTEXT_IS_DESTROYED);
    fc_fixture_expect("fc-context: cuMemAlloc_v2");
    CHECK_CU(cu.CtxPopCurrent(NULL));
    fc_fixture_close();
}

UNIT(fake_cuda_context, what_is_left_in_a_context_is_told_and_ended)
{
    qi_cu_context made;
    qi_cu_ptr pointer;
    qi_cu_stream stream;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.CtxCreate(&made, 0, 0));
    CHECK_CU(cu.MemAlloc(&pointer, 100));
    CHECK_CU(cu.StreamCreate(&stream, 0));
    CHECK_CU(cu.CtxDestroy(made));
    fc_fixture_expect("the context ends with 2 things alive");
    fc_fixture_close();
}

UNIT(fake_cuda_context, contexts_of_before_a_reset_are_gone)
{
    qi_cu_context old = fc_fixture_open(NULL);
    fc_fixture_load(NULL);
    CHECK_EQ(fc_depth(), 0);
    CHECK_CU(cu.Init(0));
    CHECK_CODE(cu.CtxPushCurrent(old), INVALID_CONTEXT);
    fc_fixture_expect("fc-handle");
}

UNIT(fake_cuda_context, peers_are_enabled_where_the_machine_has_them)
{
    int can;
    qi_cu_context first, second;
    fc_options options = *two_devices();
    options.peers[1] = 1; /* device 0 can access device 1, but not the reverse */
    first = fc_fixture_open(&options);
    CHECK_CU(cu.DeviceCanAccessPeer(&can, 0, 1));
    CHECK_EQ(can, 1);
    CHECK_CU(cu.DeviceCanAccessPeer(&can, 1, 0));
    CHECK_EQ(can, 0);
    CHECK_CODE(cu.DeviceCanAccessPeer(&can, 0, 2), INVALID_DEVICE);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    CHECK_CODE(cu.CtxDisablePeerAccess(second), PEER_ACCESS_NOT_ENABLED);
    CHECK_CU(cu.CtxEnablePeerAccess(second, 0));
    CHECK_CODE(cu.CtxEnablePeerAccess(second, 0), PEER_ACCESS_ALREADY_ENABLED);
    CHECK_CODE(cu.CtxEnablePeerAccess(second, 1), INVALID_VALUE);
    CHECK_CU(cu.CtxDisablePeerAccess(second));
    CHECK_CU(cu.CtxPushCurrent(second));
    CHECK_CODE(cu.CtxEnablePeerAccess(first, 0), PEER_ACCESS_UNSUPPORTED);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    fc_fixture_close();
}

UNIT(fake_cuda_context, a_green_context_has_streams_of_its_primary_context)
{
    static char resources;
    qi_cu_resources part = (qi_cu_resources)(void *)&resources;
    qi_cu_context first = fc_fixture_open(NULL), converted, context;
    qi_cu_green green, told;
    qi_cu_stream stream;
    qi_cu_event event;
    qi_cu_device device;
    qi_cu_graph graph;
    CHECK_CODE(cu.GreenCtxCreate(&green, part, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.GreenCtxCreate(&green, part, 1, 1), INVALID_DEVICE);
    CHECK_CU(cu.GreenCtxCreate(&green, part, 0, 1));
    CHECK_CU(cu.CtxFromGreenCtx(&converted, green));
    CHECK_CODE(cu.GreenCtxStreamCreate(&stream, green, QI_CU_STREAM_DEFAULT, 0), INVALID_VALUE);
    CHECK_CU(cu.GreenCtxStreamCreate(&stream, green, QI_CU_STREAM_NON_BLOCKING, 0));
    CHECK_CU(cu.StreamGetCtx(stream, &context));
    CHECK(context == converted && context != first);
    CHECK_CU(cu.StreamGetGreenCtx(stream, &told));
    CHECK(told == green);
    CHECK_CU(cu.StreamGetGreenCtx(NULL, &told));
    CHECK(!told);
    CHECK_CU(cu.StreamGetDevice(stream, &device));
    CHECK_EQ(device, 0);
    /* its streams are used with the primary context */
    CHECK_CU(cu.EventCreate(&event, 0));
    CHECK_CU(cu.EventRecord(event, stream));
    CHECK_CU(cu.StreamBeginCapture(stream, QI_CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_CODE(cu.CtxSynchronize(), STREAM_CAPTURE_UNSUPPORTED);
    CHECK_CODE(cu.StreamEndCapture(stream, &graph), STREAM_CAPTURE_INVALIDATED);
    CHECK_CU(cu.EventDestroy(event));
    CHECK_CU(cu.StreamDestroy(stream));
    CHECK_CODE(cu.CtxDestroy(converted), INVALID_CONTEXT);
    CHECK_CU(cu.GreenCtxDestroy(green));
    fc_fixture_close();
}

UNIT(fake_cuda_context, a_primary_context_says_whether_it_is_active)
{
    unsigned flags = 7;
    int active = -1;
    (void)fc_fixture_open(two_devices());
    CHECK_CU(cu.DevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!flags && active == 1);
    CHECK_CU(cu.DevicePrimaryCtxGetState(1, &flags, &active));
    CHECK_EQ(active, 0);
    CHECK_CODE(cu.DevicePrimaryCtxGetState(2, &flags, &active), INVALID_DEVICE);
    fc_fixture_close();
}

/* ---- fork --------------------------------------------------------------------------------- */

UNIT(fake_cuda_context, a_fork_of_an_initialized_process_is_refused)
{
    int count;
    (void)fc_fixture_open(NULL);
    pid_t child = fork();
    if (!child) {
        bool refused = cu.DeviceGetCount(&count) == QI_CUDA_ERROR_NOT_INITIALIZED &&
                       cu.Init(0) == QI_CUDA_ERROR_NOT_INITIALIZED;
        child_end(refused);
    }
    CHECK(child_was_well(child));
    CHECK_CU(cu.DeviceGetCount(&count));
    fc_fixture_close();
}
