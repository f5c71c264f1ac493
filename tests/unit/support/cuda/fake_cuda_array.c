/*
 * fake_cuda_array.c - the fake CUDA driver: arrays with memory, deferred arrays and sparse arrays.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#define TILE 65536u

static qi_cu_array3d_descriptor form(size_t width, size_t height, size_t depth, unsigned flags)
{
    return (qi_cu_array3d_descriptor){.Width = width,
                                      .Height = height,
                                      .Depth = depth,
                                      .Format = QI_CU_AD_FORMAT_UNSIGNED_INT8,
                                      .NumChannels = 4,
                                      .Flags = flags};
}

static qi_cu_handle make_pool(uint64_t size)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    CHECK_CU(cu.MemCreate(&handle, size, &prop, 0));
    return handle;
}

/* Copies a box of 4-byte texels between an array and the host. */
typedef struct area {
    size_t x, y, z, width, height, depth;
} area;

static qi_cu_result put(qi_cu_array array, area a, const void *from)
{
    qi_cu_memcpy3d copy = {.srcMemoryType = QI_CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = a.width * 4,
                           .srcHeight = a.height,
                           .dstMemoryType = QI_CU_MEMORYTYPE_ARRAY,
                           .dstArray = array,
                           .dstXInBytes = a.x * 4,
                           .dstY = a.y,
                           .dstZ = a.z,
                           .WidthInBytes = a.width * 4,
                           .Height = a.height,
                           .Depth = a.depth};
    return cu.Memcpy3D(&copy);
}

static qi_cu_result get(qi_cu_array array, area a, void *to)
{
    qi_cu_memcpy3d copy = {.srcMemoryType = QI_CU_MEMORYTYPE_ARRAY,
                           .srcArray = array,
                           .srcXInBytes = a.x * 4,
                           .srcY = a.y,
                           .srcZ = a.z,
                           .dstMemoryType = QI_CU_MEMORYTYPE_HOST,
                           .dstHost = to,
                           .dstPitch = a.width * 4,
                           .dstHeight = a.height,
                           .WidthInBytes = a.width * 4,
                           .Height = a.height,
                           .Depth = a.depth};
    return cu.Memcpy3D(&copy);
}

static void count_up(uint32_t *texels, uint32_t count, uint32_t from)
{
    for (uint32_t i = 0; i < count; i++)
        texels[i] = from + i;
}

UNIT(fake_cuda_array, texels_come_back)
{
    uint32_t texels[5 * 4 * 3], back[5 * 4 * 3];
    qi_cu_array array;
    qi_cu_array3d_descriptor desc = form(20, 10, 4, 0), told;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.Array3DCreate(&array, &desc));
    CHECK(fc_usage_of(0).bytes >= 20 * 10 * 4 * 4);
    CHECK_CU(cu.Array3DGetDescriptor(&told, array));
    CHECK(told.Width == 20 && told.Depth == 4 && told.NumChannels == 4);
    count_up(texels, 60, 1);
    area where = {3, 2, 1, 5, 4, 3};
    CHECK_CU(put(array, where, texels));
    CHECK_CU(get(array, where, back));
    CHECK(!memcmp(texels, back, sizeof texels));
    CHECK_CU(get(array, (area){4, 3, 2, 1, 1, 1}, back));
    CHECK_EQ(back[0], texels[1 * 20 + 1 * 5 + 1]);
    CHECK_CODE(put(array, (area){16, 0, 0, 5, 1, 1}, texels), INVALID_VALUE);
    CHECK_CODE(put(array, (area){0, 8, 0, 1, 3, 1}, texels), INVALID_VALUE);
    CHECK_CODE(put(array, (area){0, 0, 4, 1, 1, 1}, texels), INVALID_VALUE);
    CHECK_CU(cu.ArrayDestroy(array));
    fc_fixture_close();
}

UNIT(fake_cuda_array, levels_have_handles_and_go_with_the_whole)
{
    uint32_t texels[16], back[16];
    qi_cu_mipmap mipmap;
    qi_cu_array level, again;
    qi_cu_array3d_descriptor desc = form(64, 32, 0, 0), told;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MipmappedArrayCreate(&mipmap, &desc, 8), INVALID_VALUE); /* it has 7 */
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 7));
    CHECK_CU(cu.MipmappedArrayGetLevel(&level, mipmap, 3));
    CHECK_CU(cu.MipmappedArrayGetLevel(&again, mipmap, 3));
    CHECK(level == again);
    CHECK_CU(cu.Array3DGetDescriptor(&told, level));
    CHECK(told.Width == 8 && told.Height == 4 && !told.Depth);
    count_up(texels, 16, 5);
    CHECK_CU(put(level, (area){4, 0, 0, 4, 4, 1}, texels));
    CHECK_CU(get(level, (area){4, 0, 0, 4, 4, 1}, back));
    CHECK(!memcmp(texels, back, sizeof texels));
    CHECK_CODE(cu.MipmappedArrayGetLevel(&level, mipmap, 7), INVALID_VALUE);
    CHECK_CODE(cu.ArrayDestroy(level), INVALID_HANDLE);
    fc_fixture_expect("fc-level");
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    fc_fixture_close();
}

UNIT(fake_cuda_array, forms_that_are_none_are_refused)
{
    qi_cu_array array;
    qi_cu_array3d_descriptor good = form(16, 16, 0, 0), bad;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.Array3DCreate(NULL, &good), INVALID_VALUE);
    CHECK_CODE(cu.Array3DCreate(&array, NULL), INVALID_VALUE);
    bad = form(0, 16, 0, 0);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = form(16, 0, 16, 0);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = form(16, 16, 0, QI_CUDA_ARRAY3D_LAYERED);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = form(16, 8, 6, QI_CUDA_ARRAY3D_CUBEMAP);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = form(16, 0, 0, QI_CUDA_ARRAY3D_SPARSE);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = form(16, 16, 0, QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_DEFERRED_MAPPING);
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = good;
    bad.NumChannels = 3;
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    bad = good;
    bad.Format = 7;
    CHECK_CODE(cu.Array3DCreate(&array, &bad), INVALID_VALUE);
    fc_set_capacity(0, 16 * 16 * 4 - 1);
    CHECK_CODE(cu.Array3DCreate(&array, &good), OUT_OF_MEMORY);
    fc_fixture_close();
}

/* ---- mapped later ------------------------------------------------------------------------- */

static qi_cu_array_map_info whole_of(qi_cu_array array, qi_cu_handle handle, uint64_t offset)
{
    return (qi_cu_array_map_info){.resourceType = QI_CU_RESOURCE_TYPE_ARRAY,
                                  .resource = {.array = array},
                                  .memOperationType = handle ? QI_CU_MEM_OPERATION_TYPE_MAP
                                                             : QI_CU_MEM_OPERATION_TYPE_UNMAP,
                                  .memHandle = {handle},
                                  .offset = offset,
                                  .deviceBitMask = 1};
}

UNIT(fake_cuda_array, two_deferred_arrays_lie_side_by_side_in_one_memory)
{
    uint32_t texels[64] = {0}, back[64];
    qi_cu_array first, second;
    qi_cu_array_requirements needs;
    qi_cu_array3d_descriptor desc = form(100, 100, 0, QI_CUDA_ARRAY3D_DEFERRED_MAPPING);
    qi_cu_array3d_descriptor plain = form(8, 8, 0, 0);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.Array3DCreate(&first, &desc));
    CHECK_CU(cu.Array3DCreate(&second, &desc));
    CHECK_EQ(fc_usage_of(0).bytes, 0);
    CHECK_CU(cu.ArrayGetMemoryRequirements(&needs, first, 0));
    CHECK_EQ(needs.size, TILE);
    CHECK_EQ(needs.alignment, TILE);
    qi_cu_handle pool = make_pool(FC_PIECE);
    qi_cu_array_map_info maps[2] = {whole_of(first, pool, 0), whole_of(second, pool, TILE)};
    CHECK_CU(cu.MemMapArrayAsync(maps, 2, NULL));
    count_up(texels, 64, 100);
    CHECK_CU(put(first, (area){90, 90, 0, 8, 8, 1}, texels));
    count_up(texels, 64, 200);
    CHECK_CU(put(second, (area){90, 90, 0, 8, 8, 1}, texels));
    CHECK_CU(get(first, (area){90, 90, 0, 8, 8, 1}, back));
    CHECK_EQ(back[63], 163);
    CHECK_CU(get(second, (area){90, 90, 0, 8, 8, 1}, back));
    CHECK_EQ(back[63], 263);
    CHECK_CU(cu.MemRelease(pool)); /* the arrays keep it */
    CHECK_EQ(fc_live(FC_MEMORY), 1);
    qi_cu_array_map_info unmap = whole_of(first, 0, 0);
    CHECK_CU(cu.MemMapArrayAsync(&unmap, 1, NULL));
    CHECK_CU(cu.ArrayDestroy(first));
    CHECK_CU(cu.ArrayDestroy(second));
    CHECK_EQ(fc_live(FC_MEMORY), 0);
    CHECK_CU(cu.Array3DCreate(&first, &plain));
    CHECK_CODE(cu.ArrayGetMemoryRequirements(&needs, first, 0), INVALID_VALUE);
    CHECK_CODE(cu.ArrayGetSparseProperties(&(qi_cu_sparse_properties){0}, first), INVALID_VALUE);
    CHECK_CU(cu.ArrayDestroy(first));
    fc_fixture_close();
}

static qi_cu_array_map_info tiles_of(qi_cu_mipmap mipmap, area tiles, qi_cu_handle handle,
                                     uint64_t offset)
{
    qi_cu_array_map_info info = {.resourceType = QI_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                 .resource = {.mipmap = mipmap},
                                 .memOperationType = QI_CU_MEM_OPERATION_TYPE_MAP,
                                 .memHandle = {handle},
                                 .offset = offset,
                                 .deviceBitMask = 1};
    info.subresource.sparseLevel.offsetX = (unsigned)tiles.x * 128;
    info.subresource.sparseLevel.offsetY = (unsigned)tiles.y * 128;
    info.subresource.sparseLevel.extentWidth = (unsigned)tiles.width * 128;
    info.subresource.sparseLevel.extentHeight = (unsigned)tiles.height * 128;
    info.subresource.sparseLevel.extentDepth = 1;
    return info;
}

UNIT(fake_cuda_array, tiles_of_a_sparse_array_are_mapped_one_by_one)
{
    static uint32_t texels[200 * 10], back[200 * 10];
    qi_cu_mipmap mipmap;
    qi_cu_array top, small;
    qi_cu_sparse_properties told;
    qi_cu_array3d_descriptor desc = form(512, 256, 0, QI_CUDA_ARRAY3D_SPARSE);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 10));
    CHECK_CU(cu.MipmappedArrayGetSparseProperties(&told, mipmap));
    CHECK(told.tileExtent.width == 128 && told.tileExtent.height == 128);
    CHECK_EQ(told.miptailFirstLevel, 2);
    CHECK_EQ(told.miptailSize, TILE);
    CHECK_CU(cu.MipmappedArrayGetLevel(&top, mipmap, 0));
    CHECK_CU(cu.MipmappedArrayGetLevel(&small, mipmap, 4));
    CHECK_CODE(cu.ArrayGetSparseProperties(&told, small), INVALID_VALUE);
    qi_cu_handle pool = make_pool(FC_PIECE);
    qi_cu_array_map_info two = tiles_of(mipmap, (area){1, 0, 0, 2, 1, 1}, pool, 3 * TILE);
    CHECK_CU(cu.MemMapArrayAsync(&two, 1, NULL));
    count_up(texels, 2000, 7);
    CHECK_CU(put(top, (area){150, 5, 0, 200, 10, 1}, texels)); /* across both */
    CHECK_CU(get(top, (area){150, 5, 0, 200, 10, 1}, back));
    CHECK(!memcmp(texels, back, sizeof texels));
    qi_cu_array_map_info tail = two;
    tail.subresourceType = QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    tail.subresource.miptail.layer = 0;
    tail.subresource.miptail.offset = 0;
    tail.subresource.miptail.size = TILE;
    tail.offset = 0;
    CHECK_CU(cu.MemMapArrayAsync(&tail, 1, NULL));
    CHECK_CU(put(small, (area){0, 0, 0, 32, 16, 1}, texels));
    CHECK_CU(get(small, (area){0, 0, 0, 32, 16, 1}, back));
    CHECK(!memcmp(texels, back, 32 * 16 * 4));
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    CHECK_CU(cu.MemRelease(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_array, a_sparse_array_without_levels_has_no_tail)
{
    uint32_t texels[4] = {1, 2, 3, 4}, back[4];
    qi_cu_array array;
    qi_cu_sparse_properties told;
    qi_cu_array3d_descriptor desc =
        form(200, 100, 2, QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_LAYERED);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.Array3DCreate(&array, &desc));
    CHECK_CU(cu.ArrayGetSparseProperties(&told, array));
    CHECK(told.miptailFirstLevel == 0 && told.miptailSize == 0 && told.tileExtent.depth == 1);
    qi_cu_handle pool = make_pool(FC_PIECE);
    qi_cu_array_map_info layer = whole_of(array, pool, 0);
    layer.subresource.sparseLevel.layer = 1;
    layer.subresource.sparseLevel.extentWidth = 200;  /* to the edge */
    layer.subresource.sparseLevel.extentHeight = 128; /* or to the end of the tile */
    layer.subresource.sparseLevel.extentDepth = 1;
    CHECK_CU(cu.MemMapArrayAsync(&layer, 1, NULL));
    CHECK_CU(put(array, (area){196, 99, 1, 4, 1, 1}, texels));
    CHECK_CU(get(array, (area){196, 99, 1, 4, 1, 1}, back));
    CHECK(!memcmp(texels, back, sizeof texels));
    layer.subresource.sparseLevel.extentHeight = 256;
    CHECK_CODE(cu.MemMapArrayAsync(&layer, 1, NULL), INVALID_VALUE);
    CHECK_CU(cu.ArrayDestroy(array));
    CHECK_CU(cu.MemRelease(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_array, a_single_tail_serves_all_layers)
{
    uint32_t texels[4] = {1, 2, 3, 4}, back[4];
    qi_cu_mipmap mipmap;
    qi_cu_array array, level;
    qi_cu_sparse_properties told;
    fc_model model = *fc_model_named("h200");
    model.features |= FC_SINGLE_TAIL;
    qi_cu_array3d_descriptor desc =
        form(256, 128, 3, QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_LAYERED);
    (void)fc_fixture_open(&(fc_options){.models = {&model}});
    CHECK_CU(cu.Array3DCreate(&array, &desc));
    CHECK_CU(cu.ArrayGetSparseProperties(&told, array));
    CHECK(told.flags == QI_CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL && !told.miptailFirstLevel);
    CHECK(told.miptailSize >= 256 * 128 * 3 * 4 && told.miptailSize % (3 * TILE) == 0);
    CHECK_CU(cu.ArrayDestroy(array));
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 4));
    CHECK_CU(cu.MipmappedArrayGetSparseProperties(&told, mipmap));
    CHECK_EQ(told.miptailFirstLevel, 1);
    CHECK_EQ(told.miptailSize, 3 * TILE);
    qi_cu_handle pool = make_pool(FC_PIECE);
    qi_cu_array_map_info tail = tiles_of(mipmap, (area){0, 0, 0, 1, 1, 1}, pool, 0);
    tail.subresourceType = QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    tail.subresource.miptail.layer = 1;
    tail.subresource.miptail.offset = 0;
    tail.subresource.miptail.size = told.miptailSize;
    CHECK_CODE(cu.MemMapArrayAsync(&tail, 1, NULL), INVALID_VALUE); /* the layer must be 0 */
    tail.subresource.miptail.layer = 0;
    CHECK_CU(cu.MemMapArrayAsync(&tail, 1, NULL));
    CHECK_CU(cu.MipmappedArrayGetLevel(&level, mipmap, 2));
    CHECK_CU(put(level, (area){60, 31, 2, 4, 1, 1}, texels));
    CHECK_CU(get(level, (area){60, 31, 2, 4, 1, 1}, back));
    CHECK(!memcmp(texels, back, sizeof texels));
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    CHECK_CU(cu.MemRelease(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_array, rows_and_cubes_are_not_mapped)
{
    qi_cu_array row, cube;
    qi_cu_array3d_descriptor rows = form(256, 0, 0, QI_CUDA_ARRAY3D_DEFERRED_MAPPING);
    qi_cu_array3d_descriptor cubes =
        form(16, 16, 6, QI_CUDA_ARRAY3D_DEFERRED_MAPPING | QI_CUDA_ARRAY3D_CUBEMAP);
    (void)fc_fixture_open(NULL);
    qi_cu_handle pool = make_pool(FC_PIECE);
    CHECK_CU(cu.Array3DCreate(&row, &rows));
    CHECK_CU(cu.Array3DCreate(&cube, &cubes));
    qi_cu_array_map_info info = whole_of(row, pool, 0);
    CHECK_CODE(cu.MemMapArrayAsync(&info, 1, NULL), INVALID_VALUE);
    info = whole_of(cube, pool, 0);
    CHECK_CODE(cu.MemMapArrayAsync(&info, 1, NULL), INVALID_VALUE);
    CHECK_CU(cu.ArrayDestroy(row));
    CHECK_CU(cu.ArrayDestroy(cube));
    CHECK_CU(cu.MemRelease(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_array, wrong_mappings_are_refused)
{
    qi_cu_mipmap mipmap;
    qi_cu_array3d_descriptor desc = form(512, 256, 0, QI_CUDA_ARRAY3D_SPARSE);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 10));
    qi_cu_handle pool = make_pool(FC_PIECE), plain = fc_make(FC_PIECE);
    const qi_cu_array_map_info good = tiles_of(mipmap, (area){0, 0, 0, 2, 1, 1}, pool, 0);
    qi_cu_array_map_info bad;
    CHECK_CODE(cu.MemMapArrayAsync(NULL, 1, NULL), INVALID_VALUE);
    bad = good;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 0, NULL), INVALID_VALUE);
    bad.subresource.sparseLevel.offsetX = 1;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.subresource.sparseLevel.extentWidth = 100;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.subresource.sparseLevel.level = 2; /* in the tail */
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.memHandle.memHandle = plain; /* not created for it */
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.offset = 100;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.offset = FC_PIECE - TILE; /* only one tile is left there */
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.deviceBitMask = 3;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.memOperationType = QI_CU_MEM_OPERATION_TYPE_UNMAP; /* unmapping with a handle */
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    bad = good;
    bad.reserved[1] = 1;
    CHECK_CODE(cu.MemMapArrayAsync(&bad, 1, NULL), INVALID_VALUE);
    CHECK_CU(cu.MemRelease(pool));
    CHECK_CU(cu.MemRelease(plain));
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    fc_fixture_close();
}

UNIT(fake_cuda_array, a_copy_into_nothing_is_noticed)
{
    uint32_t texel = 1;
    qi_cu_array array;
    qi_cu_array3d_descriptor desc = form(256, 256, 0, QI_CUDA_ARRAY3D_SPARSE);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.Array3DCreate(&array, &desc));
    CHECK_CODE(put(array, (area){0, 0, 0, 1, 1, 1}, &texel), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuMemcpy3D_v2");
    CHECK_CODE(cu.ArrayDestroy(array), ILLEGAL_ADDRESS);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_EQ(fc_leaks(), 0);
}
