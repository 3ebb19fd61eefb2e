/*
 * store.c - records of live requests, reused, so that memory follows how many are live and not how
 * many have been. A record keeps its address for good; reuse raises its generation.
 */
#include <string.h>

#include "base/alloc.h"
#include "request/tenants.h"

enum { RECORDS_A_CHUNK = 64 };

struct chunk {
    struct chunk *next;
    struct pkv_request records[RECORDS_A_CHUNK];
};

struct pkv_request_store {
    struct chunk *chunks;            /* owned */
    struct pkv_request *unused;      /* in the chunks */
    size_t num_live;
    struct tenants tenants;
};

struct pkv_request_store *pkv_request_store_create(struct pkv_err *err)
{
    return pkv_alloc(1, sizeof(struct pkv_request_store), err);
}

static bool is_live(const struct pkv_request *r)
{
    return r->generation & 1;
}

static void release_record(struct pkv_request *r, struct pkv_cache *cache)
{
    if (is_live(r)) {
        pkv_cache_release(cache, &r->seq);
        pkv_seq_finish(cache, &r->seq);
    }
    pkv_free(r->id_buffer);
    pkv_free(r->tenant_buffer);
}

void pkv_request_store_destroy(struct pkv_request_store *store, struct pkv_cache *cache)
{
    if (!store)
        return;
    while (store->chunks) {
        struct chunk *next = store->chunks->next;
        for (size_t i = 0; i < RECORDS_A_CHUNK; i++)
            release_record(&store->chunks->records[i], cache);
        pkv_free(store->chunks);
        store->chunks = next;
    }
    tenants_free(&store->tenants);
    pkv_free(store);
}

static int add_chunk(struct pkv_request_store *store, struct pkv_err *err)
{
    struct chunk *chunk = pkv_alloc(1, sizeof(*chunk), err);
    if (!chunk)
        return -1;
    chunk->next = store->chunks;
    store->chunks = chunk;
    for (size_t i = RECORDS_A_CHUNK; i-- > 0;) {
        chunk->records[i].next_unused = store->unused;
        store->unused = &chunk->records[i];
    }
    return 0;
}

static int copy_name(char **buffer, size_t *capacity, const char *text, const char **out,
                     struct pkv_err *err)
{
    *out = NULL;
    if (!text)
        return 0;
    size_t size = strlen(text) + 1;
    if (pkv_grow(buffer, capacity, size, 1, err) < 0)
        return -1;
    memcpy(*buffer, text, size);
    *out = *buffer;
    return 0;
}

/* Everything but the buffers, which outlive a use of the record. */
static void fill_record(struct pkv_request *r, const struct pkv_request_spec *spec)
{
    r->row = spec->row;
    r->priority = spec->priority;
    r->max_tokens = spec->max_tokens ? spec->max_tokens : 1;
    r->emits_nothing = spec->num_output_tokens == 0;
    r->num_output_tokens = r->emits_nothing ? 1 : spec->num_output_tokens;
    r->num_emitted = r->num_highest_tokens = r->num_hit_tokens = 0;
    r->num_drafts = r->num_in_flight = 0;
    r->num_preemptions = r->peak_blocks = r->num_overtakes = r->told_limits = 0;
    r->num_recomputed_tokens = 0;
    r->status = PKV_REQUEST_WAITING;
    r->arrival_order = 0;
    r->arrival_ns = spec->arrival_ns;
    r->abort_ns = spec->abort_ns;
    r->deadline_ns = spec->deadline_ns;
    r->admitted_ns = r->first_token_ns = r->last_token_ns = PKV_NO_TIME;
    r->max_gap_ns = 0;
    r->waiting_node.index = r->abort_node.index = PKV_HEAP_NOWHERE;
    r->sched_mark = UINT64_MAX;
    r->sched_entry = 0;
    r->timed_tokens = 0;
    r->timed_step = 0;
    r->steady = (struct pkv_steady){0};
    r->sample = (struct pkv_sample){.num = 1, .next = r, .prev = r};
    r->waits_since_pass = 0;
    r->looked_up_at = UINT64_MAX;
    r->session = NULL;
    r->num_waiting_hit = r->tenant_number = 0;
}

struct pkv_request *pkv_request_open(struct pkv_request_store *store, struct pkv_cache *cache,
                                     const struct pkv_request_spec *spec, struct pkv_err *err)
{
    if (!store->unused && add_chunk(store, err) < 0)
        return NULL;
    struct pkv_request *r = store->unused;
    if (copy_name(&r->id_buffer, &r->id_capacity, spec->id, &r->id, err) < 0 ||
        copy_name(&r->tenant_buffer, &r->tenant_capacity, spec->tenant, &r->tenant, err) < 0 ||
        pkv_seq_init(cache, &r->seq, &spec->content, err) < 0)
        return NULL;
    PKV_ASSERT(r->seq.num_prompt_tokens == spec->num_prompt_tokens);
    store->unused = r->next_unused;
    store->num_live++;
    r->generation++;
    fill_record(r, spec);
    return r;
}

void pkv_request_close(struct pkv_request_store *store, struct pkv_cache *cache,
                       struct pkv_request *request)
{
    PKV_ASSERT(is_live(request));
    pkv_seq_finish(cache, &request->seq);
    request->generation++;
    request->next_unused = store->unused;
    store->unused = request;
    store->num_live--;
}

size_t pkv_request_store_num_live(const struct pkv_request_store *store)
{
    return store->num_live;
}

int pkv_request_number_tenant(struct pkv_request_store *store, struct pkv_request *request,
                              struct pkv_err *err)
{
    return tenants_number(&store->tenants, request->tenant, &request->tenant_number, err);
}
