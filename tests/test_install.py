#!/usr/bin/env python3
"""What `meson install` puts in place, and that a stranger can build against it.

usage: test_install.py BUILD_ROOT SOURCE_ROOT SANITIZE CC...
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

BUILD_ROOT = SOURCE_ROOT = SANITIZE = CC = None     # set by main


def find(folder, name):
    return glob.glob(os.path.join(folder, "**", name), recursive=True)


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
        for name in ("bin/pagedkv", "libpagedkv.a", "pagedkv.pc", "man1/pagedkv.1",
                     "man1/pagedkv-replay.1", "man5/pagedkv-files.5",
                     "man5/pagedkv-scenario.5", "completions/pagedkv.bash"):
            self.assertEqual(len(find(self.folder, name)), 1, name)
        headers = os.listdir(os.path.join(SOURCE_ROOT, "include", "pagedkv"))
        for name in headers:
            self.assertEqual(len(find(self.folder, "include/pagedkv/" + name)), 1, name)

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config here")
    def test_example_builds_and_runs(self):
        config = os.path.dirname(find(self.folder, "pagedkv.pc")[0])
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "pagedkv"], check=True, text=True,
            capture_output=True, env={**os.environ, "PKG_CONFIG_PATH": config,
                                      "PKG_CONFIG_SYSROOT_DIR": self.folder}).stdout.split()
        program = os.path.join(self.folder, "example")
        sanitize = [] if SANITIZE == "none" else ["-fsanitize=" + SANITIZE]
        subprocess.run([*CC, *sanitize, os.path.join(SOURCE_ROOT, "tests", "example.c"), "-o",
                        program, *flags], check=True)
        said = subprocess.run([program], check=True, text=True, capture_output=True).stdout
        self.assertTrue(said.endswith("8 completed\n"), said)

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
