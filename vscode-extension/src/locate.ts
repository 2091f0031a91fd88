/**
 * Where the server is: the setting, else the selected Python, else the workspace's `.venv`, else `cuda-lsp` on PATH, else
 * the environment of our own.
 *
 * Knows nothing of VS Code: the machine is passed in, so that the order is tested without an editor.
 */
import * as path from "node:path";

/** A command that starts the server over stdio, and how it was found (for the log and the status bar). */
export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly origin: "setting" | "python" | "workspace" | "path" | "managed";
}

/** What `locateServer` asks of the machine. */
export interface Machine {
  /** The value of `cuda-lsp.server.command`. */
  readonly setting: readonly string[];
  /** The interpreter that the Python extension has selected; undefined without one, or without workspace trust. */
  selectedPython(): Promise<string | undefined>;
  /** The workspace's folders, where they are trusted. */
  readonly folders: readonly string[];
  /** Whether this interpreter has the package. */
  hasServer(python: string): Promise<boolean>;
  /** PATH, split. */
  readonly searchPath: readonly string[];
  readonly platform: NodeJS.Platform;
  /** The interpreter of the environment that the extension has made, if it has. */
  readonly managed: string | undefined;
  isExecutable(file: string): boolean;
}

/** The command to start, or undefined when no server is installed. */
export async function locateServer(machine: Machine): Promise<ServerCommand | undefined> {
  const [program, ...args] = machine.setting;
  if (program !== undefined && program !== "") {
    return { program, args, origin: "setting" };
  }
  const python = await machine.selectedPython();
  if (python !== undefined && (await machine.hasServer(python))) {
    return { program: python, args: ["-m", "cuda_lsp", "serve"], origin: "python" };
  }
  for (const environment of ownEnvironments(machine)) {
    if (await machine.hasServer(environment)) {
      return { program: environment, args: ["-m", "cuda_lsp", "serve"], origin: "workspace" };
    }
  }
  const found = onPath("cuda-lsp", machine);
  if (found !== undefined) {
    return { program: found, args: ["serve"], origin: "path" };
  }
  const { managed } = machine;
  return managed === undefined ? undefined : { program: managed, args: ["-m", "cuda_lsp", "serve"], origin: "managed" };
}

/** The interpreters of environments in the workspace, of which no extension tells. */
function ownEnvironments(machine: Machine): string[] {
  const parts = machine.platform === "win32" ? [".venv", "Scripts", "python.exe"] : [".venv", "bin", "python"];
  const flavour = machine.platform === "win32" ? path.win32 : path.posix;
  return machine.folders.map((folder) => flavour.join(folder, ...parts)).filter((file) => machine.isExecutable(file));
}

/** Interpreters on PATH that an environment may be made with, newest first. */
export function pythonsOnPath(machine: Pick<Machine, "searchPath" | "platform" | "isExecutable">): string[] {
  const names = ["python3.13", "python3.12", "python3.11", "python3.10", "python3", "python"];
  return names.map((name) => onPath(name, machine)).filter((file) => file !== undefined);
}

/** Relative entries of PATH are skipped: they would let an opened folder supply the program. */
function onPath(name: string, machine: Pick<Machine, "searchPath" | "platform" | "isExecutable">): string | undefined {
  const windows = machine.platform === "win32";
  const flavour = windows ? path.win32 : path.posix;
  return machine.searchPath
    .filter((folder) => flavour.isAbsolute(folder))
    .map((folder) => flavour.join(folder, windows ? `${name}.exe` : name))
    .find((file) => machine.isExecutable(file));
}
