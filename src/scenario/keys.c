/*
 * keys.c - the list of keys made into a table, and questions about it.
 */
#include "scenario/keys_private.h"

#include <stdio.h>
#include <string.h>

/* Fields of an enum are written through unsigned. */
_Static_assert(sizeof(enum pkv_pool_end) == sizeof(unsigned) &&
                   sizeof(enum pkv_blocked_prefill) == sizeof(unsigned) &&
                   sizeof(enum pkv_priority_victim) == sizeof(unsigned) &&
                   sizeof(enum pkv_oversized) == sizeof(unsigned) &&
                   sizeof(enum pkv_speculation_method) == sizeof(unsigned) &&
                   sizeof(enum pkv_step_time_law) == sizeof(unsigned) &&
                   sizeof(enum pkv_arrival_law) == sizeof(unsigned) &&
                   sizeof(enum pkv_length_law) == sizeof(unsigned) &&
                   sizeof(enum pkv_number_law) == sizeof(unsigned),
               "an enum is an unsigned int");

#define WORD(sym, word) [sym] = word,
#define LISTED(sym, word) word,   /* behind auto, so that a value is the type + 1 */
static const char *const pool_ends[] = {
    [PKV_END_HEAD] = "head", [PKV_END_TAIL] = "tail", NULL
};
static const char *const blocked_prefills[] = {
    [PKV_BLOCKED_PREFILL_STOP] = "stop", [PKV_BLOCKED_PREFILL_SKIP] = "skip", NULL
};
static const char *const priority_victims[] = {
    [PKV_PRIORITY_VICTIM_VLLM] = "vllm", [PKV_PRIORITY_VICTIM_SAFE] = "safe", NULL
};
static const char *const chunk_ends[] = {
    [PKV_CHUNK_END_FREE] = "free", [PKV_CHUNK_END_KEEP] = "keep", NULL
};
static const char *const oversized_ways[] = {
    [PKV_OVERSIZED_REJECT] = "reject", [PKV_OVERSIZED_WAIT] = "wait", NULL
};
static const char *const speculation_methods[] = { PKV_SPECULATION_METHODS(WORD) NULL };
static const char *const step_time_laws[] = { PKV_STEP_TIME_LAWS(WORD) NULL };
static const char *const arrival_laws[] = { PKV_ARRIVAL_LAWS(WORD) NULL };
static const char *const length_laws[] = { PKV_LENGTH_LAWS(WORD) NULL };
static const char *const kv_dtypes[] = { "auto", PKV_KV_DTYPES(LISTED) NULL };
static const char *const number_laws[] = { PKV_NUMBER_LAWS(WORD) NULL };
#undef WORD
#undef LISTED

const struct key keys[KEY_COUNT] = {
#define KEY_ROW(id, text, ...) [KEY_##id] = { .name = text, __VA_ARGS__ },
    SCENARIO_KEYS(KEY_ROW)
#undef KEY_ROW
};

static const struct section sections[] = {
    { .name = "kv" },
    { .name = "link" },
    { .name = "scheduler" },
    { .name = "speculation" },
    { .name = "step_time", .form = SECTION_STEP_TIME, .is_whole = true },
    { .name = "traffic" },
    { .name = "traffic.arrivals", .is_whole = true },
    { .name = "traffic.prompt_tokens", .form = SECTION_LENGTH, .is_whole = true },
    { .name = "traffic.output_tokens", .form = SECTION_LENGTH, .is_whole = true },
    { .name = "traffic.prefixes", .is_whole = true },
    { .name = "traffic.prefixes.tokens", .form = SECTION_LENGTH, .is_whole = true },
    { .name = "traffic.max_tokens_ratio", .form = SECTION_NUMBER, .is_whole = true },
    { .name = "traffic.sessions", .is_whole = true },
    { .name = "traffic.sessions.turns", .form = SECTION_LENGTH, .is_whole = true },
    { .name = "traffic.sessions.turn_tokens", .form = SECTION_LENGTH, .is_whole = true },
    { .name = "traffic.sessions.delay_ms", .form = SECTION_NUMBER, .is_whole = true },
    { .name = "traffic.aborts", .is_whole = true },
    { .name = "traffic.aborts.after_ms", .form = SECTION_NUMBER, .is_whole = true },
    { .name = "targets" },
    { .name = "measure" },
};

enum key_id key_find(const char *name)
{
    for (int id = KEY_NONE + 1; id < KEY_COUNT; id++)
        if (strcmp(keys[id].name, name) == 0)
            return (enum key_id)id;
    return KEY_NONE;
}

const struct section *section_find(const char *name)
{
    for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
        if (strcmp(sections[i].name, name) == 0)
            return &sections[i];
    return NULL;
}

const char *section_name(size_t i)
{
    return i < sizeof(sections) / sizeof(*sections) ? sections[i].name : NULL;
}

void section_list(const char *name, char *out, size_t size)
{
    size_t prefix = *name ? strlen(name) + 1 : 0, used = 0;
    const char *last = "";
    size_t last_length = 0;

    out[0] = '\0';
    for (int id = KEY_NONE + 1; id < KEY_COUNT && used < size; id++) {
        const char *key = keys[id].name;
        size_t length;

        if (prefix && (strncmp(key, name, prefix - 1) != 0 || key[prefix - 1] != '.'))
            continue;
        key += prefix;
        length = strcspn(key, ".");
        if (length == last_length && memcmp(key, last, length) == 0)
            continue;   /* keys of one section stand together */
        last = key;
        last_length = length;
        used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)length,
                                 key);
    }
    if (used >= size && size > 4)
        memcpy(out + size - 4, "...", 4);
}

/* A decider's value as a bit. */
static unsigned decider_bit(const struct pkv_scenario *s, enum key_id id)
{
    const void *field = key_field(s, id);

    switch (keys[id].kind) {
    case KIND_WORD:   return 1u << *(const unsigned *)field;
    case KIND_PATH:
    case KIND_MODEL:  return 1u << (*(char *const *)field != NULL);
    case KIND_U32: case KIND_ACCEPTED: return 1u << (*(const uint32_t *)field > 0);
    case KIND_U64:    return 1u << (*(const uint64_t *)field > 0);
    case KIND_DOUBLE: return 1u << (*(const double *)field > 0);
    case KIND_BOOL:   return 1u << *(const bool *)field;
    case KIND_NONE: case KIND_TEXT: case KIND_MS: case KIND_NS: case KIND_TIME: case KIND_TIME_OR_END:
    case KIND_BYTES:
    case KIND_CHOICE: case KIND_PRESET: case KIND_FORMAT: case KIND_SPEEDUP: case KIND_GROUPS:
    case KIND_PRIORITIES: case KIND_TENANTS: case KIND_GPU_BLOCKS: case KIND_SCHEDULING_POLICY:
    case KIND_FULL_ISL: case KIND_VARY: case KIND_STAGES: case KIND_BUDGET:
        break;
    }
    PKV_UNREACHABLE("a key of this kind decides nothing");
}

bool key_applies(const struct pkv_scenario *s, enum key_id id)
{
    for (; keys[id].decider != KEY_NONE; id = keys[id].decider)
        if (!(decider_bit(s, keys[id].decider) & keys[id].when))
            return false;
    return true;
}

bool key_is_named_bytes(const struct key *key)
{
    return strstr(key->name, "bytes") != NULL;
}
