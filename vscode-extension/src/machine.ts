/** The real machine behind `locateServer`: settings, the Python extension, PATH. */
import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import { type Machine, pythonsOnPath } from "./locate";

const PROBE_TIMEOUT_MS = 10_000;

/** The part of the Python extension's public interface that is used here. */
interface PythonExtension {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string },
    ): Promise<{ readonly executable: { readonly uri: vscode.Uri | undefined } } | undefined>;
  };
}

/**
 * `safeFolder` is where probes run and where the server starts: Python puts the working directory on its module
 * path, so neither may run in the opened folder. `managed`: the interpreter of the environment of our own.
 */
export function thisMachine(safeFolder: string, managed: string | undefined): Machine {
  return {
    setting: vscode.workspace.getConfiguration("cuda-lsp").get<string[]>("server.command", []),
    selectedPython,
    folders: trustedFolders(),
    hasServer: (python) => canImportServer(python, safeFolder),
    searchPath: searchPath(),
    platform: process.platform,
    managed,
    isExecutable,
  };
}

/** Pythons that the environment of our own may be made with: the selected one, then those on PATH. */
export async function interpreters(): Promise<string[]> {
  const selected = await selectedPython();
  const found = pythonsOnPath({ searchPath: searchPath(), platform: process.platform, isExecutable });
  return [...(selected === undefined ? [] : [selected]), ...found];
}

function searchPath(): string[] {
  return (process.env.PATH ?? "").split(path.delimiter);
}

/** The interpreter may come from the workspace (`.venv`): without trust it is not asked for. */
async function selectedPython(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  if (extension === undefined || !vscode.workspace.isTrusted) {
    return undefined;
  }
  const { environments } = await extension.activate();
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}

/** A program of a folder that nobody trusts is not started. */
function trustedFolders(): string[] {
  const folders = vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []) : [];
  return folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath);
}

function canImportServer(python: string, cwd: string): Promise<boolean> {
  const probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('cuda_lsp') is None)";
  return new Promise((resolve) => {
    execFile(python, ["-c", probe], { cwd, timeout: PROBE_TIMEOUT_MS }, (error) => {
      resolve(error === null);
    });
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false; // not there, or not ours to run: both mean "look further"
  }
}
