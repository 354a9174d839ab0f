import type { CallOf, IndexedHistory } from './indexed-history.ts';
import { type HistoryRecord, kindOfKey, type SeenObject, type Selection, type WriteOperation } from './records.ts';
import type { Findings } from './violation.ts';

/** The change of one key at one revision. */
export interface Version {
  readonly revision: number;
  readonly key: string;
  /** The object, or its last state when this revision deleted it. */
  readonly object: SeenObject;
  readonly deleted: boolean;
  /** Time at which a client first observed this version. */
  seenAt: number;
  /** The record in which a client first observed this version. */
  readonly source: HistoryRecord;
  /** The write that caused this version, once it is determined. */
  write?: CallOf<WriteOperation>;
}

/** All observed states of the store, as one chain of versions per key. */
export class Versions {
  readonly #byRevision = new Map<number, Version>();
  readonly #chains = new Map<string, Version[]>();
  readonly #keys = new Map<string, string[]>();

  add(version: Version, findings: Findings): void {
    const known = this.#byRevision.get(version.revision);
    if (known === undefined) {
      this.#byRevision.set(version.revision, version);
      return;
    }
    known.seenAt = Math.min(known.seenAt, version.seenAt);
    if (known.key === version.key && known.deleted === version.deleted && known.object.digest === version.object.digest)
      return;
    const invariant = known.key === version.key && known.object.uid === version.object.uid ? 'I6' : 'I3';
    findings.add(
      invariant,
      `revision ${version.revision} is two different things: ${outline(known)} and ${outline(version)}`,
      known.source,
      known.object,
      version.source,
      version.object,
    );
  }

  /** Must be called once, after all versions were added. */
  seal(): void {
    const versions = [...this.#byRevision.values()].sort((a, b) => a.revision - b.revision);
    for (const version of versions) {
      const chain = this.#chains.get(version.key);
      if (chain === undefined) this.#chains.set(version.key, [version]);
      else chain.push(version);
    }
    for (const key of [...this.#chains.keys()].sort(byteOrder)) {
      const kind = kindOfKey(key);
      const keys = this.#keys.get(kind);
      if (keys === undefined) this.#keys.set(kind, [key]);
      else keys.push(key);
    }
  }

  get(revision: number): Version | undefined {
    return this.#byRevision.get(revision);
  }

  get kinds(): readonly string[] {
    return [...this.#keys.keys()];
  }

  /** Returns the keys of a kind in the order of lists. */
  keys(kind: string): readonly string[] {
    return this.#keys.get(kind) ?? [];
  }

  chain(key: string): readonly Version[] {
    return this.#chains.get(key) ?? [];
  }

  /** Returns the index of the version that is current at a revision; -1 before the first one. */
  indexAt(key: string, revision: number): number {
    const chain = this.chain(key);
    let low = 0;
    let high = chain.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((chain[middle] as Version).revision > revision) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }

  /** Returns the object at a revision; undefined when there is none. */
  at(key: string, revision: number): SeenObject | undefined {
    const version = this.chain(key)[this.indexAt(key, revision)];
    return version === undefined || version.deleted ? undefined : version.object;
  }

  /** Returns whether the state of the object satisfies `fits` at some revision of the window, bounds included. */
  some(key: string, from: number, to: number, fits: (object: SeenObject | undefined) => boolean): boolean {
    if (from > to) return false;
    const chain = this.chain(key);
    for (let index = this.indexAt(key, from); index < chain.length; index++) {
      const version = chain[index];
      if (version !== undefined && version.revision > to) return false;
      if (fits(version === undefined || version.deleted ? undefined : version.object)) return true;
    }
    return false;
  }
}

/** The order of lists: bytes of the key. */
function byteOrder(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export function outline({ key, deleted, object }: Pick<Version, 'key' | 'deleted' | 'object'>): string {
  return `${deleted ? 'the deletion of' : 'a state of'} ${key} (uid ${object.uid}, content ${object.digest})`;
}

/**
 * True for a selection without labels and values: every object of the kind always matches it, so that an event DELETED
 * means a deletion.
 */
const isFixed = ({ labels, value }: Selection) => (labels ?? []).length === 0 && value === undefined;

/** Collects all states from replies, lists and watches, and reports contradictions between them. */
export function collectVersions(history: IndexedHistory, findings: Findings): Versions {
  const versions = new Versions();
  const { objects } = history;
  const saw = (id: number | undefined, at: number, source: HistoryRecord, deleted = false): void => {
    const object = id === undefined ? undefined : objects.get(id);
    if (object === undefined) return;
    versions.add({ revision: object.revision, key: object.key, object, deleted, seenAt: at, source }, findings);
  };
  for (const call of history.writes) {
    if (call.reply.is === 'ok' && call.op.do !== 'delete') saw(call.reply.object, call.end, call);
  }
  for (const session of history.sessions) {
    for (const step of session.steps) {
      if (step.t !== 'event') continue;
      if (step.type !== 'DELETED') saw(step.object, step.at, step);
      else if (isFixed(session.opened.selection)) saw(step.object, step.at, step, true);
    }
  }
  for (const call of history.gets) if (call.reply.is === 'ok') saw(call.reply.object, call.end, call);
  for (const pages of history.lists) {
    for (const page of pages)
      if (page.reply.is === 'ok') for (const id of page.reply.items ?? []) saw(id, page.end, page);
  }
  versions.seal();
  return versions;
}
