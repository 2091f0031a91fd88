/** What runs have shown, in the gutter: confirmed, new and not observed findings look different. */
import * as vscode from "vscode";

type Mark = "confirmed" | "new" | "not-observed";
const MARKS: readonly Mark[] = ["confirmed", "new", "not-observed"];

/** The part of a diagnostic of ours that the client library keeps. */
interface Kept {
  readonly data?: { readonly status?: string; readonly missed?: boolean };
}

export class Marks implements vscode.Disposable {
  private readonly types: ReadonlyMap<Mark, vscode.TextEditorDecorationType>;
  private readonly subscription: vscode.Disposable;

  constructor(extension: vscode.Uri) {
    this.types = new Map(MARKS.map((mark) => [mark, decoration(extension, mark)]));
    this.subscription = vscode.Disposable.from(
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        const changed = new Set(uris.map(String));
        vscode.window.visibleTextEditors.filter(({ document }) => changed.has(document.uri.toString())).forEach((editor) => {
          this.draw(editor);
        });
      }),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        editors.forEach((editor) => {
          this.draw(editor);
        });
      }),
    );
  }

  private draw(editor: vscode.TextEditor): void {
    const ours = vscode.languages.getDiagnostics(editor.document.uri).filter(({ source }) => source === "cuda-lsp");
    for (const [mark, type] of this.types) {
      editor.setDecorations(type, ours.filter((one) => markOf(one as Kept) === mark).map(({ range }) => range));
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.types.forEach((type) => {
      type.dispose();
    });
  }
}

function markOf({ data }: Kept): Mark | undefined {
  if (data?.status === "confirmed") {
    return data.missed === true ? "new" : "confirmed";
  }
  return data?.status === "not observed" ? "not-observed" : undefined;
}

function decoration(extension: vscode.Uri, mark: Mark): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.joinPath(extension, "media", `${mark}.svg`),
    gutterIconSize: "70%",
    ...(mark === "not-observed" ? { opacity: "0.6" } : {}),
  });
}
