/** An error in the command line, environment or config file. The message names the option and the fix. Exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** Number of single-character edits between two words; `limit + 1` when it is greater than `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      current.push(Math.min(replaced, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? limit + 1;
}

/** ` (did you mean X?)` when a known word is similar to the unknown one, otherwise ''. */
export function suggestion(wrong: string, known: readonly string[]): string {
  const limit = Math.max(2, Math.floor(wrong.length / 3));
  const ranked = known
    .map((word) => ({ word, distance: editDistance(wrong.toLowerCase(), word.toLowerCase(), limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance);
  return ranked[0] === undefined ? '' : ` (did you mean ${ranked[0].word}?)`;
}
