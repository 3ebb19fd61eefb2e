"""What the tests of `pagedkv size` share: its JSON, logs held against models, and the pools of scenarios
that come out of logs."""
import json
import re

from scenario_case import ScenarioCase

GIB, MIB = 1 << 30, 1 << 20
NUMBERS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
TRAFFIC = "traffic: {requests: 3, prompt_tokens: 9, output_tokens: 9}\n"


class SizeCase(ScenarioCase):
    def size(self, *args):
        return json.loads(self.done("size", *args, "--json").stdout)

    def config(self, keys):
        self.write("config.json", json.dumps(keys))

    def wrong(self, *args, says):
        result = self.call("size", *args)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, says)

    def hold(self, log, *args, verdict="agrees"):
        """A log's JSON; the verdict has its exit status."""
        self.write("log", log)
        result = self.call("size", *args, "--log", "log", "--json")
        self.assertEqual(result.stderr, "")
        got = json.loads(result.stdout)
        self.assertEqual((got["verdict"], result.returncode),
                         (verdict, 0 if verdict == "agrees" else 1))
        return got

    def cut(self, log, end, *args):
        """What is said of the first bytes of a log: no number that is not in it, or follows from one."""
        self.write("log", log[:end])
        result = self.call("size", *args, "--log", "log", "--json")
        if result.returncode == 2:
            self.assertIn("no line of this log says how large the pool is", result.stderr)
            return None
        got, whole = json.loads(result.stdout), {w.replace(",", "") for w in NUMBERS.findall(log)}
        said = [str(v) for c in got["checks"] for k, v in c.items() if k == "printed_tokens"]
        said += [f"{c['printed_hundredths'] / 100:.2f}" for c in got["checks"]
                 if "printed_hundredths" in c]
        said += re.findall(r" (?:max_\w+|num_speculative_tokens): (\d+)", got.get("scenario", ""))
        self.assertLessEqual(set(said), whole, log[:end][-60:])
        return got

    def reload(self, part, traffic=TRAFFIC):
        """What a run of the written scenario has: its blocks and the lines of its resolved scenario."""
        self.write("reload.yaml", part + traffic)
        self.done("run", "reload.yaml", "-q", "--check", "-o", "reloaded")
        return self.summary("reloaded")["blocks"], self.read("reloaded", "scenario.yaml").decode()

    def text_of(self, *args):
        return " ".join(self.call("size", *args).stdout.split())
