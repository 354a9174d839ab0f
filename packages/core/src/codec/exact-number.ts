const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;
/** `-9223372036854775808` */
const longestInt64 = 20;

/**
 * The value of an integer literal without loss: a number where it holds the integer exactly, a bigint for the other
 * integers of 64 bits. An integer beyond 64 bits is accepted in the form in which JavaScript prints a number
 * (`100000000000000000000`), because answers contain it so. `undefined` when no exact value exists.
 */
export function exactInteger(text: string): number | bigint | undefined {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (text.length <= longestInt64) {
    const exact = BigInt(text);
    if (exact >= minInt64 && exact <= maxInt64) return exact;
  }
  return String(value) === text ? value : undefined;
}
