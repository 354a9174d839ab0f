import { stateAfter } from '../../../src/history/expected-state.ts';
import { selects } from '../../../src/history/selection.ts';
import {
  type History,
  HistoryRecorder,
  Random,
  type SeenObject,
  type Selection,
  type WriteOperation,
} from '../../../src/index.ts';
import { digestOf } from './script.ts';

interface Change {
  readonly revision: number;
  readonly key: string;
  readonly object: SeenObject;
  readonly deleted: boolean;
}

interface Client {
  readonly name: string;
  call:
    | {
        readonly start: number;
        readonly op: WriteOperation | 'read';
        readonly run: () => void;
        commit: (() => void) | undefined;
      }
    | undefined;
}

interface Watcher {
  readonly name: string;
  readonly selection: Selection;
  position: number;
  session: number | undefined;
}

const colours = ['red', 'green', 'blue'];

/**
 * A correct plane in a few lines: calls overlap, take effect at some moment between their beginning and their end,
 * sometimes lose their response; servers serve old states where that is allowed; watches lag, break and resume. The
 * history it writes must be accepted.
 */
export function simulate(seed: number, steps: number): History {
  const random = new Random(seed);
  let time = 0;
  const recorder = new HistoryRecorder({ now: () => time });
  const log: Change[] = [];
  const live = new Map<string, SeenObject>();
  let revision = 1;
  let counter = 0;
  const clients: Client[] = Array.from({ length: 6 }, (_, index) => ({ name: `c${index}`, call: undefined }));
  const watchers: Watcher[] = [
    {},
    {},
    { labels: [{ key: 'colour', is: 'in', values: ['red', 'blue'] }] as const },
    { labels: [{ key: 'colour', is: 'absent' }] as const },
    { name: 'o3' },
    { value: { field: 'size', is: '1' } },
  ].map((part, index) => ({
    name: `w${index}`,
    selection: { kind: 'Part', ...part },
    position: 0,
    session: undefined,
    shown: 0,
  }));

  const stateAt = (at: number): Map<string, SeenObject> => {
    const state = new Map<string, SeenObject>();
    for (const change of log) {
      if (change.revision > at) break;
      if (change.deleted) state.delete(change.key);
      else state.set(change.key, change.object);
    }
    return state;
  };
  const listAt = (at: number, selection: Selection): SeenObject[] =>
    [...stateAt(at).values()].filter((object) => selects(selection, object)).sort((a, b) => (a.key < b.key ? -1 : 1));

  const record = (
    client: Client,
    start: number,
    op: WriteOperation,
    reply: Parameters<HistoryRecorder['call']>[0]['reply'],
  ) => recorder.call({ client: client.name, server: 's', start, op, reply });

  function commit(op: WriteOperation): { reply: Parameters<HistoryRecorder['call']>[0]['reply'] } {
    const current = live.get(op.key);
    const refused = (code: number) => ({ reply: { is: 'refused', code, reason: '' } as const });
    if (op.do === 'create' ? current !== undefined : current === undefined)
      return refused(op.do === 'create' ? 409 : 404);
    if (op.do !== 'create' && op.expect !== undefined && op.expect !== current?.revision) return refused(409);
    revision += random.chance(0.2) ? 3 : 1;
    if (op.do === 'delete') {
      const last = current as SeenObject;
      live.delete(op.key);
      log.push({ revision, key: op.key, object: { ...last, revision }, deleted: true });
      return { reply: { is: 'ok', uid: last.uid } };
    }
    const plain: SeenObject = {
      key: op.key,
      uid: current?.uid ?? `uid-${op.token}`,
      created: current?.created ?? `at-${time}`,
      generation: (current?.generation ?? 0) + (op.do === 'status' ? 0 : 1),
      ...stateAfter(op, current),
      revision,
      digest: '',
    };
    const object = { ...plain, digest: digestOf(plain) };
    live.set(op.key, object);
    log.push({ revision, key: op.key, object, deleted: false });
    return { reply: { is: 'ok', object: recorder.object(object) } };
  }

  function randomWrite(): WriteOperation {
    counter += 1;
    const token = `t${counter}`;
    const key = `Part/ns/o${random.below(7)}`;
    const known = live.get(key);
    const expect = random.chance(0.6) && known ? { expect: known.revision } : {};
    const labels: Record<string, string> = random.chance(0.3) ? {} : { colour: random.pick(colours) };
    const values = { token, size: String(random.below(3)) };
    switch (random.pick(['create', 'replace', 'patch', 'status', 'delete'] as const)) {
      case 'create':
        return { do: 'create', key, token, labels, values };
      case 'replace':
        return { do: 'replace', key, token, labels, values, ...expect };
      case 'patch':
        return {
          do: 'patch',
          key,
          token,
          values: { [`f${random.below(3)}`]: random.chance(0.3) ? null : token, token },
          ...expect,
        };
      case 'status':
        return { do: 'status', key, token, status: { token, phase: random.pick(['Up', 'Down']) }, ...expect };
      case 'delete':
        return { do: 'delete', key, ...expect };
    }
  }

  function beginWrite(client: Client): void {
    const op = randomWrite();
    const start = time;
    const lost = random.chance(0.1);
    let result: ReturnType<typeof commit> | undefined;
    client.call = {
      start,
      op,
      commit:
        lost && random.chance(0.5)
          ? undefined
          : () => {
              result = commit(op);
            },
      run: () => record(client, start, op, lost ? { is: 'unknown', why: 'lost' } : (result ?? commit(op)).reply),
    };
  }

  function beginRead(client: Client): void {
    const start = time;
    const mode = random.pick(['latest', 'any', 'notOlderThan', 'exact'] as const);
    const pinned = 1 + random.below(revision);
    let at = 0;
    const take = () => {
      at =
        mode === 'latest'
          ? revision
          : mode === 'exact'
            ? pinned
            : Math.max(mode === 'any' ? 1 : pinned, revision - random.below(8));
    };
    const point = mode === 'latest' || mode === 'any' ? { at: mode } : { at: mode, revision: pinned };
    if (mode !== 'exact' && random.chance(0.5)) {
      const key = `Part/ns/o${random.below(7)}`;
      const run = () => {
        const object = stateAt(at).get(key);
        const reply =
          object === undefined
            ? ({ is: 'refused', code: 404, reason: '' } as const)
            : ({ is: 'ok', object: recorder.object(object) } as const);
        recorder.call({
          client: client.name,
          server: 's',
          start,
          op: { do: 'get', key, at: point as { at: 'latest' } },
          reply,
        });
      };
      client.call = { start, op: 'read', commit: take, run };
      return;
    }
    const { selection } = random.pick(watchers);
    const list = recorder.nextList();
    const limit = random.chance(0.5) ? 2 : 100;
    let page = 0;
    let pageStart = start;
    const run = () => {
      const items = listAt(at, selection);
      const slice = items.slice(page * limit, (page + 1) * limit);
      const more = items.length > (page + 1) * limit;
      const op = { do: 'list', selection, at: point as { at: 'latest' }, list, page, limit } as const;
      const reply = { is: 'ok', revision: at, items: slice.map((object) => recorder.object(object)), more } as const;
      recorder.call({ client: client.name, server: 's', start: pageStart, op, reply });
      page += 1;
      pageStart = time;
      if (more && random.chance(0.9)) client.call = { start: time, op: 'read', commit: () => {}, run };
    };
    client.call = { start, op: 'read', commit: take, run };
  }

  function stepClient(client: Client): void {
    const { call } = client;
    if (call === undefined) {
      if (random.chance(0.6)) beginWrite(client);
      else beginRead(client);
    } else if (call.commit !== undefined && random.chance(0.6)) {
      call.commit();
      call.commit = undefined;
    } else if (call.commit === undefined) {
      client.call = undefined;
      call.run();
    }
  }

  function stepWatcher(watcher: Watcher, mayBreak = true): void {
    const { name, selection } = watcher;
    if (watcher.session === undefined) {
      // The first two observe everything; the others also restart with the current state.
      const fresh = mayBreak && Number(name.slice(1)) > 1 && random.chance(0.3);
      const session = recorder.open({
        watch: name,
        server: 's',
        selection,
        from: fresh ? { state: 'fresh' } : { after: watcher.position },
        resumed: !fresh,
      });
      watcher.session = session;
      if (fresh) {
        const marked = random.chance(0.5);
        for (const object of listAt(revision, selection)) recorder.event(session, 'ADDED', object);
        watcher.position = revision;
        if (marked) recorder.bookmark(session, revision, true);
      }
      return;
    }
    if (mayBreak && random.chance(0.05)) {
      recorder.close(watcher.session, random.chance(0.5) ? 'cut' : 'ended');
      watcher.session = undefined;
      return;
    }
    const next = log.find((change) => change.revision > watcher.position);
    if (next === undefined) {
      if (random.chance(0.2)) {
        watcher.position = revision;
        recorder.bookmark(watcher.session, revision);
      }
      return;
    }
    const before = stateAt(next.revision - 1).get(next.key);
    const was = before !== undefined && selects(selection, before);
    const is = !next.deleted && selects(selection, next.object);
    if (is) recorder.event(watcher.session, was ? 'MODIFIED' : 'ADDED', next.object);
    else if (was) recorder.event(watcher.session, 'DELETED', { ...before, revision: next.revision });
    watcher.position = next.revision;
    // A broken watch resumes from the last event that its client received: a bookmark makes both positions equal.
    if (!is && !was) recorder.bookmark(watcher.session, next.revision);
  }

  for (let step = 0; step < steps; step++) {
    time += 1 + random.below(3);
    if (random.chance(0.5)) stepClient(random.pick(clients));
    else stepWatcher(random.pick(watchers));
  }
  for (const client of clients) {
    while (client.call !== undefined) {
      time += 1;
      stepClient(client);
    }
  }
  for (const watcher of watchers) {
    while (watcher.session === undefined || log.some((change) => change.revision > watcher.position)) {
      time += 1;
      stepWatcher(watcher, false);
    }
    recorder.finish(watcher.name, revision);
  }
  return recorder;
}
