/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - creating a memory: its kind by flags, mask or intent, its defaults, and every refused
 * option. Destruction is in memory_end.c.
 */
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include "quire/quire.h"

typedef struct bench {
    fake_backend fake;
    quire_device *device;
} bench;

static void make(bench *b)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
}

static void end(bench *b)
{
    CHECK_OK(quire_device_destroy(&b->device)); /* no allocation is live */
    CHECK_EQ(b->fake.pages, 0);
    CHECK(b->fake.ended);
}

#define CREATE(b, ...) create((b), &(quire_memory_options){__VA_ARGS__})

static quire_memory *create(bench *b, const quire_memory_options *options)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(b->device, options, &memory));
    CHECK_OK(quire_memory_check(memory));
    return memory;
}

static quire_memory_info info_of(quire_memory *memory)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(quire_memory_kind(memory), info.kind);
    return info;
}

/* Creates a memory, returns its kind, and destroys it. */
#define EXPECT_KIND(b, expected, ...)                                                              \
    expect_kind((b), (expected), &(quire_memory_options){__VA_ARGS__})

static void expect_kind(bench *b, uint32_t expected, const quire_memory_options *options)
{
    quire_memory *memory = create(b, options);
    quire_memory_info info = info_of(memory);
    CHECK_EQ(info.kind, expected);
    CHECK_EQ(info.flags, b->fake.info.kinds[expected].flags);
    CHECK_EQ(info.mappable, (info.flags & QUIRE_HOST_VISIBLE) != 0);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK(memory == NULL);
}

#define CASE(name) UNIT_ON(memory, name, bench, b, make(b), end)

/* ---- defaults ----------------------------------------------------------------------------- */

CASE(the_default_is_device_local_with_a_first_page_of_1_mib_and_no_page_yet)
{
    static const quire_memory_options zero;
    const quire_memory_options *both[] = {NULL, &zero};
    for (int i = 0; i < 2; i++) {
        quire_memory *memory = create(b, both[i]);
        quire_memory_info info = info_of(memory);
        CHECK_STR(info.name, "memory");
        CHECK(info.device == b->device);
        CHECK(quire_memory_device(memory) == b->device);
        CHECK_EQ(info.kind, 0);
        CHECK_EQ(info.flags, QUIRE_DEVICE_LOCAL);
        CHECK(!info.mappable);
        CHECK_EQ(info.fit, QUIRE_FIT_SEGREGATED);
        CHECK_EQ(info.page_size, UINT64_C(1) << 20);
        CHECK_EQ(info.granule, 256);
        CHECK_EQ(info.page_count, 0);
        CHECK_EQ(info.address_space, 0);
        CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
        CHECK_OK(quire_memory_destroy(&memory));
    }
}

CASE(the_options_are_reported)
{
    char name[] = "first";
    quire_memory *memory =
        CREATE(b, .name = name, .kind.required = QUIRE_HOST_VISIBLE,
               .fit.algorithm = QUIRE_FIT_FIRST, .shards = 1, .pages = {.page_size = 100});
    name[0] = 'w'; /* the name was copied */
    quire_memory_info info = info_of(memory);
    CHECK_STR(info.name, "first");
    CHECK_EQ(info.fit, QUIRE_FIT_FIRST);
    CHECK_EQ(info.granule, 1);
    CHECK_EQ(info.page_size, 256);
    CHECK(info.mappable);
    CHECK_OK(quire_memory_destroy(&memory));
    memory = CREATE(b, .fit.granule = 4096);
    CHECK_EQ(info_of(memory).granule, 4096);
    CHECK_OK(quire_memory_destroy(&memory));
}

CASE(a_name_has_at_most_255_bytes)
{
    char longer[QUIRE_MAX_NAME + 2] = "";
    quire_memory *memory = NULL;
    memset(longer, 'n', sizeof longer - 1);
    const char *const names[] = {longer + 1, ""};
    for (int i = 0; i < 2; i++) {
        memory = CREATE(b, .name = names[i]);
        CHECK_STR(info_of(memory).name, names[i]);
        CHECK_OK(quire_memory_destroy(&memory));
    }
    CHECK_FAILS(quire_memory_create(b->device, &(quire_memory_options){.name = longer}, &memory),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "256 bytes: 255 are allowed");
}

/* ---- kinds -------------------------------------------------------------------------------- */

UNIT_ON(memory, a_special_kind_is_chosen_if_the_mask_names_it, bench, b, fake_init(&b->fake), end)
{
    b->fake.info.kinds[0].flags = QUIRE_DEVICE_LOCAL | QUIRE_PROTECTED;
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
    EXPECT_KIND(b, 3, .kind.required = 0);
    EXPECT_KIND(b, 0, .kind.mask = 1);
}

CASE(intents_choose_the_kind)
{
    static const struct {
        quire_intent intent;
        uint32_t kind;
    } cases[] = {
        {QUIRE_INTENT_DEVICE, 0},
        {QUIRE_INTENT_UPLOAD, 1},
        {QUIRE_INTENT_HOST_READ, 2},  /* cached, which outweighs that it is not coherent */
        {QUIRE_INTENT_HOST_WRITE, 3}, /* device-local */
        {QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        EXPECT_KIND(b, cases[i].kind, .kind.intent = cases[i].intent);
    EXPECT_KIND(b, 1, .kind.intent = cases[2].intent, .kind.mask = 0xa);
}

/* ---- refusals ----------------------------------------------------------------------------- */

CASE(invalid_options_and_options_of_a_later_version_are_refused)
{
    static const quire_intent reading = QUIRE_INTENT_HOST_READ,
                              wrong = QUIRE_INTENT_UPLOAD | QUIRE_INTENT_HOST_READ,
                              exported = QUIRE_INTENT_EXPORT;
    static const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT,
                              unsupported = QUIRE_ERROR_UNSUPPORTED;
    const struct {
        quire_memory_options options;
        quire_result code;
        const char *says;
    } cases[] = {
        {{.kind.required = 0x200}, invalid, "unknown memory flags 0x200"},
        {{.kind.required = QUIRE_PROTECTED}, unsupported, "no memory kind with PROTECTED"},
        {{.kind.required = QUIRE_HOST_VISIBLE, .kind.exact = true},
         unsupported,
         "with exactly HOST_VISIBLE"},
        {{.kind.exact = true}, unsupported, "with exactly no flags"},
        {{.kind.mask = 0x10}, unsupported, "in the mask 0x10"},
        {{.kind.mask = 0x2, .kind.required = QUIRE_DEVICE_LOCAL}, unsupported, "in the mask 0x2"},
        {{.kind.mask = 0x1, .kind.intent = reading}, unsupported, "in the mask 0x1"},
        {{.kind.intent = reading, .kind.required = QUIRE_HOST_VISIBLE},
         invalid,
         "flags or an intent"},
        {{.kind.intent = reading, .kind.exact = true}, invalid, "flags or an intent"},
        {{.kind.intent = wrong}, invalid, "an intent to upload and to read"},
        {{.kind.intent = 0x20}, invalid, "unknown bits 0x20 of an intent"},
        {{.kind.unused = {1}}, invalid, "quire_kind_request.unused[0]"},
        {{.limit = QUIRE_PERCENT_OF_HEAP(0)}, invalid, "a limit of 0 percent"},
        {{.limit = QUIRE_PERCENT_OF_HEAP(101)}, invalid, "a limit of 101 percent"},
        {{.kind.intent = exported}, unsupported, "backend fake cannot export"},
        {{.elastic = true, .kind.mask = 0x2}, unsupported, "kind 1 of backend fake cannot be"},
        {{.elastic = true, .shards = 2}, unsupported, "2 shards: an elastic memory"},
        {{.elastic = true, .fit.algorithm = QUIRE_FIT_BUDDY}, unsupported, "buddy"},
        {{.elastic = true, .fit.algorithm = QUIRE_FIT_LINEAR}, unsupported, "linear"},
        {{.address_space = 1}, invalid, "quire_memory_options.address_space is set"},
        {{.shards = 65}, invalid, "65 shards: most 64"},
        {{.shards = 2, .fit.algorithm = QUIRE_FIT_LINEAR}, unsupported, "2 shards: the linear fit"},
        {{.fit.algorithm = (quire_fit)9}, invalid, "fit 9 does not exist"},
        {{.fit.granule = 3}, invalid, "granule 3"},
        {{.fit.granule = UINT64_C(2) << 30}, invalid, "granule 2147483648"},
        {{.fit = {.granule = 256, .algorithm = QUIRE_FIT_FIRST}}, invalid, "granule 256"},
        {{.fit.max_alignment = 3}, invalid, "largest alignment 3"},
        {{.fit.max_alignment = UINT64_C(2) << 30}, invalid, "largest alignment 2147483648"},
        {{.unused = {0, 0, 1}}, invalid, "quire_memory_options.unused[2]"},
        {{.fit.unused = {0, 1}}, invalid, "quire_fit_options.unused[1]"},
        {{.pages = {.unused = {1}}}, invalid, "quire_page_policy.unused[0]"},
        {{.pages = {.growth_percent = 2000}}, invalid, "2000 percent"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_memory *memory = (quire_memory *)b;
        CHECK_FAILS(quire_memory_create(b->device, &cases[i].options, &memory), cases[i].code);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK(memory == NULL);
    }
}

CASE(the_limits_of_all_options_are_accepted)
{
    static const quire_memory_options cases[] = {
        {.fit.max_alignment = UINT64_C(1) << 30},
        {.fit.max_alignment = 1},
        {.fit.granule = UINT64_C(1) << 30},
        {.fit.granule = 1},
        {.fit = {.granule = 1, .algorithm = QUIRE_FIT_FIRST}},
        {.kind.mask = UINT32_MAX},
        {.fit = {.granule = 1, .algorithm = QUIRE_FIT_BUDDY}},
        {.fit = {.granule = 1, .algorithm = QUIRE_FIT_LINEAR}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_memory *memory = create(b, &cases[i]);
        CHECK_OK(quire_memory_destroy(&memory));
    }
}

CASE(a_memory_with_atoms_works_at_every_largest_alignment)
{
    quire_memory *memory = NULL;
    quire_memory_options options = {.kind.mask = 4, .fit.max_alignment = 16}; /* the atom is 64 */
    if (quire_memory_create(b->device, &options, &memory)) /* a refusal is valid too */
        CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    quire_allocation allocation;
    if (memory)
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &allocation));
    quire_memory_destroy_all(&memory);
}

/* ---- what a backend says of its elastic pages --------------------------------------------- */

static void make_elastic(bench *b)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
    fake_offer_growth(&b->fake);
    b->fake.info.limits.elastic_kinds = 0x5;
    b->fake.info.limits.elastic_unmapped = true;
    b->fake.info.limits.max_elastic_page = UINT64_C(1) << 20;
    b->fake.info.limits.elastic_missing = "it lacks what tests want";
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
}

#define ELASTIC_CASE(name) UNIT_ON(memory, name, bench, b, make_elastic(b), end)

/* The kind is host-visible; its bytes are copied by the backend, and no page is mapped. */
ELASTIC_CASE(an_elastic_memory_that_cannot_be_mapped_is_not_host_visible)
{
    static const uint32_t word = 7;
    uint32_t read = 0;
    void *pointer = NULL;
    quire_allocation made;
    quire_native native;
    CHECK(b->fake.info.kinds[2].flags & QUIRE_HOST_VISIBLE);
    quire_memory *memory = CREATE(b, .elastic = true, .kind.mask = 0x4);
    const quire_memory_info info = info_of(memory);
    CHECK(!(info.flags & (QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED)));
    CHECK(!info.mappable);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 64}, &made));
    CHECK_OK(quire_allocation_get_native(memory, made, &native));
    CHECK(!native.host);
    CHECK_FAILS(quire_map(memory, made, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_OK(quire_write(memory, made, 8, &word, 4));
    CHECK_OK(quire_read(memory, made, 8, &read, 4));
    CHECK_EQ(read, 7);
    CHECK_OK(quire_free(memory, made));
    CHECK_OK(quire_memory_destroy(&memory));
    memory = CREATE(b, .kind.mask = 0x4); /* others stay as they are */
    CHECK(info_of(memory).mappable);
    CHECK_OK(quire_memory_destroy(&memory));
}

ELASTIC_CASE(an_elastic_memory_has_the_addresses_of_the_largest_page)
{
    quire_memory *memory = CREATE(b, .elastic = true, .kind.mask = 0x1);
    CHECK_EQ(info_of(memory).address_space, UINT64_C(1) << 20);
    CHECK_OK(quire_memory_destroy(&memory));
    memory = CREATE(b, .elastic = true, .kind.mask = 0x1, .address_space = UINT64_C(1) << 20);
    CHECK_OK(quire_memory_destroy(&memory));
}

ELASTIC_CASE(what_an_elastic_memory_cannot_be_is_refused_with_the_reason)
{
    const struct {
        quire_memory_options options;
        const char *says;
    } cases[] = {
        {{.elastic = true, .kind.mask = 0x2}, "cannot be elastic: it lacks what tests want"},
        {{.elastic = true, .kind.mask = 0x1, .address_space = (UINT64_C(1) << 20) + 1},
         "an elastic page of backend fake has at most 1 MiB"},
        {{.elastic = true, .kind.intent = QUIRE_INTENT_HOST_READ},
         "requires HOST_VISIBLE, and elastic pages of backend fake cannot be mapped"},
        {{.elastic = true, .kind.required = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT},
         "requires HOST_VISIBLE|HOST_COHERENT"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_memory *memory = (quire_memory *)b;
        CHECK_FAILS(quire_memory_create(b->device, &cases[i].options, &memory),
                    QUIRE_ERROR_UNSUPPORTED);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK(!memory);
    }
}

/* ---- options of the segregated fit -------------------------------------------------------- */

CASE(options_of_the_segregated_fit_reach_its_space)
{
    quire_memory_options plain = {.pages = {.page_size = 1 << 20}}, tail = plain, slabs = plain;
    tail.fit.least_fragmentation = true;
    slabs.fit.slabs = true;
    const quire_memory_options *all[] = {&plain, &tail, &slabs};
    uint64_t offsets[3], bytes[3];
    for (int i = 0; i < 3; i++) {
        quire_memory *memory = NULL;
        quire_allocation made;
        quire_allocation_info info;
        quire_memory_stats stats;
        CHECK_OK(quire_memory_create(b->device, all[i], &memory));
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100 << 10}, &made));
        CHECK_OK(quire_allocation_get_info(memory, made, &info));
        offsets[i] = info.offset;
        for (int k = 0; k < 10000; k++)
            CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 512}, &made));
        CHECK_OK(quire_memory_get_stats(memory, &stats));
        CHECK_OK(quire_memory_check(memory));
        bytes[i] = stats.metadata_bytes;
        quire_memory_destroy_all(&memory);
    }
    CHECK(offsets[0] <= 64 && offsets[1] > 64); /* large ones are placed at the end */
    CHECK(bytes[2] < bytes[0]);                 /* many small ones share a record */
    quire_memory *none = NULL;
    CHECK_FAILS(quire_memory_create(
                    b->device,
                    &(quire_memory_options){.fit = {.algorithm = QUIRE_FIT_FIRST, .slabs = true}},
                    &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(the_backends_options_reach_each_of_its_pages)
{
    static const int words = 1;
    quire_memory *memory = NULL, *other = NULL;
    quire_allocation made;
    CHECK_OK(quire_memory_create_with(b->device, NULL,
                                      (quire_page_extra){.pointer = &words, .number = 7}, &memory));
    CHECK_OK(quire_memory_create(b->device, NULL, &other));
    for (int i = 0; i < 3; i++) {
        const quire_allocation_options options = {.size = 1, .dedicated = i > 0};
        CHECK_OK(quire_allocate(memory, &options, &made));
        CHECK(b->fake.last_page.extra.pointer == &words);
        CHECK_EQ(b->fake.last_page.extra.number, 7);
        CHECK_OK(quire_allocate(other, &options, &made));
        CHECK(b->fake.last_page.extra.pointer == NULL);
        CHECK_EQ(b->fake.last_page.extra.number, 0);
    }
    quire_memory_destroy_all(&memory);
    quire_memory_destroy_all(&other);
}
