// Drives the real VS Code workbench: code-server with the packaged extension installed, chromium as its window.
// usage: node drive.mjs CONFIG.json       Writes the facts it saw to config.report; test_vscode.py judges them.
import fs from "node:fs";
import path from "node:path";
import {
  ERROR, SERVER, SOON, address, button, clickIfThere, clickRun, config, extensions, goToEndOfLine, gone, hidden,
  hover, inWindow, insist, leaveHover, lens, mark, notification, openNotifications, play, position, report, row,
  setServer, shoot, showTab, trust, trustSent, until, visible, waitForStatus, waitForText, wire,
} from "./workbench.mjs";

const inhostReport = path.join(config.scratch, "inhost.json");

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

const workbench = (url) => async (page) => {
  await page.goto(address(url, path.dirname(config.file), { openFile: config.file }));
  await figure1(page);
  await trust(page);
  report.trustSeen = trustSent();
  report.settingsSent = ["minBankWays", "solverBudget"].filter((name) => wire().includes(`"${name}":`));
  if (config.slowFile) await dynamic(page);
  await withoutServer(page);
};

const REPAIRED = /s\[id\] = id;\n {4}__syncthreads\(\);\n {4}out\[id\]/;
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

  report.ui.hover = await hover(page, "barrier intervals");
  mark("hover");
  await shoot(page, "2-witness");
  await leaveHover(page);

  report.ui.preview = await preview(page);
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

/** The repair of the race in VS Code's preview of it, which is then discarded: the rows of the preview. */
async function preview(page) {
  const repair = page.locator(".action-widget .monaco-list-row", { hasText: "Insert __syncthreads" }).first();
  const panel = page.locator(".bulk-edit-panel");
  await insist(async () => {
    await goToEndOfLine(page, config.storeLine + 1, 5);
    await page.keyboard.press("Control+.");
    await repair.waitFor({ timeout: SOON });
    await repair.hover({ timeout: SOON });
    await page.keyboard.press("Control+Enter");
  }, visible(panel.locator(".monaco-list-row").first()));
  const rows = await panel.locator(".monaco-list-row").allInnerTexts();
  await shoot(page, "2-preview");
  await insist(() => clickIfThere(panel.getByRole("button", { name: "Discard" })), hidden(panel));
  return rows;
}

/** What the menu of the editor has for a kernel; its run is clicked until the editor has sent the command. */
async function editorMenu(page) {
  const item = page.locator(".monaco-menu .action-label", { hasText: "Run Dynamic Check of the Kernel" });
  const runs = () => (wire().match(/"cuda-lsp\.runDynamicCheck","arguments":\["[^"]*",\d+\]/g) ?? []).length;
  let labels;
  await insist(async () => {
    if (runs() > 0) return;
    await page.keyboard.press("Escape");
    await page.locator(".view-line", { hasText: "out[id]" }).first().click({ button: "right", timeout: SOON, position: { x: 60, y: 8 } });
    await item.waitFor({ timeout: SOON });
    labels = await page.locator(".monaco-menu .action-label").allInnerTexts();
    await shoot(page, "6-menu");
    await clickIfThere(item);
  }, () => until("the check that the menu asks for", () => runs() > 0, SOON));
  return labels;
}

/** The pictures in the gutter. */
const gutter = (page) => page.evaluate(() => [...document.querySelectorAll(".monaco-editor .cgmr")]
  .map((element) => getComputedStyle(element).backgroundImage));

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
  report.ui.gutter = await gutter(page);
  report.ui.menu = await editorMenu(page);
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

await play({ "cuda-lsp.minBankWays": 3 }, SERVER, async (browser, url) => {
  await inWindow(browser, workbench(url));
  await inHost(browser, url);
});
