import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { environmentOf, install, type Plan, type Run } from "../src/environment";
import { runner, Stopped } from "../src/programs";

let root: string;
let called: string[][];
const parts = (): string => path.join(root, "parts");
const storage = (): string => path.join(root, "storage");

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "environment-"));
  called = [];
  mkdirSync(parts());
  writeFileSync(path.join(parts(), "requirements.txt"), "# pins\na==1 \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1\n");
  writeFileSync(path.join(parts(), "cuda_lsp-2.0-py3-none-any.whl"), "");
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function plan(with_: Partial<Plan> = {}): Plan {
  return { storage: storage(), version: "2.0", parts: parts(), wheels: "", pythons: ["/py"], platform: "linux", ...with_ };
}

/** Does what each program does to the disk; `fails` says which call does not succeed. */
function machine(fails: (args: string) => boolean = () => false): Run {
  return (program, args, told) => {
    called.push([program, ...args]);
    const words = args.join(" ");
    if (fails(words)) {
      told("ERROR: no");
      return Promise.resolve(1);
    }
    if (words.includes("-m venv")) {
      const folder = args.at(-1) ?? "";
      mkdirSync(path.join(folder, "bin"), { recursive: true });
      writeFileSync(path.join(folder, "bin/python"), "");
    }
    if (words.includes("-r ")) {
      told("Collecting a==1");
    }
    return Promise.resolve(0);
  };
}

const quiet = (): void => undefined;

void test("an environment has the pinned packages with their digests, and the server's own wheel", async () => {
  const said: string[] = [];
  const made = await install(plan(), machine(), (message) => said.push(message));
  assert.equal(made.python, path.join(storage(), "server-2.0/bin/python"));
  assert.deepEqual(environmentOf(storage(), "2.0"), made);
  const [pinned, own] = called.filter((words) => words.includes("install"));
  assert.ok(pinned?.includes("--require-hashes") && pinned.includes("--only-binary") && !pinned.includes("--no-index"));
  assert.equal(own?.at(-1), path.join(parts(), "cuda_lsp-2.0-py3-none-any.whl"));
  assert.ok(said.includes("Collecting a==1"));
});

void test("a folder of wheels stands for the index", async () => {
  await install(plan({ wheels: "/wheels" }), machine(), quiet);
  const installs = called.filter((words) => words.includes("install"));
  assert.ok(installs.every((words) => words.includes("--no-index")));
  assert.ok(installs[0]?.join(" ").includes("--find-links /wheels"));
});

void test("a Python without venv is passed over, and none is said", async () => {
  await install(plan({ pythons: ["/old", "/py"] }), (program, args, told) => (program === "/old" ? Promise.resolve(1) : machine()(program, args, told)), quiet);
  assert.ok(existsSync(path.join(storage(), "server-2.0")));
  await assert.rejects(install(plan({ pythons: [] }), machine(), quiet), /no Python from 3\.10/);
});

void test("what fails leaves nothing, and says the last that was said", async () => {
  await assert.rejects(install(plan(), machine((args) => args.includes("-r ")), quiet), /ERROR: no/);
  assert.deepEqual(readdirSync(storage()), []);
  assert.equal(environmentOf(storage(), "2.0"), undefined);
});

void test("another version is started until it is replaced, and goes then", async () => {
  await install(plan({ version: "1.0" }), machine(), quiet);
  assert.equal(environmentOf(storage(), "2.0")?.version, "1.0");
  await install(plan(), machine(), quiet);
  assert.equal(environmentOf(storage(), "2.0")?.version, "2.0");
  assert.deepEqual(readdirSync(storage()), ["server-2.0"]);
});

void test("an update that fails leaves the version that is there", async () => {
  await install(plan({ version: "1.0" }), machine(), quiet);
  await assert.rejects(install(plan(), machine((args) => args.includes("--no-deps")), quiet));
  assert.equal(environmentOf(storage(), "2.0")?.version, "1.0");
});

void test("an environment whose Python has gone is none", async () => {
  const { python } = await install(plan(), machine(), quiet);
  rmSync(python);
  assert.equal(environmentOf(storage(), "2.0"), undefined);
});

void test("programs are stopped with what they have started", { skip: process.platform === "win32" }, async () => {
  let stop = quiet;
  const run = runner(root, (stopper) => {
    stop = stopper;
  });
  const sleeping = run("sh", ["-c", "sleep 100 & echo ready; wait"], () => {
    stop();
  });
  await assert.rejects(sleeping, Stopped);
  await assert.rejects(run("sh", ["-c", "true"], quiet), Stopped);
});

void test("a program tells its lines and its status; one that is not there has a status, too", async () => {
  const lines: string[] = [];
  const run = runner(root, quiet);
  assert.equal(await run("sh", ["-c", "echo one; echo two >&2; exit 3"], (line) => lines.push(line)), 3);
  assert.deepEqual(lines.sort(), ["one", "two"]);
  assert.equal(await run(path.join(root, "nothing"), [], quiet), 127);
});
