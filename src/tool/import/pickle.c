/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pickle.c - reads pickles (see pickle.h). The opcodes are those of Python's module pickletools.
 *
 * An opcode is a row of a table: its name, the function that runs it, and an argument for the
 * function. An opcode with a name and no function is refused by its name.
 */
#include "src/tool/import/pickle.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/result.h"

/* ---- growing arrays ----------------------------------------------------------------------- */

enum { BLOCK = 4096, FIRST_DIRECTORY = 16 };

void pickle_pile_begin(pickle_pile *pile, qi_host *host, size_t size)
{
    *pile = (pickle_pile){.host = host, .size = size};
}

void pickle_pile_end(pickle_pile *pile)
{
    for (uint64_t i = 0; i * BLOCK < pile->count; i++)
        qi_host_release(pile->host, pile->blocks[i], BLOCK, pile->size);
    qi_host_release(pile->host, pile->blocks, pile->directory, sizeof *pile->blocks);
    pickle_pile_begin(pile, pile->host, pile->size);
}

void *pickle_pile_at(const pickle_pile *pile, uint64_t index)
{
    return (char *)pile->blocks[index / BLOCK] + index % BLOCK * pile->size;
}

static bool add_block(pickle_pile *pile)
{
    const uint64_t index = pile->count / BLOCK;
    if (index == pile->directory) {
        const uint64_t wanted = index ? index * 2 : FIRST_DIRECTORY;
        void **blocks =
            qi_host_resize(pile->host, pile->blocks, index, wanted, sizeof *pile->blocks);
        if (!blocks)
            return false;
        pile->blocks = blocks;
        pile->directory = wanted;
    }
    pile->blocks[index] = qi_host_allocate(pile->host, BLOCK, pile->size);
    return pile->blocks[index];
}

void *pickle_pile_add(pickle_pile *pile)
{
    if (pile->count % BLOCK == 0 && !add_block(pile))
        return NULL;
    return pickle_pile_at(pile, pile->count++);
}

/* ---- texts -------------------------------------------------------------------------------- */

/*
 * Texts with one hash are in a chain. A longer chain than this is that of a file made to collide:
 * its texts are kept again and again, which costs memory in proportion to the file and no time.
 */
enum { MOST_CHAINED = 8, SLAB = 1 << 16 };

typedef struct text {
    const char *bytes;
    uint32_t length;
    uint32_t next; /* of the chain, or 0 */
} text;

bool pickle_exhausted(import_source *source)
{
    return import_refuse_byte(source, "host memory is exhausted");
}

static text *text_at(const pickle_reader *p, uint64_t number)
{
    return pickle_pile_at(&p->texts, number - 1);
}

const char *pickle_text(const pickle_reader *p, uint64_t number)
{
    return number ? text_at(p, number)->bytes : "";
}

/* FNV-1a of 64 bits. Ids of a map are positive. */
static uint64_t hash_of(const char *bytes, uint32_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash | 1;
}

/* Copies the bytes and adds a 0. Returns NULL if host memory is exhausted. */
static const char *keep_bytes(pickle_reader *p, const char *bytes, uint32_t length)
{
    if (!p->slabs.count || SLAB - p->slab_filled <= length) {
        char *slab = qi_host_allocate(p->host, SLAB, 1);
        char **place = slab ? pickle_pile_add(&p->slabs) : NULL;
        if (!place) {
            qi_host_release(p->host, slab, SLAB, 1);
            return NULL;
        }
        *place = slab;
        p->slab_filled = 0;
    }
    char *copy = *(char **)pickle_pile_at(&p->slabs, p->slabs.count - 1) + p->slab_filled;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    p->slab_filled += length + 1;
    return copy;
}

/* Adds a text, after `last` of its chain, if there is one. */
static bool add_text(pickle_reader *p, const char *bytes, uint32_t length, uint64_t hash,
                     text *last)
{
    const char *kept = keep_bytes(p, bytes, length);
    text *added = kept ? pickle_pile_add(&p->texts) : NULL;
    if (!added)
        return pickle_exhausted(p->source);
    *added = (text){.bytes = kept, .length = length};
    const uint32_t number = (uint32_t)p->texts.count;
    if (last)
        last->next = number;
    else if (!qi_id_map_add(&p->text_hashes, p->host, hash, number))
        return pickle_exhausted(p->source);
    return true;
}

/* Finds or adds a text. More different texts than numbers have no meaning, so they are none. */
static bool intern(pickle_reader *p, const char *bytes, uint32_t length, pickle_value *value)
{
    const uint64_t hash = hash_of(bytes, length);
    const uint32_t *first = qi_id_map_find(&p->text_hashes, hash);
    text *last = NULL;
    uint32_t chained = 0;
    for (uint32_t number = first ? *first : 0; number && chained < MOST_CHAINED; chained++) {
        last = text_at(p, number);
        *value = (pickle_value){PICKLE_TEXT, number};
        if (last->length == length && !memcmp(last->bytes, bytes, length))
            return true;
        number = last->next;
    }
    *value = (pickle_value){PICKLE_OTHER, 0};
    if (p->texts.count >= PICKLE_MOST_NUMBER)
        return true;
    *value = (pickle_value){PICKLE_TEXT, p->texts.count + 1};
    return add_text(p, bytes, length, hash, last);
}

/* ---- bytes of the file -------------------------------------------------------------------- */

static bool ends_early(pickle_reader *p)
{
    return import_refuse_byte(p->source, "the file ends within %s", p->opcode);
}

/* Takes a little-endian number of up to 8 bytes. */
static bool take_number(pickle_reader *p, uint32_t bytes, uint64_t *number)
{
    *number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        int byte = import_next(p->source);
        if (byte == EOF)
            return ends_early(p);
        *number |= (uint64_t)byte << 8 * i;
    }
    return true;
}

/* Takes `length` bytes and keeps the first of them in `kept`, which may be shorter. */
static bool take_bytes(pickle_reader *p, uint64_t length, char *kept, uint64_t most)
{
    for (uint64_t i = 0; i < length; i++) {
        int byte = import_next(p->source);
        if (byte == EOF)
            return ends_early(p);
        if (i < most)
            kept[i] = (char)byte;
    }
    return true;
}

/* Takes a line and keeps its first bytes, with a final 0. `length` is that of the kept part. */
static bool take_line(pickle_reader *p, char kept[PICKLE_MOST_TEXT + 1], uint32_t *length)
{
    *length = 0;
    for (int byte; (byte = import_next(p->source)) != '\n';) {
        if (byte == EOF)
            return ends_early(p);
        if (*length < PICKLE_MOST_TEXT)
            kept[(*length)++] = (char)byte;
    }
    kept[*length] = '\0';
    return true;
}

/* Reads a decimal number. Negative and larger ones are values without a meaning. */
static bool take_decimal(pickle_reader *p, pickle_value *value)
{
    char line[PICKLE_MOST_TEXT + 1];
    uint32_t length;
    if (!take_line(p, line, &length))
        return false;
    const char *c = line + (line[0] == '-');
    const bool is_text_empty = *c < '0' || *c > '9';
    *value = (pickle_value){c == line ? PICKLE_NUMBER : PICKLE_OTHER, 0};
    for (; *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (value->number > (INT64_MAX - digit) / 10)
            *value = (pickle_value){PICKLE_OTHER, 0};
        value->number = value->kind == PICKLE_NUMBER ? value->number * 10 + digit : 0;
    }
    if (is_text_empty || c + (*c == 'L') != line + length)
        return import_refuse_byte(p->source, "%s has no decimal number, but '%.32s'", p->opcode,
                                  line);
    return true;
}

/* ---- the stack ---------------------------------------------------------------------------- */

static const pickle_value NOTHING = {PICKLE_OTHER, 0};

static bool is_role(pickle_value value)
{
    return (value.kind == PICKLE_LIST || value.kind == PICKLE_DICT) && value.number < PICKLE_ROLES;
}

static bool push(pickle_reader *p, pickle_value value)
{
    if (p->count == PICKLE_MOST_VALUES)
        return import_refuse_byte(p->source, "more than %d values wait on the stack",
                                  PICKLE_MOST_VALUES);
    if (p->count == p->capacity) {
        const uint64_t wanted = p->capacity ? p->capacity * 2 : 64;
        pickle_value *stack =
            qi_host_resize(p->host, p->stack, p->capacity, wanted, sizeof *p->stack);
        if (!stack)
            return pickle_exhausted(p->source);
        p->stack = stack;
        p->capacity = wanted;
    }
    p->stack[p->count++] = value;
    return true;
}

/* The lowest place that an opcode without a mark may take values from. */
static uint64_t floor_of(const pickle_reader *p)
{
    return p->mark_count ? p->marks[p->mark_count - 1] + 1 : 0;
}

static bool needs(pickle_reader *p, uint64_t values)
{
    if (p->count - floor_of(p) < values)
        return import_refuse_byte(p->source, "%s needs more values than the stack has", p->opcode);
    return true;
}

/* The place of the last mark, above which an opcode takes all values. */
static bool take_mark(pickle_reader *p, uint64_t *mark)
{
    if (!p->mark_count)
        return import_refuse_byte(p->source, "%s has no mark", p->opcode);
    *mark = p->marks[--p->mark_count];
    return true;
}

/* The container below a mark, or below the single item of an opcode. */
static bool container(pickle_reader *p, uint64_t place, pickle_kind kind, uint64_t *number)
{
    static const char *const NAMES[] = {
        [PICKLE_DICT] = "dict", [PICKLE_LIST] = "list", [PICKLE_SET] = "set"};
    if (!place || place - 1 < floor_of(p) || p->stack[place - 1].kind != kind)
        return import_refuse_byte(p->source, "%s has no %s below its items", p->opcode,
                                  NAMES[kind]);
    *number = p->stack[place - 1].number;
    return true;
}

/* A value that becomes a part of what has no meaning may not be one that the shape waits for. */
static bool may_lose(pickle_reader *p, pickle_value value)
{
    if (is_role(value))
        return import_refuse_byte(p->source, "%s takes a part of the snapshot from its place",
                                  p->opcode);
    return true;
}

static bool may_lose_all(pickle_reader *p, uint64_t from)
{
    for (uint64_t i = from; i < p->count; i++)
        if (!may_lose(p, p->stack[i]))
            return false;
    return true;
}

/*
 * What is below a new list or dict. With an odd number of values above the mark of a dict, the last
 * is a key of the dict. Without, the last may be a key of the dict right below it.
 */
static void find_below(const pickle_reader *p, pickle_value *below, pickle_value *key)
{
    const uint64_t from = floor_of(p), count = p->count;
    const pickle_value marked = from > 1 ? p->stack[from - 2] : NOTHING;
    *below = *key = NOTHING;
    if (count == from) {
        *below = marked;
    } else if (p->stack[count - 1].kind != PICKLE_TEXT) {
        *below = p->stack[count - 1];
    } else {
        *key = p->stack[count - 1];
        if (marked.kind == PICKLE_DICT && (count - from) % 2)
            *below = marked;
        else if (count - from > 1)
            *below = p->stack[count - 2];
    }
}

static bool begin(pickle_reader *p, pickle_kind kind)
{
    pickle_value below, key, value = {kind, 0};
    find_below(p, &below, &key);
    if (!p->shape->begin(p->user, kind, below, key, &value.number))
        return false;
    const pickle_value *top = p->count > floor_of(p) ? &p->stack[p->count - 1] : &NOTHING;
    if (is_role(value) && top->kind == kind && top->number == value.number)
        return true;
    return push(p, value);
}

/* ---- opcodes ------------------------------------------------------------------------------ */

static bool run_mark(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    if (p->mark_count == PICKLE_MOST_MARKS)
        return import_refuse_byte(p->source, "values are nested deeper than %d levels",
                                  PICKLE_MOST_MARKS);
    p->marks[p->mark_count] = p->count;
    if (!push(p, (pickle_value){PICKLE_MARK, 0}))
        return false;
    p->mark_count++;
    return true;
}

static bool run_stop(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    if (p->mark_count || p->count != 1)
        return import_refuse_byte(p->source, "STOP leaves %" PRIu64 " values on the stack, not one",
                                  p->count);
    p->has_stopped = true;
    return true;
}

static bool run_protocol(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    uint64_t number = 0;
    if (!take_number(p, 1, &number))
        return false;
    if (number > 5)
        return import_refuse_byte(p->source, "protocol %u is newer than 5", (unsigned)number);
    return true;
}

/* FRAME is the length of what follows, for readers that prefetch. */
static bool run_frame(pickle_reader *p, uint32_t bytes)
{
    uint64_t length;
    return take_number(p, bytes, &length);
}

/* A value without a meaning, with a fixed number of bytes. */
static bool run_other(pickle_reader *p, uint32_t bytes)
{
    return take_bytes(p, bytes, NULL, 0) && push(p, NOTHING);
}

static bool run_real_line(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    char line[PICKLE_MOST_TEXT + 1];
    uint32_t length;
    return take_line(p, line, &length) && push(p, NOTHING);
}

static bool run_integer(pickle_reader *p, uint32_t bytes)
{
    uint64_t number = 0;
    if (!take_number(p, bytes, &number))
        return false;
    const bool is_negative = bytes == 4 && number > INT32_MAX; /* the shorter ones are unsigned */
    return push(p, is_negative ? NOTHING : (pickle_value){PICKLE_NUMBER, number});
}

static bool run_integer_line(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    pickle_value value;
    return take_decimal(p, &value) && push(p, value);
}

/* A two's complement number. One of 9 bytes or more has no meaning here, even if it is small. */
static bool run_long(pickle_reader *p, uint32_t length_bytes)
{
    uint64_t length, number = 0;
    if (!take_number(p, length_bytes, &length))
        return false;
    if (length > 8)
        return take_bytes(p, length, NULL, 0) && push(p, NOTHING);
    if (!take_number(p, (uint32_t)length, &number))
        return false;
    const bool is_negative = length && number >> (8 * length - 1);
    return push(p, is_negative ? NOTHING : (pickle_value){PICKLE_NUMBER, number});
}

static bool run_text(pickle_reader *p, uint32_t length_bytes)
{
    char kept[PICKLE_MOST_TEXT];
    uint64_t length;
    pickle_value value;
    if (!take_number(p, length_bytes, &length) || !take_bytes(p, length, kept, sizeof kept))
        return false;
    const uint32_t most = length < sizeof kept ? (uint32_t)length : (uint32_t)sizeof kept;
    return intern(p, kept, most, &value) && push(p, value);
}

/* A text of protocol 0. Its escapes stay as they are. */
static bool run_text_line(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    char line[PICKLE_MOST_TEXT + 1];
    uint32_t length;
    pickle_value value;
    return take_line(p, line, &length) && intern(p, line, length, &value) && push(p, value);
}

static bool run_bytes(pickle_reader *p, uint32_t length_bytes)
{
    uint64_t length;
    return take_number(p, length_bytes, &length) && take_bytes(p, length, NULL, 0) &&
           push(p, NOTHING);
}

static bool run_begin(pickle_reader *p, uint32_t kind)
{
    return begin(p, (pickle_kind)kind);
}

static bool run_set(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    return push(p, (pickle_value){PICKLE_SET, 0});
}

static bool run_tuple(pickle_reader *p, uint32_t values)
{
    if (!needs(p, values) || !may_lose_all(p, p->count - values))
        return false;
    p->count -= values;
    return push(p, NOTHING);
}

/* TUPLE and FROZENSET: all values above the mark become one. */
static bool run_marked(pickle_reader *p, uint32_t kind)
{
    uint64_t mark = 0;
    if (!take_mark(p, &mark) || !may_lose_all(p, mark + 1))
        return false;
    p->count = mark;
    return push(p, (pickle_value){(pickle_kind)kind, 0});
}

static bool set_all(pickle_reader *p, uint64_t dict, uint64_t from)
{
    if ((p->count - from) % 2)
        return import_refuse_byte(p->source, "%s has a key without a value", p->opcode);
    for (uint64_t i = from; i < p->count; i += 2)
        if (!may_lose(p, p->stack[i]) ||
            !p->shape->set(p->user, dict, p->stack[i], p->stack[i + 1]))
            return false;
    return true;
}

static bool append_all(pickle_reader *p, uint64_t list, uint64_t from)
{
    for (uint64_t i = from; i < p->count; i++)
        if (!p->shape->append(p->user, list, p->stack[i]))
            return false;
    return true;
}

/* Adds the values from a place on to the container below `end`, and leaves that on the stack. */
static bool add_all(pickle_reader *p, pickle_kind kind, uint64_t end, uint64_t from)
{
    uint64_t number = 0;
    if (!container(p, end, kind, &number))
        return false;
    const bool added = kind == PICKLE_DICT   ? set_all(p, number, from)
                       : kind == PICKLE_LIST ? append_all(p, number, from)
                                             : may_lose_all(p, from);
    p->count = end;
    return added;
}

/* SETITEMS, APPENDS and ADDITEMS. */
static bool run_add_marked(pickle_reader *p, uint32_t kind)
{
    uint64_t mark = 0;
    return take_mark(p, &mark) && add_all(p, (pickle_kind)kind, mark, mark + 1);
}

/* SETITEM and APPEND. */
static bool run_add(pickle_reader *p, uint32_t kind)
{
    const uint32_t values = kind == PICKLE_DICT ? 2 : 1;
    return needs(p, values) && add_all(p, (pickle_kind)kind, p->count - values, p->count - values);
}

/* DICT and LIST: they make a container of the values above the mark, which none writes but the
   empty one of protocol 0. */
static bool run_make(pickle_reader *p, uint32_t kind)
{
    uint64_t mark = 0;
    if (!take_mark(p, &mark))
        return false;
    if (p->count > mark + 1)
        return import_refuse_byte(p->source, "%s with values is not supported", p->opcode);
    p->count = mark;
    return begin(p, (pickle_kind)kind);
}

/* ---- the memo ----------------------------------------------------------------------------- */

/* A value of the memo: the kind in the lowest three bits, then the number. */
static uint32_t pack(pickle_value value)
{
    if (value.kind == PICKLE_NUMBER)
        value = NOTHING;
    return (uint32_t)value.number << 3 | (uint32_t)value.kind;
}

/* Programs number the memo in order, so that its size is bounded by that of the file. */
static bool remember(pickle_reader *p, uint64_t index)
{
    if (!needs(p, 1))
        return false;
    if (index > p->memo.count)
        return import_refuse_byte(p->source, "%s skips from %" PRIu64 " to %" PRIu64, p->opcode,
                                  p->memo.count, index);
    uint32_t *place =
        index < p->memo.count ? pickle_pile_at(&p->memo, index) : pickle_pile_add(&p->memo);
    if (!place)
        return pickle_exhausted(p->source);
    *place = pack(p->stack[p->count - 1]);
    return true;
}

static bool recall(pickle_reader *p, uint64_t index)
{
    if (index >= p->memo.count)
        return import_refuse_byte(p->source, "%s of %" PRIu64 ", but %" PRIu64 " are remembered",
                                  p->opcode, index, p->memo.count);
    const uint32_t packed = *(uint32_t *)pickle_pile_at(&p->memo, index);
    const pickle_value value = {(pickle_kind)(packed & 7), packed >> 3};
    if (is_role(value))
        return import_refuse_byte(p->source, "%s refers to a part of the snapshot a second time",
                                  p->opcode);
    return push(p, value);
}

static bool run_memoize(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    return remember(p, p->memo.count);
}

static bool run_put(pickle_reader *p, uint32_t bytes)
{
    uint64_t index;
    return take_number(p, bytes, &index) && remember(p, index);
}

static bool run_get(pickle_reader *p, uint32_t bytes)
{
    uint64_t index;
    return take_number(p, bytes, &index) && recall(p, index);
}

static bool run_put_line(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    pickle_value index;
    return take_decimal(p, &index) &&
           remember(p, index.kind == PICKLE_NUMBER ? index.number : UINT64_MAX);
}

static bool run_get_line(pickle_reader *p, uint32_t argument)
{
    (void)argument;
    pickle_value index;
    return take_decimal(p, &index) &&
           recall(p, index.kind == PICKLE_NUMBER ? index.number : UINT64_MAX);
}

/* ---- the table ---------------------------------------------------------------------------- */

typedef struct opcode {
    const char *name;
    bool (*run)(pickle_reader *p, uint32_t argument);
    uint32_t argument;
} opcode;

static const opcode OPCODES[256] = {
    ['('] = {"MARK", run_mark, 0},
    ['.'] = {"STOP", run_stop, 0},
    ['F'] = {"FLOAT", run_real_line, 0},
    ['I'] = {"INT", run_integer_line, 0},
    ['J'] = {"BININT", run_integer, 4},
    ['K'] = {"BININT1", run_integer, 1},
    ['L'] = {"LONG", run_integer_line, 0},
    ['M'] = {"BININT2", run_integer, 2},
    ['N'] = {"NONE", run_other, 0},
    ['B'] = {"BINBYTES", run_bytes, 4},
    ['C'] = {"SHORT_BINBYTES", run_bytes, 1},
    ['T'] = {"BINSTRING", run_text, 4},
    ['U'] = {"SHORT_BINSTRING", run_text, 1},
    ['V'] = {"UNICODE", run_text_line, 0},
    ['X'] = {"BINUNICODE", run_text, 4},
    ['a'] = {"APPEND", run_add, PICKLE_LIST},
    ['d'] = {"DICT", run_make, PICKLE_DICT},
    ['}'] = {"EMPTY_DICT", run_begin, PICKLE_DICT},
    ['e'] = {"APPENDS", run_add_marked, PICKLE_LIST},
    ['g'] = {"GET", run_get_line, 0},
    ['h'] = {"BINGET", run_get, 1},
    ['j'] = {"LONG_BINGET", run_get, 4},
    ['l'] = {"LIST", run_make, PICKLE_LIST},
    [']'] = {"EMPTY_LIST", run_begin, PICKLE_LIST},
    ['p'] = {"PUT", run_put_line, 0},
    ['q'] = {"BINPUT", run_put, 1},
    ['r'] = {"LONG_BINPUT", run_put, 4},
    ['s'] = {"SETITEM", run_add, PICKLE_DICT},
    ['t'] = {"TUPLE", run_marked, PICKLE_OTHER},
    [')'] = {"EMPTY_TUPLE", run_other, 0},
    ['u'] = {"SETITEMS", run_add_marked, PICKLE_DICT},
    ['G'] = {"BINFLOAT", run_other, 8},
    [0x80] = {"PROTO", run_protocol, 0},
    [0x85] = {"TUPLE1", run_tuple, 1},
    [0x86] = {"TUPLE2", run_tuple, 2},
    [0x87] = {"TUPLE3", run_tuple, 3},
    [0x88] = {"NEWTRUE", run_other, 0},
    [0x89] = {"NEWFALSE", run_other, 0},
    [0x8a] = {"LONG1", run_long, 1},
    [0x8b] = {"LONG4", run_long, 4},
    [0x8c] = {"SHORT_BINUNICODE", run_text, 1},
    [0x8d] = {"BINUNICODE8", run_text, 8},
    [0x8e] = {"BINBYTES8", run_bytes, 8},
    [0x8f] = {"EMPTY_SET", run_set, 0},
    [0x90] = {"ADDITEMS", run_add_marked, PICKLE_SET},
    [0x91] = {"FROZENSET", run_marked, PICKLE_OTHER},
    [0x94] = {"MEMOIZE", run_memoize, 0},
    [0x95] = {"FRAME", run_frame, 8},
    [0x96] = {"BYTEARRAY8", run_bytes, 8},
    /* These make or call objects, take data from outside the file, or, as POP, POP_MARK and DUP,
       belong only to values that contain themselves. STRING is Python 2 code. */
    ['0'] = {"POP", NULL, 0},
    ['1'] = {"POP_MARK", NULL, 0},
    ['2'] = {"DUP", NULL, 0},
    ['P'] = {"PERSID", NULL, 0},
    ['Q'] = {"BINPERSID", NULL, 0},
    ['R'] = {"REDUCE", NULL, 0},
    ['S'] = {"STRING", NULL, 0},
    ['b'] = {"BUILD", NULL, 0},
    ['c'] = {"GLOBAL", NULL, 0},
    ['i'] = {"INST", NULL, 0},
    ['o'] = {"OBJ", NULL, 0},
    [0x81] = {"NEWOBJ", NULL, 0},
    [0x82] = {"EXT1", NULL, 0},
    [0x83] = {"EXT2", NULL, 0},
    [0x84] = {"EXT4", NULL, 0},
    [0x92] = {"NEWOBJ_EX", NULL, 0},
    [0x93] = {"STACK_GLOBAL", NULL, 0},
    [0x97] = {"NEXT_BUFFER", NULL, 0},
    [0x98] = {"READONLY_BUFFER", NULL, 0},
};

static bool run_opcode(pickle_reader *p)
{
    int byte = import_next(p->source);
    if (byte == EOF)
        return import_refuse_byte(p->source, "the file ends before STOP");
    const opcode *found = &OPCODES[byte];
    if (!found->name)
        return import_refuse_byte(p->source, "0x%02x is no opcode of a pickle", (unsigned)byte);
    if (!found->run)
        return import_refuse_byte(p->source, "a snapshot has no opcode %s", found->name);
    p->opcode = found->name;
    return found->run(p, found->argument);
}

/* ---- the reader --------------------------------------------------------------------------- */

bool pickle_begin(pickle_reader *p, import_source *source, qi_host *host, const pickle_shape *shape,
                  void *user, const char *const *words)
{
    *p = (pickle_reader){.source = source, .host = host, .shape = shape, .user = user};
    pickle_pile_begin(&p->memo, host, sizeof(uint32_t));
    pickle_pile_begin(&p->texts, host, sizeof(text));
    pickle_pile_begin(&p->slabs, host, sizeof(char *));
    pickle_value value;
    for (; *words; words++)
        if (!intern(p, *words, (uint32_t)strlen(*words), &value))
            return false;
    return true;
}

void pickle_end(pickle_reader *p)
{
    for (uint64_t i = 0; i < p->slabs.count; i++)
        qi_host_release(p->host, *(char **)pickle_pile_at(&p->slabs, i), SLAB, 1);
    pickle_pile_end(&p->slabs);
    pickle_pile_end(&p->texts);
    pickle_pile_end(&p->memo);
    qi_id_map_finish(&p->text_hashes, p->host);
    qi_host_release(p->host, p->stack, p->capacity, sizeof *p->stack);
    p->stack = NULL;
}

bool pickle_read(pickle_reader *p, pickle_value *result)
{
    while (!p->has_stopped)
        if (!run_opcode(p))
            return false;
    if (import_peek(p->source) != EOF)
        return import_refuse_byte(p->source, "the file goes on after STOP");
    *result = p->stack[0];
    return true;
}
