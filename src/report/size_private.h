/*
 * size_private.h - the answer to a question of size, before it is written.
 */
#ifndef PKV_REPORT_SIZE_PRIVATE_H
#define PKV_REPORT_SIZE_PRIVATE_H

#include "report/report_private.h"

struct size_length {
    uint64_t positions;
    uint64_t payload_bytes;     /* what is stored, with state; all stages of one TP rank */
    uint64_t blocks, held_bytes;   /* bytes: UINT64_MAX = 2^64 or more */
};

struct size_answer {
    const struct pkv_size_question *q;   /* borrowed */
    struct pkv_kv_plan plan;
    struct pkv_kv_fit fit;
    bool has_pool;
    uint64_t num_usable;                 /* blocks without the null block */
    uint64_t window_bytes;               /* of one sequence longer than all windows, drafts with it */
    uint64_t fixed_bytes;                /* the same with state; UINT64_MAX = 2^64 or more */
    uint64_t block_bytes;                /* of all stages of one TP rank */
    uint64_t max_len, max_len_blocks;    /* 0 = no maximum known */
    bool max_len_fits;
    uint64_t longest;                    /* request for which the blocks are enough */
    struct size_length lengths[PKV_SIZE_MAX_LENGTHS];
    size_t num_lengths;
};

/* The answer, to be freed with pkv_free(). NULL with an error. */
struct size_answer *size_answer(const struct pkv_size_question *question, struct pkv_err *err);

/* Requests that blocks are enough for. */
uint64_t size_requests(const struct size_answer *a, uint64_t num_positions);
uint32_t size_layers_of(const struct size_answer *a, uint32_t type);
/* num / den in hundredths, to nearest, ties to even, as engines print it. */
uint64_t size_hundredths(uint64_t num, uint64_t den);
/* An item of a page whose text was made by pieces; the text is empty then. */
void put_item(struct page *p, const char *name, struct pkv_text *t);
/* "1,342,177,280 B (1.25 GiB)" */
void add_bytes(struct pkv_text *t, uint64_t n);
/* The same of a sum that may have been cut: UINT64_MAX is "2^64 B or more". */
void add_bytes_or_more(struct pkv_text *t, uint64_t n);

#endif
