/** The page of a picture: the drawing, and all of it in words and tables for keyboard and screen reader. Knows nothing of VS Code. */

/** The command that a line of a table leads to: URI, line from 1. */
export const SHOW_LINE = "cuda-lsp.showLine";

/** `lines`: the last column is a line of the document. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly lines: boolean;
}

/** Parameters of the notification `cuda-lsp/picture`. `words`: the picture for who does not see it. */
export interface Picture {
  readonly uri: string;
  readonly title: string;
  readonly svg: string;
  readonly words: string;
  readonly tables: readonly Table[];
}

const POLICY = "default-src 'none'; style-src 'unsafe-inline'";
const LONG = 12; // rows; more of them are behind a word that opens them
const STYLE = `
body .page { fill: var(--vscode-editor-background) }
body .ink { fill: var(--vscode-editor-foreground) }
body .rule { stroke: var(--vscode-editorIndentGuide-background1, var(--vscode-editor-foreground)) }
svg { max-width: 100%; min-width: 36rem; height: auto }
table { border-collapse: collapse } caption { text-align: left; font-weight: bold }
th, td { text-align: left; padding: 2px 12px 2px 0 }
`;

export function page(picture: Picture): string {
  const { title, svg, words } = picture;
  const tables = picture.tables.map((table) => folded(table, drawn(table, picture.uri))).join("\n");
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}"><title>${escaped(title)}</title></head>
<body><h1>${escaped(title)}</h1>${svg}<p tabindex="0">${escaped(words)}</p>
${tables}<style>${STYLE}</style></body></html>`;
}

function folded({ title, rows }: Table, table: string): string {
  return rows.length > LONG ? `<details><summary>${escaped(title)}: as a table</summary>${table}</details>` : table;
}

function drawn({ title, columns, rows, lines }: Table, uri: string): string {
  const head = columns.map((column) => `<th scope="col">${escaped(column)}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map((cell, n) => cellOf(cell, lines && n === row.length - 1, uri)).join("")}</tr>`);
  return `<table><caption>${escaped(title)}</caption><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table>`;
}

function cellOf(cell: string, isLine: boolean, uri: string): string {
  if (!isLine) {
    return `<td>${escaped(cell)}</td>`;
  }
  const target = `command:${SHOW_LINE}?${encodeURIComponent(JSON.stringify([uri, Number(cell)]))}`;
  return `<td><a href="${escaped(target)}">line ${escaped(cell)}</a></td>`;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
