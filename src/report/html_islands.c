/*
 * html_islands.c - the islands of a report.html that there is, taken over into another one.
 *
 * They are looked for as this program writes them. No island has a "<" in it, so each one ends at the
 * next.
 */
#include "report/html_private.h"

#include <string.h>

static const char begin_text[] = "<script type=\"text/plain\" id=\"pkv-";
static const char begin_json[] = "<script type=\"application/json\" id=\"pkv-";
static const char end[] = "</script>\n";

struct island {
    const char *begin;               /* of its tag */
    size_t tag_length;               /* up to its name */
    const char *name, *body, *end;   /* end: of the body */
    size_t name_length;
};

/* The next island from `at` on. */
static bool next_island(const char *at, struct island *out)
{
    for (; (at = strstr(at, "<script type=")); at++) {
        size_t length = strncmp(at, begin_text, sizeof begin_text - 1) == 0 ? sizeof begin_text - 1
            : strncmp(at, begin_json, sizeof begin_json - 1) == 0 ? sizeof begin_json - 1 : 0;
        if (length == 0)
            continue;
        *out = (struct island){.begin = at, .tag_length = length, .name = at + length};
        out->name_length = strcspn(out->name, "\"<");
        out->body = out->name + out->name_length;
        if (strncmp(out->body, "\">", 2) != 0)
            continue;
        out->body += 2;
        out->end = strchr(out->body, '<');
        if (out->end && strncmp(out->end, end, sizeof end - 1) == 0)
            return true;
    }
    return false;
}

static bool is_named(const struct island *island, const char *name)
{
    return island->name_length == strlen(name) &&
           memcmp(island->name, name, island->name_length) == 0;
}

bool html_islands_copy(struct pkv_out *out, const char *prefix, const char *page)
{
    struct island island;
    bool has_summary = false;
    for (const char *at = page; next_island(at, &island); at = island.end)
        has_summary |= is_named(&island, "summary");
    if (!has_summary)
        return false;
    for (const char *at = page; next_island(at, &island); at = island.end) {
        if (is_named(&island, "runs"))
            continue;
        pkv_out_bytes(out, island.begin, island.tag_length);
        pkv_out_text(out, prefix);
        pkv_out_bytes(out, island.name, (size_t)(island.end - island.name) + sizeof end - 1);
    }
    return true;
}

bool html_island_read(const char *page, const char *name, struct pkv_text *out)
{
    struct island island;
    for (const char *at = page; next_island(at, &island); at = island.end)
        if (is_named(&island, name)) {
            pkv_text_bytes(out, island.body, (size_t)(island.end - island.body));
            return true;
        }
    return false;
}
