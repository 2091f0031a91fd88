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
  const timeout = new Promise((resolve) => setTimeout(resolve, 120_000));
  await Promise.race([exited, timeout]);
  report.inhost = fs.existsSync(inhostReport) ? JSON.parse(fs.readFileSync(inhostReport, "utf8")) : { error: "the extension host never reported" };
  await page.close();
  mark("in host");
}

async function workbench(browser, url) {
  const page = await (await browser.newContext({ viewport: { width: 1100, height: 620 } })).newPage();
  page.setDefaultTimeout(60_000);
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
const shoot = (page, name) => page.screenshot({ path: path.join(config.artifacts, `vscode-${name}.png`) });

async function figure1(page) {
  report.ui = {};
  await page.waitForSelector(ERROR);
  mark("squiggle");
  await page.waitForSelector("#status\\.workspaceTrust"); // Restricted Mode, and analysed all the same
  report.ui.statusRacy = await waitForStatus(page, /racy/);
  report.ui.lensRacy = await lens(page, /racy/);
  await page.keyboard.press("Control+b"); // the file tree says nothing here: more room for the code
  await page.waitForFunction(() => !document.querySelector(".part.sidebar")?.checkVisibility());
  await shoot(page, "1-race");

  report.ui.hover = await hover(page);
  mark("hover");
  await shoot(page, "2-witness");
  await page.mouse.move(600, 560); // below the hover, which stays while the pointer is on it
  await page.locator(HOVER).first().waitFor({ state: "hidden" });

  await goToEndOfLine(page, config.storeLine);
  await page.keyboard.press("Enter");
  await page.keyboard.type("__syncthreads();", { delay: 15 });
  const typed = Date.now();
  await gone(page);
  report.ui.goneMs = Date.now() - typed;
  report.ui.textWithBarrier = await text(page);
  mark("barrier typed");
  report.ui.statusRepaired = await waitForStatus(page, /race-free/);
  report.ui.lensRepaired = await lens(page, /race-free/);
  await page.waitForFunction(() => getComputedStyle(document.querySelector(".tab.active .monaco-icon-label"), "::after").content === "none");
  await shoot(page, "3-repaired");

  await page.keyboard.press("Shift+Home");
  await page.keyboard.press("Delete");
  await page.waitForSelector(ERROR);
  report.ui.textWithout = await text(page);
  mark("barrier deleted");
  await page.keyboard.press("Control+Shift+M");
  await page.waitForSelector(".markers-panel .monaco-list-row .marker-source, .markers-panel .monaco-list-row .marker-code");
  report.ui.problems = await page.locator(".markers-panel .monaco-list-row").allInnerTexts();
  await shoot(page, "4-problems");
}

async function trust(page) {
  await page.locator("#status\\.workspaceTrust a").click();
  await page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true }).click();
  await page.waitForFunction(() => !document.querySelector("#status\\.workspaceTrust")?.checkVisibility());
  await until("a trusted server", () => trustSent().at(-1));
  report.trustSeen = trustSent();
  const wire = fs.readFileSync(config.wire, "utf8");
  report.settingsSent = ["minBankWays", "solverBudget"].filter((name) => wire.includes(`"${name}":`));
  mark("trusted");
}

/** "Run dynamic check" clicked: once to its end, once cancelled while a kernel spins. */
async function dynamic(page) {
  await page.locator(".tab", { hasText: "figure1.cu" }).click();
  const clicked = Date.now();
  await page.locator(".codelens-decoration a", { hasText: "Run dynamic check" }).click();
  const row = page.locator(".markers-panel .monaco-list-row", { hasText: "seen on" });
  await row.waitFor({ timeout: 60_000 });
  report.ui.confirmedMs = Date.now() - clicked;
  report.ui.confirmed = await row.innerText();
  const selection = page.locator("#status\\.editor\\.selection", { hasText: "selected" });
  await insist(() => row.dblclick(), selection); // the editor goes to the place of the diagnostic
  report.ui.confirmedPosition = await selection.innerText();
  report.ui.confirmedHover = await hover(page);
  await shoot(page, "6-confirmed");
  await page.mouse.move(600, 520);
  await page.locator(HOVER).first().waitFor({ state: "hidden" });
  mark("confirmed");

  await page.keyboard.press("Control+p");
  await page.waitForSelector(".quick-input-widget input");
  await page.keyboard.type("slow.cu");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "slow.cu" }).first().click();
  await page.locator(".codelens-decoration a", { hasText: "Run dynamic check" }).click();
  await page.locator("#status\\.notifications a").click();
  const progress = page.locator(".notification-list-item", { hasText: "Dynamic check of spin" });
  await progress.filter({ hasText: "running" }).waitFor({ timeout: 60_000 });
  await shoot(page, "7-running");
  const cancelled = Date.now();
  await progress.getByRole("button", { name: "Cancel" }).click();
  await progress.waitFor({ state: "detached" });
  report.ui.cancelledMs = Date.now() - cancelled;
  await page.keyboard.press("Escape");
  mark("cancelled");
}

/** The server's command changes under a running editor: to one that fails, to none, and back. */
async function withoutServer(page) {
  await page.locator(".tab", { hasText: "figure1.cu" }).click(); // from the trust editor back to the code
  setServer(["/nonexistent/cuda-lsp", "serve"]);
  report.ui.statusStopped = await waitForStatus(page, /stopped/);
  report.ui.squigglesStopped = await page.locator(ERROR).count();
  setServer([]);
  await waitForStatus(page, /not installed/);
  // The driver's option hides the toasts: the notification centre has them.
  await page.locator("#status\\.notifications a").click();
  await page.locator(".notification-list-item", { hasText: "was not found" }).waitFor();
  report.ui.notifications = await page.locator(".notification-list-item").allInnerTexts();
  await shoot(page, "5-not-installed");
  await page.keyboard.press("Escape");
  setServer(SERVER);
  await page.waitForSelector(ERROR);
  report.ui.statusBack = await waitForStatus(page, /racy/);
  mark("server lost and found");
}

async function hover(page) {
  const shown = page.locator(`${HOVER} .monaco-hover-content`).filter({ hasNotText: "Loading" }).first();
  await insist(async () => {
    const box = await page.locator(ERROR).first().boundingBox();
    if (box === null) return; // it is being drawn again
    await page.mouse.move(box.x + box.width / 2, box.y - 60);
    await page.mouse.move(box.x + box.width / 2, box.y + 4, { steps: 4 });
  }, shown);
  return shown.innerText();
}

/** Does it until its effect is seen: what the pointer does is lost while the workbench is busy or redraws a list. */
async function insist(act, effect) {
  for (let attempt = 1; ; attempt++) {
    await act();
    try {
      return await effect.waitFor({ timeout: 5000 });
    } catch (error) {
      if (attempt === 4) throw error;
    }
  }
}

async function goToEndOfLine(page, line) {
  await page.locator(".monaco-editor .view-lines").first().click({ position: { x: 300, y: 5 } });
  await page.keyboard.press("Control+g");
  await page.waitForSelector(".quick-input-widget input");
  await page.keyboard.type(String(line));
  await page.keyboard.press("Enter");
  await page.waitForSelector(".quick-input-widget", { state: "hidden" });
  await page.keyboard.press("End");
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

async function waitForStatus(page, pattern) {
  await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector(".part.statusbar [id*='cuda-lsp']")?.textContent ?? ""), [pattern.source]);
  return statusText(page);
}

function serverLogs() {
  const logs = fs.readdirSync(path.join(data, "logs"), { recursive: true }).filter((name) => /cuda-lsp\.log$/.test(name));
  return logs.map((name) => fs.readFileSync(path.join(data, "logs", name), "utf8")).join("\n");
}

/** What the server was told of trust at each start, read off the wire. */
function trustSent() {
  return [...fs.readFileSync(config.wire, "utf8").matchAll(/"trusted":\s*(true|false)/g)].map((match) => match[1] === "true");
}

async function until(what, condition) {
  for (let tries = 0; tries < 600; tries++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`waited 30 s for ${what}`);
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
