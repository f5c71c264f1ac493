/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * handle.c - a handle returns the parts it was built from, and handles of different parts differ.
 */
#include "src/base/handle.h"

#include "tests/cbmc/proof.h"

PROOF(a_handle_returns_its_parts)
{
    uint32_t tag = (uint32_t)any_u64() >> (32 - QI_TAG_BITS);
    uint32_t generation = (uint32_t)any_u64() & QI_LAST_GENERATION;
    uint32_t slot = (uint32_t)any_u64() & (QI_SLOT_COUNT - 1);
    uint64_t id = qi_handle(tag, generation, slot);
    PROVE(qi_handle_tag(id) == tag);
    PROVE(qi_handle_generation(id) == generation);
    PROVE(qi_handle_slot(id) == slot);
}

PROOF(the_parts_of_a_handle_determine_it)
{
    uint64_t id = any_u64();
    PROVE(qi_handle(qi_handle_tag(id), qi_handle_generation(id), qi_handle_slot(id)) == id);
}
