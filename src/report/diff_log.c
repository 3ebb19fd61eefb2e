/*
 * diff_log.c - two engine logs, record by record.
 */
#include "report/diff_private.h"

struct log_totals {
    int64_t records, tokens, preemptions;
};

static void count(struct log_totals *t, const struct record *r)
{
    t->records++;
    t->tokens += (int64_t)record_number(r, "gen");
    if (record_field(r, "preempt_total"))
        t->preemptions = (int64_t)record_number(r, "preempt_total");
}

/* Read the line a side stands at, if there is one. */
static int take(const struct side *s, struct record *r, struct log_totals *totals,
                struct pkv_err *err)
{
    if (!s->text)
        return 0;
    if (record_read(r, s->path, s->lines.number, s->text, s->length, err) < 0)
        return -1;
    count(totals, r);
    return 0;
}

static bool compare(const struct side *a, const struct side *b, const struct record *of_a,
                    const struct record *of_b, uint64_t num_same, struct pkv_text *text)
{
    static const struct record_names names = {.a = "A", .b = "B"};
    if (a->text && b->text)
        return record_compare(of_a, of_b, &names, text);
    if (a->text)
        record_tell_end(of_a, num_same, "B", "A", text);
    else
        record_tell_end(of_b, num_same, "A", "B", text);
    return false;
}

int diff_log(struct side *a, struct side *b, struct pkv_diff_result *out, struct pkv_text *text,
             struct pkv_err *err)
{
    struct log_totals of_a = {0}, of_b = {0};
    uint64_t num_same = 0;
    out->same = true;
    while (a->text || b->text) {
        struct record x, y;
        if (take(a, &x, &of_a, err) < 0 || take(b, &y, &of_b, err) < 0)
            return -1;
        if (out->same)
            out->same = compare(a, b, &x, &y, num_same, text);
        num_same += out->same;
        if ((a->text && side_next(a, err) < 0) || (b->text && side_next(b, err) < 0))
            return -1;
    }
    if (out->same)
        pkv_text_fmt(text, "the same: %llu records\n", (unsigned long long)num_same);
    add_total(text, "records", of_a.records, of_b.records);
    add_total(text, "tokens", of_a.tokens, of_b.tokens);
    add_total(text, "preemptions", of_a.preemptions, of_b.preemptions);
    return 0;
}
