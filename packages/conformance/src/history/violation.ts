import type { HistoryRecord, SeenObject } from './records.ts';

/** The invariants of a history; the names are those of docs/explanation/guarantees.md. */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I5' | 'I6' | 'I7' | 'I8' | 'I9' | 'I10';

/** A part of a history that no correct plane can produce. */
export interface Violation {
  readonly invariant: Invariant;
  readonly text: string;
  /** The operations that contradict each other. */
  readonly involved: readonly (HistoryRecord | SeenObject)[];
}

/** Collects violations: counts all of them and keeps the first ones of each check. */
export class Findings {
  readonly violations: Violation[] = [];
  total = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(invariant: Invariant, text: string, ...involved: (HistoryRecord | SeenObject | undefined)[]): void {
    this.total += 1;
    if (this.violations.length >= this.#limit) return;
    this.violations.push({ invariant, text, involved: involved.filter((record) => record !== undefined) });
  }
}

/** Maximum characters of one operation in a description; lists can be long. */
const maxOperation = 700;

function shortened(text: string): string {
  return text.length <= maxOperation ? text : `${text.slice(0, maxOperation)}... (${text.length} characters)`;
}

/** Describes a violation: one line for it and one for each operation. */
export function describeViolation({ invariant, text, involved }: Violation): string {
  return [`${invariant}: ${text}`, ...involved.map((record) => `    ${shortened(JSON.stringify(record))}`)].join('\n');
}
