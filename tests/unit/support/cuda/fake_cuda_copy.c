/*
 * fake_cuda_copy.c - the fake CUDA driver: copies and fills.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

UNIT(fake_cuda_copy, bytes_go_from_host_to_device_and_back)
{
    unsigned char bytes[1000], back[1000];
    qi_cu_ptr first, second;
    (void)fc_fixture_open(NULL);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    CHECK_CU(cu.MemAlloc(&first, sizeof bytes));
    CHECK_CU(cu.MemAlloc(&second, sizeof bytes));
    CHECK_CU(cu.MemcpyHtoD(first, bytes, sizeof bytes));
    CHECK_CU(cu.MemcpyDtoD(second + 10, first, sizeof bytes - 10));
    CHECK_CU(cu.MemcpyDtoH(back, second + 10, sizeof bytes - 10));
    CHECK(!memcmp(bytes, back, sizeof bytes - 10));
    CHECK_CU(cu.MemFree(first));
    CHECK_CU(cu.MemFree(second));
    fc_fixture_close();
}

UNIT(fake_cuda_copy, what_is_not_there_is_not_copied)
{
    unsigned char bytes[64] = {0};
    qi_cu_ptr pointer;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MemAlloc(&pointer, 100));
    CHECK_CODE(cu.MemcpyHtoD(pointer + 50, bytes, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoH(bytes, pointer + 50, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoD(pointer, pointer + 99, 2), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyHtoD(0, bytes, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyHtoD(pointer, NULL, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyHtoD((uintptr_t)bytes, bytes, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoH((void *)(uintptr_t)pointer, pointer, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD8(pointer, 1, 101), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD32(pointer + 2, 1, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD32(pointer, 1, UINT64_MAX / 2), INVALID_VALUE);
    CHECK_CU(cu.MemcpyHtoD(pointer, bytes, 0));
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_close();
}

UNIT(fake_cuda_copy, fills_reach_across_mappings)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(2 * FC_PIECE, &handle);
    CHECK_CU(cu.MemsetD8(pointer + FC_PIECE - 3, 0xab, 5));
    CHECK_EQ(fc_read(pointer + FC_PIECE - 4), 0x000000ababababab00);
    CHECK_CU(cu.MemsetD32(pointer + FC_PIECE - 4, 0x01020304, 3));
    CHECK_EQ(fc_read(pointer + FC_PIECE - 4), 0x0102030401020304);
    CHECK_EQ(fc_read(pointer + FC_PIECE + 4), 0x01020304);
    fc_unmapped(pointer, 2 * FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_copy, boxes_are_copied_by_their_pitches)
{
    unsigned char from[4][8], to[4][16] = {{0}};
    qi_cu_ptr pointer;
    (void)fc_fixture_open(NULL);
    for (unsigned i = 0; i < sizeof from; i++)
        from[i / 8][i % 8] = (unsigned char)(i + 1);
    CHECK_CU(cu.MemAlloc(&pointer, 4096));
    qi_cu_memcpy2d in = {.srcMemoryType = QI_CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = 8,
                         .srcXInBytes = 2,
                         .srcY = 1,
                         .dstMemoryType = QI_CU_MEMORYTYPE_DEVICE,
                         .dstDevice = pointer,
                         .dstPitch = 512,
                         .WidthInBytes = 5,
                         .Height = 3};
    CHECK_CU(cu.Memcpy2D(&in));
    qi_cu_memcpy2d out = {.srcMemoryType = QI_CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = pointer,
                          .srcPitch = 512,
                          .dstMemoryType = QI_CU_MEMORYTYPE_HOST,
                          .dstHost = to,
                          .dstPitch = 16,
                          .dstXInBytes = 1,
                          .WidthInBytes = 5,
                          .Height = 3};
    CHECK_CU(cu.Memcpy2D(&out));
    CHECK_EQ(to[0][0], 0);
    CHECK_EQ(to[0][1], from[1][2]);
    CHECK_EQ(to[2][5], from[3][6]);
    CHECK_EQ(to[3][1], 0);
    in.srcPitch = 6; /* rows would overlap */
    CHECK_CODE(cu.Memcpy2D(&in), INVALID_VALUE);
    in.srcPitch = 8;
    in.dstPitch = 2048; /* the third row is outside */
    CHECK_CODE(cu.Memcpy2D(&in), INVALID_VALUE);
    CHECK_CODE(cu.Memcpy2D(NULL), INVALID_VALUE);
    in.srcMemoryType = 9;
    CHECK_CODE(cu.Memcpy2D(&in), INVALID_VALUE);
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_close();
}

UNIT(fake_cuda_copy, slices_are_copied_by_their_heights)
{
    unsigned char from[2][3][4], to[2][3][4] = {{{0}}};
    qi_cu_ptr pointer;
    (void)fc_fixture_open(NULL);
    for (unsigned i = 0; i < sizeof from; i++)
        ((unsigned char *)from)[i] = (unsigned char)(i + 1);
    CHECK_CU(cu.MemAlloc(&pointer, 64 * 8 * 2));
    qi_cu_memcpy3d box = {.srcMemoryType = QI_CU_MEMORYTYPE_HOST,
                          .srcHost = from,
                          .srcPitch = 4,
                          .srcHeight = 3,
                          .dstMemoryType = QI_CU_MEMORYTYPE_DEVICE,
                          .dstDevice = pointer,
                          .dstPitch = 64,
                          .dstHeight = 8,
                          .WidthInBytes = 4,
                          .Height = 3,
                          .Depth = 2};
    CHECK_CU(cu.Memcpy3D(&box));
    CHECK_EQ(fc_read(pointer + 64 * 8 + 64 * 2) & 0xff, from[1][2][0]);
    qi_cu_memcpy3d back = {.srcMemoryType = QI_CU_MEMORYTYPE_DEVICE,
                           .srcDevice = pointer,
                           .srcPitch = 64,
                           .srcHeight = 8,
                           .dstMemoryType = QI_CU_MEMORYTYPE_HOST,
                           .dstHost = to,
                           .dstPitch = 4,
                           .dstHeight = 3,
                           .WidthInBytes = 4,
                           .Height = 3,
                           .Depth = 2};
    CHECK_CU(cu.Memcpy3D(&back));
    CHECK(!memcmp(from, to, sizeof from));
    back.dstHeight = 2;
    CHECK_CODE(cu.Memcpy3D(&back), INVALID_VALUE);
    back.dstHeight = 3;
    back.reserved0 = to;
    CHECK_CODE(cu.Memcpy3D(&back), INVALID_VALUE);
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_close();
}

UNIT(fake_cuda_copy, peers_are_copied_by_what_each_device_reaches)
{
    qi_cu_context first, second;
    qi_cu_handle handle;
    qi_cu_ptr other;
    fc_options options = {.models = {fc_model_named("h200"), fc_model_named("a100")}};
    first = fc_fixture_open(&options);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_write(pointer, 21);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    CHECK_CU(cu.CtxPushCurrent(second));
    CHECK_CU(cu.MemAlloc(&other, 64));
    CHECK_EQ(fc_usage_of(1).bytes, 64);
    /* device 1 has no access to the mapping, although device 0, its home, has */
    CHECK_CODE(cu.MemcpyDtoD(other, pointer, 8), INVALID_VALUE);
    CHECK_CU(cu.MemcpyPeer(other, second, pointer, first, 8));
    CHECK_EQ(fc_read(other), 21);
    CHECK_CODE(cu.MemcpyPeer(pointer, second, other, first, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyPeer(other, NULL, pointer, first, 8), INVALID_CONTEXT);
    CHECK_CU(cu.MemFree(other));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}
