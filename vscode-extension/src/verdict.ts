/** What the status bar says, from what the server says. Knows nothing of VS Code. */

export type ServerState = "starting" | "running" | "stopped" | "missing";
/** `races ignored`: it is racy, and comments or settings silence all of its races. `barrier missed`: it has none, but for that. */
export type Verdict = "racy" | "races ignored" | "barrier missed" | "race-free" | "undecided";

/** One kernel of a file. `reasons`: why it is undecided. */
export interface KernelStatus {
  readonly name: string;
  readonly verdict: Verdict;
  readonly reasons: readonly string[];
}

/** Parameters of the notification `cuda-lsp/fileStatus`. `refined`: the solver has finished with every kernel. */
export interface FileStatus {
  readonly uri: string;
  readonly version: number | null;
  readonly refined: boolean;
  readonly kernels: readonly KernelStatus[];
  /** Findings and mistakes that are errors. */
  readonly errors?: number;
}

export interface Summary {
  readonly icon: "racy" | "race-free" | "undecided" | "working" | "stopped" | "none";
  readonly text: string;
  readonly details: readonly string[];
}

/** `file` is undefined before the server has reported on it. */
export function summarise(server: ServerState, file: FileStatus | undefined): Summary {
  switch (server) {
    case "starting":
      return { icon: "working", text: "starting", details: ["The analysis server is starting."] };
    case "stopped":
      return { icon: "stopped", text: "stopped", details: ["The analysis server has stopped. Its log says why."] };
    case "missing":
      return { icon: "stopped", text: "not installed", details: ["The analysis server is not installed."] };
    case "running":
      return file === undefined
        ? { icon: "none", text: "ready", details: ["The analysis server is running."] }
        : ofFile(file);
  }
}

function ofFile({ kernels, refined, errors = 0 }: FileStatus): Summary {
  const count = (verdict: Verdict): number => kernels.filter((kernel) => kernel.verdict === verdict).length;
  const details = kernels.map(({ name, verdict, reasons }) => [`${name}: ${verdict}`, ...reasons].join(", "));
  if (kernels.length === 0 && errors === 0) {
    return { icon: "none", text: "no kernels", details: ["This file defines no kernel."] };
  }
  if (count("racy") > 0) {
    return { icon: "racy", text: `${kernelCount(count("racy"))} racy`, details };
  }
  if (!refined) {
    return { icon: "working", text: "proving", details };
  }
  if (count("undecided") > 0) {
    return { icon: "undecided", text: `${kernelCount(count("undecided"))} undecided`, details };
  }
  if (errors > 0) {
    return { icon: "racy", text: errors === 1 ? "1 error" : `${errors} errors`, details };
  }
  if (count("barrier missed") > 0) {
    return { icon: "undecided", text: `${kernelCount(count("barrier missed"))} may miss a barrier`, details };
  }
  if (count("races ignored") > 0) {
    return { icon: "none", text: `races of ${kernelCount(count("races ignored"))} ignored`, details };
  }
  return { icon: "race-free", text: "race-free", details };
}

function kernelCount(count: number): string {
  return count === 1 ? "1 kernel" : `${count} kernels`;
}
