/** Reads VS Code's configuration for the server; which settings there are is what package.json declares. */
import * as vscode from "vscode";
import { explicitSettings } from "./settings";

const SECTION = "cuda-lsp";

/** The parts of package.json that are read here. */
export interface Manifest {
  readonly contributes: { readonly configuration: { readonly properties: Readonly<Record<string, unknown>> } };
  readonly capabilities: { readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] } };
}

export function settingsFor(manifest: Manifest, scope: vscode.Uri | undefined): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION, scope);
  const names = Object.keys(manifest.contributes.configuration.properties).map(withoutSection);
  const settings = names.map((name) => {
    const found = configuration.inspect(name);
    return {
      name,
      value: configuration.get<unknown>(name),
      setByUser: found?.globalValue !== undefined,
      setByFolder: found?.workspaceValue !== undefined || found?.workspaceFolderValue !== undefined,
    };
  });
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations.map(withoutSection);
  return explicitSettings(settings, vscode.workspace.isTrusted, new Set(restricted));
}

function withoutSection(name: string): string {
  return name.slice(SECTION.length + 1);
}
