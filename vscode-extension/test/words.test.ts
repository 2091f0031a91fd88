import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsOf, shown } from "../src/words";

void test("words end at white space, quotes and backslashes keep it", () => {
  assert.deepEqual(argumentsOf(`  10 "a b" c\\ d '' 'x"y' `), ["10", "a b", "c d", "", 'x"y']);
  assert.deepEqual(argumentsOf(""), []);
});

void test("what is shown is read as the same words", () => {
  const words = ["10", "a b", "it's", "", "--n=3", "$HOME"];
  assert.deepEqual(argumentsOf(shown(words)), words);
});
