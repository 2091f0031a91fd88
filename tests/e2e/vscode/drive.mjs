// Drives the real VS Code workbench: code-server with the packaged extension installed, chromium as its window.
// usage: node drive.mjs CONFIG.json       Writes the facts it saw to config.report; test_vscode.py judges them.
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";

const config = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(path.join(config.editors, "playwright/"))("playwright-core");
const inhostReport = path.join(config.scratch, "inhost.json");
const data = path.join(config.scratch, "data");
const extensions = path.join(config.scratch, "extensions");
const entry = path.join(config.editors, "code-server/node_modules/code-server/out/node/entry.js");
const common = ["--config", path.join(config.scratch, "config.yaml"), "--user-data-dir", data, "--extensions-dir", extensions];
const environment = {
  ...process.env,
  HOME: config.scratch,
  PATH: process.env.PATH.split(":").filter((folder) => !fs.existsSync(path.join(folder, "cuda-lsp"))).join(":"),
  XDG_CONFIG_HOME: config.scratch,
  EXTENSIONS_GALLERY: '{"serviceUrl":""}',
  CUDA_LSP_E2E_INHOST: JSON.stringify({ file: config.inhostFile, storeLine: config.storeLine, report: inhostReport }),
};

const PATIENCE = 120_000; // milliseconds for what must come
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const started = Date.now();
const report = { seconds: {} };
const mark = (step) => {
  report.seconds[step] = (Date.now() - started) / 1000;
};

// What the editor sends goes to the server through tee, so that a test can read it.
const SERVER = ["sh", "-c", 'tee -a "$0" | "$@"', config.wire, ...config.server];

/** Settings of machine scope count only from here in a remote window, and every code-server window is one. */
function setServer(command) {
  fs.writeFileSync(path.join(data, "Machine/settings.json"), JSON.stringify({ "cuda-lsp.server.command": command }));
}

function writeProfile() {
  const write = (file, content) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  };
  write(path.join(config.scratch, "config.yaml"), "auth: none\n");
  fs.mkdirSync(path.join(data, "Machine"), { recursive: true });
  setServer(SERVER);
  write(path.join(data, "User/settings.json"), JSON.stringify({
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": false,
    "extensions.autoCheckUpdates": false,
    "extensions.ignoreRecommendations": true,
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": false,
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.layoutControl.enabled": false,
    "workbench.editor.useModal": "off",
    "chat.disableAIFeatures": true,
    "git.enabled": false,
    "editor.minimap.enabled": false,
    "editor.fontSize": 15,
    "window.commandCenter": false,
    "cuda-lsp.minBankWays": 3,
  }));
}

async function startCodeServer() {
  const server = spawn(process.execPath, [entry, ...common, "--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry",
    "--disable-update-check", "--disable-proxy", "--disable-getting-started-override", "--vscode-option", "enable-smoke-test-driver"],
    { env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = await new Promise((resolve, reject) => {
    const listen = (chunk) => {
      said += chunk;
      const match = /listening on (http:\/\/\S+?)\/?\s/.exec(said);
      if (match) resolve(match[1]);
    };
    server.stdout.on("data", listen);
    server.stderr.on("data", listen);
    server.on("exit", (code) => reject(new Error(`code-server ended with ${code}: ${said}`)));
  });
  return { server, url };
}

async function stop(child) {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  const patience = new Promise((resolve) => setTimeout(resolve, 3000));
  await Promise.race([ended, patience]);
}

const address = (url, folder, payload) => {
  const remote = (file) => `vscode-remote://${new URL(url).host}${file}`;
  const entries = Object.entries(payload).map(([key, file]) => [key, remote(file)]);
  return `${url}/?folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(entries))}`;
};

async function inHost(browser, url) {
  const page = await browser.newPage();
  const exited = new Promise((resolve) => page.exposeFunction("codeAutomationExit", resolve));
  await page.exposeFunction("codeAutomationLog", () => {});
  const [installed] = fs.readdirSync(extensions).filter((name) => name.startsWith("cuda-lsp."));
  await page.goto(address(url, path.dirname(config.inhostFile), {
    extensionDevelopmentPath: path.join(extensions, installed),
    extensionTestsPath: config.inhostTests,
  }));
  const timeout = new Promise((resolve) => setTimeout(resolve, 300_000));
  await Promise.race([exited, timeout]);
  report.inhost = fs.existsSync(inhostReport) ? JSON.parse(fs.readFileSync(inhostReport, "utf8")) : { error: "the extension host never reported" };
  await page.close();
  mark("in host");
}

async function workbench(browser, url) {
  const page = await (await browser.newContext({ viewport: { width: 1100, height: 620 } })).newPage();
  page.setDefaultTimeout(PATIENCE);
  const outside = new Set();
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && hostname !== "127.0.0.1") outside.add(hostname);
  });
  try {
    await page.goto(address(url, path.dirname(config.file), { openFile: config.file }));
    await figure1(page);
    await trust(page);
    if (config.slowFile) await dynamic(page);
    await withoutServer(page);
  } catch (error) {
    await page.screenshot({ path: path.join(config.artifacts, "vscode-failed.png") });
    throw error;
  } finally {
    report.outside = [...outside];
    await page.close();
  }
}

const ERROR = ".squiggly-error";
const HOVER = ".monaco-editor .monaco-hover:not(.hidden)";
const statusText = (page) => page.locator("[id='cuda-lsp.cuda-lsp.cuda-lsp.status'], [id*='cuda-lsp.status']").first().innerText();
const gone = (page) => page.waitForFunction((selector) => document.querySelector(selector) === null, ERROR);
const position = (page, says) => page.locator("#status\\.editor\\.selection", { hasText: says });
const button = (page, name) => page.locator(`#status\\.${name} a`);
const row = (page, says) => page.locator(".markers-panel .monaco-list-row", { hasText: says });
const notification = (page, says) => page.locator(".notification-list-item", { hasText: says });
const REPAIRED = /s\[id\] = id;\n {4}__syncthreads\(\);\n {4}out\[id\]/;
const shoot = (page, name) => page.screenshot({ path: path.join(config.artifacts, `vscode-${name}.png`) });

async function figure1(page) {
  report.ui = {};
  await page.waitForSelector(ERROR);
  mark("squiggle");
  await page.waitForSelector("#status\\.workspaceTrust"); // Restricted Mode, and analysed all the same
  report.ui.statusRacy = await waitForStatus(page, /racy/);
  report.ui.lensRacy = await lens(page, /racy/);
  const tree = page.locator(".part.sidebar"); // it says nothing here: more room for the code
  await insist(async () => {
    if (await tree.isVisible()) await page.keyboard.press("Control+b");
  }, hidden(tree));
  await shoot(page, "1-race");

  report.ui.hover = await hover(page, "thread");
  mark("hover");
  await shoot(page, "2-witness");
  await leaveHover(page);

  await goToEndOfLine(page, config.storeLine, config.storeEnd);
  await page.keyboard.press("Enter");
  await page.keyboard.type("__syncthreads();", { delay: 15 });
  const typed = Date.now();
  await gone(page);
  report.ui.goneMs = Date.now() - typed; // for who reads the report: how fast says nothing on a busy machine
  report.ui.textWithBarrier = await waitForText(page, REPAIRED, true);
  await gone(page);
  mark("barrier typed");
  report.ui.statusRepaired = await waitForStatus(page, /race-free/);
  report.ui.lensRepaired = await lens(page, /race-free/);
  await page.waitForFunction(() => getComputedStyle(document.querySelector(".tab.active .monaco-icon-label"), "::after").content === "none");
  await shoot(page, "3-repaired");

  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("Delete");
  report.ui.textWithout = await waitForText(page, /__syncthreads/, false);
  await page.waitForSelector(ERROR);
  mark("barrier deleted");
  const panel = page.locator(".markers-panel");
  await insist(async () => {
    if (!(await panel.isVisible())) await page.keyboard.press("Control+Shift+M");
  }, visible(row(page, "shared-race").first()));
  report.ui.problems = await page.locator(".markers-panel .monaco-list-row").allInnerTexts();
  await shoot(page, "4-problems");
}

async function trust(page) {
  const asking = page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true });
  await insist(() => clickIfThere(button(page, "workspaceTrust")), visible(asking));
  await insist(() => clickIfThere(asking), hidden(page.locator("#status\\.workspaceTrust")));
  await until("a trusted server", () => trustSent().at(-1));
  report.trustSeen = trustSent();
  report.settingsSent = ["minBankWays", "solverBudget"].filter((name) => wire().includes(`"${name}":`));
  mark("trusted");
}

/** "Run dynamic check" clicked: once to its end, once cancelled while a kernel spins. */
async function dynamic(page) {
  await showTab(page, "figure1.cu", /neighbour/);
  const clicked = Date.now();
  await clickRun(page, "neighbour");
  const confirmed = row(page, "seen on");
  await confirmed.waitFor();
  report.ui.confirmedMs = Date.now() - clicked;
  report.ui.confirmed = await confirmed.innerText();
  report.ui.lensConfirmed = await lens(page, /Run again/);
  const outcome = notification(page, "1 confirmed on");
  await openNotifications(page, outcome);
  report.ui.outcome = await outcome.innerText();
  await shoot(page, "6-outcome");
  const show = outcome.getByRole("button", { name: /Show Line/ });
  await insist(() => clickIfThere(show), () => outcome.waitFor({ state: "detached", timeout: SOON }));
  report.ui.shownPosition = await position(page, "selected").innerText();
  await page.keyboard.press("Escape");
  const selection = position(page, "selected");
  await insist(() => confirmed.dblclick({ timeout: SOON }), visible(selection)); // the editor goes to the place of the diagnostic
  report.ui.confirmedPosition = await selection.innerText();
  report.ui.confirmedHover = await hover(page, "confirmed");
  await shoot(page, "6-confirmed");
  await leaveHover(page);
  mark("confirmed");

  const file = page.locator(".quick-input-list .monaco-list-row", { hasText: "slow.cu" }).first();
  await insist(async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+p");
    await page.locator(".quick-input-widget .quick-input-box input").first().fill("slow.cu", { timeout: SOON });
  }, visible(file));
  await insist(() => clickIfThere(file), visible(page.locator(".tab.active", { hasText: "slow.cu" })));
  await waitForText(page, /void spin/, true);
  await clickRun(page, "spin");
  const progress = notification(page, "Dynamic check of spin");
  await openNotifications(page, progress);
  await progress.filter({ hasText: "running" }).waitFor();
  await shoot(page, "7-running");
  const cancelled = Date.now();
  await insist(() => clickIfThere(progress.getByRole("button", { name: "Cancel" })), () => progress.waitFor({ state: "detached", timeout: SOON }));
  report.ui.cancelledMs = Date.now() - cancelled;
  const sent = () => wire().includes("window/workDoneProgress/cancel");
  await until("the cancellation in the log", sent, SOON).catch(() => undefined); // the log is written a little later
  report.ui.cancelSent = sent();
  await page.keyboard.press("Escape");
  mark("cancelled");
}

/** Clicks the lens until the editor has sent the command: a lens that is drawn again loses clicks. */
async function clickRun(page, kernel) {
  const sent = () => wire().match(new RegExp(`runDynamicCheck[^}]*"${kernel}"`)) !== null;
  await insist(async () => {
    if (!sent()) await clickIfThere(page.locator(".codelens-decoration a", { hasText: "Run dynamic check" }).first());
  }, () => until(`the check of ${kernel}`, sent, SOON));
}

async function openNotifications(page, wanted) {
  const center = page.locator(".notifications-center");
  await insist(async () => {
    if (!(await center.isVisible())) await clickIfThere(button(page, "notifications"));
  }, visible(wanted));
}

async function showTab(page, name, says) {
  await insist(() => clickIfThere(page.locator(".tab", { hasText: name })), visible(page.locator(".tab.active", { hasText: name })));
  await waitForText(page, says, true);
}

/** The server's command changes under a running editor: to one that fails, to none, and back. */
async function withoutServer(page) {
  await showTab(page, "figure1.cu", /neighbour/); // from another editor back to the code
  setServer(["/nonexistent/cuda-lsp", "serve"]);
  report.ui.statusStopped = await waitForStatus(page, /stopped/);
  await gone(page);
  report.ui.squigglesStopped = await page.locator(ERROR).count();
  setServer([]);
  await waitForStatus(page, /not installed/);
  // The driver's option hides the toasts: the notification centre has them.
  await openNotifications(page, notification(page, "was not found"));
  await notification(page, "did not start").waitFor();
  report.ui.notifications = await page.locator(".notification-list-item").allInnerTexts();
  await shoot(page, "5-not-installed");
  await page.keyboard.press("Escape");
  setServer(SERVER);
  await page.waitForSelector(ERROR);
  report.ui.statusBack = await waitForStatus(page, /racy/);
  mark("server lost and found");
}

/** The hover on the squiggle, once it says this; parts of it come one after the other. */
async function hover(page, says) {
  const shown = page.locator(`${HOVER} .monaco-hover-content`).filter({ hasText: says }).filter({ hasNotText: "Loading" }).first();
  await insist(async () => {
    const box = await page.locator(ERROR).first().boundingBox();
    if (box === null) return; // it is being drawn again
    await page.mouse.move(box.x + box.width / 2, box.y - 60);
    await page.mouse.move(box.x + box.width / 2, box.y + 4, { steps: 4 });
  }, visible(shown));
  return shown.innerText();
}

/** The hover stays while the pointer is on it: off to below it. */
const leaveHover = (page) => insist(async () => {
  await page.mouse.move(600, 500);
  await page.mouse.move(600, 520, { steps: 4 });
}, hidden(page.locator(HOVER).first()));

const SOON = 5000; // milliseconds for an effect before its cause is repeated
const visible = (locator) => () => locator.waitFor({ timeout: SOON });
const hidden = (locator) => () => locator.waitFor({ state: "hidden", timeout: SOON });

/** Does it until its effect is seen: keys and clicks are lost while the workbench is busy or redraws a list. */
async function insist(act, effect) {
  for (let attempt = 1; ; attempt++) {
    const failed = await act().then(() => null, (error) => error); // or it was done before, and the effect is late
    try {
      return await effect();
    } catch (error) {
      if (attempt === 12) throw failed ?? error;
    }
  }
}

/** One attempt at a click; the effect is the caller's to see. */
const clickIfThere = (locator) => locator.click({ timeout: SOON });

async function goToEndOfLine(page, line, column) {
  await insist(async () => {
    await page.keyboard.press("Escape");
    await page.locator(".monaco-editor .view-lines").first().click({ position: { x: 300, y: 5 }, timeout: SOON });
    await page.keyboard.press("Control+g");
    await page.locator(".quick-input-widget .quick-input-box input").first().fill(`:${line}:${column}`, { timeout: SOON });
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-widget").first().waitFor({ state: "hidden", timeout: SOON });
  }, visible(position(page, `Ln ${line}, Col ${column}`)));
}

/** The lens above the kernel, once it says this. */
async function lens(page, pattern) {
  const shown = page.locator(".codelens-decoration", { hasText: pattern });
  await shown.waitFor();
  return shown.innerText();
}

/** The lines as shown from top to bottom: the DOM keeps them in another order. */
const text = (page) => page.evaluate(() => [...document.querySelectorAll(".monaco-editor .view-line")]
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  .map((line) => line.textContent.replaceAll("\u00a0", " ")).join("\n"));

/** The lines as shown, once they have (or have not) the pattern: they are drawn some time after the keys. */
async function waitForText(page, pattern, wanted) {
  let shown;
  for (const end = Date.now() + PATIENCE; Date.now() < end; await pause(50)) {
    shown = await text(page);
    if (shown.length > 0 && pattern.test(shown) === wanted) return shown;
  }
  throw new Error(`waited for ${wanted ? "" : "no "}${pattern} in:\n${shown}`);
}

async function waitForStatus(page, pattern) {
  await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector(".part.statusbar [id*='cuda-lsp']")?.textContent ?? ""), [pattern.source]);
  return statusText(page);
}

function serverLogs() {
  const logs = fs.readdirSync(path.join(data, "logs"), { recursive: true }).filter((name) => /cuda-lsp\.log$/.test(name));
  return logs.map((name) => fs.readFileSync(path.join(data, "logs", name), "utf8")).join("\n");
}

const wire = () => fs.readFileSync(config.wire, "utf8");

/** What the server was told of trust at each start, read off the wire. */
function trustSent() {
  return [...wire().matchAll(/"trusted":\s*(true|false)/g)].map((match) => match[1] === "true");
}

async function until(what, condition, patience = PATIENCE) {
  for (const end = Date.now() + patience; Date.now() < end; await pause(50)) {
    if (condition()) return;
  }
  throw new Error(`waited ${patience / 1000} s for ${what}`);
}

let codeServer, browser;
try {
  writeProfile();
  await promisify(execFile)(process.execPath, [entry, ...common, "--install-extension", config.vsix], { env: environment });
  mark("extension installed");
  codeServer = await startCodeServer();
  mark("code-server");
  browser = await chromium.launch({ executablePath: config.chromium, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
  await workbench(browser, codeServer.url);
  await inHost(browser, codeServer.url);
} catch (error) {
  report.error = String(error?.stack ?? error);
} finally {
  await browser?.close();
  if (codeServer) await stop(codeServer.server);
  try {
    fs.writeFileSync(path.join(config.artifacts, "vscode-client.log"), serverLogs());
  } catch (error) {
    report.logError = String(error); // no log folder: code-server never got that far
  }
  mark("end");
  fs.writeFileSync(config.report, JSON.stringify(report, null, 1));
  process.exit(0);
}
