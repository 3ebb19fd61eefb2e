/*
 * model_log.c - a step as one line of JSON, in the form and order of fields that recordings of the
 * real scheduler have.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "model_private.h"

static void add(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct model *m, const char *fmt, ...)
{
    for (;;) {
        va_list args;
        int length;

        va_start(args, fmt);
        length = vsnprintf(m->line + m->line_length, m->line_size - m->line_length, fmt, args);
        va_end(args);
        if (length < 0)
            abort();
        if (m->line_length + (size_t)length < m->line_size) {
            m->line_length += (size_t)length;
            return;
        }
        m->line_size = 2 * m->line_size + (size_t)length;
        m->line = realloc(m->line, m->line_size);
        if (m->line == NULL)
            abort();
    }
}

static void add_requests(struct model *m, const char *name, struct model_request *const *list,
                         size_t num)
{
    add(m, "\"%s\":[", name);
    for (size_t i = 0; i < num; i++)
        add(m, "%s\"%s\"", i > 0 ? "," : "", list[i]->id);
    add(m, "],");
}

static void add_queue(struct model *m, const char *name, const struct model_request *head)
{
    add(m, "\"%s\":[", name);
    for (const struct model_request *r = head; r != NULL; r = r->next) {
        add(m, "%s\"%s\"", r != head ? "," : "", r->id);
        for (uint32_t i = 0; r->status != MODEL_RUNNING && i < r->num_samples; i++)
            if (model_sample(r, i) != NULL && &r->samples[i] != r)
                add(m, ",\"%s\"", r->samples[i].id);
    }
    add(m, "],");
}

static void add_admitted(struct model *m, const char *name, bool resumed)
{
    const char *comma = "";

    add(m, "\"%s\":[", name);
    for (size_t i = 0; i <= m->num_entries; i++) {
        const struct model_entry *e = &m->entries[i];

        for (size_t k = 0; k < m->num_back && resumed; k++)
            if (m->back[k].num_before == i) {
                add(m, "%s[\"%s\",%u]", comma, m->back[k].request->id, m->back[k].num_hit);
                comma = ",";
            }
        if (i == m->num_entries || !e->admitted || e->resumed != resumed)
            continue;
        add(m, "%s[\"%s\",%u]", comma, e->request->id, e->num_hit);
        for (uint32_t k = 0; k < e->num_followers; k++)
            add(m, ",[\"%s\",0]", e->followers[k]->id);
        comma = ",";
    }
    add(m, "],");
}

static void add_scheduled(struct model *m)
{
    add(m, "\"sched\":[");
    for (size_t i = 0; i < m->num_entries; i++)
        add(m, "%s[\"%s\",%u]", i > 0 ? "," : "", m->entries[i].request->id,
            m->entries[i].num_tokens);
    add(m, "],");
}

static void add_table(struct model *m, const struct model_entry *e, uint32_t g, uint32_t end)
{
    const char *comma = "";

    add(m, "%s[", g > 0 ? "," : "");
    for (uint32_t i = e->num_blocks_before[g]; i < end; i++, comma = ",")
        add(m, "%s%u", comma, e->ids[g][i]);
    add(m, "]");
}

static void add_blocks(struct model *m, const struct model_entry *e, const char **comma)
{
    bool got = false;

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        got = got || e->num_blocks_after[g] > e->num_blocks_before[g];
    if (!got)
        return;
    add(m, "%s\"%s\":[", *comma, e->request->id);
    for (uint32_t g = 0; g < m->config.num_groups; g++)
        add_table(m, e, g, e->num_blocks_after[g]);
    add(m, "]");
    *comma = ",";
}

/* Newcomers first, then the running, then those that came back. */
static void add_all_blocks(struct model *m)
{
    const char *comma = "";

    add(m, ",\"blocks\":{");
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < m->num_entries; i++) {
            const struct model_entry *e = &m->entries[i];

            if ((!e->admitted ? 1 : e->resumed ? 2 : 0) == pass)
                add_blocks(m, e, &comma);
        }
    add(m, "},\"evicted\":[");
    for (size_t i = 0; i < m->num_evicted; i++)
        add(m, "%s%u", i > 0 ? "," : "", m->evicted[i] + m->config.first_block_id);
    add(m, "]");
}

static void add_drafts(struct model *m)
{
    const char *comma = "";

    add(m, ",\"spec\":{");
    for (size_t i = 0; i < m->num_entries; i++) {
        if (m->entries[i].num_drafts == 0)
            continue;
        add(m, "%s\"%s\":%u", comma, m->entries[i].request->id, m->entries[i].num_drafts);
        comma = ",";
    }
    add(m, "}");
}

void model_write_line(struct model *m)
{
    m->line_length = 0;
    add(m, "{\"step\":%lld,", (long long)(m->row.time_ns / m->config.log_step_ns));
    add_admitted(m, "new", false);
    add_admitted(m, "resumed", true);
    add_scheduled(m);
    add_requests(m, "preempted", m->preempted, m->num_preempted);
    add_requests(m, "aborted", m->aborted, m->num_aborted);
    add_requests(m, "finished", m->finished, m->num_finished);
    add(m, "\"gen\":%llu,\"free_sched\":%u,\"free\":%u,", (unsigned long long)m->num_generated,
        m->free_sched, model_count_free(m));
    if (m->config.async)
        add(m, "\"updated_step\":%lld,",
            m->landing.exists ? (long long)(m->landing.time_ns / m->config.log_step_ns) : 0);
    if (m->config.log_blocks) {
        add_queue(m, "waiting", m->waiting);
        add_queue(m, "running", m->running);
    }
    add(m, "\"n_waiting\":%zu,\"n_running\":%zu,\"preempt_total\":%llu,\"cached_blocks\":%zu",
        model_num_waiting(m), model_num_running(m), (unsigned long long)m->totals.preemptions,
        model_count_keys(m));
    if (m->config.log_blocks)
        add_all_blocks(m);
    if (m->config.log_blocks && m->config.num_drafts > 0)
        add_drafts(m);
    add(m, "}");
}
