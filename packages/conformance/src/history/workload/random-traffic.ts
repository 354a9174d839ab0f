import type { Random } from '../../suite/random.ts';
import type { FieldChanges, Fields, LabelTerm, ReadAt, SeenObject, Selection, WriteOperation } from '../records.ts';
import { namePrefix } from './wire-requests.ts';
import { type WorkloadKind, workloadKinds } from './workload-kinds.ts';

const tiers = ['front', 'middle', 'back'] as const;

/** The objects of random traffic. */
export interface TrafficShape {
  readonly namespaces: readonly string[];
  /** Number of names per kind and namespace. */
  readonly names: number;
  /** Length of the longest value. */
  readonly valueBytes: number;
}

/** Chooses the next operations of clients. */
export class RandomTraffic {
  readonly #random: Random;
  readonly #shape: TrafficShape;
  /** The newest state of an object that a client has observed. */
  readonly #known: (key: string) => SeenObject | undefined;
  #tokens = 0;

  constructor(random: Random, shape: TrafficShape, known: (key: string) => SeenObject | undefined) {
    this.#random = random;
    this.#shape = shape;
    this.#known = known;
  }

  operation(): WriteOperation {
    const random = this.#random;
    const kind = random.pick(workloadKinds);
    const key = this.key(kind);
    const known = this.#known(key);
    this.#tokens += 1;
    const token = `${this.#tokens.toString(36)}-${random.below(2 ** 31).toString(36)}`;
    if (known === undefined)
      return { do: 'create', key, token, labels: this.#labels(), values: this.#values(kind, token) };
    const expect = random.chance(0.7) ? { expect: known.revision } : {};
    const dice = random.next();
    if (dice < 0.02) return { do: 'create', key, token, labels: this.#labels(), values: this.#values(kind, token) };
    if (dice < 0.15) return { do: 'delete', key, ...(random.chance(0.5) ? expect : {}) };
    if (dice < 0.55)
      return { do: 'replace', key, token, labels: this.#labels(), values: this.#values(kind, token), ...expect };
    if (dice < 0.7 && kind.hasStatus)
      return { do: 'status', key, token, status: { token }, ...(random.chance(0.3) ? expect : {}) };
    const values: FieldChanges = { token, [`f${random.below(4)}`]: random.chance(0.3) ? null : token };
    const labels: FieldChanges = random.chance(0.5) ? { tier: random.chance(0.2) ? null : random.pick(tiers) } : {};
    return { do: 'patch', key, token, values, labels, ...(random.chance(0.3) ? expect : {}) };
  }

  key(kind: WorkloadKind = this.#random.pick(workloadKinds)): string {
    const { namespaces, names } = this.#shape;
    return `${kind.kind}/${this.#random.pick(namespaces)}/${namePrefix}${this.#random.below(names)}`;
  }

  #labels(): Fields {
    const labels: Record<string, string> = {};
    if (this.#random.chance(0.8)) labels['tier'] = this.#random.pick(tiers);
    if (this.#random.chance(0.4)) labels['canary'] = this.#random.pick(['yes', 'no']);
    return labels;
  }

  #values(kind: WorkloadKind, token: string): Fields {
    const { selectable } = kind;
    const chosen =
      selectable && this.#random.chance(0.8) ? { [selectable.field]: this.#random.pick(selectable.values) } : {};
    return {
      token,
      [`f${this.#random.below(4)}`]: `${'x'.repeat(this.#random.below(this.#shape.valueBytes))}${token}`,
      ...chosen,
    };
  }

  /** Chooses the selection of a list or a watch. */
  selection(): Selection {
    const random = this.#random;
    const kind = random.pick(workloadKinds);
    const { namespaces, names } = this.#shape;
    const namespace = random.chance(0.4) ? { namespace: random.pick(namespaces) } : {};
    const terms: LabelTerm[] = [
      { key: 'tier', is: 'in', values: ['front', 'back'] },
      { key: 'tier', is: 'notIn', values: ['middle'] },
      { key: 'canary', is: 'absent' },
      { key: 'canary', is: 'there' },
    ];
    const dice = random.next();
    if (dice < 0.2) return { kind: kind.kind, ...namespace };
    if (dice < 0.3) return { kind: kind.kind, ...namespace, name: `${namePrefix}${random.below(names)}` };
    if (dice < 0.5 && kind.selectable !== undefined) {
      return {
        kind: kind.kind,
        ...namespace,
        value: { field: kind.selectable.field, is: random.pick(kind.selectable.values) },
      };
    }
    const labels = [random.pick(terms)];
    if (random.chance(0.3)) labels.push(random.pick(terms));
    return { kind: kind.kind, ...namespace, labels };
  }

  /** Chooses a revision between the first and the latest, with a preference for recent ones. */
  readAt(first: number, latest: number): ReadAt {
    const dice = this.#random.next();
    if (dice < 0.5) return { at: 'latest' };
    if (dice < 0.65) return { at: 'any' };
    const revision = Math.max(first, latest - this.#random.below(200));
    return { at: dice < 0.8 ? 'notOlderThan' : 'exact', revision };
  }
}
