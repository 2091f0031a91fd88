import { readFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

export async function resolve(specifier, context, next) {
  if (specifier === "vscode") {
    return { url: new URL("./vscode-window.mjs", import.meta.url).href, format: "module", shortCircuit: true };
  }
  if (specifier.startsWith(".") && context.parentURL) {
    const url = new URL(`${specifier}.ts`, context.parentURL);
    if (existsSync(fileURLToPath(url))) return { url: url.href, format: "module", shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith(".ts")) return next(url, context);
  const { code } = await transform(await readFile(fileURLToPath(url), "utf8"), { loader: "ts", format: "esm" });
  return { format: "module", source: code, shortCircuit: true };
}
