/*
 * man_json.c - the JSON of size, models and gpus: every key and what it means.
 *
 * A key stands with those above it, parted by dots; of a list each element has them. These are all
 * keys: a test holds what the commands print against this list.
 */
#include "man.h"

static const struct man_fact size[] = {
    {"schema", "1; raised when a key changes its meaning"},
    {"model", "its name or path"},
    {"note", "what was assumed about it, if anything was"},
    {"num_layers", "of the model, those that store nothing with them"},
    {"layer_types", "a list: which layers there are"},
    {"layer_types.kind", "full, latent, sliding, chunked or state"},
    {"layer_types.num_layers", "layers of this type"},
    {"layer_types.num_kv_heads", "but for latent and state: KV heads of the model"},
    {"layer_types.num_kv_heads_per_rank", "and of one TP rank"},
    {"layer_types.head_dim_k, layer_types.head_dim_v", "values of a head of K, and of V"},
    {"layer_types.latent_values, layer_types.rope_values", "latent: of the vector, and of its rotary part"},
    {"layer_types.index_values", "latent, with a sparse indexer: values of its key"},
    {"layer_types.window_tokens", "sliding: of the window; chunked: of a chunk"},
    {"layer_types.layer_position_bytes", "but for state: what one layer of one rank stores for a position"},
    {"layer_types.layer_state_bytes", "state: what it stores for a sequence"},
    {"kv_dtype", "type of the values of the cache"},
    {"state_dtype", "of recurrent state; only with state"},
    {"tp, pp, dcp", "ranks: tensor parallel, pipeline stages, decode context parallel"},
    {"num_draft_layers", "of a draft head or for multi-token prediction"},
    {"position_bytes", "all layers, one position, all stages of one TP rank"},
    {"growing_position_bytes", "of that, layers of full attention"},
    {"window_sequence_bytes", "what a sequence longer than all windows stores in them"},
    {"state_sequence_bytes", "its recurrent state"},
    {"fixed_sequence_bytes", "both"},
    {"block_size_tokens", "as asked for, or raised so that a page holds a state"},
    {"page_bytes", "one layer, one block; only where all pages are equal"},
    {"state_page_padding_bytes", "what a state leaves of a page; only with state"},
    {"group_size_layers", "layers of a group, padding with them"},
    {"groups", "a list: layers that share a block table"},
    {"groups.kind", "as layer_types.kind"},
    {"groups.block_size_tokens", "positions of a block, on one DCP rank"},
    {"groups.num_layers, groups.padding_layers", "layers, and what is padded"},
    {"groups.window_tokens", "as layer_types.window_tokens"},
    {"stages", "a list: pipeline stages"},
    {"stages.stage", "its number, from 0"},
    {"stages.num_layers", "draft layers with them, on the last stage"},
    {"stages.position_bytes, stages.growing_position_bytes, stages.state_sequence_bytes",
     "as above, of one rank of this stage"},
    {"stages.block_layers", "pages that a block has here"},
    {"stages.block_bytes", "their bytes"},
    {"budget", "only with --gpu: where its memory goes"},
    {"budget.total_from", "how the total is known"},
    {"budget.total_bytes", "memory of the GPU"},
    {"budget.utilisation_millionths", "share of that which may be used: 920000 is 0.92"},
    {"budget.weights_bytes", "on one rank"},
    {"budget.weights_estimated", "not given, but 2 bytes a parameter?"},
    {"budget.activation_bytes, budget.other_bytes, budget.graphs_bytes", "on one rank"},
    {"budget.activation_given, budget.other_given, budget.graphs_given", "else counted as 0"},
    {"ranks", "a list, only with a budget: one for each memory"},
    {"ranks.stage", "pipeline stage, from 0"},
    {"ranks.tp_rank", "within it, from 0; left out where they all have the same memory"},
    {"ranks.pool_bytes", "memory for the cache"},
    {"ranks.block_bytes", "of a block on this rank; 0 where the stage stores nothing"},
    {"ranks.num_blocks", "that it could hold"},
    {"ranks.stranded_bytes", "that it cannot use, as all ranks have the blocks of the limiting one"},
    {"ranks.limiting", "has it the fewest blocks?"},
    {"num_gpu_blocks", "physical blocks of every rank; only with a budget, as the next two"},
    {"num_blocks", "of these usable, without the null block"},
    {"tokens_old_rule", "size of the cache as engines used to print it: blocks // groups x smallest block"},
    {"tokens_new_rule", "as they print it now: blocks x max_model_len / blocks of one such request; only "
                        "where that fits"},
    {"max_model_len_tokens", "longest request; left out where it is not known"},
    {"max_model_len_fits", "may the engine start?"},
    {"max_model_len_request_blocks", "what one such request needs, where it fits"},
    {"max_model_len_request_bytes", "and where it does not"},
    {"max_concurrency_hundredths", "how many of them fit, as engines print it"},
    {"longest_request_tokens", "for which the blocks are enough, the null block among them as in the "
                               "engine's message; at most max_model_len"},
    {"lengths", "a list: of --lengths, else of 4096, 32768 and 131072 those that fit"},
    {"lengths.positions_tokens", "positions stored"},
    {"lengths.payload_bytes", "what they take, state with them; all stages of one TP rank"},
    {"lengths.request_blocks", "that a request may come to hold"},
    {"lengths.held_bytes", "of these blocks"},
    {"requests", "only with --prompt; how many fit, only with a budget"},
    {"requests.prompt_tokens, requests.output_tokens", "as asked"},
    {"requests.end_positions_tokens", "prompt + output - 1: the last token is never stored"},
    {"requests.prompt_blocks, requests.reserved_blocks, requests.end_blocks",
     "of one request: for the prompt, for prompt + output, at its end"},
    {"requests.payload_requests", "how many fit by the bytes of their prompts alone"},
    {"requests.prompt_requests, requests.reserved_requests, requests.end_requests",
     "how many fit by usable blocks: prompts now, prompt + output reserved, to their end"},
};

static const struct man_fact size_log[] = {
    {"schema", "1; raised when a key changes its meaning"},
    {"engine", "vllm_v1, vllm_v0 or sglang"},
    {"model", "the one the log is held against, else the one it names"},
    {"block_size_tokens, num_groups", "of the model, as for size --json"},
    {"block_bytes", "on the stage where they are most; only with a model"},
    {"num_gpu_blocks", "as printed, or as told by the other figures; 0 = they do not tell"},
    {"lowest_blocks, highest_blocks", "that the printed memory may stand for, being rounded"},
    {"ranks", "a list, only with a model and memory: each memory that was printed"},
    {"ranks.stage, ranks.tp_rank", "whose it is, where the log says so"},
    {"ranks.lowest_pool_bytes, ranks.highest_pool_bytes", "that the printed figure may stand for"},
    {"ranks.block_bytes", "on that stage; this and what follows is left out where the stage is not known"},
    {"ranks.lowest_blocks, ranks.highest_blocks", "that this memory holds"},
    {"ranks.lowest_stranded_bytes, ranks.highest_stranded_bytes",
     "of it that the engine's blocks leave unused; left out where they are more than it holds"},
    {"ranks.limiting", "does it hold the fewest, and has the engine no fewer?"},
    {"tokens", "as printed"},
    {"token_rule", "by which rule, old or new"},
    {"checks", "a list: printed figures held against what is computed"},
    {"checks.check", "blocks, tokens, concurrency_hundredths or cpu_blocks"},
    {"checks.printed_blocks, checks.printed_tokens, checks.printed_hundredths", "that figure"},
    {"checks.lowest_blocks, checks.lowest_tokens, checks.lowest_hundredths", "the least that it may be"},
    {"checks.highest_blocks, checks.highest_tokens, checks.highest_hundredths", "and the most"},
    {"checks.verdict", "agrees, smallest_rank (fewer, as another rank has less) or differs"},
    {"agrees", "did no check differ, and is there memory to tell the model by?"},
    {"verdict", "agrees, differs or cannot_tell, which is a log without such memory"},
    {"scenario", "the kv: part of a scenario with this pool, and what else the log says of it, as YAML"},
    {"no_scenario", "instead of it: why there can be none"},
};

static const struct man_fact models[] = {
    {"name", "as pagedkv size and kv.model take it"},
    {"hf_id", "Hugging Face id, which they take as well; may be empty"},
    {"verified", "false where a part of the sizes is recalled or inferred"},
    {"num_layers", "those that store nothing with them"},
    {"bf16_position_bytes", "all layers, one position, in bf16 on one rank"},
    {"bf16_growing_position_bytes", "of that, layers of full attention"},
    {"source", "where the sizes were read"},
};

static const struct man_fact gpus[] = {
    {"name", "as pagedkv size --gpu takes it"},
    {"alias", "another word for it, or empty"},
    {"nvml_bytes", "memory that nvidia-smi shows; 0 = not known"},
    {"cuda_gib_hundredths", "what programs are told, in hundredths of a GiB; 0 = not known"},
    {"total_bytes", "what --utilisation is a share of: what programs are told, else what nvidia-smi shows"},
    {"source", "where it was read"},
};

#define FACTS(array) array, sizeof array / sizeof *array

void man_json(struct pkv_text *out)
{
    man_facts(out, "SIZE --JSON", "Of pagedkv size --json: every figure is an exact integer. What was not "
              "asked, has no meaning or is 2^64 or more is left out. Keys within others stand behind a "
              "dot, here and below.", FACTS(size));
    man_facts(out, "SIZE --LOG --JSON", "Of pagedkv size --log FILE --json.", FACTS(size_log));
    man_facts(out, "MODELS --JSON", "Of pagedkv models --json: a list.", FACTS(models));
    man_facts(out, "GPUS --JSON", "Of pagedkv gpus --json: a list.", FACTS(gpus));
}
