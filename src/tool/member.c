/*
 * member.c - see member.h.
 */
#include "src/tool/member.h"

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
    {"contiguous", "one page that grows in place"},
    {"shards", "shards with pages of their own"},
    {"limit", "maximum bytes of pages, or 50% of the heap"},
    {"within-budget", "no pages beyond the budget of the heap"},
    {"map-on-demand", "host-visible pages are mapped while in use"},
    {"address-space", "addresses for the contiguous page"},
    {"page-size", "bytes per page (default: by use)"},
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

/* ---- presets ------------------------------------------------------------------------------ */

/* In the order of quire_preset. */
static const char *const PRESET_WORDS[] = {"vma", "rmm", "pytorch", NULL};

int apply_preset(memory_choice *choice, const quire_device *device, uint32_t kind)
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

/* ---- text --------------------------------------------------------------------------------- */

/* Prints a blank and a size, as 64M where no byte is lost. */
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

int read_members(memory_choice *choice)
{
    json_t *root = choice->file ? read_json(choice->file) : NULL;
    bool good = root ? read_object(choice, root) : !choice->file;
    json_decref(root);
    return good ? -1 : EXIT_FAILED;
}
