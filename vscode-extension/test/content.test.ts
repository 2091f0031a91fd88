import assert from "node:assert/strict";
import { test } from "node:test";
import { holdsKernels } from "../src/content";

const KERNEL = "#pragma once\ntemplate <typename T>\n__global__ void scale(T* a) { a[threadIdx.x] *= 2; }\n";

void test("a header with a kernel is CUDA, whatever it is called", () => {
  for (const name of ["a.h", "dir/a.hpp", "a.HXX", "kernels.inl"]) {
    assert.ok(holdsKernels(`/p/${name}`, KERNEL), name);
  }
});

void test("a header without one, and what is no header, stay what they are", () => {
  assert.ok(!holdsKernels("/p/a.h", "int f();\n"));
  assert.ok(!holdsKernels("/p/a.cpp", KERNEL));
  assert.ok(!holdsKernels("/p/a.h", "// no __global__ here\n/* nor\n__global__ void k(); */\nint f();\n"));
  assert.ok(!holdsKernels("/p/a.h", "#ifndef __CUDACC__\n#define __global__\n#endif\nint f();\n"));
});
