/*
 * openmetrics_scrapes.c - scrapes come one after another, and leave metric by metric.
 *
 * A chunk of them is turned in memory and put behind the others in a temporary file, so that at the end
 * a metric's part of each chunk is read in one piece.
 */
#include "report/openmetrics_private.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

int om_scrapes_init(struct om_scrapes *s, const struct om_layout *layout, int64_t interval_ms,
                    struct pkv_err *err)
{
    size_t num = OM_CHUNK_SCRAPES * layout->num_slots;
    *s = (struct om_scrapes){.layout = layout, .interval_ms = interval_ms};
    s->rows = pkv_alloc(num, sizeof *s->rows, err);
    s->turned = s->rows ? pkv_alloc(num, sizeof *s->turned, err) : NULL;
    return s->turned ? 0 : -1;
}

void om_scrapes_finish(struct om_scrapes *s)
{
    if (s->spool)
        fclose(s->spool);
    pkv_free(s->rows);
    pkv_free(s->turned);
}

uint64_t om_scrapes_num(const struct om_scrapes *s)
{
    return s->num_chunks * OM_CHUNK_SCRAPES + s->num_rows;
}

/* The rows in memory, metric by metric. */
static void turn(struct om_scrapes *s)
{
    int64_t *to = s->turned;
    for (size_t m = 0; m < s->layout->num; m++) {
        const struct om_metric *metric = &s->layout->metrics[m];
        for (size_t i = 0; i < s->num_rows; i++, to += metric->num_slots)
            memcpy(to, s->rows + i * s->layout->num_slots + metric->slot,
                   metric->num_slots * sizeof *to);
    }
}

static int spool_error(struct pkv_err *err)
{
    return pkv_fail(err, PKV_ERR_IO, "a temporary file for scrapes cannot be written: %s",
                    strerror(errno));
}

static int put_away(struct om_scrapes *s, struct pkv_err *err)
{
    size_t num = OM_CHUNK_SCRAPES * s->layout->num_slots;
    if (!s->spool && !(s->spool = tmpfile()))
        return spool_error(err);
    turn(s);
    if (fwrite(s->turned, sizeof *s->turned, num, s->spool) != num || fflush(s->spool) != 0)
        return spool_error(err);
    s->num_chunks++;
    s->num_rows = 0;
    return 0;
}

int64_t *om_scrapes_add(struct om_scrapes *s, struct pkv_err *err)
{
    if (s->num_rows == OM_CHUNK_SCRAPES && put_away(s, err) < 0)
        return NULL;
    return s->rows + s->num_rows++ * s->layout->num_slots;
}

/* A metric's part of a chunk; the one behind the last in the file is in memory. */
static const int64_t *read_part(struct om_scrapes *s, const struct om_metric *metric, uint64_t chunk,
                                struct pkv_err *err)
{
    size_t num = OM_CHUNK_SCRAPES * metric->num_slots;
    uint64_t at = (chunk * s->layout->num_slots + metric->slot) * OM_CHUNK_SCRAPES;
    if (chunk == s->num_chunks)
        return s->turned + metric->slot * s->num_rows;
    if (fseeko(s->spool, (off_t)(at * sizeof *s->rows), SEEK_SET) != 0 ||
        fread(s->rows, sizeof *s->rows, num, s->spool) != num) {
        pkv_fail(err, PKV_ERR_IO, "a temporary file of scrapes cannot be read: %s", strerror(errno));
        return NULL;
    }
    return s->rows;
}

static int write_metric(struct om_scrapes *s, struct om_writer *w, int64_t end_ms,
                        struct pkv_err *err)
{
    uint64_t last = om_scrapes_num(s) - 1;
    for (uint64_t chunk = 0; chunk <= s->num_chunks; chunk++) {
        const int64_t *part = read_part(s, w->metric, chunk, err);
        size_t num = chunk == s->num_chunks ? s->num_rows : OM_CHUNK_SCRAPES;
        if (!part)
            return -1;
        for (size_t i = 0; i < num; i++) {
            uint64_t n = chunk * OM_CHUNK_SCRAPES + i;
            om_writer_scrape(w, part + i * w->metric->num_slots,
                             n == last ? end_ms : (int64_t)n * s->interval_ms);
        }
    }
    return om_writer_check(w, err);
}

int om_scrapes_write(struct om_scrapes *s, int64_t end_ms, struct pkv_out *out, struct pkv_err *err)
{
    struct om_writer w = {.layout = s->layout, .out = out};
    int status = 0;
    turn(s);    /* from here on rows is scratch */
    for (size_t m = 0; m < s->layout->num && status == 0; m++) {
        om_writer_begin(&w, m);
        status = write_metric(s, &w, end_ms, err);
    }
    om_writer_finish(&w);
    pkv_out_text(out, "# EOF\n");
    pkv_out_end_row(out);
    return status;
}
