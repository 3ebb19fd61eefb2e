"""Run unittest cases and say the results in TAP, so that Meson sees each of them."""
import sys
import unittest


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.num = 0
        self.bad = False
        self.subtest_failed = False

    def say(self, ok, test, note=""):
        self.num += 1
        self.bad |= not ok
        name = test.id().split(".", 1)[1]
        print(f"{'ok' if ok else 'not ok'} {self.num} - {name}{note}", flush=True)

    def explain(self, test, error):
        for line in self._exc_info_to_string(error, test).splitlines():
            print(f"# {line}", flush=True)

    def startTest(self, test):
        self.subtest_failed = False
        super().startTest(test)

    def addSuccess(self, test):
        if not self.subtest_failed:
            self.say(True, test)

    def addFailure(self, test, error):
        self.explain(test, error)
        self.say(False, test)

    addError = addFailure

    def addSubTest(self, test, subtest, error):
        if error is not None:
            print(f"# {subtest}", flush=True)
            self.explain(test, error)
            if not self.subtest_failed:
                self.say(False, test)
            self.subtest_failed = True

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")


def skip_all(reason):
    """For a test that lacks what it needs: TAP's way to say so."""
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def main(module):
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(1 if result.bad else 0)
