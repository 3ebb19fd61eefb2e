/*
 * layout.c - text for people: items with a word on the left, wrapped paragraphs, counts and shares.
 */
#include "base/alloc.h"
#include "base/units.h"
#include "report/report_private.h"

#include <string.h>

void pkv_report_free(char *text)
{
    pkv_free(text);
}

char *take_text(struct pkv_text *t, struct pkv_err *err)
{
    char *text = t->text;
    if (t->failed || !text) {
        pkv_text_free(t);
        pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the report");
        return NULL;
    }
    memset(t, 0, sizeof *t);
    return text;
}

void page_ink(struct page *p, enum ink ink)
{
    static const char *const codes[] = {
        [INK_PLAIN] = "\033[0m",    [INK_HEAD] = "\033[1m",     [INK_FAINT] = "\033[2m",
        [INK_FREE] = "\033[36m",    [INK_WAITING] = "\033[33m", [INK_RUNNING] = "\033[32m",
        [INK_PREEMPTED] = "\033[31m"};
    if (p->style->colour)
        pkv_text_add(&p->text, codes[ink]);
}

void page_repeat(struct page *p, const char *piece, size_t num)
{
    for (size_t i = 0; i < num; i++)
        pkv_text_add(&p->text, piece);
}

/* Columns that so many bytes of UTF-8 take: every byte but continuations. */
static size_t columns_of(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

void page_wrap(struct page *p, size_t indent, const char *text)
{
    struct pkv_text *t = &p->text, word = {0};    /* as it may be shown */
    size_t at = indent;
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, " \n");
        pkv_text_clear(&word);
        pkv_text_visible(&word, text, length);
        size_t columns = columns_of(word.text, word.length);
        if (!first && at + 1 + columns > p->style->width) {
            pkv_text_add(t, "\n");
            page_repeat(p, " ", indent);
            at = indent;
        } else if (!first) {
            pkv_text_add(t, " ");
            at++;
        }
        pkv_text_bytes(t, word.text, word.length);
        at += columns;
        text += length + (text[length] != '\0');
    }
    pkv_text_add(t, "\n");
    t->failed |= word.failed;
    pkv_text_free(&word);
}

void page_heading(struct page *p, const char *text)
{
    pkv_text_add(&p->text, "\n");
    page_ink(p, INK_HEAD);
    page_wrap(p, 0, text);
    page_ink(p, INK_PLAIN);
}

void page_item(struct page *p, const char *name, const char *text)
{
    page_ink(p, INK_FAINT);
    pkv_text_fmt(&p->text, "%-*s", (int)NAME_WIDTH, name);
    page_ink(p, INK_PLAIN);
    page_wrap(p, NAME_WIDTH, text);
}

void add_grouped(struct pkv_text *t, uint64_t n)
{
    char digits[32];
    pkv_text_add(t, pkv_format_count(n, digits));
}

void add_counted(struct pkv_text *t, uint64_t n, const char *word)
{
    add_grouped(t, n);
    pkv_text_add(t, " ");
    pkv_text_add(t, word);
    if (n != 1)
        pkv_text_add(t, "s");
}

void add_percent(struct pkv_text *t, double frac)
{
    unsigned tenths = (unsigned)(frac * 1000.0 + 0.5);
    if (tenths == 0 && frac > 0)
        pkv_text_add(t, "under 0.1 %");
    else
        pkv_text_fmt(t, "%u.%u %%", tenths / 10, tenths % 10);
}

void add_time(struct pkv_text *t, int64_t ns)
{
    char text[48];
    pkv_text_add(t, pkv_format_duration(ns, text, sizeof text));
}

void add_fixed(struct pkv_text *t, double value, unsigned num_decimals)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < num_decimals; i++)
        scale *= 10;
    if (value > 1e18 / (double)scale)
        value = 1e18 / (double)scale;
    uint64_t units = (uint64_t)(value * (double)scale + 0.5);
    add_grouped(t, units / scale);
    if (num_decimals > 0)
        pkv_text_fmt(t, ".%0*llu", (int)num_decimals, (unsigned long long)(units % scale));
}

void add_rate(struct pkv_text *t, double rate)
{
    unsigned num_decimals = 3;
    /* The bounds are those of the rounded number: 9.9996 is 10.00. */
    for (double bound = 9.9995; rate >= bound && num_decimals > 0; bound *= 10)
        num_decimals--;
    for (double bound = 0.99995; rate < bound && num_decimals < 9; bound /= 10)
        num_decimals++;
    add_fixed(t, rate, rate > 0 ? num_decimals : 0);
}

void add_steps(struct pkv_text *t, __int128 ns, int64_t step_ns)
{
    if (ns / step_ns < 100)
        pkv_text_ratio(t, (ns * 20 + step_ns) / (2 * (__int128)step_ns), 10, 1);
    else
        add_grouped(t, (uint64_t)((ns + step_ns / 2) / step_ns));
}
