/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake.c - the contract's subjects for the backend for tests (tests/support/fake.h): native
 * objects, dirty pages at invented addresses.
 */
#include "tests/support/fake.h"

#include <stdlib.h>

#include "tests/contract/kit.h"
#include "tests/contract/subjects.h"

/* What a subject changes in a fake before it is opened. */
typedef void (*fake_change)(fake_backend *fake);

typedef struct fake_options {
    fake_change change;
} fake_options;

static quire_result open_fake(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    const fake_options *options = subject->options;
    fake_backend *fake = malloc(sizeof *fake);
    CHECK(fake);
    fake_init(fake);
    fake_offer_budget(fake);
    fake_offer_copies(fake);
    fake_offer_fill(fake);
    fake_offer_growth(fake);
    /* the fake refuses pages beyond this many bytes in total, over all heaps */
    fake->page_budget = fake->info.heaps[0].size;
    if (options)
        options->change(fake);
    opened->own = fake;
    return fake_open(fake, host, &opened->device);
}

static void close_fake(void *own)
{
    fake_backend *fake = own;
    CHECK(fake->ended);
    CHECK_EQ(fake->pages + fake->page_bytes, 0);
    CHECK_EQ(fake->maps, 0);
    CHECK_EQ(fake->objects, 0);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

static quire_result set_budget(void *own, uint32_t heap, uint64_t bytes)
{
    fake_set_budget(own, heap, bytes, 0);
    return QUIRE_SUCCESS;
}

/* Pages at odd addresses: an aligned offset is not an aligned address. Each row is one copy. */
static void at_odd_addresses(fake_backend *fake)
{
    fake->address_step = 4096 + 64;
    fake->info.limits.page_alignment = 64;
    fake->info.limits.buffer_image_granularity = 1024;
    fake_leave_out(fake, QUIRE_BACKEND_ROWS);
}

/*
 * Pages are larger than requested, and objects need more than their bytes and a dedicated page.
 * There are no copies from page to page.
 */
static void generous(fake_backend *fake)
{
    fake->page_rounding = 96 * KIB;
    fake->object_needs.alignment = 512;
    fake->object_needs.kind_mask = 0x5;
    fake->object_needs.dedicated = true;
    fake_leave_out(fake, QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS);
}

/* Little more than the required functions: no copies, images, objects, budgets or growth. */
static void bare(fake_backend *fake)
{
    quire_backend *table = &fake->table;
    fake_leave_out(fake, ~(QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH));
    table->image_requirements = NULL;
    table->object_create = NULL;
    table->object_bind = NULL;
    table->object_destroy = NULL;
    table->heap_budget = NULL;
    table->page_back = NULL;
    table->page_unback = NULL;
    fake->info.limits.elastic_kinds = 0;
}

const contract_subject subject_fake = {
    .name = "fake", .open = open_fake, .close = close_fake, .set_budget = set_budget};

static const contract_subject subject_odd = {
    .name = "fake, odd addresses",
    .options = &(const fake_options){at_odd_addresses},
    .open = open_fake,
    .close = close_fake,
    .set_budget = set_budget,
};

static const contract_subject subject_generous = {
    .name = "fake, larger pages, dedicated objects",
    .options = &(const fake_options){generous},
    .open = open_fake,
    .close = close_fake,
    .set_budget = set_budget,
};

static const contract_subject subject_bare = {
    .name = "fake, no copies, images or objects",
    .options = &(const fake_options){bare},
    .open = open_fake,
    .close = close_fake,
};

const contract_subject *const fake_subjects[] = {
    &subject_fake, &subject_odd, &subject_generous, &subject_bare, NULL,
};
