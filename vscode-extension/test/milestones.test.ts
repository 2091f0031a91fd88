import assert from "node:assert/strict";
import { test } from "node:test";
import { type Milestone, Milestones } from "../src/milestones";
import type { FileStatus, Verdict } from "../src/verdict";

function status(uri: string, verdict: Verdict, refined = true): FileStatus {
  return { uri, version: 1, refined, kernels: [{ name: "k", verdict, reasons: [] }] };
}

function reached(act: (milestones: Milestones) => void): Milestone[] {
  const told: Milestone[] = [];
  act(new Milestones((milestone) => told.push(milestone)));
  return told;
}

void test("each step ticks once, when it has come true", () => {
  const told = reached((milestones) => {
    milestones.serverIs("starting");
    milestones.serverIs("running");
    milestones.serverIs("running");
    milestones.fileIs(status("a", "racy"));
    milestones.fileIs(status("a", "undecided", false));
    milestones.fileIs(status("a", "race-free"));
    milestones.fileIs(status("a", "racy"));
  });
  assert.deepEqual(told, ["cuda-lsp.serverRuns", "cuda-lsp.raceSeen", "cuda-lsp.raceMended"]);
});

void test("a race is mended when its own file is proved, and not before", () => {
  const told = reached((milestones) => {
    milestones.fileIs(status("a", "racy"));
    milestones.fileIs(status("b", "race-free"));
    milestones.fileIs(status("a", "race-free", false));
    milestones.fileIs(status("a", "races ignored"));
    milestones.fileIs({ uri: "a", version: 2, refined: true, kernels: [] });
  });
  assert.deepEqual(told, ["cuda-lsp.raceSeen"]);
});
