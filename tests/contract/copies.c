/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copies.c - the contract: copies between pages, kinds and devices arrive and change nothing else;
 * fills.
 */
#include "tests/contract/kit.h"

enum { ROOM = 6000, COPIES = 12, PART = 4096 };

/* ---- the model ---------------------------------------------------------------------------- */

/* A range of bytes and its expected contents. */
typedef struct place {
    quire_memory *memory; /* NULL means host memory */
    quire_allocation allocation;
    unsigned char *host;
    unsigned char model[ROOM];
} place;

static void put_pattern(place *p, uint64_t key)
{
    kit_fill(key, 0, p->model, ROOM);
    if (p->memory)
        CHECK_OK(quire_write(p->memory, p->allocation, 0, p->model, ROOM));
    else
        memcpy(p->host, p->model, ROOM);
}

static void expect_model(const place *p)
{
    static unsigned char found[ROOM];
    if (p->memory)
        CHECK_OK(quire_read(p->memory, p->allocation, 0, found, ROOM));
    CHECK(!memcmp(p->memory ? found : p->host, p->model, ROOM));
}

static bool draw_end(test_random *r, const quire_copy_options *o, const place *p,
                     quire_copy_end *end)
{
    uint64_t row = o->size + random_below(r, 3) * random_below(r, 30);
    uint64_t slice = o->rows * row + random_below(r, 2) * random_below(r, 100);
    uint64_t extent = (o->slices - 1) * slice + (o->rows - 1) * row + o->size;
    if (extent > ROOM)
        return false;
    *end = (quire_copy_end){.memory = p->memory,
                            .allocation = p->allocation,
                            .offset = random_below(r, ROOM - extent + 1),
                            .row_pitch = row,
                            .slice_pitch = slice};
    return true;
}

/* Draws a random copy whose two ranges do not overlap. */
static quire_copy_options draw(test_random *r, const place *to, const place *from)
{
    quire_copy_options o;
    do {
        o = (quire_copy_options){.size = random_size(r, 1500),
                                 .rows = 1 + random_below(r, 9),
                                 .slices = 1 + random_below(r, 4),
                                 .host_to = to->host,
                                 .host_from = from->host};
    } while (!draw_end(r, &o, to, &o.to) || !draw_end(r, &o, from, &o.from));
    return o;
}

static void model_copy(const quire_copy_options *o, place *to, const place *from)
{
    for (uint64_t k = 0; k < o->slices; k++)
        for (uint64_t i = 0; i < o->rows; i++)
            memcpy(to->model + o->to.offset + k * o->to.slice_pitch + i * o->to.row_pitch,
                   from->model + o->from.offset + k * o->from.slice_pitch + i * o->from.row_pitch,
                   o->size);
}

/* Checks some copies from one place to the other. If there is no copy path each one is refused. */
static void copy_some(test_random *r, place *to, place *from)
{
    quire_copy_path path;
    CHECK_OK(quire_copy_get_path(to->memory, from->memory, &path));
    for (int n = 0; n < COPIES; n++) {
        quire_copy_options o = draw(r, to, from);
        if (path == QUIRE_COPY_UNSUPPORTED) {
            CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_UNSUPPORTED);
            return;
        }
        CHECK_OK(quire_copy(&o, NULL));
        model_copy(&o, to, from);
    }
    expect_model(to);
    expect_model(from);
}

static place place_in(quire_memory *memory)
{
    return (place){.memory = memory, .allocation = ALLOCATE(memory, .size = ROOM)};
}

/* ---- through the core --------------------------------------------------------------------- */

static void kinds_exchange_bytes(contract_world *w, uint32_t kind)
{
    static place to, from;
    test_random r = {kind + 1};
    if (!kit_can_both(w, kind))
        return;
    for (uint32_t other = 0; other < w->info.kind_count; other++) {
        if (!kit_holds_contents(w, other) || !kit_can_both(w, other))
            continue;
        quire_memory *target = kit_memory(w, kind, NULL), *source = kit_memory(w, other, NULL);
        to = place_in(target);
        from = place_in(source);
        put_pattern(&to, 1);
        put_pattern(&from, 2);
        copy_some(&r, &to, &from);
        CHECK_OK(quire_free(target, to.allocation));
        CHECK_OK(quire_free(source, from.allocation));
        kit_end(&target);
        kit_end(&source);
    }
}

static void one_page_holds_both_ends(contract_world *w, uint32_t kind)
{
    static place to, from;
    test_random r = {kind + 50};
    quire_memory *memory = kit_memory(w, kind, NULL);
    to = place_in(memory);
    from = place_in(memory);
    bool can = kit_can_both(w, kind);
    if (can) {
        put_pattern(&to, 3);
        put_pattern(&from, 4);
        copy_some(&r, &to, &from);
        copy_some(&r, &from, &to);
    }
    quire_copy_options onto_itself = {.to = {memory, to.allocation, 10, 0, 0},
                                      .from = {memory, to.allocation, 19, 0, 0},
                                      .size = 10};
    CHECK_FAILS(quire_copy(&onto_itself, NULL), QUIRE_ERROR_OVERLAP);
    if (can)
        expect_model(&to);
    CHECK_OK(quire_free(memory, to.allocation));
    CHECK_OK(quire_free(memory, from.allocation));
    kit_end(&memory);
}

static void host_memory_exchanges_rows(contract_world *w, uint32_t kind)
{
    static unsigned char bytes[ROOM];
    static place inside, outside;
    test_random r = {kind + 100};
    quire_memory *memory = kit_memory(w, kind, NULL);
    inside = place_in(memory);
    outside = (place){.host = bytes};
    put_pattern(&outside, 6);
    if (kit_can_both(w, kind)) {
        put_pattern(&inside, 5);
        copy_some(&r, &inside, &outside);
        copy_some(&r, &outside, &inside);
    } else if (!kit_can_write(w, kind)) {
        copy_some(&r, &inside, &outside); /* refused */
    }
    CHECK_OK(quire_free(memory, inside.allocation));
    kit_end(&memory);
}

/* Two devices either share a table or copy through host memory. */
static void two_devices_exchange_bytes(contract_world *w)
{
    static place to, from;
    contract_world second;
    test_random r = {200};
    CHECK_OK(world_open(&second, w->subject));
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++) {
        if (kind >= second.info.kind_count || !kit_holds_contents(w, kind) ||
            !kit_can_both(w, kind) || !kit_can_both(&second, kind))
            continue;
        quire_memory *target = kit_memory(w, kind, NULL);
        quire_memory *source = kit_memory(&second, kind, NULL);
        to = place_in(target);
        from = place_in(source);
        put_pattern(&to, 7);
        put_pattern(&from, 8);
        copy_some(&r, &to, &from);
        copy_some(&r, &from, &to);
        CHECK_OK(quire_free(target, to.allocation));
        CHECK_OK(quire_free(source, from.allocation));
        kit_end(&target);
        kit_end(&source);
    }
    world_close(&second);
}

static void fills_set_their_bytes(contract_world *w, uint32_t kind)
{
    static place p;
    test_random r = {kind + 300};
    quire_memory *memory = kit_memory(w, kind, NULL);
    p = place_in(memory);
    if (!kit_can_both(w, kind)) {
        quire_result result =
            quire_fill(memory, p.allocation, &(quire_fill_options){.value = 1}, NULL);
        CHECK_EQ(result, kit_can_write(w, kind) ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
    } else {
        put_pattern(&p, 9);
        for (int i = 0; i < COPIES; i++) {
            uint64_t offset = random_below(&r, ROOM), size = random_size(&r, ROOM - offset);
            uint8_t value = (uint8_t)(1 + random_below(&r, 255));
            CHECK_OK(quire_fill(
                memory, p.allocation,
                &(quire_fill_options){.offset = offset, .size = size, .value = value}, NULL));
            memset(p.model + offset, value, size);
            expect_model(&p);
        }
    }
    CHECK_OK(quire_free(memory, p.allocation));
    kit_end(&memory);
}

/* ---- through the table -------------------------------------------------------------------- */

static bool copies_pages(const contract_world *w)
{
    return kit_offers(w, QUIRE_BACKEND_COPY_PAGES);
}

/* Copies rows between two pages, or within one, without the core. */
static void the_table_copies_rows(contract_world *w, uint32_t kind)
{
    static unsigned char source[PART], target[PART], found[PART];
    kit_page from = kit_page_make(w, kind, 2 * PART), to = kit_page_make(w, kind, 2 * PART);
    bool many = kit_offers(w, QUIRE_BACKEND_ROWS);
    const quire_copy_job job = {.to = &to.native,
                                .from = &from.native,
                                .to_offset = 3,
                                .from_offset = 70,
                                .size = 101,
                                .rows = many ? 5 : 1,
                                .slices = many ? 3 : 1,
                                .to_row = 110,
                                .to_slice = 600,
                                .from_row = 102,
                                .from_slice = 515,
                                .to_state = w->state,
                                .from_state = w->state};
    kit_fill(1, 0, source, PART);
    kit_fill(2, 0, target, PART);
    if (kit_page_write(w, &from, 0, source, PART) && kit_page_write(w, &to, 0, target, PART)) {
        CHECK_OK(w->table->copy_pages(w->state, &job));
        for (uint64_t k = 0; k < job.slices; k++)
            for (uint64_t i = 0; i < job.rows; i++)
                memcpy(target + 3 + k * 600 + i * 110, source + 70 + k * 515 + i * 102, 101);
        CHECK(kit_page_read(w, &to, 0, found, PART));
        CHECK(!memcmp(found, target, PART));
        CHECK(kit_page_read(w, &from, 0, found, PART));
        CHECK(!memcmp(found, source, PART));
    }
    kit_page_end(w, &from);
    kit_page_end(w, &to);
}

const contract_scenario contract_copies[] = {
    {.name = "kinds exchange bytes, and the gaps between rows stay",
     .of_kind = kinds_exchange_bytes},
    {.name = "one page can be source and target of a copy without overlap",
     .of_kind = one_page_holds_both_ends},
    {.name = "host memory exchanges rows with a kind, or UNSUPPORTED",
     .of_kind = host_memory_exchanges_rows},
    {.name = "two devices exchange bytes", .body = two_devices_exchange_bytes},
    {.name = "a fill sets its bytes and no others", .of_kind = fills_set_their_bytes},
    {.name = "the table copies rows from page to page",
     .of_kind = the_table_copies_rows,
     .applies = copies_pages},
    {0},
};
