/** Headers that hold kernels are opened as C or C++: their language is set to CUDA, once, so that somebody may set it back. */
import * as vscode from "vscode";
import { holdsKernels } from "./content";

const FROM = new Set(["c", "cpp"]);

export class HeaderLanguage implements vscode.Disposable {
  private readonly seen = new Set<string>();
  private readonly subscription: vscode.Disposable;

  constructor() {
    const look = (document: vscode.TextDocument): void => {
      this.look(document);
    };
    this.subscription = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument(look),
      vscode.workspace.onDidSaveTextDocument(look), // a kernel may have come into it
    );
    vscode.workspace.textDocuments.forEach(look);
  }

  private look(document: vscode.TextDocument): void {
    const uri = document.uri.toString();
    const wanted = vscode.workspace.getConfiguration("cuda-lsp", document.uri).get<boolean>("headersAsCuda") !== false;
    if (wanted && FROM.has(document.languageId) && !this.seen.has(uri) && holdsKernels(document.uri.path, document.getText())) {
      this.seen.add(uri);
      void vscode.languages.setTextDocumentLanguage(document, "cuda-cpp");
    }
  }

  dispose(): void {
    this.subscription.dispose();
  }
}
