/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* host_budget.c - the host backend reports budgets as a driver does: those of its options, and
   those that are set later. */
#include "tests/support/unit.h"

#include "quire/host.h"
#include "quire/quire.h"

#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)

static quire_device *device;
static quire_memory *memory;

static void begin(quire_host_options options)
{
    options.device.host_memory = unit_memory();
    CHECK_OK(quire_host_open(&options, &device));
    CHECK_OK(quire_memory_create(
        device, &(quire_memory_options){.pages = {.page_size = MIB}, .within_budget = true},
        &memory));
}

static void end(void)
{
    CHECK_OK(quire_memory_check(memory));
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

static quire_result allocate(uint64_t size)
{
    quire_allocation made;
    return quire_allocate(memory, &(quire_allocation_options){.size = size}, &made);
}

static quire_budget_info budget_of(uint32_t heap)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(device, heap, &info));
    return info;
}

UNIT(host_budget, the_options_budgets_hold)
{
    begin((quire_host_options){.budgets = {3 * MIB}});
    for (int i = 0; i < 3; i++)
        CHECK_OK(allocate(MIB));
    CHECK_FAILS(allocate(1), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(),
              "budget of heap 0 (3 MiB of pages and 0 B of other memory in use)");
    CHECK_EQ(budget_of(0).budget, 3 * MIB);
    CHECK_EQ(budget_of(0).usage, 3 * MIB);
    CHECK_EQ(budget_of(0).available, 0);
    end();
}

UNIT(host_budget, budgets_change_while_the_device_is_used)
{
    begin((quire_host_options){.row_alignment = 0});
    CHECK_OK(allocate(MIB));
    quire_budget_info info = budget_of(0);
    CHECK_EQ(info.budget, TIB);
    CHECK_EQ(info.reserved, MIB);
    CHECK_EQ(info.usage, MIB);
    CHECK_EQ(info.available, TIB - MIB);
    CHECK_EQ(budget_of(1).usage, 0);
    CHECK_OK(quire_host_set_budget(device, 0, MIB / 2)); /* below the present use */
    CHECK_FAILS(allocate(1), QUIRE_ERROR_OVER_BUDGET);
    CHECK_OK(quire_host_set_budget(device, 0, 2 * MIB));
    CHECK_OK(allocate(MIB));
    CHECK_FAILS(allocate(1), QUIRE_ERROR_OVER_BUDGET);
    CHECK_OK(quire_host_set_budget(device, 0, 0));
    CHECK_OK(allocate(MIB));
    end();
}

UNIT(host_budget, a_full_heap_is_out_of_memory_and_not_over_a_budget)
{
    quire_host_profile profile = {.heap_count = 1,
                                  .kind_count = 1,
                                  .heaps = {{.size = 2 * MIB}},
                                  .kinds = {{.flags = QUIRE_DEVICE_LOCAL}}};
    begin((quire_host_options){.profile = &profile});
    CHECK_OK(allocate(MIB));
    CHECK_OK(allocate(MIB));
    CHECK_FAILS(allocate(1), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(budget_of(0).available, 0);
    end();
}

UNIT(host_budget, budgets_of_heaps_that_are_not_there_are_refused)
{
    quire_device *none = (quire_device *)&memory;
    quire_host_options options = {.budgets = {[2] = 1}};
    CHECK_FAILS(quire_host_open(&options, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "a budget for heap 2 of a device with 2 heaps");
    CHECK(none == NULL);
}
