/**
 * What the user has set for the server.
 *
 * Only what is set: a default sent along would override the project's `cuda-lsp.toml`, which ranks below the editor.
 */

/** One setting, as `WorkspaceConfiguration.inspect` and `get` see it. */
export interface Setting {
  /** Without the `cuda-lsp.` prefix. */
  readonly name: string;
  readonly value: unknown;
  readonly setByUser: boolean;
  readonly setByFolder: boolean;
}

const OF_THE_EXTENSION = /^(?:server\.|trace\.|headersAsCuda$)/;

/** `restricted` names those that an untrusted folder may not set. */
export function explicitSettings(
  settings: readonly Setting[],
  trusted: boolean,
  restricted: ReadonlySet<string>,
): Record<string, unknown> {
  const counts = (setting: Setting): boolean =>
    setting.setByUser || (setting.setByFolder && (trusted || !restricted.has(setting.name)));
  const sent = settings.filter((setting) => !OF_THE_EXTENSION.test(setting.name) && counts(setting));
  return Object.fromEntries(sent.map(({ name, value }) => [name, value]));
}
