/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layouts.c - memory layouts of real devices: see layout.h. Order, flags and limits are those of
 * the named sources. A limit that is usual (see layout.c), or that the source does not state, is
 * left out.
 */
#include "tests/support/vulkan/layout.h"

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

/* What a layout states in one line. */
#define GPU(kind, version, vendor_id, device_id)                                                   \
    .type = VK_PHYSICAL_DEVICE_TYPE_##kind, .api_version = VK_API_VERSION_##version,               \
    .vendor = vendor_id, .device = device_id
#define ALIGNMENTS(storage, uniform, texel, copy)                                                  \
    .storage_alignment = storage, .uniform_alignment = uniform, .texel_alignment = texel,          \
    .copy_alignment = copy

/* Types that several layouts have: heap 1 is the device's for AMD, and heap 0 for NVIDIA. */
#define TYPE(flags, heap)                                                                          \
    {                                                                                              \
        flags, heap                                                                                \
    }
#define AMD_TYPES                                                                                  \
    TYPE(LOCAL, 1), TYPE(COHERENT, 0), TYPE(LOCAL | COHERENT, 1), TYPE(COHERENT | CACHED, 0),      \
        TYPE(LOCAL | AMD, 1), TYPE(COHERENT | AMD, 0), TYPE(LOCAL | COHERENT | AMD, 1),            \
        TYPE(COHERENT | CACHED | AMD, 0)
#define NVIDIA_TYPES                                                                               \
    TYPE(0, 1), TYPE(0, 1), TYPE(0, 1), TYPE(0, 1), TYPE(0, 1), TYPE(0, 1), TYPE(0, 1),            \
        TYPE(LOCAL, 0)

#define MIB (UINT64_C(1) << 20)
#define NO_LIMIT UINT32_MAX

#define LINUX_EXTERNAL (FV_BIT(FD) | FV_BIT(DMA_BUF) | FV_BIT(HOST_POINTER))
#define ALL_PAGING (FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(PAGEABLE))
#define SPARSE (FV_SPARSE_BINDING | FV_SPARSE_BUFFER | FV_SPARSE_IMAGE | FV_SPARSE_SAMPLES)

const fv_layout fv_layouts[] = {
    {
        .name = "amd-bar",
        .source =
            "vulkaninfo of an RX 6600, radv 23.1: github.com/mrdudeman1111/vkDeferredRenderer",
        GPU(DISCRETE_GPU, 1_3, 0x1002, 0x73ff),
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
        .max_allocations = NO_LIMIT,
        .max_allocation = 4294967292,
        .max_buffer = 4294967292,
        .map_alignment = 4096,
        .sparse_space = 4294967292,
        ALIGNMENTS(4, 4, 4, 1),
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "amd-rebar",
        .source =
            "vulkaninfo of an RX 6700 XT, amdvlk: github.com/KoT3isGood/funnygame; the second "
            "eight types repeat the first",
        GPU(DISCRETE_GPU, 1_3, 0x1002, 0x73df),
        .heap_count = 2,
        .heaps = {{16783507456, 0}, {12868124672, VRAMS}},
        .type_count = 16,
        .types = {AMD_TYPES, AMD_TYPES},
        .granularity = 1,
        .atom = 128,
        .max_allocations = NO_LIMIT,
        .max_allocation = 2147483648,
        .max_buffer = 2147483648,
        .sparse_space = 140707423584256,
        ALIGNMENTS(4, 16, 4, 1),
        .extensions = LINUX_EXTERNAL | ALL_PAGING | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "amd-apu",
        .source = "vulkaninfo of a Raven APU, radv 22.2: github.com/CGIProgrammer/DSGE",
        GPU(INTEGRATED_GPU, 1_3, 0x1002, 0x15dd),
        .heap_count = 2,
        .heaps = {{1789566976, 0}, {3579142144, VRAM}},
        .type_count = 8,
        .types = {AMD_TYPES},
        .granularity = 1,
        .max_allocations = NO_LIMIT,
        .max_allocation = 4294967292,
        .max_buffer = 4294967292,
        .map_alignment = 4096,
        .sparse_space = 4294967292,
        ALIGNMENTS(4, 4, 4, 1),
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET) | FV_BIT(PRIORITY) | FV_BIT(DEVICE_COHERENT),
        .features = SPARSE,
    },
    {
        .name = "nvidia-11",
        .source = "vulkaninfo of an RTX 2080 Ti, Linux driver 440: github.com/Bam4d/Griddly",
        GPU(DISCRETE_GPU, 1_1, 0x10de, 0x1e04),
        .heap_count = 2,
        .heaps = {{11811160064, VRAM}, {25216204800, 0}},
        .type_count = 11,
        .types = {NVIDIA_TYPES, {LOCAL, 0}, {COHERENT, 1}, {COHERENT | CACHED, 1}},
        .max_allocations = NO_LIMIT,
        .max_allocation = 4292870144,
        .sparse_space = UINT64_MAX,
        ALIGNMENTS(16, 64, 16, 1),
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(TIMELINE),
        .features = SPARSE,
    },
    {
        .name = "nvidia-bar",
        .source = "vulkaninfo of an RTX 3060 Ti, Linux driver 510: github.com/CGIProgrammer/DSGE",
        GPU(DISCRETE_GPU, 1_3, 0x10de, 0x2489),
        .heap_count = 3,
        .heaps = {{8589934592, VRAM}, {17264824320, 0}, {257949696, VRAM}},
        .type_count = 11,
        .types = {NVIDIA_TYPES, {COHERENT, 1}, {COHERENT | CACHED, 1}, {LOCAL | COHERENT, 2}},
        .max_allocations = NO_LIMIT,
        .max_allocation = 4292870144,
        .max_buffer = UINT64_C(18446744073709486080),
        .sparse_space = 1099511627775,
        ALIGNMENTS(16, 64, 16, 1),
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(HOST_POINTER),
        .features = SPARSE,
    },
    {
        .name = "nvidia-rebar",
        .source = "vulkaninfo of an RTX 4060 laptop, Windows driver 556: "
                  "github.com/heintjepeintje/nexus",
        GPU(DISCRETE_GPU, 1_3, 0x10de, 0x28a0),
        .heap_count = 2,
        .heaps = {{8343519232, VRAM}, {8401379328, 0}},
        .type_count = 5,
        .types = {{0, 1}, {LOCAL, 0}, {COHERENT, 1}, {COHERENT | CACHED, 1}, {LOCAL | COHERENT, 0}},
        .max_allocations = NO_LIMIT,
        .max_allocation = 4292870144,
        .max_buffer = 1099511627776,
        .sparse_space = 1099511627776,
        ALIGNMENTS(16, 64, 16, 1),
        .extensions = ALL_PAGING | FV_BIT(HOST_POINTER),
        .features = SPARSE,
    },
    {
        .name = "nvidia-nvk",
        .source =
            "Mesa 25.0.7, src/nouveau/vulkan/nvk_physical_device.c, with a window of 256 MiB; "
            "heaps of 8 GiB",
        GPU(DISCRETE_GPU, 1_3, 0x10de, 0x2489),
        .heap_count = 3,
        .heaps = {{8192 * MIB, VRAM}, {256 * MIB, VRAM}, {8192 * MIB, 0}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {LOCAL | COHERENT, 1}, {COHERENT | CACHED, 2}},
        .max_allocations = 4096,
        .max_allocation = 2147483648,
        ALIGNMENTS(16, 64, 16, 1),
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(DMA_BUF),
        .features = SPARSE,
    },
    {
        .name = "intel-atom",
        .source =
            "types as of Mesa 25.0, src/intel/vulkan/i915/anv_device.c, for devices without a "
            "shared cache (Gemini Lake and others); limits as of intel-uma; heap of 4 GiB",
        GPU(INTEGRATED_GPU, 1_3, 0x8086, 0x3185),
        .heap_count = 1,
        .heaps = {{4096 * MIB, VRAM}},
        .type_count = 2,
        .types = {{LOCAL | COHERENT, 0}, {LOCAL | VISIBLE | CACHED, 0}},
        .granularity = 1,
        .max_allocations = NO_LIMIT,
        .max_allocation = 4096 * MIB,
        .map_alignment = 4096,
        ALIGNMENTS(4, 64, 16, 128),
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET),
    },
    {
        .name = "intel-uma",
        .source =
            "vulkaninfo of Alder Lake GT2, anv 23.2: github.com/sumit0x0d/multimedia-framework",
        GPU(INTEGRATED_GPU, 1_3, 0x8086, 0x46a6),
        .heap_count = 1,
        .heaps = {{12274556928, VRAM}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {LOCAL | COHERENT, 0}, {LOCAL | COHERENT | CACHED, 0}},
        .granularity = 1,
        .max_allocations = NO_LIMIT,
        .max_allocation = 12274556928,
        .max_buffer = 4294967296,
        .map_alignment = 4096,
        ALIGNMENTS(4, 64, 16, 128),
        .extensions = LINUX_EXTERNAL | FV_BIT(BUDGET),
    },
    {
        .name = "intel-2017",
        .source =
            "gpuinfo.org report 2098 (HD Graphics 520, anv) in Vulkan-ValidationLayers' device "
            "profiles; api version as of anv in 2018",
        GPU(INTEGRATED_GPU, 1_1, 0x8086, 0x1916),
        .heap_count = 2,
        .heaps = {{11289211904, VRAM}, {1073741824, VRAM}},
        .type_count = 2,
        .types = {{LOCAL | COHERENT | CACHED, 0}, {LOCAL | COHERENT | CACHED, 1}},
        .granularity = 64,
        .max_allocations = NO_LIMIT,
        .map_alignment = 4096,
        ALIGNMENTS(4, 16, 1, 128),
        .extensions = FV_BIT(FD),
    },
    {
        .name = "mobile-lazy",
        .source =
            "flags as of ARM's proprietary Mali driver (cached non-coherent, lazily allocated and "
            "protected types in one heap); limits as of Mesa 25.0's panvk; heap of 3 GiB",
        GPU(INTEGRATED_GPU, 1_1, 0x13b5, 0x92020010),
        .heap_count = 1,
        .heaps = {{3072 * MIB, VRAM}},
        .type_count = 5,
        .types = {{LOCAL | COHERENT, 0},
                  {LOCAL | VISIBLE | CACHED, 0},
                  {LOCAL | COHERENT | CACHED, 0},
                  {LOCAL | LAZY, 0},
                  {LOCAL | GUARDED, 0}},
        .granularity = 64,
        .max_allocations = NO_LIMIT,
        .max_allocation = NO_LIMIT,
        ALIGNMENTS(256, 16, 256, 64),
        .extensions = FV_BIT(FD) | FV_BIT(DMA_BUF),
        .features = FV_PROTECTED,
    },
    {
        .name = "adreno",
        .source = "Mesa 25.0.7, src/freedreno/vulkan/tu_device.cc; heap of 4 GiB",
        GPU(INTEGRATED_GPU, 1_3, 0x5143, 0x06030001),
        .heap_count = 1,
        .heaps = {{4096 * MIB, VRAM}},
        .type_count = 3,
        .types = {{LOCAL | COHERENT, 0},
                  {LOCAL | COHERENT | CACHED, 0},
                  {LOCAL | VISIBLE | CACHED, 0}},
        .granularity = 64,
        .max_allocations = NO_LIMIT,
        .max_allocation = NO_LIMIT,
        .map_alignment = 4096,
        .extensions = FV_BIT(BUDGET) | FV_BIT(FD) | FV_BIT(DMA_BUF),
    },
    {
        .name = "moltenvk",
        .source = "vulkaninfo of an M1 Pro, MoltenVK 1.2.11: github.com/Sujay-Shah/Usul",
        GPU(INTEGRATED_GPU, 1_2, 0x106b, 0xf050207),
        .heap_count = 1,
        .heaps = {{17179869184, VRAM}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {LOCAL | COHERENT | CACHED, 0}, {LOCAL | LAZY, 0}},
        .granularity = 16,
        .atom = 16,
        .max_allocations = 1073741824,
        .max_allocation = 8589934592,
        .host_pointer_alignment = 16384,
        ALIGNMENTS(16, 16, 16, 16),
        .extensions = FV_BIT(BUDGET) | FV_BIT(HOST_POINTER) | FV_BIT(PORTABILITY),
        .features = FV_ADDRESS,
    },
    {
        .name = "lavapipe",
        .source = "vulkaninfo on Debian 12, mesa-vulkan-drivers 22.3.6",
        GPU(CPU, 1_3, 0x10005, 0),
        .heap_count = 1,
        .heaps = {{2147483648, VRAM}},
        .type_count = 1,
        .types = {{LOCAL | COHERENT | CACHED, 0}},
        .granularity = 64,
        .max_allocations = NO_LIMIT,
        .max_allocation = 2147483648,
        .max_buffer = NO_LIMIT,
        ALIGNMENTS(16, 16, 16, 128),
        .extensions = FV_BIT(FD) | FV_BIT(HOST_POINTER),
    },
    {
        .name = "swiftshader",
        .source = "vulkaninfo on Debian 12, libvk_swiftshader.so of chromium-common 156",
        GPU(CPU, 1_3, 0x1ae0, 0xc0de),
        .heap_count = 1,
        .heaps = {{2147483648, VRAM}},
        .type_count = 1,
        .types = {{LOCAL | COHERENT | CACHED, 0}},
        .granularity = 4096,
        .atom = 256,
        .max_allocations = 4096,
        .max_allocation = 1073741824,
        .max_buffer = 1073741824,
        ALIGNMENTS(256, 256, 256, 64),
        .extensions = FV_BIT(FD) | FV_BIT(HOST_POINTER),
    },
    {
        .name = "incoherent",
        .source = "no device, and less than the specification promises: host memory that is never "
                  "coherent, every limit at the worst that is allowed",
        GPU(DISCRETE_GPU, 1_1, 0x10000, 0),
        .heap_count = 2,
        .heaps = {{1024 * MIB, VRAM}, {1024 * MIB, 0}},
        .type_count = 3,
        .types = {{LOCAL, 0}, {VISIBLE, 1}, {VISIBLE | CACHED, 1}},
        .granularity = 131072,
        .atom = 256,
        .max_allocations = 4096,
        .max_allocation = 1073741824,
        ALIGNMENTS(256, 256, 256, 256),
    },
};

const uint32_t fv_layout_count = sizeof fv_layouts / sizeof *fv_layouts;
