import assert from "node:assert/strict";
import { test } from "node:test";
import { locateServer, type Machine, pythonsOnPath } from "../src/locate";

function machine(with_: Partial<Machine>): Machine {
  return {
    setting: [],
    selectedPython: () => Promise.resolve(undefined),
    hasServer: () => Promise.resolve(true),
    folders: [],
    searchPath: [],
    platform: "linux",
    managed: undefined,
    isExecutable: () => true,
    ...with_,
  };
}

void test("the setting wins over everything, word for word", async () => {
  const found = await locateServer(
    machine({ setting: ["/opt/x", "serve", "--log"], searchPath: ["/usr/bin"], selectedPython: () => Promise.resolve("/p") }),
  );
  assert.deepEqual(found, { program: "/opt/x", args: ["serve", "--log"], origin: "setting" });
});

void test("the selected Python is used when the package is installed in it", async () => {
  const found = await locateServer(machine({ selectedPython: () => Promise.resolve("/venv/bin/python") }));
  assert.deepEqual(found, { program: "/venv/bin/python", args: ["-m", "cuda_lsp", "serve"], origin: "python" });
});

void test("a Python without the package is passed over for PATH", async () => {
  const found = await locateServer(
    machine({
      selectedPython: () => Promise.resolve("/venv/bin/python"),
      hasServer: () => Promise.resolve(false),
      searchPath: ["/empty", "/usr/bin"],
      isExecutable: (file) => file === "/usr/bin/cuda-lsp",
    }),
  );
  assert.deepEqual(found, { program: "/usr/bin/cuda-lsp", args: ["serve"], origin: "path" });
});

void test("the workspace's own environment comes before PATH and behind the selected Python", async () => {
  const folders = ["/none", "/project"];
  const isExecutable = (file: string): boolean => !file.startsWith("/none");
  const own = await locateServer(machine({ folders, isExecutable, searchPath: ["/usr/bin"] }));
  assert.deepEqual(own, { program: "/project/.venv/bin/python", args: ["-m", "cuda_lsp", "serve"], origin: "workspace" });
  const selected = await locateServer(machine({ folders, selectedPython: () => Promise.resolve("/p") }));
  assert.equal(selected?.origin, "python");
  const windows = await locateServer(machine({ folders: ["C:\\project"], platform: "win32" }));
  assert.equal(windows?.program, "C:\\project\\.venv\\Scripts\\python.exe");
});

void test("an environment of the workspace without the package is passed over", async () => {
  const found = await locateServer(machine({ folders: ["/project"], hasServer: () => Promise.resolve(false), searchPath: ["/usr/bin"] }));
  assert.equal(found?.origin, "path");
});

void test("relative entries of PATH are never searched", async () => {
  assert.equal(await locateServer(machine({ searchPath: [".", "", "bin"] })), undefined);
});

void test("Windows programs end in .exe", async () => {
  const found = await locateServer(machine({ platform: "win32", searchPath: ["C:\\Python\\Scripts"] }));
  assert.equal(found?.program, "C:\\Python\\Scripts\\cuda-lsp.exe");
});

void test("nothing installed is said, not guessed", async () => {
  assert.equal(await locateServer(machine({ searchPath: ["/usr/bin"], isExecutable: () => false })), undefined);
});

void test("the environment of our own comes last", async () => {
  const managed = "/storage/server-1/bin/python";
  const found = await locateServer(machine({ managed, searchPath: ["/usr/bin"], isExecutable: () => false }));
  assert.deepEqual(found, { program: managed, args: ["-m", "cuda_lsp", "serve"], origin: "managed" });
  assert.equal((await locateServer(machine({ managed, searchPath: ["/usr/bin"] })))?.origin, "path");
});

void test("an environment is made with a Python of PATH, the newest first", () => {
  const isExecutable = (file: string): boolean => ["/usr/bin/python3", "/opt/bin/python3.12"].includes(file);
  const found = pythonsOnPath({ searchPath: [".", "/usr/bin", "/opt/bin"], platform: "linux", isExecutable });
  assert.deepEqual(found, ["/opt/bin/python3.12", "/usr/bin/python3"]);
});
