/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_text.c - the texts that describe an allocator and a virtual block.
 */
#include "src/adapters/vma/base.h"

#include <string.h>

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

UNIT(vma_text, grows_with_its_pieces)
{
    qi_vma_host host;
    qi_vma_host_begin(&host, NULL);
    qi_vma_text text = {.host = &host};
    for (int i = 0; i < 1000; i++)
        qi_vma_text_add(&text, "piece ");
    char *whole = qi_vma_text_end(&text);
    CHECK_EQ(strlen(whole), 6000);
    CHECK(!memcmp(whole + 5994, "piece ", 7));
    qi_vma_host_release(&host, whole);
}

UNIT(vma_text, without_host_memory_there_is_no_text)
{
    for (uint32_t fail_at = 1; fail_at < 5; fail_at++) {
        vma_host program;
        qi_vma_host host;
        qi_vma_host_begin(&host, vma_host_begin(&program, fail_at, true));
        qi_vma_text text = {.host = &host};
        for (int i = 0; i < 1000; i++)
            qi_vma_text_add(&text, "piece ");
        CHECK(!qi_vma_text_end(&text));
        CHECK_EQ(quire_last_result(), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
}

UNIT(vma_text, an_allocator_describes_its_memories)
{
    static vma_fixture v;
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    char *text;
    vma_fixture_open(&v, NULL, 0);
    vmaBuildStatsString(v.allocator, &text, VK_TRUE);
    CHECK_HAS(text, "\"AllocationCount\":0");
    vmaFreeStatsString(v.allocator, text);
    VmaAllocation a = vma_fixture_hold(&v, 1000, &options);
    vmaSetAllocationName(v.allocator, a, "positions");
    vmaBuildStatsString(v.allocator, &text, VK_TRUE);
    CHECK_HAS(text, "positions");
    CHECK(text[0] == '{' && strstr(text, "\"DefaultPools\""));
    vmaFreeStatsString(v.allocator, text);
    vmaBuildStatsString(v.allocator, &text, VK_FALSE);
    CHECK_HAS(text, "\"MemoryInfo\"");
    vmaFreeStatsString(v.allocator, text);
    vmaFreeStatsString(v.allocator, NULL);
    vmaBuildStatsString(v.allocator, NULL, VK_TRUE);
    vmaBuildStatsString(NULL, &text, VK_TRUE);
    CHECK(!text);
    vma_fixture_close(&v);
}

/* The members and their order are those of VMA; tests/support/vma_scenarios_virtual.c compares the
   strings of both. */
UNIT(vma_text, a_virtual_block_describes_its_ranges)
{
    VmaVirtualBlock block;
    VmaVirtualAllocation range;
    VmaVirtualAllocationCreateInfo request = {.size = 77, .pUserData = (void *)(uintptr_t)0x2a};
    char *text;
    CHECK_VK(vmaCreateVirtualBlock(&(VmaVirtualBlockCreateInfo){.size = 1000}, &block));
    CHECK_VK(vmaVirtualAllocate(block, &request, &range, NULL));
    request.pUserData = NULL;
    CHECK_VK(vmaVirtualAllocate(block, &request, &range, NULL));
    vmaBuildVirtualBlockStatsString(block, &text, VK_TRUE);
    CHECK_HAS(text, "{\"Offset\": 0, \"Size\": 77, \"CustomData\": \"0x2a\"}");
    CHECK_HAS(text, "{\"Offset\": 77, \"Size\": 77}");
    CHECK_HAS(text, "{\"Offset\": 154, \"Type\": \"FREE\", \"Size\": 846}");
    vmaFreeVirtualBlockStatsString(block, text);
    vmaBuildVirtualBlockStatsString(block, &text, VK_FALSE);
    CHECK_HAS(text, "\"AllocationBytes\": 154");
    CHECK(!strstr(text, "Details"));
    vmaFreeVirtualBlockStatsString(block, text);
    vmaFreeVirtualBlockStatsString(block, NULL);
    vmaBuildVirtualBlockStatsString(block, NULL, VK_TRUE);
    vmaBuildVirtualBlockStatsString(NULL, &text, VK_TRUE);
    CHECK(!text);
    vmaFreeVirtualBlockStatsString(NULL, NULL);
    vmaClearVirtualBlock(block);
    vmaDestroyVirtualBlock(block);
}
