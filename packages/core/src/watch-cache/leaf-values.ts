import type { Droppable } from '../storage/byte-budget.ts';
import type { Pin } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { UsageBudget } from '../storage/usage-budget.ts';

type Positions = ReadonlyMap<string, readonly number[]>;

const none: readonly number[] = [];
/** Roughly what a map of positions takes, for each item and for each value, bytes. */
const itemBytes = 8;
const valueBytes = 96;

/**
 * Where in a leaf the objects with each value of an attribute are, so that a list which selects by one value looks at
 * few objects. An attribute that is asked for once is not worth it; it is found out when it is asked for again while
 * the leaf is as it was.
 */
export class LeafValues implements Droppable {
  readonly #budget: UsageBudget;
  /** Undefined for an attribute that was asked for once. */
  readonly #attributes = new Map<string, Positions | undefined>();
  #bytes = 0;

  constructor(budget: UsageBudget) {
    this.#budget = budget;
  }

  /**
   * Positions of the items that have the value, in order; undefined when all have to be looked at. The items must all
   * be readable.
   */
  positions({ attribute, value, read }: Pin, items: readonly StoredObject[]): readonly number[] | undefined {
    let found = this.#attributes.get(attribute);
    if (found === undefined && this.#attributes.has(attribute)) {
      const made = positionsByValue(items, read);
      this.#bytes += items.length * itemBytes + made.size * valueBytes;
      found = made;
    }
    this.#attributes.set(attribute, found);
    this.#budget.touch(this, this.#bytes);
    return found && (found.get(value) ?? none);
  }

  /** To be called when the items change, too. */
  drop(): void {
    if (this.#attributes.size === 0) return;
    this.#attributes.clear();
    this.#bytes = 0;
    this.#budget.forget(this);
  }
}

function positionsByValue(items: readonly StoredObject[], read: Pin['read']): Positions {
  const positions = new Map<string, number[]>();
  items.forEach((item, position) => {
    const value = read(item);
    if (value === undefined) return;
    const known = positions.get(value);
    if (known === undefined) positions.set(value, [position]);
    else known.push(position);
  });
  return positions;
}
