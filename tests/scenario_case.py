"""What the tests of the scenarios share: running one, and finding numbers in what it says."""
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

    def parts(self, name):
        """What a student is shown, and the finding."""
        shown, _, finding = self.text(name).partition("\n# Finding ")
        return tuple(re.sub(r"\s*\n# *", " ", part) for part in (shown, finding))

    def say(self, name, *phrases):
        """The finding says these numbers, and nothing above it gives them away."""
        shown, finding = self.parts(name)
        for phrase in phrases:
            self.assertIn(phrase, finding)
            self.assertNotIn(phrase, shown)

    def presuppose(self, name, *phrases):
        """What the question builds on."""
        for phrase in phrases:
            self.assertIn(phrase, self.parts(name)[0])

    def say_rows(self, name, rows):
        """The table of the finding has these rows, by their first words; how wide it is does not matter."""
        lines = re.findall(r"^# {11} *(\S+)  +(.*)$", self.text(name).partition("\n# Finding ")[2],
                           re.M)
        table = {first: " ".join(rest.split()) for first, rest in lines if first in rows}
        self.assertEqual(table, rows)
