#!/usr/bin/env python3
"""What `meson install` puts in place, and that a stranger can build against it.

usage: test_install.py BUILD_ROOT SOURCE_ROOT SANITIZE CC...
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap
from program import loading

BUILD_ROOT = SOURCE_ROOT = SANITIZE = CC = None     # set by main


def find(folder, name):
    return glob.glob(os.path.join(folder, "**", name), recursive=True)


def declarations(header):
    """The functions and objects that a header of ours declares."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"(?s:/\*.*?\*/)|^#(.*\\\n)*.*$", "", file.read(), flags=re.MULTILINE)
    text = text.replace('extern "C" {', "")
    inner = None
    while inner != text:
        inner, text = text, re.sub(r"\{[^{}]*\}", "", text)
    names = set()
    for statement in text.split(";"):
        if not re.match(r"\s*(typedef|static)\b", statement):
            names.update(re.findall(r"\b(pkv_\w+)\s*\(", statement)[:1] or
                         re.findall(r"\bextern\b.*\b(pkv_\w+)", statement))
    return names


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pagedkv-install-")
        meson = "/usr/bin/meson" if os.path.exists("/usr/bin/meson") else "meson"
        subprocess.run([meson, "install", "-C", BUILD_ROOT, "--no-rebuild", "--quiet", "--destdir",
                        cls.folder], check=True, stdout=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_files(self):
        for name in ("bin/pagedkv", "libpagedkv.a", "libpagedkv.so", "libpagedkv.so.0", "pagedkv.pc",
                     "pagedkv.py", "man1/pagedkv.1",
                     "man1/pagedkv-replay.1", "man5/pagedkv-files.5",
                     "man5/pagedkv-scenario.5", "completions/pagedkv.bash",
                     "doc/pagedkv/dygraphs.copyright", "man1/pagedkv-report.1"):
            self.assertEqual(len(find(self.folder, name)), 1, name)
        headers = os.listdir(os.path.join(SOURCE_ROOT, "include", "pagedkv"))
        for name in headers:
            self.assertEqual(len(find(self.folder, "include/pagedkv/" + name)), 1, name)

    def flags(self):
        config = os.path.dirname(find(self.folder, "pagedkv.pc")[0])
        return subprocess.run(
            ["pkg-config", "--cflags", "--libs", "pagedkv"], check=True, text=True,
            capture_output=True, env={**os.environ, "PKG_CONFIG_PATH": config,
                                      "PKG_CONFIG_SYSROOT_DIR": self.folder}).stdout.split()

    def run_example(self, flags):
        """Built with them; returns what it links at run time."""
        program = os.path.join(self.folder, "example")
        sanitize = [] if SANITIZE == "none" else ["-fsanitize=" + SANITIZE]
        subprocess.run([*CC, *sanitize, os.path.join(SOURCE_ROOT, "tests", "example.c"), "-o",
                        program, *flags], check=True)
        beside = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(find(self.folder, "libpagedkv.a")[0])}
        said = subprocess.run([program], check=True, text=True, capture_output=True, env=beside).stdout
        self.assertTrue(said.endswith("8 completed\n"), said)
        return subprocess.run(["readelf", "-d", program], check=True, text=True,
                              capture_output=True).stdout

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_example_with_the_shared_library(self):
        self.assertIn("[libpagedkv.so.0]", self.run_example(self.flags()))

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_example_with_the_static_library(self):
        flags = ["-l:libpagedkv.a" if word == "-lpagedkv" else word for word in self.flags()]
        self.assertNotIn("libpagedkv.so", self.run_example(flags))

    def test_module_finds_its_library(self):
        try:
            import numpy      # noqa: F401, only whether it is there
        except ImportError:
            self.skipTest("no NumPy here")
        code = "import pagedkv; print(pagedkv.__file__, pagedkv._find_library())"
        environment = {**os.environ, **loading(find(self.folder, "libpagedkv.so.0")[0])}
        environment.pop("PAGEDKV_LIBRARY", None)
        environment["PYTHONPATH"] = os.path.dirname(find(self.folder, "pagedkv.py")[0])
        said = subprocess.run([sys.executable, "-c", code], check=True, text=True, capture_output=True,
                              env=environment, cwd=self.folder).stdout.split()
        self.assertEqual([path.startswith(self.folder) for path in said], [True, True], said)

    def test_exports(self):
        """What the public headers declare, and nothing else."""
        library = find(self.folder, "libpagedkv.so.0")[0]
        symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                                 capture_output=True).stdout.splitlines()
        names = {line.split()[-1] for line in symbols}
        names = {name for name in names if not name.startswith("__odr_asan.")}    # the sanitizer's own
        headers = glob.glob(os.path.join(SOURCE_ROOT, "include", "pagedkv", "*.h"))
        declared = set().union(*map(declarations, headers))
        self.assertIn("pkv_sim_create", declared)
        self.assertIn("pkv_layout_paged", declared)
        self.assertEqual(names, declared)

    @unittest.skipUnless(shutil.which("c++"), "no C++ compiler here")
    def test_headers_are_cxx_too(self):
        folder = os.path.join(self.folder, "cxx.cc")
        with open(folder, "w", encoding="utf-8") as file:
            for name in sorted(os.listdir(os.path.join(SOURCE_ROOT, "include", "pagedkv"))):
                file.write(f'#include "pagedkv/{name}"\n')
        include = os.path.dirname(os.path.dirname(find(self.folder, "include/pagedkv/pool.h")[0]))
        subprocess.run(["c++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I",
                        include, folder], check=True)

    @unittest.skipUnless(shutil.which("c++"), "no C++ compiler here")
    def test_example_is_cxx_too(self):
        include = os.path.dirname(os.path.dirname(find(self.folder, "include/pagedkv/pool.h")[0]))
        subprocess.run(["c++", "-std=c++20", "-Wall", "-Werror", "-pedantic", "-x", "c++",
                        "-fsyntax-only", "-I", include,
                        os.path.join(SOURCE_ROOT, "tests", "example.c")], check=True)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    BUILD_ROOT, SOURCE_ROOT, SANITIZE = sys.argv[1:4]
    CC = sys.argv[4:]
    tap.main(__name__)
