/**
 * The status bar item: state of the server, and the verdict of the active file.
 *
 * Verdicts come from the server (`cuda-lsp/fileStatus`, sent with each publish); nothing is concluded here.
 */
import * as vscode from "vscode";
import { Milestones } from "./milestones";
import { type FileStatus, type ServerState, summarise } from "./verdict";

const LANGUAGES = new Set(["cuda-cpp", "cuda"]);
const ICONS = {
  racy: "$(error)",
  "race-free": "$(pass)",
  undecided: "$(question)",
  working: "$(sync~spin)",
  stopped: "$(debug-disconnect)",
  none: "$(circuit-board)",
} as const;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("cuda-lsp.status", vscode.StatusBarAlignment.Right, 100);
  private readonly files = new Map<string, FileStatus>();
  private readonly subscription: vscode.Disposable;
  private readonly milestones = new Milestones((milestone) => {
    void vscode.commands.executeCommand("setContext", milestone, true);
  });
  private server: ServerState = "starting";

  constructor() {
    this.item.name = "cuda-lsp";
    this.item.command = "cuda-lsp.showMenu";
    this.subscription = vscode.Disposable.from(
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.show();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.files.delete(document.uri.toString());
      }),
    );
    this.show();
  }

  serverIs(state: ServerState): void {
    this.server = state;
    this.milestones.serverIs(state);
    if (state !== "running") {
      this.files.clear(); // verdicts of a server that is gone are nobody's
    }
    this.show();
  }

  fileIs(status: FileStatus): void {
    this.milestones.fileIs(status);
    this.files.set(vscode.Uri.parse(status.uri).toString(), status);
    this.show();
  }

  private show(): void {
    const document = vscode.window.activeTextEditor?.document;
    if (document === undefined || !LANGUAGES.has(document.languageId)) {
      this.item.hide();
      return;
    }
    const summary = summarise(this.server, this.files.get(document.uri.toString()));
    this.item.text = `${ICONS[summary.icon]} cuda-lsp: ${summary.text}`;
    this.item.tooltip = tooltip(summary.details);
    this.item.backgroundColor =
      summary.icon === "stopped" ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.show();
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }
}

/** Kernel names and reasons are text of the opened file: they are shown, never rendered as markup. */
function tooltip(details: readonly string[]): vscode.MarkdownString {
  const shown = new vscode.MarkdownString();
  details.forEach((line, number) => {
    shown.appendMarkdown(number === 0 ? "" : "\n\n");
    shown.appendText(line);
  });
  return shown;
}
