/**
 * Whether a scenario is among those that the words name: a word is the name of one, or else the beginning of several.
 * No words mean all.
 */
export function isWanted(words: readonly string[], name: string, names: readonly string[]): boolean {
  return words.length === 0 || words.some((word) => (names.includes(word) ? name === word : name.startsWith(word)));
}
