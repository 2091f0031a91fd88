/** Arguments as a shell would take them. Knows nothing of VS Code. */

/** Splits at white space; quotes and backslashes keep it. Nothing is expanded. */
export function argumentsOf(line: string): string[] {
  const found: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const letter = line.charAt(at);
    if (letter === "\\" && quote !== "'" && at + 1 < line.length) {
      word = (word ?? "") + line.charAt(++at);
    } else if (quote !== "" ? letter === quote : letter === '"' || letter === "'") {
      word ??= "";
      quote = quote === "" ? letter : "";
    } else if (quote === "" && /\s/.test(letter)) {
      if (word !== undefined) {
        found.push(word);
      }
      word = undefined;
    } else {
      word = (word ?? "") + letter;
    }
  }
  return word === undefined ? found : [...found, word];
}

/** The same words as one line. */
export function shown(words: readonly string[]): string {
  return words.map((word) => (/^[\w./=:,+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
