/*
 * diff.c - where two logs part: finds out what they are and hands them on.
 */
#include "report/diff_private.h"

#include "report/report_private.h"

#include <string.h>

#define KINDS(X)                                  \
    X(KIND_STEPS, "a step log (steps.csv)")       \
    X(KIND_REQUESTS, "a request log (requests.csv)") \
    X(KIND_ENGINE, "an engine log (JSON lines)")     \
    X(KIND_EVENTS, "an event log (events.jsonl)")

enum kind {
#define PKV_ENUM(sym, word) sym,
    KINDS(PKV_ENUM)
#undef PKV_ENUM
    KIND_COUNT
};

static const char *kind_name(enum kind kind)
{
#define PKV_NAME(sym, word) [sym] = word,
    static const char *const names[] = { KINDS(PKV_NAME) };
#undef PKV_NAME
    return names[kind];
}

static bool begins_with(const struct side *s, const char *text)
{
    size_t length = strlen(text);
    return s->length >= length && memcmp(s->text, text, length) == 0;
}

static int find_kind(const struct side *s, enum kind *out, struct pkv_err *err)
{
    if (!s->text)
        return pkv_fail_at(err, s->path, 0, 0, "is empty");
    if (begins_with(s, "step,"))
        *out = KIND_STEPS;
    else if (begins_with(s, "id,"))
        *out = KIND_REQUESTS;
    else if (begins_with(s, "{\"time_ns\":"))
        return pkv_fail_at(err, s->path, 0, 0, "is %s, which has no rows to compare: compare "
                           "steps.csv or requests.csv", kind_name(KIND_EVENTS));
    else if (begins_with(s, "{"))
        *out = KIND_ENGINE;
    else
        return pkv_fail_at(err, s->path, 1, 1, "begins neither like %s, nor like %s, nor like %s",
                           kind_name(KIND_STEPS), kind_name(KIND_REQUESTS),
                           kind_name(KIND_ENGINE));
    return 0;
}

static int diff_sides(struct side *a, struct side *b, struct pkv_diff_result *out,
                      struct pkv_text *text, struct pkv_err *err)
{
    enum kind of_a, of_b;
    if (find_kind(a, &of_a, err) < 0 || find_kind(b, &of_b, err) < 0)
        return -1;
    if (of_a != of_b)
        return pkv_fail_at(err, b->path, 0, 0, "is %s, but %s is %s", kind_name(of_b), a->path,
                           kind_name(of_a));
    if (of_a == KIND_ENGINE)
        return diff_log(a, b, out, text, err);
    return diff_csv(a, b, of_a == KIND_STEPS, out, text, err);
}

int pkv_diff(const char *a, const char *b, struct pkv_diff_result *out, struct pkv_err *err)
{
    struct side x = {0}, y = {0};
    struct pkv_text text = {0};
    int status = -1;
    *out = (struct pkv_diff_result){.same = false};
    if (strcmp(a, "-") == 0 && strcmp(b, "-") == 0)
        return pkv_fail(err, PKV_ERR_INPUT, "both logs are standard input (-), which can be read "
                        "only once");
    if (side_open(&x, a, err) == 0 && side_open(&y, b, err) == 0)
        status = diff_sides(&x, &y, out, &text, err);
    if (status == 0) {
        out->text = take_text(&text, err);
        status = out->text ? 0 : -1;
    }
    side_close(&x);
    side_close(&y);
    pkv_text_free(&text);
    return status;
}
