#!/usr/bin/env python3
"""The JSON of `pagedkv size`, `models` and `gpus`: its keys are those of pagedkv-files(5), all of them
and no others; its figures are whole numbers that name what they count.

usage: test_size_json.py PROGRAM SOURCE_ROOT
"""
import json
import os
import re
import sys

import tap
from program import ProgramCase
from size_case import GIB, SizeCase

# Between them they have every key that the answers may have.
SHAPES = (
    ("llama-3.1-70b",), ("gemma-3-27b",), ("llama-4-scout-17b-16e",), ("deepseek-v3", "--mtp"),
    ("--layers", "4", "--latent", "512,64", "--indexer", "128"), ("gemma-4-26b-a4b", "--tp", "2"),
    ("qwen3-next-80b-a3b", "--state-dtype", "fp32"), ("mistral-7b-v0.1", "--pp", "3"),
    ("gemma-3-27b", "--kv-budget", "40GiB,41GiB", "--pp", "2", "--prompt", "9", "--output", "9"),
    ("llama-3.1-8b", "--tp", "2", "--kv-budget", "8GiB,9GiB", "--prompt", "9"),
    ("llama-3.1-8b", "--kv-budget", "1GiB", "--max-model-len", "131072"),
    ("llama-3.1-8b", "--num-gpu-blocks", "99"), ("config.json",),
    ("--layers", "1", "--kv-heads", "1", "--head-dim", "64", "--kv-budget", "1GiB"),
    ("llama-3.1-8b", "--gpu", "h100", "--utilisation", "0.9", "--activation", "5GiB"),
    ("llama-3.1-8b", "--gpu", "h100", "--other", "1GiB", "--graphs", "1GiB", "--weights", "16GiB"),
)
MEMORY = "(Worker_PP{}_TP0) Available KV cache memory: 8.00 GiB\n"
LOGS = (
    ((), "GPU KV cache size: 131,072 tokens\n"),
    (("llama-3.1-70b", "--pp", "2"), MEMORY.format(0) + MEMORY.format(1) +
     "GPU KV cache size: 52,416 tokens\nMaximum concurrency for 131,072 tokens per request: 0.40x\n"),
    (("llama-3.1-70b", "--pp-layers", "79,1"), 2 * "Available KV cache memory: 8.00 GiB\n"),
    (("llama-3.1-8b",), "reserved for KV Cache is 3.81GiB.\n# GPU blocks: 1952, # CPU blocks: 2048\n"),
    (("bamba-9b",), "Available KV cache memory: 8.00 GiB\nGPU KV cache size: 1,760 tokens\n"),
    (("qwen3-235b-a22b", "--tp", "4", "--ranks-differ"),
     "Available KV cache memory: 8.11 GiB\nGPU KV cache size: 178,880 tokens\n"),
)
UNITS = ("bytes", "tokens", "blocks", "layers", "requests", "hundredths", "millionths", "values",
         "old_rule", "new_rule")
# Counts whose name is the field's, and numbers of ranks and stages.
PLAIN = {"schema", "tp", "pp", "dcp", "stage", "tp_rank", "num_kv_heads", "num_kv_heads_per_rank",
         "head_dim_k", "head_dim_v", "num_groups"}


def paths(value, above=()):
    """The keys of a document, dotted; an element of a list has the path of the list."""
    if isinstance(value, list):
        for element in value:
            yield from paths(element, above)
    elif isinstance(value, dict):
        for key, below in value.items():
            yield ".".join((*above, key))
            yield from paths(below, (*above, key))


def numbers(value, key=None):
    """Each number with the key it stands under."""
    if isinstance(value, list):
        for element in value:
            yield from numbers(element, key)
    elif isinstance(value, dict):
        for name, below in value.items():
            yield from numbers(below, name)
    elif not isinstance(value, (str, bool)):
        yield key, value


class Keys(SizeCase):
    def documented(self, heading):
        page = self.done("--man", "files").stdout.replace("\\-", "-").replace("\\&", "")
        part = re.search(rf"^\.SH {heading}\n(.*?)^\.SH ", page, re.M | re.S)[1]
        return {key for names in re.findall(r"^\\fB(.*?)\\fR$", part, re.M)
                for key in names.split(", ")}

    def check(self, heading, documents):
        emitted = set()
        for document in documents:
            emitted |= set(paths(document))
            for key, number in numbers(document):
                self.assertIs(type(number), int, key)
                self.assertTrue(key in PLAIN or key.endswith(UNITS) or key.startswith("num_"), key)
        self.assertEqual(emitted, self.documented(heading))

    def test_size(self):
        self.config({"model_type": "otter", "num_hidden_layers": 2, "num_attention_heads": 4,
                     "num_key_value_heads": 4, "hidden_size": 64, "torch_dtype": "bfloat16"})
        self.check("SIZE --JSON", [self.size(*shape) for shape in SHAPES])

    def test_log(self):
        documents = []
        for args, log in LOGS:
            self.write("log", log)
            documents.append(json.loads(self.call("size", *args, "--log", "log", "--json").stdout))
        self.check("SIZE --LOG --JSON", documents)

    def test_models_and_gpus(self):
        for word, one in (("models", "gemma-3-27b"), ("gpus", "H100")):
            for more in ((), (one,)):
                self.check(f"{word.upper()} --JSON",
                           [json.loads(self.done(word, *more, "--json").stdout)])


class Figures(SizeCase):
    def test_terms_that_were_given(self):
        for given, option in (("activation", "--activation"), ("other", "--other"),
                              ("graphs", "--graphs")):
            budget = self.size("llama-3.1-8b", "--gpu", "h100", option, "1GiB")["budget"]
            self.assertEqual({key for key in ("activation", "other", "graphs")
                              if budget[f"{key}_given"]}, {given})
            self.assertEqual(budget[f"{given}_bytes"], GIB)

    def test_windows_of_draft_layers(self):
        """Gemma 3 27B: 52 windows of 1,024 x 16 heads x 256 x 2 B. Mistral 7B v0.1 has windows only, so
        a draft layer has one as well."""
        self.assertEqual(self.size("gemma-3-27b")["window_sequence_bytes"], 52 * 1024 * 16 * 256 * 2)
        for draft, more in ((0, ()), (2, ("--draft-layers", "2"))):
            got = self.size("mistral-7b-v0.1", "--lengths", "8192", *more)
            self.assertEqual(got["window_sequence_bytes"], (32 + draft) * 4096 * 8 * 256 * 2)
            self.assertEqual(got["lengths"][0]["payload_bytes"], got["fixed_sequence_bytes"])
        self.assertEqual(self.size("gemma-2-9b", "--no-hybrid-manager")["window_sequence_bytes"], 0)

    def test_beyond_64_bits(self):
        """1,024 layers x 2^16 heads x 256 values x 2 x 4 B are 2^37 a position: a window of 2^27 takes
        2^64 B, one less just fits. What does not fit 64 bits is left out, not cut."""
        keys = {"model_type": "mistral", "num_hidden_layers": 1024, "num_attention_heads": 1 << 16,
                "num_key_value_heads": 1 << 16, "head_dim": 256, "torch_dtype": "float32"}
        args = ("config.json", "--kv-dtype", "fp32", "--lengths", str(1 << 28))
        self.config({**keys, "sliding_window": (1 << 27) - 1})
        fits = self.size(*args)
        self.assertEqual(fits["window_sequence_bytes"], (1 << 64) - (1 << 37))
        self.assertEqual(fits["lengths"][0]["payload_bytes"], (1 << 64) - (1 << 37))
        self.config({**keys, "sliding_window": 1 << 27})
        beyond = self.size(*args)
        self.assertEqual(beyond["position_bytes"], 1 << 37)
        for key in ("window_sequence_bytes", "fixed_sequence_bytes"):
            self.assertNotIn(key, beyond)
        self.assertEqual(set(beyond["lengths"][0]), {"positions_tokens", "request_blocks"})
        text = " ".join(self.done("size", *args).stdout.split())
        self.assertIn("2^64 B or more in full windows", text)
        self.assertIn("268,435,456 positions: 2^64 B or more in", text)


def main():
    ProgramCase.program = os.path.abspath(sys.argv[1])
    tap.main("__main__")


if __name__ == "__main__":
    main()
