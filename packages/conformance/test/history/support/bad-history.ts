import type { Invariant, SeenObject, Selection } from '../../../src/index.ts';
import type { Script } from './script.ts';

/** A history that no correct plane can have produced. */
export interface BadHistory {
  readonly title: string;
  readonly invariant: Invariant;
  /** False when the script has a watch of everything of its own. */
  readonly ledger?: false;
  write(script: Script): void;
}

export const red: Selection = { kind: 'Part', labels: [{ key: 'colour', is: 'in', values: ['red'] }] };

/** Two objects; `a` changed once: revisions 2, 3, 4. */
export function start(s: Script): { a2: SeenObject; b3: SeenObject; a4: SeenObject } {
  const a2 = s.create('a', 2, { labels: { colour: 'red' } });
  const b3 = s.create('b', 3, { labels: { colour: 'blue' } });
  const a4 = s.replace('a', 4, { expect: 2 });
  return { a2, b3, a4 };
}

/** A delete as a watch shows it. */
export const gone = (object: SeenObject, revision: number): SeenObject => ({ ...object, revision });
