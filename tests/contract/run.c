/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * run.c - runs the scenarios of the contract with one subject (see contract.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "src/core/checked.h"
#include "tests/contract/kit.h"
#include "tests/support/items.h"

static const contract_scenario *const chapters[] = {
    contract_description, contract_pages,          contract_placement, contract_contents,
    contract_copies,      contract_streams,        contract_buffers,   contract_images,
    contract_limits,      contract_elastic,        contract_lazy,      contract_sleep,
    contract_compact,     contract_compact_random, contract_life,      contract_threads,
};

/* ---- worlds ------------------------------------------------------------------------------- */

quire_result world_open(contract_world *w, const contract_subject *subject)
{
    *w = (contract_world){.subject = subject};
    test_memory_init(&w->host_memory);
    quire_result result = subject->open(subject, &w->host_memory.callbacks, &w->opened);
    if (result) {
        CHECK_EQ(w->host_memory.blocks, 0);
        return result;
    }
    w->device = w->opened.device;
    CHECK_OK(quire_device_get_info(w->device, &w->info));
    w->table = quire_device_backend(w->device);
    w->features = w->table->features;
    w->state = quire_device_state(w->device);
    return QUIRE_SUCCESS;
}

void world_close(contract_world *w)
{
    CHECK_OK(quire_device_destroy(&w->device));
    if (w->subject->close)
        w->subject->close(w->opened.own);
    CHECK_EQ(w->host_memory.blocks, 0);
}

/* ---- cases -------------------------------------------------------------------------------- */

/* The running case, which plain.h reports if a check fails. */
static const contract_subject *current_subject;
static const contract_scenario *current;
static char title[256];

static void run_kinds(contract_world *w)
{
    size_t length = strlen(title);
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++) {
        if (!kit_holds_contents(w, kind))
            continue;
        snprintf(title + length, sizeof title - length, ", kind %" PRIu32, kind);
        current->of_kind(w, kind);
        title[length] = '\0';
    }
}

static void run_current(void)
{
    contract_world w;
    CHECK_OK(world_open(&w, current_subject));
    if (current->body)
        current->body(&w);
    else
        run_kinds(&w);
    world_close(&w);
}

/* Opens and closes the device once. Returns false if it is unavailable here. */
static bool is_here(const contract_subject *subject, contract_world *w)
{
    plain_begin(subject->name);
    quire_result result = world_open(w, subject);
    if (result == QUIRE_ERROR_UNSUPPORTED) {
        plain_skip(subject->name, quire_last_error());
        return false;
    }
    CHECK_OK(result);
    world_close(w);
    return true;
}

const contract_scenario *contract_scenario_at(uint32_t index)
{
    for (size_t i = 0; i < sizeof chapters / sizeof *chapters; i++)
        for (const contract_scenario *s = chapters[i]; s->name; s++)
            if (!index--)
                return s;
    return NULL;
}

static void run_scenario(const contract_world *seen, const contract_scenario *scenario)
{
    current_subject = seen->subject;
    current = scenario;
    snprintf(title, sizeof title, "%s: %s", current_subject->name, scenario->name);
    if (!items_begin(title))
        return;
    if ((scenario->applies && !scenario->applies(seen)) || (scenario->is_exact && QI_IS_CHECKED))
        printf("# not for %s\n", title);
    else
        plain_case(title, run_current);
}

void contract_run(const contract_subject *subject, const contract_scenario *only)
{
    contract_world seen;
    if (!is_here(subject, &seen))
        return;
    if (only)
        run_scenario(&seen, only);
    const contract_scenario *scenario;
    for (uint32_t i = 0; !only && (scenario = contract_scenario_at(i)); i++)
        run_scenario(&seen, scenario);
}
