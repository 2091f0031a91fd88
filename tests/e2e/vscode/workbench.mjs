// What the tests in the real VS Code share: code-server with the packaged extension, chromium as its window, and what a
// person does in it. Scripts are called with CONFIG.json; what they saw goes to config.report, and pytest judges it.
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { promisify } from "node:util";

export const config = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
export const { chromium } = createRequire(path.join(config.editors, "playwright/"))("playwright-core");
export const data = path.join(config.scratch, "data");
export const extensions = path.join(config.scratch, "extensions");
export const entry = path.join(config.editors, "code-server/node_modules/code-server/out/node/entry.js");
export const common = ["--config", path.join(config.scratch, "config.yaml"), "--user-data-dir", data, "--extensions-dir", extensions];
export const environment = {
  ...process.env,
  HOME: config.scratch,
  PATH: process.env.PATH.split(":").filter((folder) => !fs.existsSync(path.join(folder, "cuda-lsp"))).join(":"),
  XDG_CONFIG_HOME: config.scratch,
  EXTENSIONS_GALLERY: '{"serviceUrl":""}',
  ...config.environment,
};

export const PATIENCE = config.patience ?? 120_000; // milliseconds for what must come
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const started = Date.now();
export const report = { seconds: {} };
export const mark = (step) => {
  report.seconds[step] = (Date.now() - started) / 1000;
};

// What the editor sends goes to the server through tee, so that a test can read it.
export const SERVER = ["sh", "-c", 'tee -a "$0" | "$@"', config.wire, ...config.server];

/** Settings of machine scope count only from here in a remote window, and every code-server window is one. */
export function setServer(command) {
  fs.writeFileSync(path.join(data, "Machine/settings.json"), JSON.stringify({ "cuda-lsp.server.command": command }));
}

/** `settings`: of the user, beside what keeps a window of tests still; `command`: of the server, none in an empty profile. */
export function writeProfile(settings, command) {
  const write = (file, content) => {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, content);
  };
  write(path.join(config.scratch, "config.yaml"), "auth: none\n");
  fs.mkdirSync(path.join(data, "Machine"), { recursive: true });
  if (command !== undefined) setServer(command);
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
    ...settings,
  }));
}

export async function startCodeServer() {
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

export async function stop(child) {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  const patience = new Promise((resolve) => setTimeout(resolve, 3000));
  await Promise.race([ended, patience]);
}

export const address = (url, folder, payload) => {
  const remote = (file) => `vscode-remote://${new URL(url).host}${file}`;
  const entries = Object.entries(payload).map(([key, file]) => [key, remote(file)]);
  return `${url}/?folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(entries))}`;
};

export const ERROR = ".squiggly-error";
export const HOVER = ".monaco-editor .monaco-hover:not(.hidden)";
export const statusText = (page) => page.locator("[id='cuda-lsp.cuda-lsp.cuda-lsp.status'], [id*='cuda-lsp.status']").first().innerText();
export const gone = (page) => page.waitForFunction((selector) => document.querySelector(selector) === null, ERROR);
export const position = (page, says) => page.locator("#status\\.editor\\.selection", { hasText: says });
export const button = (page, name) => page.locator(`#status\\.${name} a`);
export const row = (page, says) => page.locator(".markers-panel .monaco-list-row", { hasText: says });
export const notification = (page, says) => page.locator(".notification-list-item", { hasText: says });
export const shoot = (page, name) => page.screenshot({ path: path.join(config.artifacts, `vscode-${name}.png`) });

export async function openNotifications(page, wanted) {
  const center = page.locator(".notifications-center");
  await insist(async () => {
    if (!(await center.isVisible())) await clickIfThere(button(page, "notifications"));
  }, visible(wanted));
}

export async function showTab(page, name, says) {
  await insist(() => clickIfThere(page.locator(".tab", { hasText: name })), visible(page.locator(".tab.active", { hasText: name })));
  await waitForText(page, says, true);
}

/** The hover on the squiggle, once it says this; parts of it come one after the other. */
export async function hover(page, says) {
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
export const leaveHover = (page) => insist(async () => {
  await page.mouse.move(600, 500);
  await page.mouse.move(600, 520, { steps: 4 });
}, hidden(page.locator(HOVER).first()));

export const SOON = 5000; // milliseconds for an effect before its cause is repeated
export const visible = (locator) => () => locator.waitFor({ timeout: SOON });
export const hidden = (locator) => () => locator.waitFor({ state: "hidden", timeout: SOON });

/** Does it until its effect is seen: keys and clicks are lost while the workbench is busy or redraws a list. */
export async function insist(act, effect) {
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
export const clickIfThere = (locator) => locator.click({ timeout: SOON });

export async function goToEndOfLine(page, line, column) {
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
export async function lens(page, pattern) {
  const shown = page.locator(".codelens-decoration", { hasText: pattern });
  await shown.waitFor();
  return shown.innerText();
}

/** The lines as shown from top to bottom: the DOM keeps them in another order. */
export const text = (page) => page.evaluate(() => [...document.querySelectorAll(".monaco-editor .view-line")]
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
  .map((line) => line.textContent.replaceAll("\u00a0", " ")).join("\n"));

/** The lines as shown, once they have (or have not) the pattern: they are drawn some time after the keys. */
export async function waitForText(page, pattern, wanted) {
  let shown;
  for (const end = Date.now() + PATIENCE; Date.now() < end; await pause(50)) {
    shown = await text(page);
    if (shown.length > 0 && pattern.test(shown) === wanted) return shown;
  }
  throw new Error(`waited for ${wanted ? "" : "no "}${pattern} in:\n${shown}`);
}

export async function waitForStatus(page, pattern) {
  await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector(".part.statusbar [id*='cuda-lsp']")?.textContent ?? ""), [pattern.source]);
  return statusText(page);
}

export function serverLogs() {
  const logs = fs.readdirSync(path.join(data, "logs"), { recursive: true }).filter((name) => /cuda-lsp\.log$/.test(name));
  return logs.map((name) => fs.readFileSync(path.join(data, "logs", name), "utf8")).join("\n");
}

export const wire = () => fs.readFileSync(config.wire, "utf8");

/** What the server was told of trust at each start, read off the wire. */
export function trustSent() {
  return [...wire().matchAll(/"trusted":\s*(true|false)/g)].map((match) => match[1] === "true");
}

export async function until(what, condition, patience = PATIENCE) {
  for (const end = Date.now() + patience; Date.now() < end; await pause(50)) {
    if (condition()) return;
  }
  throw new Error(`waited ${patience / 1000} s for ${what}`);
}

export async function trust(page) {
  const asking = page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true });
  await insist(() => clickIfThere(button(page, "workspaceTrust")), visible(asking));
  await insist(() => clickIfThere(asking), hidden(page.locator("#status\\.workspaceTrust")));
  await until("a trusted server", () => trustSent().at(-1));
  mark("trusted");
}

/** Clicks the lens until the editor has sent the command: a lens that is drawn again loses clicks. */
export async function clickRun(page, kernel) {
  const sent = () => wire().match(new RegExp(`runDynamicCheck[^}]*"${kernel}"`)) !== null;
  await insist(async () => {
    if (!sent()) await clickIfThere(page.locator(".codelens-decoration a", { hasText: "Run dynamic check" }).first());
  }, () => until(`the check of ${kernel}`, sent, SOON));
}

/** A window of the workbench while `script` runs in it; a picture of it when that fails. */
export async function inWindow(browser, script) {
  const page = await (await browser.newContext({ viewport: { width: 1100, height: 620 } })).newPage();
  page.setDefaultTimeout(PATIENCE);
  const outside = new Set();
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && hostname !== "127.0.0.1") outside.add(hostname);
  });
  try {
    await script(page);
  } catch (error) {
    await page.screenshot({ path: path.join(config.artifacts, `${config.failed}.png`) });
    throw error;
  } finally {
    report.outside = [...outside];
    await page.close();
  }
}

/** Install the extension into a new profile, start everything, run `script(browser, url)`, write the report, and leave. */
export async function play(settings, command, script) {
  let codeServer, browser;
  try {
    writeProfile(settings, command);
    await promisify(execFile)(process.execPath, [entry, ...common, "--install-extension", config.vsix], { env: environment });
    mark("extension installed");
    codeServer = await startCodeServer();
    mark("code-server");
    browser = await chromium.launch({ executablePath: config.chromium, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
    await script(browser, codeServer.url);
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
}
