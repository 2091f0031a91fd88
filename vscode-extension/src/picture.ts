/** Pictures of banks and barrier intervals beside the code. The SVG is the server's; nothing in the view runs. */
import * as vscode from "vscode";
import { type Picture, page, SHOW_LINE } from "./page";

export class PictureView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  show(picture: Picture): void {
    if (this.panel === undefined) {
      const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      const options = { enableScripts: false, enableCommandUris: [SHOW_LINE] };
      this.panel = vscode.window.createWebviewPanel("cuda-lsp.picture", picture.title, where, options);
      this.panel.onDidDispose(() => {
        this.panel = undefined;
      });
    }
    this.panel.title = picture.title;
    this.panel.webview.html = page(picture);
    this.panel.reveal(undefined, true);
  }

  dispose(): void {
    this.panel?.dispose();
  }
}

/** A line (from 1) of a document, in an editor that shows it already if there is one. */
export async function showLine(uri: string, line: number): Promise<void> {
  const wanted = vscode.Uri.parse(uri);
  const shown = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === wanted.toString());
  const document = shown?.document ?? (await vscode.workspace.openTextDocument(wanted));
  const content = document.lineAt(Math.min(Math.max(line, 1), document.lineCount) - 1);
  const selection = new vscode.Range(content.range.end.with({ character: content.firstNonWhitespaceCharacterIndex }), content.range.end);
  await vscode.window.showTextDocument(document, { viewColumn: shown?.viewColumn ?? vscode.ViewColumn.One, selection });
}
