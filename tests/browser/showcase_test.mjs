// SPDX-License-Identifier: MIT
// usage: node showcase_test.mjs <examples/showcase, built> <directory for screenshots>
//
// The showcase in headless Chromium: chat between two tabs, events that arrive, the tree, JSON, looms; in light and in
// dark. Keeps screenshots of what it saw.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join} from "node:path";
import {createInterface} from "node:readline";
import {fileURLToPath} from "node:url";
import {chromium} from "playwright-core";

const kPatience = 30_000;
const [program, pictures] = process.argv.slice(2);
const pages = join(dirname(fileURLToPath(import.meta.url)), "../../examples/showcase/public");
mkdirSync(pictures, {recursive: true});

// --- The service ------------------------------------------------------------------------------------------------

const service = spawn(program, [pages, "0"], {stdio: ["ignore", "pipe", "inherit"]});
const printed = [];
const ended = new Promise((resolve) => service.once("exit", (code, signal) => resolve(signal ?? code)));
const url = await new Promise((resolve, reject) => {
  createInterface({input: service.stdout}).on("line", (line) => {
    printed.push(line);
    const found = line.match(/http:\S+/);
    if (found) resolve(found[0]);
  });
  ended.then((how) => reject(new Error(`the service ended (${how}) before it said where it is`)));
});

// --- The browser ------------------------------------------------------------------------------------------------

const profile = mkdtempSync(join(tmpdir(), "weft-browser-"));
const problems = [];
let browser;

async function open(name, colorScheme = "light") {
  const page = await browser.newPage();
  await page.emulateMedia({colorScheme});
  await page.setViewportSize({width: 1280, height: 1200});
  page.setDefaultTimeout(kPatience);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`${name}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`${name}: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) problems.push(`${name}: asks for ${request.url()}`);
  });
  await page.goto(url);
  await page.fill("#name", name);
  await page.locator("#name").blur();
  await said(page, `${name} has joined`);
  return page;
}

// Waits until the chat of this tab shows a line that ends so.
function said(page, text) {
  return page.waitForFunction(
    (wanted) => [...document.querySelectorAll("#said li")].some((line) => line.textContent.endsWith(wanted)), text);
}

async function say(page, text) {
  await page.fill("#text", text);
  await page.click("#say button");
}

const number = async (page, id) => Number((await page.textContent(id)).replaceAll(",", ""));

// --- What is to be seen -----------------------------------------------------------------------------------------

async function chatBetweenTwoTabs(ada, grace) {
  await say(ada, "shall we weave?");
  await said(grace, "Ada: shall we weave?");
  await say(grace, "<b>with pleasure</b> – grüße 🧵");
  await said(ada, "Grace: <b>with pleasure</b> – grüße 🧵");
  assert.equal(await ada.locator("#said li b", {hasText: "with pleasure"}).count(), 0, "markup was not escaped");
  await ada.waitForFunction(() => document.querySelector("#people").textContent === "2 people");
}

async function eventsArrive(page) {
  await page.waitForFunction(() => document.querySelector("#link").classList.contains("live"));
  const before = await page.textContent("#uptime");
  await page.waitForFunction((then) => document.querySelector("#uptime").textContent !== then, before);
  assert.ok(await number(page, "#tasks") > 10, "fewer tasks than there must be");
  assert.equal(await page.locator("#workers tr").count(), 2);
  await page.waitForFunction(() => document.querySelector("#graph-line").getAttribute("d")?.includes("L"));
}

async function loomsComeAndGo(page) {
  await page.waitForFunction(() => document.querySelectorAll("#looms li").length === 3);
  await page.click("#add-loom");
  await page.waitForFunction(() => document.querySelectorAll("#looms li").length === 4);
  await page.waitForFunction(() => document.querySelector("#tree").textContent.includes('"loom 4"'));
  await page.click('#looms button[aria-label="Stop loom 4"]');
  await page.waitForFunction(() => document.querySelectorAll("#looms li").length === 3);
  await page.waitForFunction(() => !document.querySelector("#tree").textContent.includes('"loom 4"'));
}

async function enoughLoomsAreEnough(page) {
  const count = (wanted) => page.waitForFunction((many) => document.querySelectorAll("#looms li").length === many, wanted);
  for (let i = 0; i < 9; ++i) await page.click("#add-loom");
  await count(12);
  assert.ok(await page.isDisabled("#add-loom"), "a thirteenth would be refused");
  for (const stop of (await page.locator("#looms button").all()).slice(3).reverse()) await stop.click();
  await count(3);
  assert.ok(await page.isEnabled("#add-loom"));
}

async function theTreeIsShown(page) {
  const tree = await page.textContent("#tree");
  for (const text of ["worker 0", "worker 1", "nursery", '"loom 1"', '"loom 2"', '"left weaver"', "Chat::talk"]) {
    assert.ok(tree.includes(text), `the tree has no ${text}`);
  }
  const whole = await (await fetch(url + "tree")).text();
  assert.ok(whole.includes("(lambda at examples/showcase/"), "a release names its sources from the top of the tree on");
  assert.ok(!whole.includes("(lambda at /"), "the tree names a path of this machine");
}

async function jsonIsAnswered(page) {
  assert.equal(await page.textContent("#json"), "not asked yet");
  await page.click("#ask");
  await page.waitForFunction(() => document.querySelector("#json").textContent.startsWith("{"));
  const answer = JSON.parse(await page.textContent("#json"));
  assert.equal(answer.people, 2);
  assert.equal(answer.workers.length, 2);
}

// What assistive technology needs: everything that can be operated has a name.
async function everythingHasAName(page) {
  const nameless = await page.evaluate(() => [...document.querySelectorAll("button, a, input, [tabindex], img, svg")]
    .filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length || one.hasAttribute("alt")))
    .map((one) => one.outerHTML));
  assert.deepEqual(nameless, []);
}

async function itFitsASmallScreen(page) {
  await page.setViewportSize({width: 360, height: 740});
  const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(tooWide <= 0, `the page is ${tooWide} px wider than a telephone`);
  await page.screenshot({path: join(pictures, "showcase-small.png"), fullPage: true});
  const rows = await page.evaluate(() => [...document.querySelectorAll("#workers tr")].map((row) => row.clientHeight));
  assert.ok(Math.max(...rows) < 40, `a row of the table is broken: ${rows}`);
}

// Names come from a URL, and may be any bytes. Whoever is in the room stays, and whoever comes hears of it.
async function aNameThatIsNoTextHarmsNobody(page) {
  await page.evaluate(() => new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/chat?name=%ff%C3%BC%ed%a0%80");
    socket.onmessage = (event) => {
      const line = JSON.parse(event.data);
      if (line.text === "still here?") socket.close();
    };
    socket.onopen = () => socket.send("still here?");
    socket.onclose = (event) => (event.wasClean ? resolve() : reject(new Error("cut off: " + event.code)));
    setTimeout(() => reject(new Error("nothing was heard")), 10_000);
  }));
  await said(page, "\ufffdü\ufffd\ufffd\ufffd: still here?");
  const late = await open("Edsger");
  await said(late, "\ufffdü\ufffd\ufffd\ufffd: still here?");
}

async function ctrlCEndsIt(page) {
  service.kill("SIGINT");
  assert.equal(await ended, 0);
  assert.equal(printed.at(-1), "every task has ended");
  await page.waitForFunction(() => document.querySelector("#link-text").textContent === "no connection");
  for (const button of ["#looms button", "#add-loom", "#ask"]) await page.locator(button).first().click();
  await page.waitForFunction(() => document.querySelector("#json").textContent === "no answer");
  assert.deepEqual(problems.filter((one) => one.includes("TypeError")), []);
}

let failed = null;
try {
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.WEFT_CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  const ada = await open("Ada");
  const grace = await open("Grace", "dark");
  for (const step of [chatBetweenTwoTabs, eventsArrive, loomsComeAndGo, enoughLoomsAreEnough, theTreeIsShown, jsonIsAnswered]) {
    await ada.bringToFront();
    await step(ada, grace);
    console.log("ok:", step.name);
  }
  await ada.screenshot({path: join(pictures, "showcase.png"), fullPage: true});
  await grace.bringToFront();
  await eventsArrive(grace);
  await grace.screenshot({path: join(pictures, "showcase-dark.png"), fullPage: true});
  await everythingHasAName(ada);
  await itFitsASmallScreen(grace);
  await aNameThatIsNoTextHarmsNobody(ada);
  assert.deepEqual(problems, []);  // before the service ends, of which a console may complain
  await ctrlCEndsIt(ada);
  console.log("ok: the rest");
} catch (error) {
  failed = error;
} finally {
  await browser?.close();
  service.kill("SIGKILL");
  rmSync(profile, {recursive: true, force: true});
}
if (failed) {
  console.error(failed, problems, printed);
  process.exit(1);
}
