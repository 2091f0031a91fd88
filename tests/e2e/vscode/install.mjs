// From nothing to a mended race in the real VS Code: no server anywhere, one click makes an environment of the extension's own
// (from a folder of wheels), and the walkthrough's steps tick as they come true. usage: node install.mjs CONFIG.json
import fs from "node:fs";
import path from "node:path";
import {
  ERROR, SOON, address, clickIfThere, config, data, insist, inWindow, mark, notification, openNotifications, play, report, shoot,
  until, visible, waitForStatus, waitForText,
} from "./workbench.mjs";

const quickInput = (page) => page.locator(".quick-input-widget .quick-input-box input").first();
const choice = (page, says) => page.locator(".quick-input-list .monaco-list-row", { hasText: says }).first();
const step = (page, says) => page.locator(".getting-started-step", { hasText: says }).first();

async function command(page, title, effect) {
  await insist(async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("F1");
    await quickInput(page).fill(`>${title}`, { timeout: SOON });
    await clickIfThere(choice(page, title));
  }, effect);
}

/** Which steps are done, as a screen reader is told. */
async function ticked(page) {
  const heading = page.locator(".gettingStartedContainer", { hasText: "See a CUDA race" });
  const wanted = choice(page, "See a CUDA race");
  await insist(async () => {
    await command(page, "Welcome: Open Walkthrough...", visible(wanted));
    await clickIfThere(wanted);
  }, visible(heading));
  await step(page, "Install the analysis").waitFor();
  return page.locator(".getting-started-step").evaluateAll((steps) => steps.map((one) =>
    one.querySelector(".codicon-getting-started-step-checked.complete, .complete.codicon") !== null));
}

const story = (url) => async (page) => {
  const seen = (report.install = {});
  await page.goto(address(url, path.dirname(config.file), { openFile: config.file }));
  await waitForStatus(page, /not installed/);
  seen.before = await ticked(page);
  const asked = notification(page, "was not found");
  await openNotifications(page, asked);
  seen.asked = await asked.innerText();
  await shoot(page, "install-1-asked");
  const progress = notification(page, "Installing cuda-lsp");
  const button = asked.getByRole("button", { name: "Install", exact: true });
  await insist(() => clickIfThere(button), () => button.waitFor({ state: "hidden", timeout: SOON }));
  await openNotifications(page, progress);
  seen.progress = await progress.innerText();
  await shoot(page, "install-2-progress");
  await page.keyboard.press("Escape");
  mark("clicked");
  await insist(() => clickIfThere(page.locator(".tab", { hasText: path.basename(config.file) })), visible(page.locator(ERROR).first()));
  seen.status = await waitForStatus(page, /racy/);
  mark("installed");
  seen.environments = fs.readdirSync(path.join(data, "User/globalStorage/cuda-lsp.cuda-lsp"));
  seen.installed = await ticked(page);
  await shoot(page, "install-3-walkthrough");
  await insist(async () => {
    await clickIfThere(step(page, "Open a kernel that races"));
    await clickIfThere(page.getByRole("button", { name: "Open the example" }));
  }, () => waitForText(page, /void neighbour/, true));
  await page.waitForSelector(ERROR);
  await insist(async () => {
    await page.locator(ERROR).first().click({ timeout: SOON, force: true });
    await page.keyboard.press("Control+.");
    await clickIfThere(page.locator(".action-widget .monaco-list-row", { hasText: "Insert __syncthreads()" }).first());
  }, () => waitForText(page, /__syncthreads\(\);\n/, true));
  seen.mended = await waitForStatus(page, /race-free/);
  seen.after = await ticked(page);
  await shoot(page, "install-4-mended");
  mark("mended");
  await update(page, seen);
};

/** The environment made to be of an earlier version, as it is after an update of the extension. */
async function update(page, seen) {
  const storage = path.join(data, "User/globalStorage/cuda-lsp.cuda-lsp");
  const [made] = fs.readdirSync(storage).filter((name) => name.startsWith("server-"));
  const earlier = path.join(storage, "server-0.0.1");
  fs.renameSync(path.join(storage, made), earlier);
  fs.writeFileSync(path.join(earlier, "complete.json"), JSON.stringify({ version: "0.0.1", python: path.join(earlier, "bin/python") }));
  const asked = notification(page, "comes with cuda-lsp");
  await command(page, "CUDA: Restart the Analysis Server", () => openNotifications(page, asked));
  seen.update = await asked.innerText();
  await shoot(page, "install-5-update");
  const button = asked.getByRole("button", { name: "Update" });
  await insist(() => clickIfThere(button), () => button.waitFor({ state: "hidden", timeout: SOON }));
  await until("the update", () => fs.existsSync(path.join(storage, made, "complete.json")) && !fs.existsSync(earlier));
  seen.updated = fs.readdirSync(storage);
  await page.keyboard.press("Escape");
  await insist(() => clickIfThere(page.locator(".tab", { hasText: path.basename(config.file) })), visible(page.locator(ERROR).first()));
  seen.statusUpdated = await waitForStatus(page, /racy/);
  mark("updated");
}

await play({}, undefined, async (browser, url) => {
  await inWindow(browser, story(url));
});
