/*
 * member.c - see member.h.
 */
#include "src/tool/member.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"

typedef enum member_type {
    MEMBER_FLAG,    /* bool */
    MEMBER_CHOICE,  /* an enum whose values are the indexes of `words` */
    MEMBER_NUMBER,  /* uint32_t, at most `max` */
    MEMBER_PERCENT, /* likewise */
    MEMBER_BYTES,   /* uint64_t */
    MEMBER_LIMIT    /* likewise, or a share of the heap such as 50% */
} member_type;

typedef struct member {
    const char *key;
    const char *flag; /* the key with dashes; three members have a shorter one */
    const char *help;
    member_type type;
    size_t offset; /* in quire_memory_options */
    uint32_t max;
    const char *const *words; /* ends with NULL */
} member;

static const char *const GROWTHS[] = {"last", "largest", "reserved", NULL};
static const char *const DEDICATED[] = {"by_size", "always", "never", NULL};

#define AT(field) offsetof(quire_memory_options, field)
static const member MEMBERS[MEMBER_COUNT] = {
    {"fit.algorithm", "fit", "segregated, first, buddy or linear", MEMBER_CHOICE, AT(fit.algorithm),
     0, FIT_WORDS},
    {"fit.least_fragmentation", "fit-least-fragmentation", "large ranges at the upper ends",
     MEMBER_FLAG, AT(fit.least_fragmentation), 0, NULL},
    {"fit.slabs", "fit-slabs", "ranges of up to 4K share slabs", MEMBER_FLAG, AT(fit.slabs), 0,
     NULL},
    {"fit.granule", "fit-granule", "smallest unit", MEMBER_BYTES, AT(fit.granule), 0, NULL},
    {"fit.max_alignment", "fit-max-alignment", "largest alignment (default 2M)", MEMBER_BYTES,
     AT(fit.max_alignment), 0, NULL},
    {"contiguous", "contiguous", "one page that grows in place", MEMBER_FLAG, AT(contiguous), 0,
     NULL},
    {"shards", "shards", "shards with pages of their own", MEMBER_NUMBER, AT(shards), 64, NULL},
    {"limit", "limit", "maximum bytes of pages, or 50% of the heap", MEMBER_LIMIT, AT(limit), 0,
     NULL},
    {"address_space", "address-space", "addresses for the contiguous page", MEMBER_BYTES,
     AT(address_space), 0, NULL},
    {"pages.page_size", "page-size", "bytes per page (default: by use)", MEMBER_BYTES,
     AT(pages.page_size), 0, NULL},
    {"pages.first_page_size", "pages-first-page-size", "bytes of the first page", MEMBER_BYTES,
     AT(pages.first_page_size), 0, NULL},
    {"pages.growth_percent", "pages-growth-percent", "a page is larger by this share",
     MEMBER_PERCENT, AT(pages.growth_percent), 1000, NULL},
    {"pages.growth", "pages-growth", "of last (default), largest or reserved", MEMBER_CHOICE,
     AT(pages.growth), 0, GROWTHS},
    {"pages.max_page", "pages-max-page", "size at which growth stops", MEMBER_BYTES,
     AT(pages.max_page), 0, NULL},
    {"pages.max_pages", "pages-max-pages", "maximum number of pages", MEMBER_NUMBER,
     AT(pages.max_pages), UINT32_MAX, NULL},
    {"pages.request_factor", "pages-request-factor", "least size of a page in requests",
     MEMBER_NUMBER, AT(pages.request_factor), UINT32_MAX, NULL},
    {"pages.page_granularity", "pages-page-granularity", "page sizes are multiples of it",
     MEMBER_BYTES, AT(pages.page_granularity), 0, NULL},
    {"pages.dedicated", "pages-dedicated", "own pages: by_size, always or never", MEMBER_CHOICE,
     AT(pages.dedicated), 0, DEDICATED},
    {"pages.dedicated_threshold", "pages-dedicated-threshold", "own pages from this size on",
     MEMBER_BYTES, AT(pages.dedicated_threshold), 0, NULL},
    {"pages.size_granularity", "pages-size-granularity", "sizes are rounded up to it", MEMBER_BYTES,
     AT(pages.size_granularity), 0, NULL},
    {"pages.extra_padding", "pages-extra-padding", "bytes added to each request", MEMBER_BYTES,
     AT(pages.extra_padding), 0, NULL},
    {"pages.retained_empty_bytes", "pages-retained-empty-bytes", "empty pages kept (1: none)",
     MEMBER_BYTES, AT(pages.retained_empty_bytes), 0, NULL},
};

_Static_assert(sizeof(quire_fit) == sizeof(uint32_t) && sizeof(quire_growth) == sizeof(uint32_t) &&
                   sizeof(quire_dedicated) == sizeof(uint32_t),
               "get_value and set_value copy enums as 32-bit numbers");

/* ---- values ------------------------------------------------------------------------------- */

static bool is_bytes(const member *m)
{
    return m->type == MEMBER_BYTES || m->type == MEMBER_LIMIT;
}

/* Bytes of the member in quire_memory_options. */
static size_t size_of(const member *m)
{
    if (m->type == MEMBER_FLAG)
        return sizeof(bool);
    return is_bytes(m) ? sizeof(uint64_t) : sizeof(uint32_t);
}

static uint64_t get_value(const member *m, const quire_memory_options *options)
{
    const unsigned char *at = (const unsigned char *)options + m->offset;
    uint64_t large = 0;
    uint32_t small = 0;
    if (m->type == MEMBER_FLAG)
        return *(const bool *)at;
    if (is_bytes(m))
        memcpy(&large, at, sizeof large);
    else
        memcpy(&small, at, sizeof small);
    return large + small;
}

/* The value is in the range of the member. */
static void set_value(const member *m, quire_memory_options *options, uint64_t value)
{
    bool flag = value != 0;
    uint32_t small = (uint32_t)value;
    const void *from = m->type == MEMBER_FLAG ? (const void *)&flag
                       : is_bytes(m)          ? (const void *)&value
                                              : (const void *)&small;
    memcpy((unsigned char *)options + m->offset, from, size_of(m));
}

/* What a valid value looks like, in words. The text is valid until the next call. */
static const char *wanted(const member *m)
{
    static char text[96];
    switch (m->type) {
    case MEMBER_FLAG:
        return "true or false";
    case MEMBER_BYTES:
        return "a size such as 65536, 64K or 32M";
    case MEMBER_LIMIT:
        return "a size such as 65536 or 32M, or a percentage of the heap from 1% to 100%";
    case MEMBER_NUMBER:
    case MEMBER_PERCENT:
        snprintf(text, sizeof text, "a %s from 0 to %" PRIu32,
                 m->type == MEMBER_NUMBER ? "number" : "percentage", m->max);
        break;
    case MEMBER_CHOICE:
        *text = '\0';
        for (size_t i = 0; m->words[i]; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                     !i                ? ""
                     : m->words[i + 1] ? ", "
                                       : " or ",
                     m->words[i]);
    }
    return text;
}

/* Parses the text of a flag, or a string of a file. Sizes may be 0 only in a file. */
static bool parse_value(const member *m, const char *text, uint64_t *value)
{
    const char *rest = NULL;
    uint32_t word = 0;
    switch (m->type) {
    case MEMBER_FLAG:
        return false; /* true and false have their own type in JSON */
    case MEMBER_BYTES:
        return parse_size(text, value);
    case MEMBER_LIMIT:
        if (!parse_number(text, value, &rest) || strcmp(rest, "%"))
            return parse_size(text, value);
        *value = *value && *value <= 100 ? QUIRE_PERCENT_OF_HEAP(*value) : 0;
        return *value != 0;
    case MEMBER_NUMBER:
    case MEMBER_PERCENT:
        return parse_number(text, value, &rest) && !*rest && *value <= m->max;
    case MEMBER_CHOICE:
        if (!parse_word(m->words, text, &word))
            return false;
        *value = word;
    }
    return true;
}

/* ---- flags -------------------------------------------------------------------------------- */

static const char *argument_of(const member *m)
{
    static const char *const arguments[] = {
        [MEMBER_FLAG] = NULL,         [MEMBER_CHOICE] = "WORD", [MEMBER_NUMBER] = "N",
        [MEMBER_PERCENT] = "PERCENT", [MEMBER_BYTES] = "SIZE",  [MEMBER_LIMIT] = "SIZE|PERCENT%"};
    return arguments[m->type];
}

size_t list_member_flags(option_spec *specs, memory_choice *choice)
{
    specs[0] = (option_spec){"options", "FILE", "read the memory's options from a JSON file",
                             OPTION_TEXT, &choice->file};
    specs[1] =
        (option_spec){"preset", "WORD", "page sizes of another allocator: vma, rmm or pytorch",
                      OPTION_TEXT, &choice->preset};
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        specs[2 + i] = (option_spec){MEMBERS[i].flag, argument_of(&MEMBERS[i]), MEMBERS[i].help,
                                     OPTION_MEMBER, choice};
    return 2 + MEMBER_COUNT;
}

const char *set_member(memory_choice *choice, const char *flag, const char *text)
{
    size_t i = 0;
    while (strcmp(MEMBERS[i].flag, flag))
        i++;
    uint64_t value = 1;
    if (MEMBERS[i].type != MEMBER_FLAG && !parse_value(&MEMBERS[i], text, &value))
        return wanted(&MEMBERS[i]);
    set_value(&MEMBERS[i], &choice->options, value);
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
    if (!parse_word(PRESET_WORDS, choice->preset, &preset)) {
        print_problem("quire: --preset takes vma, rmm or pytorch, not '%s'", choice->preset);
        return EXIT_USAGE;
    }
    for (const member *m = MEMBERS; m < MEMBERS + MEMBER_COUNT; m++)
        if (!strncmp(m->key, "pages.", 6) && get_value(m, &choice->options)) {
            print_problem("quire: --preset sets the whole page policy; leave out --%s", m->flag);
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
    for (const member *m = MEMBERS; m < MEMBERS + MEMBER_COUNT; m++) {
        uint64_t value = get_value(m, options);
        if (!value)
            continue;
        fprintf(out, " --%s", m->flag);
        if (m->type == MEMBER_CHOICE)
            fprintf(out, " %s", m->words[value]);
        else if (m->type == MEMBER_LIMIT && value > QUIRE_PERCENT_OF_HEAP(0))
            fprintf(out, " %" PRIu64 "%%", value - QUIRE_PERCENT_OF_HEAP(0));
        else if (is_bytes(m))
            print_size(out, value);
        else if (m->type != MEMBER_FLAG)
            fprintf(out, " %" PRIu64, value);
    }
}

/* ---- files -------------------------------------------------------------------------------- */

/* Parsers of JSON commonly end at 2^63 - 1. Larger numbers are written as decimal strings. */
void write_members(qi_json *json, const char *key, const quire_memory_options *options)
{
    qi_json_object(json, key);
    for (const member *m = MEMBERS; m < MEMBERS + MEMBER_COUNT; m++) {
        uint64_t value = get_value(m, options);
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRIu64, value);
        if (m->type == MEMBER_LIMIT && value > QUIRE_PERCENT_OF_HEAP(0))
            snprintf(digits, sizeof digits, "%" PRIu64 "%%", value - QUIRE_PERCENT_OF_HEAP(0));
        if (!value)
            continue;
        if (m->type == MEMBER_FLAG)
            qi_json_bool(json, m->key, true);
        else if (m->type == MEMBER_CHOICE)
            qi_json_text(json, m->key, m->words[value]);
        else if (value > INT64_MAX)
            qi_json_text(json, m->key, digits);
        else
            qi_json_number(json, m->key, value);
    }
    qi_json_end_object(json);
}

/* A number is a JSON number, or a string as a flag takes it. */
static bool convert(const member *m, const json_t *json, uint64_t *value)
{
    const char *text = json_string_value(json);
    if (text)
        return parse_value(m, text, value);
    if (m->type == MEMBER_FLAG && json_is_boolean(json)) {
        *value = json_is_true(json);
        return true;
    }
    bool is_number = m->type != MEMBER_FLAG && m->type != MEMBER_CHOICE && json_is_integer(json);
    *value = is_number ? (uint64_t)json_integer_value(json) : 0;
    return is_number && json_integer_value(json) >= 0 && (is_bytes(m) || *value <= m->max);
}

static bool read_member(memory_choice *choice, const char *key, const json_t *json)
{
    size_t i = 0;
    while (i < MEMBER_COUNT && strcmp(MEMBERS[i].key, key))
        i++;
    if (i == MEMBER_COUNT) {
        print_problem("quire: %s: unknown key \"%s\"; quire replay --help lists the keys",
                      choice->file, key);
        return false;
    }
    uint64_t value = 0;
    if (!convert(&MEMBERS[i], json, &value)) {
        char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT);
        print_problem("quire: %s: \"%s\" takes %s, not %s", choice->file, key, wanted(&MEMBERS[i]),
                      text ? text : "this");
        free(text);
        return false;
    }
    if (!choice->given[i])
        set_value(&MEMBERS[i], &choice->options, value);
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
