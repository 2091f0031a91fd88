import assert from "node:assert/strict";
import { test } from "node:test";
import { locateServer, type Machine } from "../src/locate";

function machine(with_: Partial<Machine>): Machine {
  return {
    setting: [],
    selectedPython: () => Promise.resolve(undefined),
    hasServer: () => Promise.resolve(true),
    searchPath: [],
    platform: "linux",
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
