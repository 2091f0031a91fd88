/** The picture of banks beside the code. Its SVG is the server's; nothing in the view runs. */
import * as vscode from "vscode";

/** Parameters of the notification `cuda-lsp/picture`. `words`: the picture for who does not see it. */
export interface Picture {
  readonly title: string;
  readonly svg: string;
  readonly words: string;
}

const STYLE = `
body .page { fill: var(--vscode-editor-background) }
body .ink { fill: var(--vscode-editor-foreground) }
body .rule { stroke: var(--vscode-editorIndentGuide-background1, var(--vscode-editor-foreground)) }
svg { max-width: 100%; height: auto }
`;

export class PictureView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  show(picture: Picture): void {
    if (this.panel === undefined) {
      const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.panel = vscode.window.createWebviewPanel("cuda-lsp.banks", picture.title, where, { enableScripts: false });
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

function page({ title, svg, words }: Picture): string {
  const policy = "default-src 'none'; style-src 'unsafe-inline'";
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}"><title>${escaped(title)}</title></head>
<body><h1>${escaped(title)}</h1><p tabindex="0">${escaped(words)}</p>${svg}<style>${STYLE}</style></body></html>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
