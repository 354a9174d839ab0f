/**
 * Plural of a lower-case English word: `ingress` -> `ingresses`, `policy` -> `policies`, `gateway` -> `gateways`.
 * Irregular words need a name of their own in the kind's declaration.
 */
export function pluralOf(word: string): string {
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return `${word}s`;
}
