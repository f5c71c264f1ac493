/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * read.c - reads the items of a plan from MiniMalloc's CSV, which has further columns here.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/plan/read.h"

typedef enum column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_OFFSET,
    COLUMN_ARENA,
    COLUMN_ALIAS,
    COLUMNS
} column;

static const char *const NAMES[COLUMNS] = {"id",        "lower",  "upper", "size",
                                           "alignment", "offset", "arena", "alias"};

typedef struct reader {
    const char *name;
    char *at, *end; /* what is left of the text */
    uint64_t line;
    column order[COLUMNS]; /* of the columns in the file */
    uint32_t columns;
} reader;

/* Takes the next cell of a line and ends it with 0. Returns false after the last; the end of the
   line is taken too. */
static bool take_cell(reader *r, const char **cell)
{
    char *start = r->at;
    *cell = start;
    while (r->at < r->end && *r->at != ',' && *r->at != '\n')
        r->at++;
    bool is_last = r->at == r->end || *r->at == '\n';
    if (is_last && r->at > start && r->at[-1] == '\r')
        r->at[-1] = '\0';
    *r->at = '\0';
    r->at += r->at < r->end;
    return !is_last;
}

static quire_result refuse(const reader *r, const char *problem, const char *cell)
{
    return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s:%llu: %s '%.64s'", r->name,
                        (unsigned long long)r->line, problem, cell);
}

static bool has_column(const reader *r, column wanted)
{
    for (uint32_t i = 0; i < r->columns; i++)
        if (r->order[i] == wanted)
            return true;
    return false;
}

static quire_result read_header(reader *r)
{
    bool goes_on;
    r->line = 1;
    do {
        const char *cell;
        column found = COLUMN_ID;
        goes_on = take_cell(r, &cell);
        while (found < COLUMNS && strcmp(cell, NAMES[found]))
            found++;
        if (found == COLUMNS)
            return refuse(r, "there is no column", cell);
        if (has_column(r, found))
            return refuse(r, "there are two columns", cell);
        r->order[r->columns++] = found;
    } while (goes_on);
    for (column c = COLUMN_ID; c <= COLUMN_SIZE; c++)
        if (!has_column(r, c))
            return refuse(r, "the header lacks the column", NAMES[c]);
    return QUIRE_SUCCESS;
}

/* Returns false if the cell is no decimal number of 64 bits. */
static bool parse(const char *cell, uint64_t *number)
{
    *number = 0;
    for (const char *c = cell; *c; c++) {
        uint64_t digit = (uint64_t)(unsigned char)*c - '0';
        if (digit > 9 || *number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return *cell;
}

/* Takes the cells of a line. An empty one is 0, and is_empty says so. */
static quire_result read_cells(reader *r, const char **id, uint64_t numbers[COLUMNS],
                               bool is_empty[COLUMNS])
{
    bool goes_on = true;
    for (uint32_t i = 0; i < r->columns; i++) {
        const column c = r->order[i];
        const char *cell;
        if (!goes_on)
            return refuse(r, "the line lacks the column", NAMES[c]);
        goes_on = take_cell(r, &cell);
        is_empty[c] = !*cell;
        if (c == COLUMN_ID)
            *id = cell;
        else if ((*cell || c <= COLUMN_SIZE) && !parse(cell, &numbers[c]))
            return refuse(r, "this is no number of 64 bits:", cell);
    }
    if (goes_on)
        return refuse(r, "the line has more cells than the header:", "");
    return QUIRE_SUCCESS;
}

static quire_result read_row(reader *r, qi_plan_file *file)
{
    uint64_t numbers[COLUMNS] = {0};
    bool is_empty[COLUMNS];
    memset(is_empty, true, sizeof is_empty);
    const char *id = "";
    quire_result result = read_cells(r, &id, numbers, is_empty);
    if (result)
        return result;
    if (numbers[COLUMN_LOWER] >= numbers[COLUMN_UPPER])
        return refuse(r, "the upper time is not above the lower one, of", id);
    if (!numbers[COLUMN_SIZE])
        return refuse(r, "the size is 0, of", id);
    if (numbers[COLUMN_ARENA] > UINT32_MAX || numbers[COLUMN_ALIAS] > UINT32_MAX)
        return refuse(r, "the number of an arena or alias group is no number of 32 bits, of", id);
    file->items[file->count++] = (quire_plan_item){.size = numbers[COLUMN_SIZE],
                                                   .alignment = numbers[COLUMN_ALIGNMENT],
                                                   .first_use = numbers[COLUMN_LOWER],
                                                   .last_use = numbers[COLUMN_UPPER] - 1,
                                                   .fixed_offset = numbers[COLUMN_OFFSET],
                                                   .arena = (uint32_t)numbers[COLUMN_ARENA],
                                                   .alias_group = (uint32_t)numbers[COLUMN_ALIAS],
                                                   .is_fixed = !is_empty[COLUMN_OFFSET],
                                                   .name = *id ? id : NULL};
    return QUIRE_SUCCESS;
}

/* Empty lines are left out. */
static quire_result read_rows(reader *r, qi_plan_file *file)
{
    quire_result result = QUIRE_SUCCESS;
    while (r->at < r->end && !result) {
        r->line++;
        if (*r->at == '\n')
            r->at++;
        else
            result = read_row(r, file);
    }
    return result;
}

static uint64_t count_lines(const reader *r)
{
    uint64_t lines = r->at < r->end && r->end[-1] != '\n';
    for (const char *c = r->at; c < r->end; c++)
        lines += *c == '\n';
    return lines;
}

static quire_result make_room(reader *r, qi_host *host, qi_plan_file *file)
{
    uint64_t lines = count_lines(r);
    if (lines > UINT32_MAX / 4)
        return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: %llu lines: %u at most", r->name,
                            (unsigned long long)lines, UINT32_MAX / 4);
    file->room = (uint32_t)lines;
    if (!lines)
        return QUIRE_SUCCESS;
    file->items = qi_host_allocate(host, lines, sizeof *file->items);
    return file->items
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the items of a plan");
}

quire_result qi_plan_read(const char *name, char *text, size_t size, qi_host *host,
                          qi_plan_file *file)
{
    reader r = {.name = name, .at = text, .end = text + size};
    *file = (qi_plan_file){.count = 0};
    quire_result result = read_header(&r);
    if (!result)
        result = make_room(&r, host, file);
    if (!result)
        result = read_rows(&r, file);
    if (result)
        qi_plan_file_release(file, host);
    return result;
}

void qi_plan_file_release(qi_plan_file *file, qi_host *host)
{
    qi_host_release(host, file->items, file->room, sizeof *file->items);
    *file = (qi_plan_file){.count = 0};
}
