/**
 * An environment of our own for the server: a virtual environment with pinned wheels, in the extension's storage.
 *
 * What is installed is what the extension was packaged with: `requirements.txt` (each package with its version and
 * digests) and the server's own wheel; from an index, or from a folder of wheels without one. A folder counts once it
 * is complete, so that an installation that was stopped leaves nothing that would be started. Knows nothing of VS Code.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as path from "node:path";

const PREFIX = "server-";
const COMPLETE = "complete.json";
const PROBE =
  "import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))";
const STEP = /^(?:Collecting|Processing|Downloading|Installing|Successfully)\b/;
const LAST_LINES = 12;

/** Runs a program; each line of its output is told. Resolves to its exit status. Rejects when it was stopped. */
export type Run = (program: string, args: readonly string[], told: (line: string) => void) => Promise<number>;

/** A complete environment. */
export interface Environment {
  readonly version: string;
  readonly python: string;
}

export interface Plan {
  /** Where environments are kept. */
  readonly storage: string;
  /** The server's version that this extension wants. */
  readonly version: string;
  /** The folder of the extension with `requirements.txt` and the server's wheel. */
  readonly parts: string;
  /** A folder of wheels that stands for the index; empty: none does. */
  readonly wheels: string;
  /** Interpreters to make it with, best first. */
  readonly pythons: readonly string[];
  readonly platform: NodeJS.Platform;
}

/** `share`: of the whole, since what was told before. */
export type Progress = (message: string, share: number) => void;

/** The environment to start: of the version that is wanted, else another one that is complete. */
export function environmentOf(storage: string, wanted: string): Environment | undefined {
  const found = complete(storage);
  return found.find(({ version }) => version === wanted) ?? found[0];
}

function complete(storage: string): Environment[] {
  if (!existsSync(storage)) {
    return [];
  }
  return readdirSync(storage)
    .filter((name) => name.startsWith(PREFIX) && existsSync(path.join(storage, name, COMPLETE)))
    .sort()
    .reverse()
    .map((name) => JSON.parse(readFileSync(path.join(storage, name, COMPLETE), "utf8")) as Environment)
    .filter(({ python }) => existsSync(python)); // the Python that it was made with may be gone
}

/** Makes the environment; what other versions had goes when it is complete. Rejects, saying why, and leaves nothing. */
export async function install(plan: Plan, run: Run, progress: Progress): Promise<Environment> {
  progress("looking for a Python", 0);
  const python = await interpreter(plan.pythons, run);
  if (python === undefined) {
    throw new Error("no Python from 3.10 to 3.13 with its modules venv and ensurepip was found (on Debian and Ubuntu: apt install python3-venv)");
  }
  const folder = path.join(plan.storage, PREFIX + plan.version);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(plan.storage, { recursive: true });
  try {
    progress("making an environment", 5);
    await succeed(run, python, ["-I", "-m", "venv", folder]);
    const own = path.join(folder, ...(plan.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"]));
    await packages(plan, own, run, progress);
    await succeed(run, own, ["-I", "-m", "cuda_lsp", "--version"]);
    const made = { version: plan.version, python: own };
    writeFileSync(path.join(folder, COMPLETE), JSON.stringify(made));
    removeOthers(plan.storage, plan.version);
    return made;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function interpreter(pythons: readonly string[], run: Run): Promise<string | undefined> {
  for (const python of pythons) {
    const status = await run(python, ["-I", "-c", PROBE], () => undefined);
    if (status === 0) {
      return python;
    }
  }
  return undefined;
}

async function packages(plan: Plan, python: string, run: Run, progress: Progress): Promise<void> {
  const requirements = path.join(plan.parts, "requirements.txt");
  const count = readFileSync(requirements, "utf8").split("\n").filter((line) => /^\w/.test(line)).length;
  const told = (line: string): void => {
    if (STEP.test(line)) {
      progress(line.slice(0, 80), 80 / (3 * count));
    }
  };
  const source = plan.wheels === "" ? [] : ["--no-index", "--find-links", plan.wheels];
  const pip = ["-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"];
  await succeed(run, python, [...pip, "--only-binary", ":all:", "--require-hashes", ...source, "-r", requirements], told);
  const wheel = readdirSync(plan.parts).find((name) => name.startsWith(`cuda_lsp-${plan.version}-`));
  const server = wheel === undefined ? [...source, `cuda-lsp==${plan.version}`] : ["--no-index", path.join(plan.parts, wheel)];
  progress("installing cuda-lsp", 5);
  await succeed(run, python, [...pip, "--only-binary", ":all:", "--no-deps", ...server]);
}

/** Environments of other versions, and what is left of those that were never complete. */
function removeOthers(storage: string, version: string): void {
  readdirSync(storage)
    .filter((name) => name.startsWith(PREFIX) && name !== PREFIX + version)
    .forEach((name) => {
      try {
        rmSync(path.join(storage, name), { recursive: true, force: true });
      } catch {
        // Windows keeps the files of a server that still runs; the next installation takes them
      }
    });
}

/** Runs a program to its end; rejects with the last that it said when it fails. */
async function succeed(
  run: Run,
  program: string,
  args: readonly string[],
  told: (line: string) => void = () => undefined,
): Promise<void> {
  const lines: string[] = [];
  const status = await run(program, args, (line) => {
    lines.push(line);
    told(line);
  });
  if (status !== 0) {
    throw new Error([`${program} ended with status ${status}`, ...lines.slice(-LAST_LINES)].join("\n"));
  }
}
