/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay_setup.c - sets up replays, from flags, options files and traces, and writes their reports.
 */
#include "src/tool/replay_setup.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"

/* In the order of qi_members. The flag is the key with dashes; two members have a shorter one. */
static const struct {
    const char *flag, *help;
} FLAGS[] = {
    {"fit", "segregated, first, buddy or linear"},
    {"fit-least-fragmentation", "large ranges at the upper ends"},
    {"fit-slabs", "ranges of up to 4K share slabs"},
    {"fit-granule", "smallest unit"},
    {"fit-max-alignment", "largest alignment (default 2M)"},
    {"elastic", "one page with memory in the chunks in use"},
    {"shards", "shards with pages of their own"},
    {"limit", "maximum bytes of pages, or 50% of the heap"},
    {"within-budget", "no pages beyond the budget of the heap"},
    {"map-on-demand", "host-visible pages are mapped while in use"},
    {"address-space", "addresses of that page"},
    {"page-size", "bytes per page or chunk (default: by use)"},
    {"pages-first-page-size", "bytes of the first page"},
    {"pages-growth-percent", "a page is larger by this share"},
    {"pages-growth", "of last (default), largest or reserved"},
    {"pages-max-page", "size at which growth stops"},
    {"pages-max-pages", "maximum number of pages"},
    {"pages-request-factor", "least size of a page in requests"},
    {"pages-page-granularity", "page sizes are multiples of it"},
    {"pages-dedicated", "own pages: by_size, always or never"},
    {"pages-dedicated-threshold", "own pages from this size on"},
    {"pages-size-granularity", "sizes are rounded up to it"},
    {"pages-extra-padding", "bytes added to each request"},
    {"pages-retained-empty-bytes", "empty pages kept (1: none)"},
    {"pages-retention-nanoseconds", "how long a page stays empty"},
};

_Static_assert(sizeof FLAGS / sizeof *FLAGS == QI_MEMBER_COUNT, "a flag for each member");

/* In the order of quire_preset. */
static const char *const PRESET_WORDS[] = {"vma", "rmm", "pytorch", NULL};

/* ---- flags -------------------------------------------------------------------------------- */

static const char *argument_of(const qi_member *m)
{
    static const char *const arguments[] = {[QI_MEMBER_FLAG] = NULL,
                                            [QI_MEMBER_CHOICE] = "WORD",
                                            [QI_MEMBER_NUMBER] = "N",
                                            [QI_MEMBER_PERCENT] = "PERCENT",
                                            [QI_MEMBER_BYTES] = "SIZE",
                                            [QI_MEMBER_TIME] = "N",
                                            [QI_MEMBER_LIMIT] = "SIZE|PERCENT%"};
    return arguments[m->type];
}

size_t list_member_flags(option_spec *specs, memory_choice *choice)
{
    specs[0] = (option_spec){"options", "FILE", "read the memory's options from a JSON file",
                             OPTION_TEXT, &choice->file};
    specs[1] =
        (option_spec){"preset", "WORD", "page sizes of another allocator: vma, rmm or pytorch",
                      OPTION_TEXT, &choice->preset};
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++)
        specs[2 + i] = (option_spec){FLAGS[i].flag, argument_of(&qi_members[i]), FLAGS[i].help,
                                     OPTION_MEMBER, choice};
    return 2 + QI_MEMBER_COUNT;
}

const char *set_member(memory_choice *choice, const char *flag, const char *text)
{
    static qi_wanted_text wanted; /* until the next call */
    size_t i = 0;
    while (strcmp(FLAGS[i].flag, flag))
        i++;
    uint64_t value = 1;
    if (qi_members[i].type != QI_MEMBER_FLAG && !qi_member_parse(&qi_members[i], text, &value)) {
        wanted = qi_member_wanted(&qi_members[i]);
        return wanted.text;
    }
    qi_member_set(&qi_members[i], &choice->options, value);
    choice->given[i] = true;
    return NULL;
}

const char *const *words_of_flag(const char *flag)
{
    if (!strcmp(flag, "preset"))
        return PRESET_WORDS;
    for (size_t i = 0; i < QI_MEMBER_COUNT; i++)
        if (!strcmp(FLAGS[i].flag, flag))
            return qi_members[i].words;
    return NULL;
}

/* ---- text --------------------------------------------------------------------------------- */

/* Prints a blank and a size, as 64M if no byte is lost. */
static void print_size(FILE *out, uint64_t bytes)
{
    static const char units[] = "KMGT";
    size_t unit = 0;
    while (unit < sizeof units - 1 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    fprintf(out, " %" PRIu64, bytes);
    if (unit)
        fputc(units[unit - 1], out);
}

void print_member_flags(FILE *out, const quire_memory_options *options)
{
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++) {
        uint64_t value = qi_member_get(m, options);
        if (!value)
            continue;
        fprintf(out, " --%s", FLAGS[m - qi_members].flag);
        if (m->type == QI_MEMBER_CHOICE)
            fprintf(out, " %s", m->words[value]);
        else if (m->type == QI_MEMBER_LIMIT && value > QUIRE_PERCENT_OF_HEAP(0))
            fprintf(out, " %" PRIu64 "%%", value - QUIRE_PERCENT_OF_HEAP(0));
        else if (m->type == QI_MEMBER_BYTES || m->type == QI_MEMBER_LIMIT)
            print_size(out, value);
        else if (m->type != QI_MEMBER_FLAG)
            fprintf(out, " %" PRIu64, value);
    }
}

bool follows_use(const quire_memory_options *options)
{
    const quire_page_policy *p = &options->pages;
    return options->fit.algorithm != QUIRE_FIT_LINEAR && !p->page_size && !p->first_page_size &&
           !p->growth_percent && !p->growth && !p->max_page && !p->max_pages;
}

const char *fit_text(quire_fit fit)
{
    return qi_fit_words[fit];
}

/* ---- files -------------------------------------------------------------------------------- */

/* Parsers of JSON commonly end at 2^63 - 1. Larger numbers are written as decimal strings. */
void write_members(qi_json *json, const char *key, const quire_memory_options *options)
{
    qi_json_object(json, key);
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++) {
        uint64_t value = qi_member_get(m, options);
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRIu64, value);
        if (m->type == QI_MEMBER_LIMIT && value > QUIRE_PERCENT_OF_HEAP(0))
            snprintf(digits, sizeof digits, "%" PRIu64 "%%", value - QUIRE_PERCENT_OF_HEAP(0));
        if (!value)
            continue;
        if (m->type == QI_MEMBER_FLAG)
            qi_json_bool(json, m->key, true);
        else if (m->type == QI_MEMBER_CHOICE)
            qi_json_text(json, m->key, m->words[value]);
        else if (value > INT64_MAX)
            qi_json_text(json, m->key, digits);
        else
            qi_json_number(json, m->key, value);
    }
    qi_json_end_object(json);
}

/* A number is a JSON number, or a string as a flag takes it. */
static bool convert(const qi_member *m, const json_t *json, uint64_t *value)
{
    const char *text = json_string_value(json);
    if (text)
        return m->type != QI_MEMBER_FLAG && qi_member_parse(m, text, value);
    if (m->type == QI_MEMBER_FLAG && json_is_boolean(json)) {
        *value = json_is_true(json);
        return true;
    }
    bool is_number =
        m->type != QI_MEMBER_FLAG && m->type != QI_MEMBER_CHOICE && json_is_integer(json);
    *value = is_number ? (uint64_t)json_integer_value(json) : 0;
    return is_number && json_integer_value(json) >= 0 && (qi_member_is_wide(m) || *value <= m->max);
}

static bool read_member(memory_choice *choice, const char *key, const json_t *json)
{
    const qi_member *m = qi_member_find(key, strlen(key));
    if (!m) {
        print_problem("quire: %s: unknown key \"%s\"; quire replay --help lists the keys",
                      choice->file, key);
        return false;
    }
    uint64_t value = 0;
    if (!convert(m, json, &value)) {
        char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT);
        print_problem("quire: %s: \"%s\" takes %s, not %s", choice->file, key,
                      qi_member_wanted(m).text, text ? text : "this");
        free(text);
        return false;
    }
    if (!choice->given[m - qi_members])
        qi_member_set(m, &choice->options, value);
    return true;
}

static bool read_object(memory_choice *choice, json_t *root)
{
    json_t *recommendation = json_object_get(root, "recommendation");
    json_t *members = recommendation ? json_object_get(recommendation, "options") : root;
    if (json_is_null(recommendation)) {
        print_problem("quire: %s: tune recommends no options", choice->file);
        return false;
    }
    if (!json_is_object(members)) {
        print_problem("quire: %s: the options are not a JSON object", choice->file);
        return false;
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(members, key, value) if (!read_member(choice, key, value)) return false;
    return true;
}

/*
 * Reads choice->file, if it is not NULL, into the members that no flag has given. The file is a
 * JSON object of members, or the output of tune --json, whose recommendation counts. Returns -1, or
 * prints the error and returns the exit code.
 */
static int read_members(memory_choice *choice)
{
    json_t *root = choice->file ? read_json(choice->file) : NULL;
    bool good = root ? read_object(choice, root) : !choice->file;
    json_decref(root);
    return good ? -1 : EXIT_FAILED;
}

/* ---- presets ------------------------------------------------------------------------------ */

/*
 * Fills in the page policy of choice->preset for a memory kind of the device. Does nothing without
 * a preset. Returns -1, or prints the error and returns the exit code: the preset is unknown, or a
 * flag or the file sets a member of the page policy.
 */
static int apply_preset(memory_choice *choice, const quire_device *device, uint32_t kind)
{
    uint32_t preset = 0;
    if (!choice->preset)
        return -1;
    if (!qi_parse_word(PRESET_WORDS, choice->preset, &preset)) {
        print_problem("quire: --preset takes vma, rmm or pytorch, not '%s'", choice->preset);
        return EXIT_USAGE;
    }
    for (const qi_member *m = qi_members; m < qi_members + QI_MEMBER_COUNT; m++)
        if (!strncmp(m->key, "pages.", 6) && qi_member_get(m, &choice->options)) {
            print_problem("quire: --preset sets the whole page policy; leave out --%s",
                          FLAGS[m - qi_members].flag);
            return EXIT_USAGE;
        }
    return quire_page_policy_preset((quire_preset)preset, device, kind, &choice->options.pages)
               ? fail_with_last_error()
               : -1;
}

/* ---- trace, device and memory ------------------------------------------------------------- */

/* The text is freed right after parsing, because the trace has copies of its labels. */
int load_trace(const char *path, quire_trace **trace, quire_trace_info *info)
{
    size_t size = 0;
    char *text = read_file(path, &size);
    if (!text)
        return EXIT_FAILED;
    quire_result result = quire_trace_parse(path, text, size, NULL, trace);
    free(text);
    if (result) { /* without "quire: ": the message starts with FILE:LINE:COLUMN, as of compilers */
        print_problem("%s", quire_last_error());
        return EXIT_FAILED;
    }
    if (quire_trace_get_info(*trace, info))
        return fail_with_last_error();
    if (info->cut_bytes)
        print_problem("%s: the recording ends in an incomplete block, whose %" PRIu64
                      " bytes are left out",
                      path, info->cut_bytes);
    return -1;
}

static uint64_t read_time(void *user)
{
    return *(const uint64_t *)user;
}

quire_clock trace_clock(replay_setup *p)
{
    return (quire_clock){read_time, &p->time};
}

static int make_memory(replay_setup *p)
{
    p->memory_choice.options.name = "replay";
    p->memory_choice.options.clock = trace_clock(p);
    return quire_memory_create(p->device, &p->memory_choice.options, &p->memory)
               ? fail_with_last_error()
               : -1;
}

/* A preset depends on the memory kind, which the library chooses: a memory is made to learn it. */
static int make_memory_of_preset(replay_setup *p)
{
    quire_memory_info info;
    int code = make_memory(p);
    if (code >= 0 || !p->memory_choice.preset)
        return code;
    if (quire_memory_get_info(p->memory, &info))
        return fail_with_last_error();
    quire_memory_destroy_all(&p->memory);
    code = apply_preset(&p->memory_choice, p->device, info.kind);
    return code < 0 ? make_memory(p) : code;
}

int open_trace_and_device(const command *self, replay_setup *p)
{
    int code = load_trace(p->path, &p->trace, &p->info);
    return code < 0 ? open_device(self, &p->choice, &p->device) : code;
}

int open_replay(const command *self, replay_setup *p)
{
    if (is_standard(p->path) && is_standard(p->memory_choice.file))
        return bad_usage(self, "standard input is either the trace or --options");
    int code = read_members(&p->memory_choice);
    if (code < 0)
        code = open_trace_and_device(self, p);
    return code < 0 ? make_memory_of_preset(p) : code;
}

/* The memory goes before the device, which cannot be destroyed while it has memories. */
int read_moment(const command *self, const replay_setup *p, const char *at, uint64_t *count)
{
    const quire_trace_info *info = &p->info;
    char rest = 0;
    *count = info->event_count;
    if (!at || !strcmp(at, "peak")) {
        *count = info->event_count ? info->peak_event + 1 : 0;
        return -1;
    }
    if (!strcmp(at, "end") ||
        (*at >= '0' && *at <= '9' && sscanf(at, "%" SCNu64 "%c", count, &rest) == 1 && *count &&
         *count <= info->event_count))
        return -1;
    return bad_usage(self, "--at takes peak, end, or a number of events from 1 to %" PRIu64,
                     info->event_count);
}

int close_replay(replay_setup *p, int code)
{
    quire_trace_destroy(&p->trace);
    quire_memory_destroy_all(&p->memory);
    return quire_device_destroy(&p->device) ? fail_with_last_error() : code;
}

/* ---- the report --------------------------------------------------------------------------- */

static void write_latency(qi_json *json, const char *key, const quire_latency *ns)
{
    qi_json_object(json, key);
    qi_json_number(json, "p50", ns->p50);
    qi_json_number(json, "p99", ns->p99);
    qi_json_number(json, "p999", ns->p999);
    qi_json_number(json, "max", ns->max);
    qi_json_end_object(json);
}

static void write_numbers(qi_json *json, const quire_replay_report *o)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"operations", o->operations},
        {"allocations", o->allocations},
        {"frees", o->frees},
        {"uses", o->uses},
        {"frames", o->frames},
        {"failures", o->failures},
        {"peak_live_bytes", o->peak_live_bytes},
        {"peak_requested_bytes", o->peak_requested_bytes},
        {"peak_reserved_bytes", o->peak_reserved_bytes},
        {"pages_created", o->pages_created},
        {"pages_destroyed", o->pages_destroyed},
        {"peak_pages", o->peak_pages},
        {"backend_calls", o->backend_calls},
        {"wall_ns", o->wall_ns},
        {"left_at_end", o->left_at_end},
        {"left_bytes", o->left_bytes},
        {"metadata_bytes_peak", o->metadata_bytes_peak},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qi_json_number(json, numbers[i].key, numbers[i].value);
}

void write_report(qi_json *json, const quire_replay_report *o)
{
    write_numbers(json, o);
    write_latency(json, "alloc_ns", &o->alloc_ns);
    write_latency(json, "free_ns", &o->free_ns);
    qi_json_object(json, "fragmentation");
    qi_json_real(json, "reserved", o->fragmentation.reserved);
    qi_json_real(json, "free", o->fragmentation.free);
    qi_json_number(json, "internal", o->fragmentation.internal);
    qi_json_number(json, "split", o->fragmentation.split);
    qi_json_end_object(json);
}
