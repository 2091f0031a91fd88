// One story in the real VS Code, from an empty profile to a race that is seen, confirmed, mended and gone: a project of
// several files, its kernel a template in a header. The server is found on PATH. usage: node story.mjs CONFIG.json
import path from "node:path";
import {
  ERROR, SOON, address, clickIfThere, config, goToEndOfLine, gone, hover, insist, inWindow, leaveHover, lens, mark,
  notification, openNotifications, play, position, report, shoot, showTab, trust, until, visible, waitForStatus, waitForText, wire,
} from "./workbench.mjs";

const file = (...parts) => path.join(config.folder, ...parts);
const picture = (page) => page.frameLocator("iframe.webview.ready").last().frameLocator("iframe#active-frame");
const quickInput = (page) => page.locator(".quick-input-widget .quick-input-box input").first();
const choice = (page, says) => page.locator(".quick-input-list .monaco-list-row", { hasText: says }).first();

/** A command of the palette. */
async function command(page, title, effect) {
  await insist(async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("F1");
    await quickInput(page).fill(`>${title}`, { timeout: SOON });
    await clickIfThere(choice(page, title));
  }, effect);
}

/** A code action of the cursor's line, from the menu that this command opens. */
async function action(page, menu, says, effect) {
  const item = page.locator(".action-widget .monaco-list-row", { hasText: says }).first();
  await insist(async () => {
    await command(page, menu, visible(item));
    await clickIfThere(item);
  }, effect);
}

async function openFile(page, name, says) {
  const found = choice(page, name);
  await insist(async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+p");
    await quickInput(page).fill(name, { timeout: SOON });
    await found.waitFor({ timeout: SOON });
    await clickIfThere(found);
  }, visible(page.locator(".tab.active", { hasText: name })));
  await waitForText(page, says, true);
}

/** The lens clicked until the server was asked so often; then what came of it. */
async function run(page, times, outcome) {
  const sent = () => (wire().match(/runDynamicCheck"[^}]*turned/g) ?? []).length >= times;
  await insist(async () => {
    if (!sent()) await clickIfThere(page.locator(".codelens-decoration a", { hasText: /Run (dynamic check|again)/ }).first());
  }, () => until("the check", sent, SOON));
  const said = notification(page, outcome);
  await openNotifications(page, said);
  const words = await said.first().innerText();
  await page.keyboard.press("Escape");
  return words;
}

const header = (url) => async (page) => {
  const seen = (report.story = {});
  await page.goto(address(url, config.folder, { openFile: file("include/tiles.h") }));
  await page.waitForSelector(ERROR);
  seen.language = await page.locator("#status\\.editor\\.mode").innerText();
  seen.lens = await lens(page, /racy/);
  seen.status = await waitForStatus(page, /racy/);
  await shoot(page, "story-1-header");
  await trust(page);
  await showTab(page, "tiles.h", /turned/);
  await page.waitForSelector(ERROR);
  seen.hover = await hover(page, "thread");
  await shoot(page, "story-2-witness");
  await leaveHover(page);

  // The two accesses and the missing barrier beside each other; a line of the table leads to the code.
  await goToEndOfLine(page, 9, 38);
  const title = picture(page).getByRole("heading", { name: "Barrier intervals, line 9" });
  await action(page, "Source Action...", "barrier intervals", visible(title));
  seen.intervals = await picture(page).locator("body").innerText();
  await shoot(page, "story-3-intervals");
  await insist(() => clickIfThere(picture(page).getByRole("link", { name: "line 8" }).first()), visible(position(page, "Ln 8,")));
  seen.clicked = await position(page, "Ln 8,").innerText();
  const link = picture(page).getByRole("link", { name: "line 9" }).first();
  await insist(async () => {
    await link.focus({ timeout: SOON });
    await page.keyboard.press("Enter");
  }, visible(position(page, "Ln 9,")));
  seen.keyed = await position(page, "Ln 9,").innerText();
  await page.locator(".tab", { hasText: "Barrier intervals" }).getByRole("button", { name: /Close/ }).click();
  mark("intervals");

  if (config.runs) seen.confirmed = await run(page, 1, "confirmed on");
  if (config.runs) await shoot(page, "story-4-confirmed");
  mark("confirmed");

  await goToEndOfLine(page, 9, 38);
  await action(page, "Quick Fix...", "Insert __syncthreads()", () => waitForText(page, /__syncthreads/, true));
  seen.mended = await waitForText(page, /__syncthreads/, true);
  await gone(page);
  seen.statusMended = await waitForStatus(page, /race-free/);
  if (config.runs) seen.after = await run(page, 2, config.nothing);
  await shoot(page, "story-5-mended");
  mark("mended");
  await command(page, "File: Save", () => page.locator(".tab.active.dirty").waitFor({ state: "detached", timeout: SOON }));

  await launch(page, seen);
  if (config.runs) await program(page, seen);
};

/** A kernel that nothing launches: the prompt for its launch; then its banks. */
async function launch(page, seen) {
  await openFile(page, "columns.cu", /void columns/);
  seen.guessed = await lens(page, /guessed/);
  seen.hint = await waitForText(page, /32-way/, true);
  await goToEndOfLine(page, 2, 55);
  const other = choice(page, "Other extents");
  await action(page, "Refactor...", "Set launch configuration of columns", visible(other));
  seen.offered = await page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
  const asked = page.locator(".quick-input-widget", { hasText: "One to three numbers" });
  await insist(() => clickIfThere(other), visible(asked));
  await page.keyboard.type("32,32", { delay: 15 });
  await shoot(page, "story-6-launch");
  await page.keyboard.press("Enter");
  seen.launch = await waitForText(page, /launch block=\(32,32\)/, true);
  seen.lensLaunch = await lens(page, /block 32×32(?!, guessed)/);
  await goToEndOfLine(page, 7, 74);
  const title = picture(page).getByRole("heading", { name: "Banks, line 7" });
  await action(page, "Source Action...", "Show the banks", visible(title));
  seen.banks = await picture(page).locator("p").first().innerText();
  const folded = picture(page).locator("summary").first();
  await folded.focus();
  await page.keyboard.press("Enter");
  seen.bankRows = (await picture(page).locator("details[open] tbody tr").allInnerTexts()).length;
  await shoot(page, "story-7-banks");
  await page.locator(".tab", { hasText: "Banks" }).getByRole("button", { name: /Close/ }).click();
  await goToEndOfLine(page, 7, 74);
  await action(page, "Quick Fix...", "Ignore bank-conflict here", () => waitForText(page, /ignore\[bank-conflict\]/, true));
  seen.silenced = await waitForText(page, /32-way/, false);
  await shoot(page, "story-7-silenced");
  mark("launch and banks");
}

/** The program with arguments that are asked for, and what it prints. */
async function program(page, seen) {
  await openFile(page, "app.cu", /int main/);
  const asked = page.locator(".quick-input-widget", { hasText: "Arguments of the program" });
  await command(page, "Run the Program under Check", visible(asked));
  await page.keyboard.type('"two words" 7', { delay: 15 });
  await shoot(page, "story-8-arguments");
  await page.keyboard.press("Enter");
  const terminal = page.locator(".terminal-wrapper .xterm-rows", { hasText: "argument 2: 7" });
  await terminal.waitFor();
  seen.terminal = await terminal.innerText();
  await shoot(page, "story-9-terminal");
  await command(page, "Run the Program under Check", visible(asked));
  seen.remembered = await quickInput(page).inputValue();
  await page.keyboard.press("Escape");
  mark("program");
}

// Nothing is set that the extension reads; a terminal's text is in the page only without its renderer on the GPU.
await play({ "terminal.integrated.gpuAcceleration": "off" }, undefined, (browser, url) => inWindow(browser, header(url)));
