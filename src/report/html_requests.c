/*
 * html_requests.c - the request log as islands of report.html: numbers, ids and tenants.
 *
 * Rows stand in the order in which the requests ended. What never happened is -1.
 */
#include "report/html_private.h"

#include "base/alloc.h"
#include "report/packed.h"

static const char *const columns[] = {
#define NAME(name) #name,
    HTML_REQUEST_COLUMNS(NAME)
#undef NAME
};
#define NUM_COLUMNS (sizeof columns / sizeof *columns)

struct requests {
    struct packed *rows;               /* owned, as the others */
    struct packed_texts *ids, *tenants;
    struct pkv_text id;                /* scratch */
    bool has_tenants;
};

static void destroy(void *part)
{
    struct requests *r = part;
    packed_destroy(r->rows);
    packed_texts_destroy(r->ids);
    packed_texts_destroy(r->tenants);
    pkv_text_free(&r->id);
    pkv_free(r);
}

static void *create(const struct pkv_html_config *config, struct pkv_err *err)
{
    (void)config;
    struct requests *r = pkv_alloc(1, sizeof *r, err);
    if (!r)
        return NULL;
    r->rows = packed_create(columns, NUM_COLUMNS, err);
    r->ids = r->rows ? packed_texts_create(err) : NULL;
    r->tenants = r->ids ? packed_texts_create(err) : NULL;
    if (r->tenants)
        return r;
    destroy(r);
    return NULL;
}

int html_requests_add(void *part, const struct html_request *q, struct pkv_err *err)
{
    struct requests *r = part;
    const int64_t values[NUM_COLUMNS] = {
#define VALUE(name) q->name,
        HTML_REQUEST_COLUMNS(VALUE)
#undef VALUE
    };
    r->has_tenants |= q->tenant[0] != 0;
    if (packed_row(r->rows, values, err) < 0 || packed_texts_add(r->ids, q->id, err) < 0)
        return -1;
    return packed_texts_add(r->tenants, q->tenant, err);
}

static int64_t time_or_none(int64_t ns)
{
    return ns == PKV_NO_TIME ? -1 : ns;
}

static int on_request(void *ctx, const struct pkv_request_row *row, struct pkv_err *err)
{
    struct requests *r = ctx;
    const struct pkv_request *q = row->request;
    pkv_text_clear(&r->id);
    if (q->id)
        pkv_text_add(&r->id, q->id);
    else
        pkv_text_u64(&r->id, q->row);
    if (r->id.failed)
        return pkv_fail(err, PKV_ERR_MEMORY, "out of memory: no room for the id of a request");
    const struct html_request plain = {
        .arrival_ns = q->arrival_ns,
        .admitted_ns = time_or_none(q->admitted_ns),
        .first_token_ns = time_or_none(q->first_token_ns),
        .finish_ns = time_or_none(row->finish_ns),
        .status = (int64_t)row->status,
        .prompt_tokens = q->seq.num_prompt_tokens,
        .output_tokens = q->num_emitted,
        .hit_tokens = q->num_hit_tokens,
        .recomputed_tokens = (int64_t)q->num_recomputed_tokens,
        .preemptions = q->num_preemptions,
        .peak_blocks = q->peak_blocks,
        .max_gap_ns = q->num_emitted > 1 ? time_or_none(q->max_gap_ns) : -1,
        .priority = q->priority,
        .id = r->id.text,
        .tenant = q->tenant ? q->tenant : "",
    };
    return html_requests_add(r, &plain, err);
}

static struct pkv_sink sink(void *part)
{
    return (struct pkv_sink){.request = on_request, .ctx = part};
}

static int write(void *part, const char *prefix, struct pkv_out *out, struct pkv_err *err)
{
    struct requests *r = part;
    if (packed_write(r->rows, prefix, "requests", out, err) < 0 ||
        packed_texts_write(r->ids, prefix, "requests-id", out, err) < 0)
        return -1;
    return r->has_tenants ? packed_texts_write(r->tenants, prefix, "requests-tenant", out, err) : 0;
}

const struct html_part html_requests = {create, destroy, sink, write};
