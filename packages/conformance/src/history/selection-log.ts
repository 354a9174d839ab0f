import type { SeenObject, Selection } from './records.ts';
import { selects } from './selection.ts';
import type { Version, Versions } from './versions.ts';

/** An event that a watch of a selection must show. */
export interface DueEvent {
  readonly revision: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly key: string;
  /** Content of the object in the event: of the new state, or of the last one that matched. */
  readonly digest: string;
  readonly version: Version;
}

/** The events of a history by selection; each selection is computed once. */
export class SelectionLogs {
  readonly #versions: Versions;
  readonly #logs = new Map<string, readonly DueEvent[]>();

  constructor(versions: Versions) {
    this.#versions = versions;
  }

  /** Returns filter(history) in revision order. */
  of(selection: Selection): readonly DueEvent[] {
    const id = JSON.stringify([selection.kind, selection.namespace, selection.name, selection.value, selection.labels]);
    let log = this.#logs.get(id);
    if (log === undefined) {
      log = this.#make(selection);
      this.#logs.set(id, log);
    }
    return log;
  }

  #make(selection: Selection): DueEvent[] {
    const events: DueEvent[] = [];
    for (const key of this.#versions.keys(selection.kind)) {
      let before: SeenObject | undefined;
      for (const version of this.#versions.chain(key)) {
        const { revision, deleted, object } = version;
        const after = deleted || !selects(selection, object) ? undefined : object;
        const type = after === undefined ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED';
        const shown = after ?? before;
        if (shown !== undefined) events.push({ revision, type, key, digest: shown.digest, version });
        before = after;
      }
    }
    return events.sort((a, b) => a.revision - b.revision);
  }
}

/** Returns the index of the first event after a revision. */
export function firstAfter(log: readonly DueEvent[], revision: number): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((log[middle] as DueEvent).revision > revision) high = middle;
    else low = middle + 1;
  }
  return low;
}
