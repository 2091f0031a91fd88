import assert from "node:assert/strict";
import { test } from "node:test";
import { page } from "../src/page";

const table = { title: "now", columns: ["access", "line"], rows: [["s[a < b]", "7"]], lines: true };
const picture = { uri: "file:///a%20b.cu", title: 'a "b" <c>', svg: "<svg/>", words: "s[a < b] & more", tables: [table] };

void test("text of the source is no markup", () => {
  const html = page(picture);
  assert.ok(html.includes("<h1>a &quot;b&quot; &lt;c&gt;</h1>") && html.includes("<td>s[a &lt; b]</td>"));
  assert.ok(html.includes("s[a &lt; b] &amp; more</p>"));
});

void test("a line of the document is a link that the keyboard reaches, one of another text is not", () => {
  const target = `command:cuda-lsp.showLine?${encodeURIComponent(JSON.stringify([picture.uri, 7]))}`;
  assert.ok(page(picture).includes(`<a href="${target}">line 7</a>`));
  assert.ok(!page({ ...picture, tables: [{ ...table, lines: false }] }).includes("<a "));
});

void test("a long table is folded, a short one is not", () => {
  const rows = Array.from({ length: 32 }, () => ["s", "1"]);
  assert.ok(!page(picture).includes("<details>"));
  assert.ok(page({ ...picture, tables: [{ ...table, rows }] }).includes("<details><summary>now: as a table"));
});
