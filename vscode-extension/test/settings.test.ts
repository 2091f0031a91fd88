import assert from "node:assert/strict";
import { test } from "node:test";
import { explicitSettings, type Setting } from "../src/settings";

const RESTRICTED = new Set(["includeDirs"]);

function setting(name: string, by: "user" | "folder" | "nobody"): Setting {
  return { name, value: name, setByUser: by === "user", setByFolder: by === "folder" };
}

void test("defaults are not sent: they would override the project's file", () => {
  assert.deepEqual(explicitSettings([setting("arch", "nobody")], true, RESTRICTED), {});
});

void test("the extension's own settings stay here", () => {
  assert.deepEqual(explicitSettings([setting("server.command", "user"), setting("trace.server", "user")], true, RESTRICTED), {});
});

void test("an untrusted folder sets no path, but what is not restricted", () => {
  const settings = [setting("includeDirs", "folder"), setting("arch", "folder")];
  assert.deepEqual(explicitSettings(settings, false, RESTRICTED), { arch: "arch" });
  assert.deepEqual(explicitSettings(settings, true, RESTRICTED), { includeDirs: "includeDirs", arch: "arch" });
});

void test("the user's own settings count without trust", () => {
  assert.deepEqual(explicitSettings([setting("includeDirs", "user")], false, RESTRICTED), { includeDirs: "includeDirs" });
});
