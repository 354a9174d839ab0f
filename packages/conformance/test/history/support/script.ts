import { stateAfter } from '../../../src/history/expected-state.ts';
import {
  type FieldChanges,
  type Fields,
  type HistoryRecord,
  HistoryRecorder,
  type Reply,
  type SeenObject,
  type Selection,
  type WatchOpened,
  type WriteOperation,
} from '../../../src/index.ts';

export const all: Selection = { kind: 'Part' };

/** How a scripted write differs from a well-behaved one. */
export interface WriteTwist {
  readonly start?: number;
  readonly end?: number;
  readonly expect?: number;
  readonly labels?: Fields;
  readonly values?: Fields;
  /** What the object becomes other than it should. */
  readonly but?: Partial<SeenObject>;
  readonly reply?: Reply;
  /** It happened, but the watch of everything does not show it. */
  readonly unseen?: boolean;
}

interface TrueEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: SeenObject;
}

export function digestOf({ revision: _, digest: __, ...rest }: SeenObject): string {
  return JSON.stringify(rest);
}

/**
 * Writes a history by hand. Every call takes five milliseconds and follows the one before it, unless specified
 * otherwise.
 */
export class Script {
  time = 0;
  readonly recorder = new HistoryRecorder({ now: () => this.time });
  readonly log: TrueEvent[] = [];
  readonly #live = new Map<string, SeenObject>();
  #tokens = 0;

  create(name: string, revision: number, twist: WriteTwist = {}): SeenObject {
    const token = this.#token();
    const op: WriteOperation = {
      do: 'create',
      key: keyOf(name),
      token,
      labels: twist.labels ?? {},
      values: { token, ...twist.values },
    };
    return this.#put(op, revision, twist);
  }

  replace(name: string, revision: number, twist: WriteTwist = {}): SeenObject {
    const token = this.#token();
    const labels = twist.labels ?? this.#live.get(keyOf(name))?.labels ?? {};
    const op: WriteOperation = {
      do: 'replace',
      key: keyOf(name),
      token,
      labels,
      values: { token, ...twist.values },
      ...(twist.expect === undefined ? {} : { expect: twist.expect }),
    };
    return this.#put(op, revision, twist);
  }

  patch(name: string, revision: number, values: FieldChanges, twist: WriteTwist = {}): SeenObject {
    const token = this.#token();
    return this.#put({ do: 'patch', key: keyOf(name), token, values: { ...values, token } }, revision, twist);
  }

  status(name: string, revision: number, status: FieldChanges, twist: WriteTwist = {}): SeenObject {
    const token = this.#token();
    return this.#put({ do: 'status', key: keyOf(name), token, status: { ...status, token } }, revision, twist);
  }

  remove(name: string, revision: number, twist: WriteTwist = {}): SeenObject {
    const key = keyOf(name);
    const last = this.#live.get(key);
    if (last === undefined) throw new Error(`${key} is not there`);
    const object = { ...last, revision, ...twist.but };
    const { expect } = twist;
    this.#call(
      { do: 'delete', key, ...(expect === undefined ? {} : { expect }) },
      twist.reply ?? { is: 'ok', uid: last.uid },
      twist,
    );
    this.#live.delete(key);
    if (twist.unseen !== true) this.log.push({ type: 'DELETED', object: { ...object, digest: digestOf(object) } });
    return object;
  }

  /** A write that does not happen. */
  attempt(op: WriteOperation, reply: Reply, twist: WriteTwist = {}): void {
    this.#call(op, reply, twist);
  }

  get(name: string, object: SeenObject | undefined, twist: WriteTwist & { at?: 'any' | 'latest' | number } = {}): void {
    const at = twist.at ?? 'latest';
    const reply: Reply =
      object === undefined
        ? { is: 'refused', code: 404, reason: 'NotFound' }
        : { is: 'ok', object: this.recorder.object(object) };
    this.#call(
      { do: 'get', key: keyOf(name), at: typeof at === 'number' ? { at: 'notOlderThan', revision: at } : { at } },
      reply,
      twist,
    );
  }

  /** Pages of one list; each page is a row of objects. */
  list(
    pages: readonly (readonly SeenObject[])[],
    revision: number | readonly number[],
    twist: WriteTwist & { at?: 'any' | 'latest' | number; selection?: Selection; exact?: number } = {},
  ): void {
    const list = this.recorder.nextList();
    const at =
      twist.exact !== undefined
        ? ({ at: 'exact', revision: twist.exact } as const)
        : typeof twist.at === 'number'
          ? ({ at: 'notOlderThan', revision: twist.at } as const)
          : ({ at: twist.at ?? 'latest' } as const);
    for (const [page, objects] of pages.entries()) {
      const items = objects.map((object) => this.recorder.object(object));
      const pageRevision = typeof revision === 'number' ? revision : (revision[page] ?? 0);
      this.#call(
        { do: 'list', selection: twist.selection ?? all, at, list, page },
        { is: 'ok', revision: pageRevision, items, more: page < pages.length - 1 },
        twist,
      );
    }
  }

  watch(
    from: WatchOpened['from'],
    options: { watch?: string; selection?: Selection; resumed?: boolean } = {},
  ): ScriptedWatch {
    const session = this.recorder.open({
      watch: options.watch ?? 'w',
      server: 's',
      selection: options.selection ?? all,
      from,
      resumed: options.resumed ?? false,
    });
    return new ScriptedWatch(this, session);
  }

  /** Records and what a watch of everything from the beginning saw, unless the script has its own. */
  history(withLedger = true): { records: HistoryRecord[]; truncated: boolean } {
    if (withLedger) {
      const watch = this.watch({ after: 0 }, { watch: 'ledger' });
      const events = [...this.log].sort((a, b) => a.object.revision - b.object.revision);
      for (const { type, object } of events) watch.event(type, object);
      watch.close('ended');
      this.recorder.finish('ledger', events.at(-1)?.object.revision ?? 0);
    }
    return { records: this.recorder.records, truncated: this.recorder.truncated };
  }

  #put(op: Exclude<WriteOperation, { do: 'delete' }>, revision: number, twist: WriteTwist): SeenObject {
    const before = this.#live.get(op.key);
    const state = stateAfter(op, before);
    const spec = op.do === 'status' ? 0 : 1;
    const plain: SeenObject = {
      key: op.key,
      uid: op.do === 'create' || before === undefined ? `uid-${op.token}` : before.uid,
      created: op.do === 'create' || before === undefined ? '2030-01-01T00:00:00Z' : before.created,
      generation: op.do === 'create' || before === undefined ? 1 : (before.generation ?? 0) + spec,
      ...state,
      revision,
      digest: '',
      ...twist.but,
    };
    const object = { ...plain, digest: digestOf(plain) };
    this.#call(op, twist.reply ?? { is: 'ok', object: this.recorder.object(object) }, twist);
    if (twist.unseen !== true) this.log.push({ type: before === undefined ? 'ADDED' : 'MODIFIED', object });
    this.#live.set(op.key, object);
    return object;
  }

  #call(op: Parameters<HistoryRecorder['call']>[0]['op'], reply: Reply, { start, end }: WriteTwist): void {
    const begun = start ?? this.time + 5;
    this.time = Math.max(this.time, end ?? begun + 5);
    const resume = this.time;
    this.time = end ?? begun + 5;
    this.recorder.call({ client: 'c', server: 's', start: begun, op, reply });
    this.time = resume;
  }

  #token(): string {
    this.#tokens += 1;
    return `token-${this.#tokens}`;
  }
}

export class ScriptedWatch {
  readonly #script: Script;
  readonly #session: number;

  constructor(script: Script, session: number) {
    this.#script = script;
    this.#session = session;
  }

  event(type: TrueEvent['type'], object: SeenObject): this {
    this.#script.time += 1;
    this.#script.recorder.event(this.#session, type, { ...object, digest: digestOf(object) });
    return this;
  }

  bookmark(revision: number, initialEnd = false): this {
    this.#script.time += 1;
    this.#script.recorder.bookmark(this.#session, revision, initialEnd);
    return this;
  }

  close(why: 'gone' | 'ended' | 'cut' = 'ended'): this {
    this.#script.recorder.close(this.#session, why);
    return this;
  }
}

export function keyOf(name: string): string {
  return `Part/ns/${name}`;
}
