/** Running kernels and programs under check, and asking what the user knows and the source does not tell. */
import * as vscode from "vscode";
import { argumentsOf, shown } from "./words";

const REMEMBERED = "cuda-lsp.programArguments";
const CUSTOM = "Other extents…";

/** Parameters of the notification `cuda-lsp/programOutput`. */
export interface ProgramOutput {
  readonly title: string;
  readonly text: string;
}

/** The kernel at the cursor. The server finds it by its line. */
export async function checkKernel(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined) {
    await vscode.commands.executeCommand("cuda-lsp.runDynamicCheck", editor.document.uri.toString(), editor.selection.active.line);
  }
}

/** Asks for arguments; those of the last run of this file stand there already. */
export async function checkProgram(memory: vscode.Memento): Promise<void> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  if (uri === undefined) {
    return;
  }
  const known = memory.get<Record<string, string>>(REMEMBERED, {});
  const given = await vscode.window.showInputBox({
    title: "Run the program under check",
    prompt: "Arguments of the program, as a shell would take them (empty: none)",
    value: known[uri] ?? shown(vscode.workspace.getConfiguration("cuda-lsp").get<string[]>("programArguments", [])),
  });
  if (given !== undefined) {
    await memory.update(REMEMBERED, { ...known, [uri]: given });
    await vscode.commands.executeCommand("cuda-lsp.runProgramWith", uri, argumentsOf(given));
  }
}

/** The action "Set launch configuration": `offered` are directives with launches that open files have. */
export async function askLaunch(uri: string, line: number, indent: string, offered: readonly string[]): Promise<void> {
  const chosen = await vscode.window.showQuickPick([...offered, CUSTOM], { title: "The launch of this kernel" });
  const directive = chosen === CUSTOM ? await otherLaunch() : chosen;
  if (directive !== undefined) {
    const edit = new vscode.WorkspaceEdit();
    edit.insert(vscode.Uri.parse(uri), new vscode.Position(line, 0), `${indent}${directive}\n`);
    await vscode.workspace.applyEdit(edit);
  }
}

async function otherLaunch(): Promise<string | undefined> {
  const block = await vscode.window.showInputBox({
    title: "Threads of a block",
    prompt: "One to three numbers, such as 256 or 16,16",
    validateInput: (text) => (/^\s*\d+(\s*,\s*\d+){0,2}\s*$/.test(text) ? undefined : "one to three numbers, such as 16,16"),
  });
  return block === undefined ? undefined : `// cuda-lsp: launch block=(${block.replaceAll(/\s/g, "")})`;
}

/** A terminal that shows what programs under check print; it takes no input. */
export class OutputTerminal implements vscode.Disposable {
  private readonly written = new vscode.EventEmitter<string>();
  private terminal: vscode.Terminal | undefined;
  private pending = "";
  private isOpen = false;

  write({ title, text }: ProgramOutput): void {
    this.pending += `\u001b[1m${title}\u001b[0m\r\n${text.replaceAll(/\r?\n/g, "\r\n")}\r\n`;
    this.terminal ??= this.opened();
    this.terminal.show(true);
    this.flush();
  }

  private opened(): vscode.Terminal {
    const pty: vscode.Pseudoterminal = {
      onDidWrite: this.written.event,
      open: () => {
        this.isOpen = true;
        this.flush();
      },
      close: () => {
        this.isOpen = false;
        this.terminal = undefined;
      },
    };
    return vscode.window.createTerminal({ name: "CUDA check", pty });
  }

  private flush(): void {
    if (this.isOpen && this.pending !== "") {
      this.written.fire(this.pending);
      this.pending = "";
    }
  }

  dispose(): void {
    this.terminal?.dispose();
    this.written.dispose();
  }
}
