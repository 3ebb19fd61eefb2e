"""What the tests of the scenarios share: running one, and finding numbers in what its head says."""
import os
import re

from program import ProgramCase


class ScenarioCase(ProgramCase):
    scenarios = None    # their folder, set by main

    def run_scenario(self, name, *args, status=0):
        result = self.call("run", os.path.join(self.scenarios, name), "-o", "out", "--quiet", *args)
        self.assertEqual(result.returncode, status, result.stderr)
        return self.summary("out")

    def text(self, name):
        with open(os.path.join(self.scenarios, name), encoding="utf-8") as file:
            return file.read()

    def say(self, name, *phrases):
        """The head of the scenario says these numbers."""
        head = re.sub(r"\s*\n# *", " ", self.text(name))
        for phrase in phrases:
            self.assertIn(phrase, head)

    def say_rows(self, name, rows):
        """The table of the head has these rows, by their first words; how wide it is does not matter."""
        lines = re.findall(r"^# {11} *(\S+)  +(.*)$", self.text(name), re.M)
        table = {first: " ".join(rest.split()) for first, rest in lines if first in rows}
        self.assertEqual(table, rows)
