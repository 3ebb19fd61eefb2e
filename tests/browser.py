"""What the tests of pages share: a headless Chromium that looks at a file as a user's would.

A page must say nothing on the console and ask nobody for anything: check_silent() fails on any console
error and on any http, https or ws request since the page was opened. Screenshots go into the folder given
by PKV_SCREENSHOTS, or `screenshots` below the working directory, which is the build folder under Meson.
"""
import json
import os
import shutil
import tempfile
import time
import unittest

import tap

DRIVER, BROWSER = "/usr/bin/chromedriver", "/usr/bin/chromium"


def driver_path():
    """Debian's driver fits Debian's browser; another one may come first in PATH."""
    return DRIVER if os.path.exists(DRIVER) else shutil.which("chromedriver")


def why_not():
    """Why no browser can be started, or None."""
    if not (os.path.exists(BROWSER) or shutil.which("chromium")):
        return "chromium is not installed"
    if not driver_path():
        return "chromedriver is not installed"
    try:
        import selenium  # noqa: F401  (looked for, used below)
    except ImportError:
        return "python3-selenium is not installed"
    return None


def skip_without_browser():
    """Say so and end the test where there is no browser."""
    reason = why_not()
    if reason:
        tap.skip_all(reason)


class Browser:
    def __init__(self, width=1280, height=900, dark=False):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        self.folder = tempfile.TemporaryDirectory(prefix="pagedkv-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER if os.path.exists(BROWSER) else shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--force-device-scale-factor=1", "--hide-scrollbars",
                         "--user-data-dir=" + self.folder.name, f"--window-size={width},{height}"):
            options.add_argument(argument)
        if dark:
            options.add_argument("--force-dark-mode")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver_path()), options=options)
        self.driver.set_script_timeout(60)
        if dark:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": "dark"}]})

    def close(self):
        self.driver.quit()
        self.folder.cleanup()

    def _drain(self):
        return self.driver.get_log("browser"), self.driver.get_log("performance")

    def open(self, path):
        """Open a report and wait until all is drawn. Returns the ms from navigation to then."""
        self._drain()      # the first page of a new profile asks for things of its own
        self.driver.get("file://" + os.path.abspath(path))
        return self.run_async(
            "pagedkv.ready.then(() => requestAnimationFrame(() => setTimeout(() => "
            "done(performance.now()), 0)));")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script, *arguments):
        """`done(value)` ends the script."""
        return self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];" + script, *arguments)

    def wait(self, script, *arguments, seconds=60):
        """What the script returns, once that is something: a busy browser comes to it late."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)) and time.monotonic() < end:
            time.sleep(0.02)
        return value

    def faults(self):
        """What the page said on the console, and whom it asked, since it was opened."""
        console, performance = self._drain()
        bad = [entry["message"] for entry in console if entry["level"] in ("SEVERE", "WARNING")]
        for entry in performance:
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = message["params"].get("url") or message["params"]["request"]["url"]
                if url.split(":", 1)[0] in ("http", "https", "ws", "wss"):
                    bad.append("asked for " + url)
        return bad

    def screenshot(self, name, whole=False):
        folder = os.environ.get("PKV_SCREENSHOTS", "screenshots")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name + ".png")
        if not whole:
            self.driver.save_screenshot(path)
            return path
        import base64
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True,
                                              "clip": self._whole_page()})
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
        return path

    def _whole_page(self):
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}


class BrowserCase(unittest.TestCase):
    """A test with a browser of its own; self.browser is opened when first asked for."""
    _browser = None

    @property
    def browser(self):
        if self._browser is None:
            self._browser = Browser()
            self.addCleanup(self._browser.close)
        return self._browser

    def check_silent(self):
        self.assertEqual(self.browser.faults(), [])
