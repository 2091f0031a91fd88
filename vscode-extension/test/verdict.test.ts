import assert from "node:assert/strict";
import { test } from "node:test";
import { type KernelStatus, summarise, type Verdict } from "../src/verdict";

function file(refined: boolean, ...verdicts: Verdict[]) {
  const kernels: KernelStatus[] = verdicts.map((verdict, i) => ({ name: `k${i}`, verdict, reasons: [] }));
  return { uri: "file:///k.cu", version: 1, refined, kernels };
}

void test("one racy kernel makes the file racy, however many are not", () => {
  assert.equal(summarise("running", file(true, "race-free", "racy", "undecided")).text, "1 kernel racy");
});

void test("an undecided kernel is never shown as race-free", () => {
  assert.equal(summarise("running", file(true, "race-free", "undecided")).icon, "undecided");
});

void test("race-free is not said before the solver has finished", () => {
  assert.equal(summarise("running", file(false, "race-free")).text, "proving");
  assert.equal(summarise("running", file(true, "race-free")).text, "race-free");
});

void test("nothing is green over an error", () => {
  assert.equal(summarise("running", { ...file(true, "race-free"), errors: 1 }).text, "1 error");
  assert.equal(summarise("running", { ...file(true), errors: 2 }).icon, "racy");
});

void test("races that somebody silenced leave the file neither racy nor race-free", () => {
  const summary = summarise("running", file(true, "races ignored", "race-free"));
  assert.deepEqual([summary.icon, summary.text], ["none", "races of 1 kernel ignored"]);
});

void test("a kernel that may miss a barrier is not green", () => {
  const summary = summarise("running", file(true, "barrier missed", "race-free"));
  assert.deepEqual([summary.icon, summary.text], ["undecided", "1 kernel may miss a barrier"]);
});

void test("a stopped server hides old verdicts", () => {
  assert.equal(summarise("stopped", file(true, "race-free")).text, "stopped");
});

void test("a file without kernels has no verdict", () => {
  assert.equal(summarise("running", file(true)).text, "no kernels");
});

void test("the details name each kernel and why it is undecided", () => {
  const status = { ...file(true), kernels: [{ name: "scan", verdict: "undecided" as const, reasons: ["inline assembly"] }] };
  assert.deepEqual(summarise("running", status).details, ["scan: undecided, inline assembly"]);
});
