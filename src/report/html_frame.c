/*
 * html_frame.c - what is the same on every page: its frame from src/report/web, and islands of JSON.
 */
#include "report/html_private.h"

#include <string.h>

#include "report/web_page.h"

/* As HTML may have it in a title. */
static void write_escaped(struct pkv_out *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<': pkv_out_text(out, "&lt;"); break;
        case '>': pkv_out_text(out, "&gt;"); break;
        case '&': pkv_out_text(out, "&amp;"); break;
        default:  pkv_out_char(out, *text); break;
        }
}

void html_begin(struct pkv_out *out, const char *title)
{
    pkv_out_bytes(out, (const char *)web_before_title, web_before_title_size);
    write_escaped(out, title);
    pkv_out_bytes(out, (const char *)web_before_islands, web_before_islands_size);
}

void html_end(struct pkv_out *out)
{
    pkv_out_bytes(out, (const char *)web_after_islands, web_after_islands_size);
}

/* The frame of another version may be another one, but it ends so. */
bool html_is_whole(const struct pkv_text *page)
{
    static const char end[] = "</html>\n";
    size_t length = sizeof end - 1;
    return page->length >= length && memcmp(page->text + page->length - length, end, length) == 0 &&
           !memchr(page->text, 0, page->length);
}

/* In JSON "<" stands in strings only, and there \u003c is the same. So no text ends the element. */
#define LESS_THAN "\\u003c"
void html_json(struct pkv_out *out, const char *prefix, const char *name, const char *json)
{
    pkv_out_text(out, "<script type=\"application/json\" id=\"pkv-");
    pkv_out_text(out, prefix);
    pkv_out_text(out, name);
    pkv_out_text(out, "\">");
    for (;;) {
        size_t plain = strcspn(json, "<");
        pkv_out_bytes(out, json, plain);
        if (json[plain] == 0)
            break;
        pkv_out_text(out, LESS_THAN);
        json += plain + 1;
    }
    pkv_out_text(out, "</script>\n");
}

bool html_json_is(const char *json, const char *island, size_t length)
{
    const char *end = island + length;
    for (; *json; json++) {
        const char *as = *json == '<' ? LESS_THAN : json;
        size_t num = *json == '<' ? sizeof LESS_THAN - 1 : 1;
        if ((size_t)(end - island) < num || memcmp(island, as, num) != 0)
            return false;
        island += num;
    }
    return island == end;
}
