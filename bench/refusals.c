/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * refusals.c - requests that a memory refuses, over and over: what a program pays that asks for
 * memory which may not be there. bench/refusals.py counts the instructions.
 *
 * usage: bench_refusals CASE COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/host.h"
#include "quire/quire.h"

enum { PAGE = 1 << 20 };

/* One page, which is nearly full, and why there is no second one. */
typedef struct refusal {
    const char *name;
    quire_memory_options memory;
    quire_allocation_options request;
    uint64_t budget; /* bytes of each heap that the device reports; 0: none */
} refusal;

static const refusal CASES[] = {
    {.name = "existing-pages", .request = {.existing_pages = true}},
    {.name = "within-budget", .request = {.within_budget = true}, .budget = PAGE},
    {.name = "limit", .memory = {.limit = PAGE}},
    {.name = "pages", .memory = {.pages = {.max_pages = 1}}},
};

static int refuse(const refusal *r, uint64_t count)
{
    quire_host_options host = {.budgets = {r->budget, r->budget}};
    quire_memory_options options = r->memory;
    quire_allocation_options request = r->request;
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    quire_allocation kept, none;
    options.name = "textures";
    options.pages.page_size = PAGE;
    request.size = PAGE / 8;
    if (quire_host_open(&host, &device) || quire_memory_create(device, &options, &memory) ||
        quire_allocate(memory, &(quire_allocation_options){.size = PAGE - PAGE / 16}, &kept)) {
        fprintf(stderr, "%s\n", quire_last_error());
        return 1;
    }
    for (uint64_t i = 0; i < count; i++)
        if (!quire_allocate(memory, &request, &none)) {
            fprintf(stderr, "%s: the request was served\n", r->name);
            return 1;
        }
    printf("%s\n", quire_last_error());
    quire_memory_destroy_all(&memory);
    return quire_device_destroy(&device) != QUIRE_SUCCESS;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < sizeof CASES / sizeof *CASES; i++)
        if (!strcmp(CASES[i].name, argv[1]))
            return refuse(&CASES[i], strtoull(argv[2], NULL, 10));
    fprintf(stderr, "usage: bench_refusals CASE COUNT, with one of these cases:\n");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        fprintf(stderr, "  %s\n", CASES[i].name);
    return 2;
}
