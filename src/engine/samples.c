/*
 * samples.c - a row that asks for several answers becomes as many requests.
 *
 * They have one prompt, one arrival and one time of abort; what they generate differs. Sample k of
 * request 7 is called 7/k, counted from 0 as the engine counts the children of a request
 * (vllm/v1/engine/parallel_sampling.py). Requests are numbered on, so that every tie is broken.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/engine_private.h"

/* Of several answers it is not known which one the next turn goes on from. Beams without a fork would be
 * samples that never give way, which is something else. */
static int check(const struct pkv_engine *e, struct pkv_err *err)
{
    const struct pkv_request_spec *spec = &e->asked;
    if (spec->session && spec->num_samples > 1)
        return pkv_fail(err, PKV_ERR_INPUT, "row %" PRIu64 " asks for %" PRIu32 " answers in a session, "
                        "whose next turn would follow one of them", spec->row, spec->num_samples);
    if (!spec->is_beam_search || spec->num_samples < 2 || e->config.sched.fork)
        return 0;
    return pkv_fail(err, PKV_ERR_INPUT, "row %" PRIu64 " asks for %" PRIu32 " beams, which need "
                    "scheduler.fork: on", spec->row, spec->num_samples);
}

/* Rows without an id go by their number in the source. */
static int name(struct pkv_engine *e, struct pkv_err *err)
{
    const struct pkv_request_spec *spec = &e->asked;
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, spec->row);
    const char *id = spec->id ? spec->id : number;
    size_t size = strlen(id) + 12;   /* "/4294967295" */
    if (pkv_grow(&e->sample_id, &e->sample_id_capacity, size, 1, err) < 0)
        return -1;
    if (spec->num_samples > 1)
        snprintf(e->sample_id, size, "%s/%" PRIu32, id, e->next.sample);
    else
        snprintf(e->sample_id, size, "%s", id);
    e->next.id = e->sample_id;
    return 0;
}

static uint64_t output_origin(const struct pkv_request_spec *asked, uint32_t sample)
{
    if (sample == 0)
        return asked->content.output_origin;
    return pkv_origin(PKV_ORIGIN_SAMPLE, asked->row | (uint64_t)sample << 44);
}

int samples_next(struct pkv_engine *e, struct pkv_err *err)
{
    bool is_first = !e->has_next || e->next.sample + 1 >= e->asked.num_samples;
    uint32_t sample = is_first ? 0 : e->next.sample + 1;
    if (is_first) {
        int got = e->config.source.next(e->config.source.ctx, &e->asked, err);
        if (got <= 0)
            return got;
        if (check(e, err) < 0)
            return -1;
    } else {
        e->num_rows_more++;
    }
    e->next = e->asked;
    e->next.sample = sample;
    e->next.row = e->asked.row + e->num_rows_more;
    e->next.num_output_tokens = pkv_spec_outputs(&e->asked, sample);
    e->next.content.output_origin = output_origin(&e->asked, sample);
    e->next.content.prompt_only = e->asked.is_beam_search && e->asked.num_samples > 1;
    if (e->asked.num_samples > 1 || e->num_rows_more > 0)
        return name(e, err) < 0 ? -1 : 1;
    return 1;
}
