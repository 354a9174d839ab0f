/** Share of the full number of faults that a test causes; `npm run faults` sets it. */
const scale = process.env['KEELSON_FAULT_SCALE'];

/** Number of rounds: `few` in a normal test run, `full` with `npm run faults`. */
export function rounds(few: number, full: number): number {
  return scale === undefined ? few : Math.max(1, Math.round(full * Number(scale)));
}

/** Milliseconds from a write to its delivery, in one line. */
export function describeDelays(what: string, delays: readonly number[]): string {
  const sorted = [...delays].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(0);
  return `${what}, from write to delivery: p50 ${at(0.5)} ms, max ${at(1)} ms of ${sorted.length}`;
}
