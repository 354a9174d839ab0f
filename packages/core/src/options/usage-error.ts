/**
 * The command line, an environment variable or a config file is wrong. The message is one sentence that names the
 * option and the fix; programs print it without a stack trace and exit with code 2.
 */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Number of single-character edits (insert, delete, replace) between two names (Levenshtein distance). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Longer names are not compared, because the cost grows with the length and they are not mistyped names. */
const maxComparedLength = 80;

/** Returns the known name that is most similar to a mistyped one; undefined when none is similar enough. */
function nearestName(wrong: string, known: readonly string[]): string | undefined {
  if (wrong.length > maxComparedLength) return undefined;
  const limit = Math.max(2, Math.floor(wrong.length / 3));
  let nearest: string | undefined;
  let least = limit + 1;
  for (const name of known) {
    const distance = editDistance(wrong.toLowerCase(), name.toLowerCase());
    if (distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

/**
 * The end of the message about an unknown name: `; did you mean --food?` when a known name is similar, otherwise
 * `otherwise`.
 */
export function didYouMean(wrong: string, known: readonly string[], otherwise = ''): string {
  const nearest = nearestName(wrong, known);
  return nearest === undefined ? otherwise : `; did you mean ${nearest}?`;
}

/** The end of the message about a wrong word: a similar word, or all words when none is similar. */
export function didYouMeanOneOf(wrong: string, words: readonly string[]): string {
  const shown = words.map((word) => (word === '' ? '(empty)' : word));
  return didYouMean(wrong, words, `; use one of ${shown.join(', ')}`);
}

/** The text for messages, without the password of the URL in it. */
export function withoutPassword(text: string): string {
  return text.replace(/(\/\/[^:@/?#]*):[^@/]*@/, '$1:***@');
}
