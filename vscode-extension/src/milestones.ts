/** What a new user has come to: the steps of the walkthrough tick by it. Knows nothing of VS Code. */
import type { FileStatus, ServerState } from "./verdict";

/** A context of VS Code, which `package.json` names in `completionEvents`. */
export type Milestone = "cuda-lsp.serverRuns" | "cuda-lsp.raceSeen" | "cuda-lsp.raceMended";

export class Milestones {
  private readonly racy = new Set<string>();
  private readonly reached = new Set<Milestone>();

  constructor(private readonly tell: (milestone: Milestone) => void) {}

  serverIs(state: ServerState): void {
    if (state === "running") {
      this.reach("cuda-lsp.serverRuns");
    }
  }

  /** A race is mended when a file that was racy has kernels, and all of them are proved free of races. */
  fileIs({ uri, kernels, refined }: FileStatus): void {
    if (kernels.some(({ verdict }) => verdict === "racy")) {
      this.racy.add(uri);
      this.reach("cuda-lsp.raceSeen");
    } else if (refined && this.racy.has(uri) && kernels.length > 0 && kernels.every(({ verdict }) => verdict === "race-free")) {
      this.racy.delete(uri);
      this.reach("cuda-lsp.raceMended");
    }
  }

  private reach(milestone: Milestone): void {
    if (!this.reached.has(milestone)) {
      this.reached.add(milestone);
      this.tell(milestone);
    }
  }
}
