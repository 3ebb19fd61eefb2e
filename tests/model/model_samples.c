/*
 * model_samples.c - several answers to one prompt: each is a request, and with fork on those that live
 * are a gang.
 *
 * The samples of one row stand side by side among all requests, so a gang is a stretch of that list. Who
 * is in it is looked up each time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

/* --- rows into requests ---------------------------------------------------------------------- */

static uint32_t num_answers(const struct pkv_request_spec *row)
{
    return row->num_samples > 1 ? row->num_samples : 1;
}

size_t model_count_samples(const struct pkv_request_spec *rows, size_t num_rows)
{
    size_t num = 0;

    for (size_t i = 0; i < num_rows; i++)
        num += num_answers(&rows[i]);
    return num;
}

static char *name_sample(const struct pkv_request_spec *row, uint32_t sample)
{
    char *name = model_alloc(64, 1), number[32];

    snprintf(number, sizeof number, "%llu", (unsigned long long)row->row);
    snprintf(name, 64, "%s", row->id != NULL ? row->id : number);
    if (num_answers(row) > 1)
        snprintf(name + strlen(name), 16, "/%u", sample);
    return name;
}

void model_expand(struct model *m, const struct pkv_request_spec *rows, size_t num_rows)
{
    size_t num = 0;

    m->num_specs = model_count_samples(rows, num_rows);
    m->specs = model_alloc(m->num_specs, sizeof *m->specs);
    for (size_t i = 0; i < num_rows; i++)
        for (uint32_t k = 0; k < num_answers(&rows[i]); k++) {
            struct pkv_request_spec *spec = &m->specs[num];

            *spec = rows[i];
            spec->row = rows[i].row + num - i;   /* after those beyond the rows so far */
            num++;
            spec->sample = k;
            spec->id = name_sample(&rows[i], k);
            if (rows[i].sample_output_tokens != NULL)
                spec->num_output_tokens = rows[i].sample_output_tokens[k];
            spec->content.output_origin += k * UINT64_C(0x9e3779b97f4a7c15);   /* a text of its own */
        }
}

void model_forget_specs(struct model *m)
{
    for (size_t i = 0; i < m->num_specs; i++)
        free((char *)m->specs[i].id);
    free(m->specs);
}

/* --- gangs ----------------------------------------------------------------------------------- */

static bool lives(const struct model_request *r)
{
    return r->status == MODEL_WAITING || r->status == MODEL_RUNNING ||
           r->status == MODEL_PREEMPTED || r->status == MODEL_SWAPPED || r->status == MODEL_RESUMING;
}

struct model_request *model_sample(const struct model_request *r, uint32_t index)
{
    struct model_request *other = r->samples + index;

    return lives(other) ? other : NULL;
}

uint32_t model_gang_size(const struct model_request *r)
{
    uint32_t num = 0;

    for (uint32_t i = 0; i < r->num_samples; i++)
        num += lives(&r->samples[i]);
    return num;
}

struct model_request *model_first(const struct model_request *r)
{
    struct model_request *other = r->samples;

    while (!lives(other))
        other++;
    return other;
}

bool model_follows(const struct model_request *r)
{
    return r->waits_for_fork && model_first(r) != r;
}

uint32_t model_num_admitted(const struct model_request *r)
{
    return r->waits_for_fork ? model_gang_size(r) : 1;
}

uint32_t model_num_due(const struct model *m, const struct model_request *r)
{
    bool is_ahead = r->is_beam && !r->waits_for_fork && r->num_emitted > r->num_drawn;

    return model_num_expected(m, r) - r->num_computed - (is_ahead ? 1 : 0);
}

/* They are one request again: only its prompt is to be computed. */
void model_gather(struct model_request *r)
{
    if (model_gang_size(r) == 1)
        return;
    for (uint32_t i = 0; i < r->num_samples; i++) {
        r->samples[i].waits_for_fork = true;
        r->samples[i].num_known = r->num_prompt;
    }
}

static bool all_have_their_token(const struct model_request *r)
{
    for (uint32_t i = 0; i < r->num_samples; i++) {
        const struct model_request *b = &r->samples[i];

        if (lives(b) && (b->waits_for_fork || b->num_emitted != b->num_drawn + 1 ||
                         b->num_computed + 1 != b->num_known))
            return false;
    }
    return true;
}

static void note_drawn(struct model_request *r)
{
    for (uint32_t i = 0; i < r->num_samples; i++)
        r->samples[i].num_drawn = r->samples[i].num_emitted;
}

/* r has ended. */
void model_part(struct model_request *r)
{
    uint32_t num = model_gang_size(r);
    struct model_request *last = num > 0 ? model_first(r) : NULL;

    if (num == 1 && last->waits_for_fork && r->waits_for_fork) {
        last->waits_for_fork = false;
        last->num_known = last->num_prompt + last->num_emitted;
    }
    if (num > 0 && r->is_beam && all_have_their_token(last))
        note_drawn(last);
}

/* --- forking --------------------------------------------------------------------------------- */

static void share(struct model *m, struct model_request *from, struct model_request *to)
{
    for (uint32_t g = 0; g < m->config.num_groups; g++) {
        for (uint32_t i = 0; i < from->num_table[g]; i++)
            model_hold(m, to, g, from->table[g][i]);
        to->num_hashed[g] = from->num_hashed[g];
    }
    to->num_computed = from->num_computed;
    if (to->num_computed > to->num_highest)
        to->num_highest = to->num_computed;
}

void model_fork(struct model *m, struct model_request *first)
{
    for (uint32_t i = 0; i < first->num_samples; i++) {
        struct model_request *r = &first->samples[i];

        if (!lives(r))
            continue;
        if (r != first)
            share(m, first, r);
        r->waits_for_fork = false;
        r->num_known = r->num_prompt + r->num_emitted;
        if (r->num_drawn == 0)
            r->num_drawn = 1;
    }
}

/* --- beams ----------------------------------------------------------------------------------- */

static uint64_t lot(const struct model *m, const struct model_request *r)
{
    return model_lot(m, r->row, r->num_emitted);
}

static bool gives_way(const struct model *m, const struct model_request *r)
{
    return lot(m, r) % 1000 < m->config.beam_drop;
}

static struct model_request *successor_of(const struct model *m, const struct model_request *r)
{
    struct model_request *stay[MODEL_MAX_SAMPLES];
    uint64_t num = 0;

    for (uint32_t i = 0; i < r->num_samples; i++)
        if (lives(&r->samples[i]) && !gives_way(m, &r->samples[i]))
            stay[num++] = &r->samples[i];
    return num > 0 ? stay[lot(m, r) / 1000 % num] : model_first(r);
}

void model_draw_beams(struct model *m, struct model_request *r)
{
    if (!r->is_beam || !lives(r) || !all_have_their_token(r))
        return;
    for (uint32_t i = 0; i < r->num_samples; i++) {
        struct model_request *beam = &r->samples[i], *other;

        if (!lives(beam) || !gives_way(m, beam))
            continue;
        other = successor_of(m, beam);
        if (other == beam)
            continue;
        model_release(m, beam);
        share(m, other, beam);
        m->totals.dropped_beams++;
    }
    note_drawn(r);
}

/* --- how much they need ---------------------------------------------------------------------- */

static uint64_t end_of(const struct model *m, const struct model_request *r, uint32_t num_output)
{
    uint64_t end = (uint64_t)r->num_prompt + (num_output > 0 ? num_output : 1) - 1;
    uint64_t wanted = (uint64_t)r->num_prompt + (r->max_tokens > 0 ? r->max_tokens : 1) - 1;

    if (end > m->config.max_model_len - 1)
        end = m->config.max_model_len - 1;
    if (end < r->num_prompt)
        end = r->num_prompt;
    if ((m->config.admit == MODEL_ADMIT_RESERVE_MAX ||
         m->config.admit == MODEL_ADMIT_STATIC_BATCH) && wanted > end)
        end = wanted;
    return end;
}

uint32_t model_num_shared(const struct model *m, const struct model_request *r)
{
    uint32_t num = 0;

    for (uint32_t g = 0; g < m->config.num_groups; g++)
        if (m->config.groups[g].kind == MODEL_GROUP_FULL)
            num += r->num_prompt / m->config.groups[g].block_size;
    return num;
}

/* Position by position: who is still there holds the full blocks of the prompt with the others. */
bool model_are_oversized(const struct model *m, const struct model_request *r,
                         const struct pkv_request_spec *spec, uint64_t step_tokens)
{
    uint32_t full = model_num_shared(m, r);
    uint64_t last = 0, peak = model_most_blocks_of_all(m, r->num_prompt, step_tokens);

    for (uint32_t i = 0; i < spec->num_samples; i++) {
        uint64_t end = end_of(m, r, spec->sample_output_tokens != NULL
                                        ? spec->sample_output_tokens[i] : spec->num_output_tokens);

        last = end > last ? end : last;
    }
    for (uint64_t position = r->num_prompt + UINT64_C(1); position <= last; position++) {
        uint64_t sum = full;

        for (uint32_t i = 0; i < spec->num_samples; i++)
            if (end_of(m, r, spec->sample_output_tokens != NULL
                                 ? spec->sample_output_tokens[i]
                                 : spec->num_output_tokens) >= position)
                sum += model_most_blocks_of_all(m, position, step_tokens) - full;
        peak = sum > peak ? sum : peak;
    }
    return spec->num_samples > m->config.max_num_seqs || peak > m->config.num_blocks;
}
