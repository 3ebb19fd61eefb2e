/*
 * fuzz_warm.c - any bytes as a cache.csv: reading it does not crash, leak or grow beyond the file, and what
 * it takes is a sound cache.
 *
 * The first byte chooses the groups of the run and the size of its pool, the rest is the file. With
 * -Dfuzz=true this is a libFuzzer target; without, main() damages good files by a seeded stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pagedkv/cache.h"
#include "pagedkv/policy.h"
#include "pagedkv/report.h"
#include "pagedkv/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64], path[80];
static uint64_t num_taken;               /* files that were read to their end */

static void remove_all(void)
{
    unlink(path);
    rmdir(dir);
}

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "%s/pagedkv_fuzz_XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    PKV_ASSERT(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/cache.csv", dir);
    atexit(remove_all);
}

static void write_file(const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    PKV_ASSERT(file && fwrite(data, 1, size, file) == size);
    PKV_ASSERT(fclose(file) == 0);
}

static void restore(struct pkv_sched_config *config, uint32_t num_blocks,
                    const struct pkv_cache_state *state)
{
    struct pkv_err err = {0};
    config->num_blocks = num_blocks;
    struct pkv_sched *sched = pkv_sched_create(config, &err);
    PKV_ASSERT(sched);
    PKV_ASSERT(pkv_cache_restore(pkv_sched_cache(sched), state, &err) == 0);
    PKV_ASSERT(pkv_cache_check(pkv_sched_cache(sched), NULL, 0, &err) == 0);
    pkv_sched_destroy(sched);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char one[] =
        "kv: {block_size: 4, num_blocks: 8}\ntraffic: {requests: 1, prompt_tokens: 1, output_tokens: 1}\n";
    static const char several[] =
        "kv: {num_blocks: 8, groups: [{type: full, block_size: 8}, "
        "{type: sliding, window: 8, block_size: 4}]}\n"
        "traffic: {requests: 1, prompt_tokens: 1, output_tokens: 1}\n";
    struct pkv_err err = {0};
    struct pkv_cache_state state;
    if (size == 0)
        return 0;
    if (!*dir)
        make_dir();
    const char *text = data[0] & 1 ? several : one;
    struct pkv_scenario *s = pkv_scenario_parse("fuzz", text, NULL, 0, &err);
    PKV_ASSERT(s);
    write_file(data + 1, size - 1);
    if (pkv_warm_read(dir, &s->sched, &state, &err) == 0) {
        num_taken++;
        restore(&s->sched, 1 + (data[0] >> 1), &state);
        pkv_cache_state_free(&state);
    } else {
        PKV_ASSERT(err.code == PKV_ERR_INPUT && strlen(err.text) > 5);
    }
    pkv_scenario_destroy(s);
    return 0;
}

#ifndef PKV_LIBFUZZER
#include "damage.h"

#define NUM_INPUTS 20000

static const char *const seeds[] = {
    "# identities 1\n# groups full:4\n# blocks 8\n# runs 1\nblocks,identity,second,twin\n3,,,\n"
    "1,c241b8f70cab3564,,0\n1,c241b8f70cab3564,,1\n3,,,\n",
    "# identities 1\n# groups full:8 sliding:4:8\n# blocks 4\n# runs 4294967294\n"
    "blocks,identity,second,twin\n"
    "1,c241b8f70cab3564,00000000000000ff,0\n1,0241b8f70cab3564,,0\n2,,,\n",
    "# identities 1\n# groups full:4\n# blocks 2147483647\n# runs 1\nblocks,identity,second,twin\n"
    "2147483646,,,\n1,ffffffffffffffff,,0\n",
};
#define NUM_SEEDS (sizeof seeds / sizeof *seeds)

int main(void)
{
    struct pkv_rng rng;
    static uint8_t bytes[DAMAGE_MAX_SIZE];
    pkv_rng_init(&rng, 1, "fuzz");
    for (int i = 0; i < NUM_INPUTS; i++) {
        size_t which = (size_t)pkv_rng_below(&rng, NUM_SEEDS);
        size_t size = strlen(seeds[which]) + 1;
        bytes[0] = (uint8_t)(pkv_rng_u64(&rng) << 1 | (which == 1));
        memcpy(bytes + 1, seeds[which], size - 1);
        uint64_t num_damages = pkv_rng_below(&rng, 4), before = num_taken;
        for (uint64_t n = 0; n < num_damages; n++)
            size = damage(&rng, bytes, size);
        LLVMFuzzerTestOneInput(bytes, size);
        PKV_ASSERT(num_damages > 0 || num_taken == before + 1);
    }
    return EXIT_SUCCESS;
}
#endif
