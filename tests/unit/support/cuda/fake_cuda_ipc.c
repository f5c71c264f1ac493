/* fake_cuda_ipc.c - the fake CUDA driver: legacy handles, by which another process maps a block of
   cuMemAlloc. */
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#define FLAG QI_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

static qi_cu_ptr open_block(qi_cu_ipc_handle handle)
{
    qi_cu_ptr pointer = 0;
    CHECK_CU(cu.IpcOpenMemHandle(&pointer, handle, FLAG));
    return pointer;
}

/* The parent allocates, the child opens. */
static int other_process(int pipe_end)
{
    qi_cu_ipc_handle handle;
    qi_cu_ptr pointer;
    qi_cu_context second;
    (void)fc_fixture_open(NULL);
    CHECK_EQ(read(pipe_end, &handle, sizeof handle), sizeof handle);
    qi_cu_ptr block = open_block(handle);
    CHECK_EQ(fc_read(block), 41);
    fc_write(block, 42);
    CHECK_EQ(fc_usage_of(0).bytes, 0); /* the other process has the memory */
    CHECK_EQ(open_block(handle), block);
    CHECK_CU(cu.IpcCloseMemHandle(block));
    CHECK_EQ(fc_read(block), 42); /* it is still open once */
    CHECK_CU(cu.CtxCreate(&second, 0, 0));
    CHECK_CODE(cu.IpcOpenMemHandle(&pointer, handle, FLAG), INVALID_CONTEXT);
    CHECK_CODE(cu.IpcCloseMemHandle(block), INVALID_CONTEXT);
    CHECK_CU(cu.CtxDestroy(second));
    CHECK_CODE(cu.IpcGetMemHandle(&handle, block), INVALID_VALUE);
    CHECK_CODE(cu.MemFree(block), INVALID_VALUE);
    CHECK_CODE(cu.IpcCloseMemHandle(block + 8), INVALID_VALUE);
    CHECK_CU(cu.IpcCloseMemHandle(block));
    CHECK_CODE(cu.IpcCloseMemHandle(block), INVALID_VALUE);
    fc_fixture_close();
    return 0;
}

UNIT(fake_cuda_ipc, another_process_opens_a_block)
{
    int ends[2];
    qi_cu_ptr before, block;
    qi_cu_ipc_handle handle;
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!other_process(ends[0]));
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MemAlloc(&before, 5000));
    CHECK_CU(cu.MemAlloc(&block, 5000));
    fc_write(block, 41);
    CHECK_CU(cu.IpcGetMemHandle(&handle, block));
    CHECK_EQ(write(ends[1], &handle, sizeof handle), sizeof handle);
    CHECK(child_was_well(child));
    CHECK_EQ(fc_read(block), 42);
    CHECK_CU(cu.MemFree(before));
    CHECK_CU(cu.MemFree(block));
    CHECK(!close(ends[0]) && !close(ends[1]));
    fc_fixture_close();
}

UNIT(fake_cuda_ipc, wrong_use_is_refused)
{
    qi_cu_ipc_handle handle;
    qi_cu_handle mapped;
    qi_cu_ptr block, none;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MemAlloc(&block, 100));
    CHECK_CODE(cu.IpcGetMemHandle(NULL, block), INVALID_VALUE);
    CHECK_CU(cu.IpcGetMemHandle(&handle, block + 8)); /* the handle of the block */
    CHECK_CODE(cu.IpcGetMemHandle(&handle, block + 100), INVALID_VALUE);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &mapped);
    CHECK_CODE(cu.IpcGetMemHandle(&handle, pointer), INVALID_VALUE); /* not of cuMemAlloc */
    fc_unmapped(pointer, FC_PIECE, mapped);
    CHECK_CU(cu.IpcGetMemHandle(&handle, block));
    CHECK_CODE(cu.IpcOpenMemHandle(&none, handle, FLAG), INVALID_CONTEXT); /* the same process */
    CHECK_CODE(cu.IpcOpenMemHandle(&none, handle, 0), INVALID_VALUE);
    CHECK_CODE(cu.IpcOpenMemHandle(NULL, handle, FLAG), INVALID_VALUE);
    handle = (qi_cu_ipc_handle){{0}};
    CHECK_CODE(cu.IpcOpenMemHandle(&none, handle, FLAG), INVALID_HANDLE);
    CHECK_CODE(cu.IpcCloseMemHandle(block), INVALID_VALUE);
    CHECK_CU(cu.MemFree(block));
    fc_fixture_close();
}
