const trueWords = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const falseWords = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/**
 * Parses the spellings of true and false; undefined for any other text. See
 * docs/reference/agent-rules.md#grammar-of-options.
 */
export function parseBool(text: string): boolean | undefined {
  if (trueWords.has(text)) return true;
  return falseWords.has(text) ? false : undefined;
}
