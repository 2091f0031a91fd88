/** Wires the parts together: the server, the status bar item, the commands. */
import * as vscode from "vscode";
import type { Manifest } from "./configuration";
import { HeaderLanguage } from "./headers";
import { ManagedServer } from "./managed";
import { Marks } from "./marks";
import { SHOW_LINE } from "./page";
import { PictureView, showLine } from "./picture";
import { askLaunch, checkKernel, checkProgram, OutputTerminal } from "./runs";
import { LANGUAGES, Server } from "./server";
import { Status } from "./status";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("cuda-lsp", { log: true });
  const status = new Status();
  const views = { picture: new PictureView(), output: new OutputTerminal() };
  const manifest = context.extension.packageJSON as Manifest & { readonly version: string };
  const managed = new ManagedServer(context.globalStorageUri, context.extensionUri, manifest.version, log);
  const running = new Server(context.globalStorageUri, log, status, views, manifest, managed);
  server = running;
  context.subscriptions.push(
    log,
    status,
    views.picture,
    views.output,
    new Marks(context.extensionUri),
    new HeaderLanguage(),
    vscode.commands.registerCommand("cuda-lsp.checkKernel", checkKernel),
    vscode.commands.registerCommand("cuda-lsp.checkProgram", () => checkProgram(context.workspaceState)),
    vscode.commands.registerCommand("cuda-lsp.askLaunch", askLaunch),
    vscode.commands.registerCommand(SHOW_LINE, showLine),
    vscode.commands.registerCommand("cuda-lsp.checkAllFiles", () => checkAllFiles(running)),
    vscode.commands.registerCommand("cuda-lsp.installServer", () => running.install(false)),
    vscode.commands.registerCommand("cuda-lsp.installServerFromFolder", () => running.install(true)),
    vscode.commands.registerCommand("cuda-lsp.restart", () => running.restart()),
    vscode.commands.registerCommand("cuda-lsp.showLog", () => {
      log.show();
    }),
    vscode.commands.registerCommand("cuda-lsp.showMenu", showMenu),
    vscode.commands.registerCommand("cuda-lsp.openExample", () => openExample(context.extensionUri)),
    vscode.commands.registerCommand("cuda-lsp.howToInstall", () => howToInstall(context.extensionUri)),
    vscode.workspace.onDidOpenTextDocument(async (document) => {
      if (isCuda(document)) {
        await running.started();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(async () => {
      if (running.isWanted) {
        await running.restart();
      }
    }),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("cuda-lsp.server") && running.isWanted) {
        await running.restart();
      } else if (change.affectsConfiguration("cuda-lsp")) {
        await running.settingsChanged();
      }
    }),
  );
  if (vscode.workspace.textDocuments.some(isCuda)) {
    await running.started();
  }
}

/** The extension is also there for headers in C and C++; the server is not started for them. */
function isCuda(document: vscode.TextDocument): boolean {
  return LANGUAGES.includes(document.languageId);
}

/** The server's own command has another name: this one is there before the server is. */
async function checkAllFiles(server: Server): Promise<void> {
  await server.started();
  await vscode.commands.executeCommand("cuda-lsp.checkWorkspace");
}

export function deactivate(): Promise<void> | undefined {
  return server?.stop();
}

async function showMenu(): Promise<void> {
  const entries = [
    { label: "$(play) Run a dynamic check of the kernel at the cursor", command: "cuda-lsp.checkKernel" },
    { label: "$(run-all) Run the program under check", command: "cuda-lsp.checkProgram" },
    { label: "$(refresh) Restart the analysis server", command: "cuda-lsp.restart" },
    { label: "$(output) Show the log", command: "cuda-lsp.showLog" },
    { label: "$(warning) Show the problems", command: "workbench.actions.view.problems" },
    { label: "$(gear) Settings", command: "workbench.action.openSettings", argument: "@ext:cuda-lsp.cuda-lsp" },
    { label: "$(cloud-download) Install the server in an environment of its own", command: "cuda-lsp.installServer" },
    { label: "$(book) How to install the server", command: "cuda-lsp.howToInstall" },
  ];
  const chosen = await vscode.window.showQuickPick(entries, { title: "cuda-lsp" });
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(chosen.command, chosen.argument);
  }
}

/** An untitled copy: the user edits it freely, nothing is written. */
async function openExample(extension: vscode.Uri): Promise<void> {
  const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(extension, "media", "example.cu"));
  const content = new TextDecoder().decode(bytes);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "cuda-cpp", content }));
}

async function howToInstall(extension: vscode.Uri): Promise<void> {
  const page = vscode.Uri.joinPath(extension, "media", "walkthrough-install.md");
  await vscode.commands.executeCommand("markdown.showPreview", page);
}
