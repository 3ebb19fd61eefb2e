/*
 * record.c - one step of an engine log, and where two differ first.
 *
 * A wrong decision shows in many fields. They are looked at in the order in which a step makes
 * them, so that the field named first is the one that tells why.
 */
#include "report/diff_private.h"
#include "report/report_private.h"

#include <string.h>

#define SHOWN_BYTES 120u

/* As a step goes: who left, who had to give way, who came, what each got, which blocks that took,
 * and what was there afterwards. */
static const char *const causes_first[] = {
    "step", "aborted", "preempted", "resumed", "new", "sched", "spec", "evicted", "blocks",
    "free_sched", "updated_step", "gen", "finished", "free", "running", "waiting", "n_running",
    "n_waiting", "preempt_total", "cached_blocks", "stuck",
};
enum { NUM_KNOWN = sizeof causes_first / sizeof causes_first[0] };

static const struct pkv_json_value *find(const struct record *r, const struct pkv_json_text *key)
{
    for (size_t i = 0; i < r->num_fields; i++)
        if (r->keys[i].length == key->length &&
            memcmp(r->keys[i].text, key->text, key->length) == 0)
            return &r->values[i];
    return NULL;
}

int record_read(struct record *r, const char *path, uint64_t line, const char *text,
                size_t length, struct pkv_err *err)
{
    int more = 0;
    struct pkv_json j;
    r->num_fields = 0;
    pkv_json_init(&j, path, line, text, length);
    r->scanner = j;
    if (pkv_json_enter_object(&j, err) < 0)
        return -1;
    for (;;) {
        struct pkv_json_text key;
        more = pkv_json_next_member(&j, &key, err);
        if (more <= 0)
            break;
        if (r->num_fields == RECORD_MAX_FIELDS)
            return pkv_json_fail_at(&j, key.column, err, "a step record has at most %u fields",
                                    RECORD_MAX_FIELDS);
        if (find(r, &key))
            return pkv_json_fail_at(&j, key.column, err, "field '%.*s' is here a second time",
                                    (int)key.length, key.text);
        r->keys[r->num_fields] = key;
        if (pkv_json_value(&j, &r->values[r->num_fields], err) < 0)
            return -1;
        r->num_fields++;
    }
    if (more < 0 || pkv_json_end(&j, err) < 0)
        return -1;
    const struct pkv_json_value *step = record_field(r, "step");
    if (!step || step->kind != PKV_JSON_NUMBER)
        return pkv_json_fail_at(&j, 1, err, "this is no step record: it has no number 'step'");
    return 0;
}

const struct pkv_json_value *record_field(const struct record *r, const char *key)
{
    for (size_t i = 0; i < r->num_fields; i++)
        if (pkv_json_text_is(&r->keys[i], key))
            return &r->values[i];
    return NULL;
}

uint64_t record_number(const struct record *r, const char *key)
{
    const struct pkv_json_value *value = record_field(r, key);
    uint64_t n = 0;
    struct pkv_json j;
    if (!value || value->kind != PKV_JSON_NUMBER)
        return 0;
    pkv_json_reopen(&j, &r->scanner, value);
    return pkv_json_u64(&j, UINT64_MAX, &n, NULL) < 0 ? 0 : n;
}

static void add_value(struct pkv_text *t, const char *name, const struct pkv_json_value *value)
{
    pkv_text_fmt(t, "  %-10s ", name);
    if (!value || value->kind == PKV_JSON_NONE) {
        pkv_text_add(t, "nothing\n");
        return;
    }
    if (value->raw.length <= SHOWN_BYTES) {
        pkv_text_visible(t, value->raw.text, value->raw.length);
    } else {
        size_t cut = SHOWN_BYTES;
        while (cut > 0 && ((unsigned char)value->raw.text[cut] & 0xc0) == 0x80)
            cut--;
        pkv_text_visible(t, value->raw.text, cut);
        pkv_text_fmt(t, "... (%zu bytes)", value->raw.length);
    }
    pkv_text_add(t, "\n");
}

/* One field of both. value NULL = it is absent. */
static bool same_field(const struct pkv_json_value *a, const struct pkv_json_value *b,
                       struct pkv_json_difference *where)
{
    if (a && b)
        return pkv_json_equal(a, b, where);
    memset(where, 0, sizeof *where);
    return !a && !b;
}

static void tell(const struct record *a, const struct pkv_json_text *key,
                 const struct pkv_json_value *of_a, const struct pkv_json_value *of_b,
                 const struct pkv_json_difference *where, const struct record_names *names,
                 struct pkv_text *out)
{
    const char *joint = where->path[0] && where->path[0] != '[' ? "." : "";
    pkv_text_fmt(out, "step %llu differs: field ", (unsigned long long)record_number(a, "step"));
    pkv_text_visible(out, key->text, key->length);
    if (where->path[0]) {
        pkv_text_add(out, ", first at ");
        pkv_text_visible(out, key->text, key->length);
        pkv_text_add(out, joint);
        pkv_text_visible(out, where->path, strlen(where->path));
    }
    pkv_text_add(out, "\n");
    if (where->path[0]) {
        add_value(out, names->a, &where->a);
        add_value(out, names->b, &where->b);
        pkv_text_fmt(out, "the whole field\n");
    }
    add_value(out, names->a, of_a);
    add_value(out, names->b, of_b);
}

static bool is_known(const struct pkv_json_text *key)
{
    for (size_t i = 0; i < NUM_KNOWN; i++)
        if (pkv_json_text_is(key, causes_first[i]))
            return true;
    return false;
}

static size_t add_unknown(const struct record *r, struct pkv_json_text *out)
{
    size_t num = 0;
    for (size_t i = 0; i < r->num_fields; i++)
        if (!is_known(&r->keys[i]))
            out[num++] = r->keys[i];
    return num;
}

/* Fields to look at: the known ones in their order, then any others of a, then any others of b. */
static size_t list_fields(const struct record *a, const struct record *b,
                          const struct record_names *names, struct pkv_json_text *out)
{
    size_t num = 0;
    for (size_t i = 0; i < NUM_KNOWN; i++)
        out[num++] = (struct pkv_json_text){.text = causes_first[i],
                                            .length = strlen(causes_first[i])};
    num += add_unknown(a, out + num);
    if (!names->only_fields_of_a)
        num += add_unknown(b, out + num);
    return num;
}

/* A closing record is one whatever the names say: the other side has no such end. */
static bool is_looked_at(const struct pkv_json_text *key, const struct pkv_json_value *of_a,
                         const struct record_names *names)
{
    return of_a || !names->only_fields_of_a || pkv_json_text_is(key, "stuck");
}

bool record_compare(const struct record *a, const struct record *b,
                    const struct record_names *names, struct pkv_text *out)
{
    struct pkv_json_text keys[NUM_KNOWN + 2 * RECORD_MAX_FIELDS];
    size_t num = list_fields(a, b, names, keys);
    for (size_t i = 0; i < num; i++) {
        struct pkv_json_difference where;
        const struct pkv_json_value *of_a = find(a, &keys[i]), *of_b = find(b, &keys[i]);
        if (is_looked_at(&keys[i], of_a, names) && !same_field(of_a, of_b, &where)) {
            tell(a, &keys[i], of_a, of_b, &where, names, out);
            return false;
        }
    }
    return true;
}

void record_add_names(struct record_fields *fields, const struct record *r)
{
    for (size_t i = 0; i < r->num_fields; i++) {
        const struct pkv_json_text *key = &r->keys[i];
        size_t known = 0;
        while (known < fields->num && !pkv_json_text_is(key, fields->names[known]))
            known++;
        if (known < fields->num || known == RECORD_MAX_FIELDS || key->length >= RECORD_NAME_SIZE)
            continue;
        memcpy(fields->names[known], key->text, key->length);
        fields->num++;
    }
}

void record_list_names(const struct record_fields *fields, struct pkv_text *out)
{
    for (size_t i = 0; i < fields->num; i++) {
        pkv_text_add(out, i ? ", " : "");
        pkv_text_visible(out, fields->names[i], strlen(fields->names[i]));
    }
}

void record_tell_end(const struct record *next, uint64_t num_same, const char *ended,
                     const char *goes_on, struct pkv_text *out)
{
    pkv_text_fmt(out, "step %llu differs: %s ends after ",
                 (unsigned long long)record_number(next, "step"), ended);
    add_counted(out, num_same, "record");
    pkv_text_fmt(out, ", %s goes on\n", goes_on);
}
