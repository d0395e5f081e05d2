"""Opens the dashboard in headless Chromium, waits until every chart is drawn, takes a picture, and tells what the charts asked for.

Run by the python of Superset's environment, which has selenium: ``browser.py <address of Superset> <password> <page> <picture>``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

WAIT_SECONDS = 240
_STATE = """
return {
  loading: document.querySelectorAll('.dashboard-component-chart-holder [data-test="loading-indicator"]').length,
  holders: document.querySelectorAll('.dashboard-component-chart-holder').length,
  drawn: document.querySelectorAll('.slice_container').length,
  errors: [...document.querySelectorAll('[data-test="chart-holder"], .dashboard-component-chart-holder')]
    .filter(one => /(error|went wrong)/i.test(one.innerText)).map(one => one.innerText.slice(0, 300)),
  height: Math.max(...[...document.querySelectorAll('.grid-content, .dashboard-grid')].map(one => one.getBoundingClientRect().bottom), 0),
}
"""


def main() -> None:
    """Draw one page."""
    address, password, page, picture = sys.argv[1:]
    options = webdriver.ChromeOptions()
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1500,2400",
    ):
        options.add_argument(word)
    options.binary_location = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options, Service(os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")))
    try:
        driver.get(f"{address}/login/")
        WebDriverWait(driver, 120).until(lambda d: d.find_elements(By.CSS_SELECTOR, "input[type=password]"))
        driver.execute_script(
            "return fetch('/login/', {method: 'POST', headers: {'Content-Type': 'application/x-www-form-urlencoded'},"
            " body: new URLSearchParams({username: 'admin', password: arguments[0]})}).then(reply => reply.status)",
            password,
        )
        driver.get_log("performance")
        driver.get(f"{address}{page}")
        bodies, state = _drawn(driver)
        driver.save_screenshot(picture)
        print(json.dumps({"requests": bodies, "state": state}))
    finally:
        driver.quit()


def _drawn(driver: webdriver.Chrome) -> tuple[list[dict[str, object]], dict[str, object]]:
    """Wait until nothing is asked any more."""
    bodies: dict[str, dict[str, object]] = {}
    open_requests: set[str] = set()
    until, quiet_since, state = time.monotonic() + WAIT_SECONDS, time.monotonic(), {}
    while time.monotonic() < until:
        for entry in driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            given = message.get("params", {})
            name = given.get("requestId", "")
            if message["method"] == "Network.requestWillBeSent" and "/api/v1/chart/data" in given["request"]["url"]:
                body = (
                    given["request"].get("postData")
                    or driver.execute_cdp_cmd("Network.getRequestPostData", {"requestId": name})["postData"]
                )
                bodies[name] = {"url": given["request"]["url"], "body": json.loads(body)}
                open_requests.add(name)
            elif message["method"] == "Network.responseReceived" and name in bodies:
                bodies[name]["status"] = given["response"]["status"]
            elif message["method"] in ("Network.loadingFinished", "Network.loadingFailed"):
                open_requests.discard(name)
        state = driver.execute_script(_STATE)
        if open_requests or not bodies or state["loading"] or not state["holders"]:
            quiet_since = time.monotonic()
        if time.monotonic() - quiet_since > 6:
            break
        time.sleep(0.3)
    return list(bodies.values()), state


main()
