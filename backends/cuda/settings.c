/*
 * settings.c - the settings of a device: what the program asks for, and what the user of the
 * program selects by environment variables.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "src/base/result.h"

static const char *const KINDS_VARIABLE = "QUIRE_CUDA_KINDS";
static const char *const PAGES_VARIABLE = "QUIRE_CUDA_PAGES";
static const char *const PEERS_VARIABLE = "QUIRE_CUDA_PEERS";

enum { ALL_KINDS = (1 << QUIRE_CUDA_PAGE_KINDS) - 1 };

/* ---- of the program --------------------------------------------------------------------- */

static quire_result check_peer_list(const quire_cuda_settings *s)
{
    if (s->peer_count > QI_CUDA_MAX_PEERS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "%u peer%s: %u at most", s->peer_count,
                            QI_CUDA_MAX_PEERS);
    if (s->peer_count && !s->peers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "peer_count is set and peers is null");
    if (s->peer_count && s->reachable_peers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "peers and reachable_peers are set");
    for (uint32_t i = 0; i < s->peer_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (s->peers[i] == s->peers[j])
                return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "peer %d is named twice",
                                    s->peers[i]);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_check_settings(const quire_cuda_settings *s)
{
    const uint32_t without =
        QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY | QUIRE_CUDA_WITHOUT_RDMA | QUIRE_CUDA_WITHOUT_EXPORT;
    if (s->kinds & ~(uint32_t)ALL_KINDS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown page kinds %x",
                            s->kinds & ~(uint32_t)ALL_KINDS);
    if (s->export_types & ~(QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown handle types %x",
                            s->export_types);
    if (s->without & ~without)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown bits %x of without",
                            s->without & ~without);
    if (s->numa_nodes && s->kinds && !(s->kinds & QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_HOST_NUMA)))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "numa_nodes is set and kinds lacks host NUMA pages");
    quire_result result = check_peer_list(s);
    if (!result)
        result = qi_cuda_check_pool_options(s);
    return result ? result : qi_check_unused(s, "quire_cuda_settings");
}

/* ---- of the program's user -------------------------------------------------------------- */

/* A part of a variable between commas. */
typedef struct word {
    const char *text;
    size_t length;
} word;

/* Returns false at the end. Empty words are passed over. */
static bool next_word(const char **rest, word *next)
{
    *rest += strspn(*rest, ", ");
    *next = (word){*rest, strcspn(*rest, ", ")};
    *rest += next->length;
    return next->length > 0;
}

static char plain(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' || c == '_' ? ' ' : c;
}

/* "host-numa" is "host NUMA". */
static bool is_name(const word *w, const char *name)
{
    size_t i = 0;
    while (i < w->length && plain(w->text[i]) == plain(name[i]))
        i++;
    return i == w->length && !name[i];
}

static quire_result refuse_word(const char *variable, const word *w)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "the variable %s has '%.*s'", variable,
                        w->length > 64 ? 64 : (int)w->length, w->text);
}

/* One bit for each word of a variable, by its place among the names; 0: the variable is not set. */
static quire_result read_bits(const char *variable, const char *const *names, uint32_t count,
                              uint32_t *bits)
{
    const char *rest = getenv(variable);
    word next;
    *bits = 0;
    while (rest && next_word(&rest, &next)) {
        uint32_t i = 0;
        while (i < count && !is_name(&next, names[i]))
            i++;
        if (i == count)
            return refuse_word(variable, &next);
        *bits |= UINT32_C(1) << i;
    }
    return QUIRE_SUCCESS;
}

/* One bit for each ordinal; all: the variable is not set. */
static quire_result read_peers(uint64_t *peers)
{
    const char *rest = getenv(PEERS_VARIABLE);
    word next;
    bool is_set = rest && next_word(&rest, &next);
    *peers = is_set ? 0 : UINT64_MAX;
    if (is_set && is_name(&next, "none"))
        return next_word(&rest, &next) ? refuse_word(PEERS_VARIABLE, &next) : QUIRE_SUCCESS;
    while (is_set) {
        unsigned long ordinal = strtoul(next.text, NULL, 10);
        if (strspn(next.text, "0123456789") < next.length || ordinal > 63)
            return refuse_word(PEERS_VARIABLE, &next);
        *peers |= UINT64_C(1) << ordinal;
        is_set = next_word(&rest, &next);
    }
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_read_variables(qi_cuda *cuda)
{
    /* in the order of the bits of quire_cuda_without */
    static const char *const without[] = {"plain", "no-rdma", "no-export"};
    uint32_t bits;
    quire_result result =
        read_bits(KINDS_VARIABLE, qi_cuda_kind_names, QUIRE_CUDA_PAGE_KINDS, &cuda->allowed_kinds);
    if (!result)
        result = read_bits(PAGES_VARIABLE, without, sizeof without / sizeof *without, &bits);
    if (!result)
        result = read_peers(&cuda->allowed_peers);
    if (!result)
        cuda->settings.without |= bits;
    return result;
}
