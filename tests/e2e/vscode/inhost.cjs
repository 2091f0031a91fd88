// Runs inside VS Code's extension host: what the editor's own interface says of Figure 1. Reports facts only; the
// assertions are in test_vscode.py.
const fs = require("node:fs");
const vscode = require("vscode");

const { file, storeLine, report } = JSON.parse(process.env.CUDA_LSP_E2E_INHOST);

/** Resolves to the diagnostics once there are none (or some), and how long that took in milliseconds. */
function diagnostics(uri, wanted, timeout = 120_000) {
  const started = performance.now();
  const now = () => vscode.languages.getDiagnostics(uri).filter((d) => d.source === "cuda-lsp");
  return new Promise((resolve, reject) => {
    const finish = () => {
      clearTimeout(timer);
      subscription.dispose();
      resolve({ found: now(), ms: performance.now() - started });
    };
    const timer = setTimeout(() => {
      subscription.dispose();
      reject(new Error(`waited for ${wanted ? "a finding" : "no finding"}, have ${JSON.stringify(now())}`));
    }, timeout);
    const look = () => {
      if (now().length > 0 === wanted) finish();
    };
    const subscription = vscode.languages.onDidChangeDiagnostics(look);
    look();
  });
}

async function facts() {
  const document = await vscode.workspace.openTextDocument(file);
  await vscode.window.showTextDocument(document);
  const first = await diagnostics(document.uri, true);
  const seen = {
    language: document.languageId,
    diagnostics: first.found.map((d) => ({
      code: typeof d.code === "object" ? d.code.value : d.code,
      link: typeof d.code === "object" ? d.code.target.toString() : null,
      severity: vscode.DiagnosticSeverity[d.severity],
      message: d.message,
      line: d.range.start.line + 1,
      text: document.getText(d.range),
      related: (d.relatedInformation ?? []).map((r) => ({
        message: r.message,
        line: r.location.range.start.line + 1,
        text: document.getText(r.location.range),
      })),
    })),
  };
  const hovers = await vscode.commands.executeCommand("vscode.executeHoverProvider", document.uri, first.found[0].range.start);
  seen.hover = hovers.flatMap((hover) => hover.contents.map((part) => part.value ?? String(part))).join("\n");

  const insert = new vscode.WorkspaceEdit();
  insert.insert(document.uri, new vscode.Position(storeLine, 0), "    __syncthreads();\n");
  await vscode.workspace.applyEdit(insert);
  seen.clearedMs = (await diagnostics(document.uri, false)).ms;

  const remove = new vscode.WorkspaceEdit();
  remove.delete(document.uri, new vscode.Range(storeLine, 0, storeLine + 1, 0));
  await vscode.workspace.applyEdit(remove);
  seen.returnedMs = (await diagnostics(document.uri, true)).ms;

  const race = (await diagnostics(document.uri, true)).found[0].range;
  let actions, fix; // the server tries a repair for some seconds before it offers it
  for (const end = performance.now() + 60_000; !fix && performance.now() < end;) {
    actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", document.uri, race);
    fix = actions.find((action) => action.title.includes("__syncthreads") && action.edit);
  }
  seen.actions = actions.map((action) => action.title);
  if (fix) {
    await vscode.workspace.applyEdit(fix.edit);
    await diagnostics(document.uri, false);
    seen.fixed = document.getText();
    await vscode.commands.executeCommand("undo");
    await diagnostics(document.uri, true);
  }

  await vscode.commands.executeCommand("cuda-lsp.restart");
  seen.afterRestart = (await diagnostics(document.uri, true)).found.length;

  await vscode.commands.executeCommand("cuda-lsp.openExample");
  const example = vscode.window.activeTextEditor.document;
  const { found } = await diagnostics(example.uri, true);
  seen.example = { scheme: example.uri.scheme, language: example.languageId, lines: found.map((d) => d.range.start.line + 1) };
  await vscode.commands.executeCommand("cuda-lsp.showLog");
  seen.commands = (await vscode.commands.getCommands(true)).filter((command) => command.startsWith("cuda-lsp."));
  return seen;
}

exports.run = async () => {
  let outcome;
  try {
    outcome = await facts();
  } catch (error) {
    outcome = { error: String(error?.stack ?? error) };
  }
  fs.writeFileSync(`${report}.part`, JSON.stringify(outcome));
  fs.renameSync(`${report}.part`, report);
};
