/*
 * html_words.c - what report.html says in words: what was run, how it ended, what limited it, what to try
 * next. The sentences are those of the terminal's summary.
 */
#include "report/html_private.h"
#include "report/report_private.h"

#include "report/packed.h"

#define WORDS_COLUMNS 100u

static void member(struct pkv_text *t, const char *name, const char *text)
{
    pkv_text_fmt(t, "%s\"%s\":", t->length > 1 ? "," : "", name);
    pkv_text_json(t, text);
}

/* A member of a page that was written for a terminal; none when it is empty. */
static void member_page(struct pkv_text *t, const char *name, struct page *p)
{
    if (p->text.length > 0)
        member(t, name, p->text.text);
    t->failed |= p->text.failed;
    pkv_text_free(&p->text);
    p->text = (struct pkv_text){0};
}

static void add_limits(struct pkv_text *t, const enum pkv_limit *causes, size_t num,
                       const struct pkv_scenario *scenario, const struct pkv_summary *summary)
{
    struct pkv_text reason = {0};
    pkv_text_add(t, ",\"limits\":[");
    for (size_t i = 0; i < num; i++) {
        pkv_text_clear(&reason);
        add_limit_words(&reason, causes[i], scenario);
        pkv_text_fmt(t, "%s{\"limit\":%d,\"frac\":", i > 0 ? "," : "", (int)causes[i]);
        add_fixed(t, summary->limit_frac[causes[i]], 9);
        pkv_text_add(t, ",\"reason\":");
        pkv_text_json(t, reason.text ? reason.text : "");
        pkv_text_add(t, "}");
    }
    pkv_text_add(t, "],\"limit_names\":[");
    for (int i = 0; i < PKV_LIMIT_COUNT; i++)
        pkv_text_fmt(t, "%s\"%s\"", i > 0 ? "," : "", pkv_limit_name((enum pkv_limit)i));
    pkv_text_add(t, "]");
    t->failed |= reason.failed;
    pkv_text_free(&reason);
}

/* What the engine's statuses are called: requests have their numbers. */
static void add_statuses(struct pkv_text *t)
{
    pkv_text_add(t, ",\"statuses\":[");
    for (int i = 0; i < PKV_REQUEST_STATUS_COUNT; i++)
        pkv_text_fmt(t, "%s\"%s\"", i > 0 ? "," : "",
                     pkv_request_status_name((enum pkv_request_status)i));
    pkv_text_add(t, "]");
}

static void add_pages(struct pkv_text *t, const struct html_words *w)
{
    const struct pkv_report_style style = {.width = WORDS_COLUMNS, .utf8 = true};
    const struct pkv_scenario *s = w->scenario;
    int64_t step_ns = s->step_time.law == PKV_STEP_TIME_FIXED ? s->step_time.fixed_ns : 0;
    struct page p = {.style = &style};
    page_setup(&p, s, w->notes);
    member_page(t, "setup", &p);
    page_unused(&p, s, w->summary);
    member_page(t, "unused", &p);
    page_ask(&p, w->summary, step_ns);
    member_page(t, "ask", &p);
    if (w->summary->has_window)
        pkv_text_fmt(t, ",\"window\":[%lld,%lld]", (long long)w->summary->after_ns,
                     (long long)w->summary->until_ns);   /* 0 = to the end */
    pkv_text_fmt(t, ",\"step_ns\":%lld,\"num_blocks\":%llu,\"block_size\":%u", (long long)step_ns,
                 (unsigned long long)s->sched.num_blocks, w->block_size);
}

void html_words_write(const struct html_words *w, const char *prefix, struct pkv_out *out,
                      bool *out_failed)
{
    enum pkv_limit causes[PKV_LIMIT_COUNT] = {PKV_LIMIT_EMPTY};
    struct pkv_text t = {0}, next = {0};
    size_t num = sort_causes(w->summary->limit_frac, causes);
    const char *warning = summary_warning(&w->summary->engine);
    pkv_text_add(&t, "{");
    member(&t, "title", w->scenario->title ? w->scenario->title : "");
    member(&t, "question", w->scenario->question ? w->scenario->question : "");
    member(&t, "warning", warning ? warning : "");
    member(&t, "diagnosis", w->summary->engine.diagnosis);
    const char *no_hits = why_no_hits(w->scenario, w->notes);
    member(&t, "no_hits", no_hits ? no_hits : "");
    add_next(&next, causes, num, w->scenario, w->summary, !no_hits);
    member(&t, "next", next.text ? next.text : "");
    add_pages(&t, w);
    add_limits(&t, causes, num, w->scenario, w->summary);
    add_statuses(&t);
    pkv_text_add(&t, "}");
    *out_failed |= t.failed || next.failed;
    if (!t.failed && !next.failed)
        html_json(out, prefix, "words", t.text);
    pkv_text_free(&next);
    pkv_text_free(&t);
}

int html_histogram_write(const struct pkv_histogram *h, const char *prefix, const char *name,
                         struct pkv_out *out, struct pkv_err *err)
{
    static const char *const columns[] = {"upper_ns", "count"};
    struct packed *p = packed_create(columns, 2, err);
    int64_t upper;
    uint64_t count;
    int status = p ? 0 : -1;
    for (size_t place = 0; status == 0 && pkv_histogram_next(h, &place, &upper, &count);) {
        const int64_t values[] = {upper, (int64_t)count};
        status = packed_row(p, values, err);
    }
    if (status == 0)
        status = packed_write(p, prefix, name, out, err);
    packed_destroy(p);
    return status;
}
