/** The number of single-character edits (insert, delete, replace) between two words (Levenshtein distance). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const swapped = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(swapped, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Longer words are not compared, because the cost grows with the length and they are not mistyped option names. */
const maxLength = 80;

/** Returns the known word that is most similar to a mistyped one; undefined when none is similar enough. */
export function nearestWord(wrong: string, known: readonly string[]): string | undefined {
  if (wrong.length > maxLength) return undefined;
  const limit = Math.max(2, Math.floor(wrong.length / 3));
  let best: { word: string; far: number } | undefined;
  for (const word of known) {
    const far = distance(wrong.toLowerCase(), word.toLowerCase());
    if (far <= limit && far < (best?.far ?? Number.POSITIVE_INFINITY)) best = { word, far };
  }
  return best?.word;
}
