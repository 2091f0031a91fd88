import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CancellableProgress } from "../src/progress";
// @ts-expect-error -- the recording stand-in for VS Code is plain JavaScript
import { shown as recorded } from "./vscode-window.mjs";

interface Notification {
  readonly title: string;
  readonly reports: { message?: string; increment?: number }[];
  readonly open: boolean;
  readonly cancel: () => void;
}
const shown = recorded as Notification[];
const settled = () => new Promise((resolve) => setImmediate(resolve));

let sent: unknown[] = [];
let passedOn: string[] = [];
let progress: CancellableProgress;
const next = (_token: unknown, params: { kind: string }): void => {
  passedOn.push(params.kind);
};

beforeEach(() => {
  shown.length = 0;
  sent = [];
  passedOn = [];
  progress = new CancellableProgress(() => ({
    sendNotification: (...message: unknown[]) => {
      sent.push(message);
      return Promise.resolve();
    },
  }));
});

void test("percentages become steps, and the end takes the notification down", async () => {
  progress.handle("t", { kind: "begin", title: "Dynamic check", cancellable: true, percentage: 0 }, next);
  progress.handle("t", { kind: "report", percentage: 30, message: "block 3" }, next);
  progress.handle("t", { kind: "report", message: "still block 3" }, next);
  progress.handle("t", { kind: "report", percentage: 50 }, next);
  assert.deepEqual(shown[0]?.reports.map((r) => r.increment), [0, 30, 0, 20]);
  progress.handle("t", { kind: "end" }, next);
  await settled();
  assert.equal(shown[0].open, false);
  assert.deepEqual(passedOn, ["end"]);
});

void test("Cancel tells the server which work to stop", () => {
  progress.handle("t", { kind: "begin", title: "Dynamic check", cancellable: true }, next);
  shown[0]?.cancel();
  assert.deepEqual(sent, [["window/workDoneProgress/cancel", { token: "t" }]]);
});

void test("work that cannot be cancelled goes the client's own way", () => {
  progress.handle("t", { kind: "begin", title: "Indexing" }, next);
  progress.handle("t", { kind: "end" }, next);
  assert.equal(shown.length, 0);
  assert.deepEqual(passedOn, ["begin", "end"]);
});

void test("a server that dies leaves no notification behind", async () => {
  progress.handle("t", { kind: "begin", title: "Dynamic check", cancellable: true }, next);
  progress.dispose();
  await settled();
  assert.equal(shown[0]?.open, false);
});
