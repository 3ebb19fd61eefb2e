"""What the tests of `pagedkv size` share: its JSON, logs held against models, and the pools of scenarios
that come out of logs."""
import json

from scenario_case import ScenarioCase

GIB, MIB = 1 << 30, 1 << 20
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

    def reload(self, part, traffic=TRAFFIC):
        """What a run of the written scenario has: its blocks and the lines of its resolved scenario."""
        self.write("reload.yaml", part + traffic)
        self.done("run", "reload.yaml", "-q", "--check", "-o", "reloaded")
        return self.summary("reloaded")["blocks"], self.read("reloaded", "scenario.yaml").decode()

    def text_of(self, *args):
        return " ".join(self.call("size", *args).stdout.split())
