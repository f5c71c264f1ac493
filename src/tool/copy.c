/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - quire copy: copies between host memory and the memory kinds that quire chooses, in all
 * combinations, and reports the path and the speed of each, also relative to memcpy.
 *
 * The first copy of each pair verifies the bytes. Timed copies and memcpy alternate, so that both
 * see the same load of the machine. The fastest repeat of each counts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/render/json_parts.h"
#include "src/tool/open.h"

enum { MAX_PLACES = 5, MAX_PAIRS = MAX_PLACES * MAX_PLACES, MAX_TURNS = 99 };

static const uint64_t DEFAULT_SIZE = UINT64_C(64) << 20, DEFAULT_TURNS = 5;

/* Host memory, or a memory of one kind, with a range to copy from and a range to copy to. */
typedef struct place {
    uint32_t kind; /* NO_KIND means host memory */
    quire_memory_flags flags;
    quire_memory *memory; /* NULL for host memory */
    quire_allocation source, target;
    char *from, *to; /* host addresses of both ranges; NULL if they are not mappable */
} place;

/* The result for one pair of places. */
typedef struct measured {
    const place *to, *from;
    quire_copy_path path;
    double bytes_per_second; /* 0 if the path is unsupported, as is of_memcpy */
    double of_memcpy;        /* speed relative to memcpy */
} measured;

typedef struct copy_run {
    uint64_t size, turns; /* bytes per copy; timed copies per pair */
    quire_device_info device;
    place places[MAX_PLACES];
    int place_count;
    measured pairs[MAX_PAIRS];
    int pair_count;
    char *sent, *found; /* the bytes to copy, and a buffer to read them back */
} copy_run;

/* ---- places ------------------------------------------------------------------------------- */

/* Both ranges stay mapped until their memory is destroyed. */
static quire_result map_both(place *p)
{
    void *from = NULL, *to = NULL;
    quire_result result = quire_map(p->memory, p->source, &from);
    if (!result)
        result = quire_map(p->memory, p->target, &to);
    p->from = from;
    p->to = to;
    return result;
}

/* Writes the source range once. Later copies into other places read it and never change it. */
static quire_result open_place(const copy_run *c, quire_device *device, place *p)
{
    const quire_allocation_options options = {.size = c->size};
    p->flags = c->device.kinds[p->kind].flags;
    quire_result result = quire_memory_create(
        device, &(quire_memory_options){.kind.mask = UINT32_C(1) << p->kind}, &p->memory);
    if (!result)
        result = quire_allocate(p->memory, &options, &p->source);
    if (!result)
        result = quire_allocate(p->memory, &options, &p->target);
    if (!result)
        result = quire_write(p->memory, p->source, 0, c->sent, c->size);
    if (!result && p->flags & QUIRE_HOST_VISIBLE)
        result = map_both(p);
    return result;
}

/* Adds each kind once. NO_KIND is skipped too, because places[0] is host memory. */
static void add_kind(copy_run *c, uint32_t kind)
{
    for (int i = 0; i < c->place_count; i++)
        if (c->places[i].kind == kind)
            return;
    c->places[c->place_count++].kind = kind;
}

/*
 * Creates a memory per kind. places[0] is host memory, with the two buffers as its ranges. Prints
 * the error and returns false; close_places frees what exists in both cases.
 */
static bool open_places(copy_run *c, quire_device *device)
{
    kind_choices kinds = choose_kinds(device);
    c->sent = malloc(c->size);
    c->found = malloc(c->size);
    if (!c->sent || !c->found) {
        fprintf(stderr, "quire: no host memory for two buffers of %s\n", qi_bytes(c->size).text);
        return false;
    }
    for (uint64_t i = 0; i < c->size; i++)
        c->sent[i] = (char)(i * 7 + i / 4093);
    c->places[c->place_count++] = (place){.kind = NO_KIND, .from = c->sent, .to = c->found};
    add_kind(c, kinds.device);
    add_kind(c, kinds.upload);
    add_kind(c, kinds.readback);
    add_kind(c, kinds.shared);
    for (int i = 1; i < c->place_count; i++)
        if (open_place(c, device, &c->places[i])) {
            fail_with_last_error();
            return false;
        }
    return true;
}

static void close_places(copy_run *c)
{
    for (int i = 1; i < c->place_count; i++)
        quire_memory_destroy_all(&c->places[i].memory);
    free(c->sent);
    free(c->found);
}

/* ---- one pair ----------------------------------------------------------------------------- */

static quire_copy_options options_for(const copy_run *c, const measured *m)
{
    return (quire_copy_options){
        .to = {.memory = m->to->memory, .allocation = m->to->target},
        .from = {.memory = m->from->memory, .allocation = m->from->source},
        .host_to = m->to->memory ? NULL : m->to->to,
        .host_from = m->from->memory ? NULL : m->from->from,
        .size = c->size,
    };
}

/* Runs the first copy with a progress bar and verifies the bytes. Prints the error. */
static bool check_pair(copy_run *c, const measured *m)
{
    progress bar = {.what = "copy"};
    quire_copy_options options = options_for(c, m);
    options.progress = (quire_progress){show_progress, &bar, 0};
    quire_result result = quire_copy(&options, NULL);
    end_progress(&bar);
    if (!result && m->to->memory)
        result = quire_read(m->to->memory, m->to->target, 0, c->found, c->size);
    if (result) {
        fail_with_last_error();
        return false;
    }
    bool arrived = !memcmp(c->found, c->sent, c->size);
    if (!arrived)
        fprintf(stderr, "quire: the copied bytes differ from the source\n");
    return arrived;
}

/* Times memcpy between the same ranges if the host can address both, otherwise in host memory. */
static uint64_t time_memcpy(const copy_run *c, const measured *m)
{
    bool both = m->to->to && m->from->from;
    char *to = both ? m->to->to : c->found;
    const char *from = both ? m->from->from : c->sent;
    uint64_t started = qi_clock();
    memcpy(to, from, c->size);
    return qi_clock() - started;
}

/* Verifies the pair, then times c->turns copies. Prints the error and returns false. */
static bool measure(copy_run *c, measured *m)
{
    const quire_copy_options options = options_for(c, m);
    uint64_t best = UINT64_MAX, best_memcpy = UINT64_MAX;
    if (!check_pair(c, m))
        return false;
    for (uint64_t i = 0; i < c->turns; i++) {
        uint64_t by_memcpy = time_memcpy(c, m), started = qi_clock();
        if (quire_copy(&options, NULL)) {
            fail_with_last_error();
            return false;
        }
        uint64_t spent = qi_clock() - started;
        best = spent < best ? spent : best;
        best_memcpy = by_memcpy < best_memcpy ? by_memcpy : best_memcpy;
    }
    best += !best; /* 0 if the copy takes less than a tick of the clock */
    m->bytes_per_second = (double)c->size / (double)best * 1e9;
    m->of_memcpy = (double)(best_memcpy + !best_memcpy) / (double)best;
    return true;
}

/* Skips the pair of host memory with itself, which is memcpy, and keeps unsupported pairs. */
static bool measure_pairs(copy_run *c)
{
    for (int to = 0; to < c->place_count; to++)
        for (int from = 0; from < c->place_count; from++) {
            measured *m = &c->pairs[c->pair_count];
            if (!to && !from)
                continue;
            *m = (measured){.to = &c->places[to], .from = &c->places[from]};
            if (quire_copy_get_path(m->to->memory, m->from->memory, &m->path)) {
                fail_with_last_error();
                return false;
            }
            if (m->path != QUIRE_COPY_UNSUPPORTED && !measure(c, m))
                return false;
            c->pair_count++;
        }
    return true;
}

/* ---- output ------------------------------------------------------------------------------- */

static const char *path_text(quire_copy_path path)
{
    static const char *const names[] = {"direct", "staged", "host", "unsupported"};
    return names[path];
}

static void write_place(qi_json *json, const char *key, const place *p)
{
    qi_json_object(json, key);
    if (p->kind == NO_KIND) {
        qi_json_null(json, "kind");
    } else {
        qi_json_number(json, "kind", p->kind);
        qi_json_flags(json, "flags", p->flags);
    }
    qi_json_end_object(json);
}

static int write_json(const copy_run *c)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "device", c->device.name);
    qi_json_text(&json, "backend", c->device.backend);
    qi_json_number(&json, "size", c->size);
    qi_json_number(&json, "repeats", c->turns);
    qi_json_array(&json, "copies");
    for (int i = 0; i < c->pair_count; i++) {
        const measured *m = &c->pairs[i];
        qi_json_object(&json, NULL);
        write_place(&json, "from", m->from);
        write_place(&json, "to", m->to);
        qi_json_text(&json, "path", path_text(m->path));
        if (m->path != QUIRE_COPY_UNSUPPORTED) {
            qi_json_real(&json, "bytes_per_second", m->bytes_per_second);
            qi_json_real(&json, "of_memcpy", m->of_memcpy);
        }
        qi_json_end_object(&json);
    }
    qi_json_end_array(&json);
    qi_json_end_object(&json);
    return qi_json_finish(&json) ? fail_with_last_error() : EXIT_OK;
}

static const char *place_text(const place *p, char *text, size_t size)
{
    char flags[128];
    if (p->kind == NO_KIND)
        snprintf(text, size, "host memory");
    else
        snprintf(text, size, "%" PRIu32 " %s", p->kind, flags_text(p->flags, flags, sizeof flags));
    return text;
}

static int print_text(const copy_run *c)
{
    char from[160], to[160];
    print_clean(stdout, "%s (%s)", c->device.name, c->device.backend);
    printf(", %s per copy, best of %" PRIu64 "\n\n", qi_bytes(c->size).text, c->turns);
    printf("  %-11s  %8s  %9s  from -> to\n", "path", "GiB/s", "of memcpy");
    for (int i = 0; i < c->pair_count; i++) {
        const measured *m = &c->pairs[i];
        printf("  %-11s  ", path_text(m->path));
        if (m->path == QUIRE_COPY_UNSUPPORTED)
            printf("%8s  %9s", "-", "-");
        else
            printf("%8.2f  %9.3f", m->bytes_per_second / (double)(UINT64_C(1) << 30), m->of_memcpy);
        printf("  %s -> %s\n", place_text(m->from, from, sizeof from),
               place_text(m->to, to, sizeof to));
    }
    return EXIT_OK;
}

static int run_on(copy_run *c, quire_device *device, bool as_json)
{
    int code = EXIT_FAILED;
    if (quire_device_get_info(device, &c->device))
        return fail_with_last_error();
    if (open_places(c, device) && measure_pairs(c))
        code = as_json ? write_json(c) : print_text(c);
    close_places(c);
    return code;
}

int run_copy(const command *self, int argc, char **argv)
{
    copy_run c = {.size = DEFAULT_SIZE, .turns = DEFAULT_TURNS};
    device_choice choice = {0};
    bool as_json = false;
    quire_device *device = NULL;
    const option_spec specs[] = {
        {"backend", "B", "host (default), vulkan or cuda", OPTION_TEXT, &choice.backend},
        {"profile", "FILE", "simulate the device that a profile describes", OPTION_TEXT,
         &choice.profile},
        {"device", "D", DEVICE_HELP, OPTION_TEXT, &choice.device},
        {"size", "SIZE", "bytes per copy (default 64M)", OPTION_SIZE, &c.size},
        {"repeats", "N", "timed copies per pair (default 5)", OPTION_NUMBER, &c.turns},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &as_json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, NULL);
    if (code >= 0)
        return code;
    if (!c.turns || c.turns > MAX_TURNS)
        return bad_usage(self, "--repeats takes 1 to %d", MAX_TURNS);
    if (c.size > SIZE_MAX)
        return bad_usage(self, "--size exceeds the address space of this machine");
    code = open_device(self, &choice, &device);
    if (code >= 0)
        return code;
    code = run_on(&c, device, as_json);
    quire_device_destroy(&device);
    return code;
}
