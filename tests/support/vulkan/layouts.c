/*
 * layouts.c - memory layouts of real devices, see layout.h. Orders, flags and limits are those of the
 * sources named; a limit that the source does not give is left 0.
 */
#include "tests/support/vulkan/layout.h"

#include <string.h>

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT
#define COHERENT (VISIBLE | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define LAZY VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT
#define GUARDED VK_MEMORY_PROPERTY_PROTECTED_BIT
#define AMD                                                                                        \
    (VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD)
#define VRAM VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
#define VRAMS (VRAM | VK_MEMORY_HEAP_MULTI_INSTANCE_BIT)

#define MIB (UINT64_C(1) << 20)
#define NO_LIMIT UINT32_MAX

#define LINUX_EXTERNAL (FV_BIT(FD) | FV_BIT(DMA_BUF) | FV_BIT(HOST_POINTER))
#define ALL_PAGING (FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(PAGEABLE))
#define SPARSE (FV_SPARSE_BINDING | FV_SPARSE_BUFFER)

const fv_layout fv_layouts[] = {
    {
        .name = "amd-bar",
        .source =
            "vulkaninfo of an RX 6600, radv 23.1: github.com/mrdudeman1111/vkDeferredRenderer",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x1002,
        .device = 0x73ff,
        .heap_count = 3,
        .heaps = {{8321499136, VRAM}, {8355151872, 0}, {256 * MIB, VRAM}},
        .type_count = 11,
        .types = {{LOCAL, 0},
                  {LOCAL, 0},
                  {COHERENT, 1},
                  {LOCAL | COHERENT, 2},
                  {LOCAL | COHERENT, 2},
                  {COHERENT | CACHED, 1},
                  {COHERENT | CACHED, 1},
                  {LOCAL | AMD, 0},
                  {COHERENT | AMD, 1},
                  {LOCAL | COHERENT | AMD, 2},
                  {COHERENT | CACHED | AMD, 1}},
        .granularity = 1,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 4294967292,
        .largest_buffer = 4294967292,
        .map_alignment = 4096,
        .host_pointer_alignment = 4096,
        .sparse_space = 4294967292,
        .storage_alignment = 4,
        .uniform_alignment = 4,
        .texel_alignment = 4,
        .copy_alignment = 1,
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "amd-rebar",
        .source =
            "vulkaninfo of an RX 6700 XT, amdvlk: github.com/KoT3isGood/funnygame; the second "
            "eight types repeat the first",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x1002,
        .device = 0x73df,
        .heap_count = 2,
        .heaps = {{16783507456, 0}, {12868124672, VRAMS}},
        .type_count = 16,
        .types = {{LOCAL, 1},
                  {COHERENT, 0},
                  {LOCAL | COHERENT, 1},
                  {COHERENT | CACHED, 0},
                  {LOCAL | AMD, 1},
                  {COHERENT | AMD, 0},
                  {LOCAL | COHERENT | AMD, 1},
                  {COHERENT | CACHED | AMD, 0},
                  {LOCAL, 1},
                  {COHERENT, 0},
                  {LOCAL | COHERENT, 1},
                  {COHERENT | CACHED, 0},
                  {LOCAL | AMD, 1},
                  {COHERENT | AMD, 0},
                  {LOCAL | COHERENT | AMD, 1},
                  {COHERENT | CACHED | AMD, 0}},
        .granularity = 1,
        .atom = 128,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 2147483648,
        .largest_buffer = 2147483648,
        .map_alignment = 64,
        .host_pointer_alignment = 4096,
        .sparse_space = 140707423584256,
        .storage_alignment = 4,
        .uniform_alignment = 16,
        .texel_alignment = 4,
        .copy_alignment = 1,
        .extensions = LINUX_EXTERNAL | ALL_PAGING | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "amd-apu",
        .source = "vulkaninfo of a Raven APU, radv 22.2: github.com/CGIProgrammer/DSGE",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x1002,
        .device = 0x15dd,
        .heap_count = 2,
        .heaps = {{1789566976, 0}, {3579142144, VRAM}},
        .type_count = 8,
        .types = {{LOCAL, 1},
                  {COHERENT, 0},
                  {LOCAL | COHERENT, 1},
                  {COHERENT | CACHED, 0},
                  {LOCAL | AMD, 1},
                  {COHERENT | AMD, 0},
                  {LOCAL | COHERENT | AMD, 1},
                  {COHERENT | CACHED | AMD, 0}},
        .granularity = 1,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 4294967292,
        .largest_buffer = 4294967292,
        .map_alignment = 4096,
        .host_pointer_alignment = 4096,
        .sparse_space = 4294967292,
        .storage_alignment = 4,
        .uniform_alignment = 4,
        .texel_alignment = 4,
        .copy_alignment = 1,
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "nvidia-11",
        .source = "vulkaninfo of an RTX 2080 Ti, Linux driver 440: github.com/Bam4d/Griddly",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_1,
        .vendor = 0x10de,
        .device = 0x1e04,
        .heap_count = 2,
        .heaps = {{11811160064, VRAM}, {25216204800, 0}},
        .type_count = 11,
        .types = {{0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {LOCAL, 0},
                  {LOCAL, 0},
                  {COHERENT, 1},
                  {COHERENT | CACHED, 1}},
        .granularity = 1024,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 4292870144,
        .map_alignment = 64,
        .sparse_space = UINT64_MAX,
        .storage_alignment = 16,
        .uniform_alignment = 64,
        .texel_alignment = 16,
        .copy_alignment = 1,
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(TIMELINE),
        .features = SPARSE,
    },
    {
        .name = "nvidia-bar",
        .source = "vulkaninfo of an RTX 3060 Ti, Linux driver 510: github.com/CGIProgrammer/DSGE",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x10de,
        .device = 0x2489,
        .heap_count = 3,
        .heaps = {{8589934592, VRAM}, {17264824320, 0}, {257949696, VRAM}},
        .type_count = 11,
        .types = {{0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {0, 1},
                  {LOCAL, 0},
                  {COHERENT, 1},
                  {COHERENT | CACHED, 1},
                  {LOCAL | COHERENT, 2}},
        .granularity = 1024,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 4292870144,
        .largest_buffer = UINT64_C(18446744073709486080),
        .map_alignment = 64,
        .host_pointer_alignment = 4096,
        .sparse_space = 1099511627775,
        .storage_alignment = 16,
        .uniform_alignment = 64,
        .texel_alignment = 16,
        .copy_alignment = 1,
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(HOST_POINTER),
        .features = SPARSE,
    },
    {
        .name = "nvidia-rebar",
        .source = "vulkaninfo of an RTX 4060 laptop, Windows driver 556: "
                  "github.com/heintjepeintje/nexus",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x10de,
        .device = 0x28a0,
        .heap_count = 2,
        .heaps = {{8343519232, VRAM}, {8401379328, 0}},
        .type_count = 5,
        .types = {{0, 1}, {LOCAL, 0}, {COHERENT, 1}, {COHERENT | CACHED, 1}, {LOCAL | COHERENT, 0}},
        .granularity = 1024,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 4292870144,
        .largest_buffer = 1099511627776,
        .map_alignment = 64,
        .host_pointer_alignment = 4096,
        .sparse_space = 1099511627776,
        .storage_alignment = 16,
        .uniform_alignment = 64,
        .texel_alignment = 16,
        .copy_alignment = 1,
        .extensions = ALL_PAGING | FV_BIT(HOST_POINTER),
        .features = SPARSE,
    },
    {
        .name = "intel-uma",
        .source =
            "vulkaninfo of Alder Lake GT2, anv 23.2: github.com/sumit0x0d/multimedia-framework",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x8086,
        .device = 0x46a6,
        .heap_count = 1,
        .heaps = {{12274556928, VRAM}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {LOCAL | COHERENT, 0}, {LOCAL | COHERENT | CACHED, 0}},
        .granularity = 1,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 12274556928,
        .largest_buffer = 4294967296,
        .map_alignment = 4096,
        .host_pointer_alignment = 4096,
        .storage_alignment = 4,
        .uniform_alignment = 64,
        .texel_alignment = 16,
        .copy_alignment = 128,
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET),
    },
    {
        .name = "intel-2017",
        .source =
            "gpuinfo.org report 2098 (HD Graphics 520, anv) in Vulkan-ValidationLayers' device "
            "profiles; api version as of anv in 2018",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_1,
        .vendor = 0x8086,
        .device = 0x1916,
        .heap_count = 2,
        .heaps = {{11289211904, VRAM}, {1073741824, VRAM}},
        .type_count = 2,
        .types = {{LOCAL | COHERENT | CACHED, 0}, {LOCAL | COHERENT | CACHED, 1}},
        .granularity = 64,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .map_alignment = 4096,
        .storage_alignment = 4,
        .uniform_alignment = 16,
        .texel_alignment = 1,
        .copy_alignment = 128,
        .extensions = FV_BIT(FD),
    },
    {
        .name = "mobile-lazy",
        .source =
            "flags as of ARM's proprietary Mali driver (cached non-coherent, lazily allocated and "
            "protected types in one heap); limits as of Mesa 25.0's panvk; heap of 3 GiB",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_1,
        .vendor = 0x13b5,
        .device = 0x92020010,
        .heap_count = 1,
        .heaps = {{3072 * MIB, VRAM}},
        .type_count = 5,
        .types = {{LOCAL | COHERENT, 0},
                  {LOCAL | VISIBLE | CACHED, 0},
                  {LOCAL | COHERENT | CACHED, 0},
                  {LOCAL | LAZY, 0},
                  {LOCAL | GUARDED, 0}},
        .granularity = 64,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = NO_LIMIT,
        .map_alignment = 64,
        .storage_alignment = 256,
        .uniform_alignment = 16,
        .texel_alignment = 256,
        .copy_alignment = 64,
        .extensions = FV_BIT(FD) | FV_BIT(DMA_BUF),
        .features = FV_PROTECTED,
    },
    {
        .name = "adreno",
        .source = "Mesa 25.0.7, src/freedreno/vulkan/tu_device.cc; heap of 4 GiB",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x5143,
        .device = 0x06030001,
        .heap_count = 1,
        .heaps = {{4096 * MIB, VRAM}},
        .type_count = 3,
        .types = {{LOCAL | COHERENT, 0},
                  {LOCAL | COHERENT | CACHED, 0},
                  {LOCAL | VISIBLE | CACHED, 0}},
        .granularity = 64,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = NO_LIMIT,
        .map_alignment = 4096,
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(DMA_BUF),
    },
    {
        .name = "moltenvk",
        .source = "vulkaninfo of an M1 Pro, MoltenVK 1.2.11: github.com/Sujay-Shah/Usul",
        .type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        .api_version = VK_API_VERSION_1_2,
        .vendor = 0x106b,
        .device = 0xf050207,
        .heap_count = 1,
        .heaps = {{17179869184, VRAM}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {LOCAL | COHERENT | CACHED, 0}, {LOCAL | LAZY, 0}},
        .granularity = 16,
        .atom = 16,
        .most_allocations = 1073741824,
        .largest_allocation = 8589934592,
        .map_alignment = 64,
        .host_pointer_alignment = 16384,
        .storage_alignment = 16,
        .uniform_alignment = 16,
        .texel_alignment = 16,
        .copy_alignment = 16,
        .extensions = FV_BIT(BUDGET) | FV_BIT(HOST_POINTER) | FV_BIT(PORTABILITY),
        .features = FV_ADDRESS,
    },
    {
        .name = "lavapipe",
        .source = "vulkaninfo on Debian 12, mesa-vulkan-drivers 22.3.6",
        .type = VK_PHYSICAL_DEVICE_TYPE_CPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x10005,
        .heap_count = 1,
        .heaps = {{2147483648, VRAM}},
        .type_count = 1,
        .types = {{LOCAL | COHERENT | CACHED, 0}},
        .granularity = 64,
        .atom = 64,
        .most_allocations = NO_LIMIT,
        .largest_allocation = 2147483648,
        .largest_buffer = NO_LIMIT,
        .map_alignment = 64,
        .host_pointer_alignment = 4096,
        .storage_alignment = 16,
        .uniform_alignment = 16,
        .texel_alignment = 16,
        .copy_alignment = 128,
        .extensions = FV_BIT(FD) | FV_BIT(HOST_POINTER),
    },
    {
        .name = "swiftshader",
        .source = "vulkaninfo on Debian 12, libvk_swiftshader.so of chromium-common 156",
        .type = VK_PHYSICAL_DEVICE_TYPE_CPU,
        .api_version = VK_API_VERSION_1_3,
        .vendor = 0x1ae0,
        .device = 0xc0de,
        .heap_count = 1,
        .heaps = {{2147483648, VRAM}},
        .type_count = 1,
        .types = {{LOCAL | COHERENT | CACHED, 0}},
        .granularity = 4096,
        .atom = 256,
        .most_allocations = 4096,
        .largest_allocation = 1073741824,
        .largest_buffer = 1073741824,
        .map_alignment = 64,
        .host_pointer_alignment = 4096,
        .storage_alignment = 256,
        .uniform_alignment = 256,
        .texel_alignment = 256,
        .copy_alignment = 64,
        .extensions = FV_BIT(FD) | FV_BIT(HOST_POINTER),
    },
    {
        .name = "incoherent",
        .source =
            "no device: what the oldest drivers may be, host memory that is never coherent, every "
            "limit at the worst that Vulkan allows",
        .type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .api_version = VK_API_VERSION_1_1,
        .vendor = 0x10000,
        .heap_count = 2,
        .heaps = {{1024 * MIB, VRAM}, {1024 * MIB, 0}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {VISIBLE, 1}, {VISIBLE | CACHED, 1}},
        .granularity = 131072,
        .atom = 256,
        .most_allocations = 4096,
        .largest_allocation = 1073741824,
        .map_alignment = 64,
        .storage_alignment = 256,
        .uniform_alignment = 256,
        .texel_alignment = 256,
        .copy_alignment = 256,
    },
};

const uint32_t fv_layout_count = sizeof fv_layouts / sizeof *fv_layouts;

const fv_layout *fv_layout_named(const char *name)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        if (!strcmp(fv_layouts[i].name, name))
            return &fv_layouts[i];
    return NULL;
}

static void replace_zero(uint64_t *value, uint64_t usual)
{
    *value = *value ? *value : usual;
}

/* Extensions that others need, and those that the version has. */
static uint32_t implied_extensions(const fv_layout *layout)
{
    static const uint32_t CORE_VERSION[] = {
#define X(bit, name, scope, core) core,
        FV_EXTENSIONS(X)
#undef X
    };
    uint32_t implied = 0;
    for (uint32_t i = 0; i < FV_EXTENSION_COUNT; i++)
        if (CORE_VERSION[i] && layout->api_version >= CORE_VERSION[i])
            implied |= UINT32_C(1) << i;
    /* core, but an optional feature in 1.2 */
    if (layout->api_version < VK_API_VERSION_1_3 && !(layout->features & FV_ADDRESS))
        implied &= ~FV_BIT(ADDRESS);
    return implied;
}

void fv_layout_complete(fv_layout *layout)
{
    static const struct {
        uint32_t extension, feature;
    } BRINGS[] = {
        {FV_BIT(TIMELINE), FV_TIMELINE},
        {FV_BIT(ADDRESS), FV_ADDRESS},
        {FV_BIT(PRIORITY), FV_PRIORITY},
        {FV_BIT(PAGEABLE), FV_PAGEABLE},
        {FV_BIT(MAINTENANCE4), FV_MAINTENANCE4},
        {FV_BIT(DEVICE_COHERENT), FV_DEVICE_COHERENT},
        {FV_BIT(SYNC2), FV_SYNC2},
    };
    uint64_t count = layout->most_allocations;
    replace_zero(&layout->granularity, 1024);
    replace_zero(&layout->atom, 64);
    replace_zero(&count, 4096);
    replace_zero(&layout->largest_allocation, UINT64_C(1) << 31);
    replace_zero(&layout->largest_buffer, layout->largest_allocation);
    replace_zero(&layout->map_alignment, 64);
    replace_zero(&layout->host_pointer_alignment, 4096);
    replace_zero(&layout->storage_alignment, 64);
    replace_zero(&layout->uniform_alignment, 64);
    replace_zero(&layout->texel_alignment, 64);
    replace_zero(&layout->copy_alignment, 1);
    layout->most_allocations = (uint32_t)count;
    layout->extensions |= implied_extensions(layout);
    for (size_t i = 0; i < sizeof BRINGS / sizeof *BRINGS; i++)
        if (layout->extensions & BRINGS[i].extension)
            layout->features |= BRINGS[i].feature;
    layout->features |= FV_ROBUST;
}
