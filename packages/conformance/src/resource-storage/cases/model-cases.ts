import assert from 'node:assert/strict';
import { isStorageError } from '@keelson/core';
import type { ObjectPredicate, ResourceStorage, ResourceWatch, StoredList, WatchEvent } from '@keelson/core/internal';
import type { Revision } from '@keelson/core/storage-adapter';
import { Random } from '../../suite/random.ts';
import type { ResourceStorageCase, ResourceStorageContext } from '../harness.ts';
import {
  any,
  bodyOf,
  everything,
  exactly,
  labelled,
  latest,
  named,
  nodeJson,
  nodeKey,
  podJson,
  podKey,
  podKind,
  podPrefix,
  shown,
  textOf,
} from '../objects.ts';
import { describe, eventsUntil, turn } from '../waiting.ts';

const namespaces = ['a', 'ab', 'b'];
const prefixes = [podPrefix, ...namespaces.map((namespace) => `${podPrefix}${namespace}/`)];
const apps = ['web', 'db', 'none'];

/** A watch under test and its events, which are finally compared with a watch on the store. */
interface Observed {
  readonly watch: ResourceWatch;
  readonly prefix: string;
  readonly predicate: ObjectPredicate;
  readonly from: Revision;
  readonly events: WatchEvent[];
}

/** Random operations on the storages under test, compared with the same operations on the store. */
class Comparison {
  readonly #context: ResourceStorageContext;
  readonly #pods: ResourceStorage;
  readonly #random: Random;
  readonly #watches: Observed[] = [];
  readonly #chunked: {
    readonly parts: string[];
    page: StoredList;
    readonly whole: string;
    readonly predicate: ObjectPredicate;
    readonly prefix: string;
  }[] = [];
  readonly #first: Revision;
  #seen: Revision = 0;

  constructor(context: ResourceStorageContext, pods: ResourceStorage, first: Revision) {
    this.#context = context;
    this.#pods = pods;
    this.#random = new Random(context.seed);
    this.#first = first;
  }

  async run(steps: number): Promise<void> {
    for (let i = 0; i < steps; i++) {
      const dice = this.#random.below(100);
      if (dice < 55) await this.#write(String(i));
      else if (dice < 60)
        await this.#context.nodes.update(nodeKey('n'), () => ({ do: 'write', json: nodeJson('n', String(i)) }));
      else if (dice < 70) await this.#compareLists();
      else if (dice < 75) await this.#compareExact();
      else if (dice < 80) await this.#openPages();
      else if (dice < 88) await this.#nextPages();
      else if (dice < 91) await this.#openWatch();
      else if (dice < 93) await this.#lag();
      else this.#readSome();
    }
    while (this.#chunked.length > 0) await this.#nextPages();
    await this.#compareWatches();
  }

  async #write(text: string): Promise<void> {
    const random = this.#random;
    const namespace = random.pick(namespaces);
    const name = `x${random.below(12)}`;
    const storage = random.chance(0.6) ? this.#pods : this.#context.others;
    const labels = random.chance(0.7) ? { app: random.pick(apps) } : {};
    const remove = random.chance(0.25);
    const key = podKey(namespace, name);
    const contents = random.chance(0.1) ? 'same' : text;
    await storage.update(key, (current) =>
      remove && current !== undefined
        ? { do: 'delete' }
        : { do: 'write', json: podJson(namespace, name, { labels, text: contents }) },
    );
  }

  #predicate(): ObjectPredicate {
    const random = this.#random;
    if (random.chance(0.4)) return everything;
    if (random.chance(0.3)) return named(podKey(random.pick(namespaces), `x${random.below(12)}`));
    return labelled('app', random.pick(apps));
  }

  async #compareLists(): Promise<void> {
    const prefix = this.#random.pick(prefixes);
    const predicate = this.#predicate();
    const at = this.#random.chance(0.5) ? latest : any;
    const list = await this.#pods.list(prefix, { at, predicate });
    const direct = await this.#context.others.list(prefix, { at: exactly(list.revision), predicate });
    this.#compare(list, direct);
    if (at === latest) {
      assert.ok(list.revision >= this.#seen, 'a consistent list never goes back');
      this.#seen = list.revision;
    }
    const key = podKey(this.#random.pick(namespaces), `x${this.#random.below(12)}`);
    const mine = await this.#pods.get(key, latest);
    const theirs = await this.#context.others.get(key, latest);
    assert.equal(mine?.json.toString(), theirs?.json.toString());
    assert.equal(mine?.createRevision, theirs?.createRevision);
  }

  async #compareExact(): Promise<void> {
    const now = await this.#pods.currentRevision();
    const revision = this.#first + this.#random.below(now - this.#first + 1);
    const prefix = this.#random.pick(prefixes);
    const predicate = this.#predicate();
    const limit = this.#random.pick([0, 0, 1, 5]);
    const options = { at: exactly(revision), predicate, limit };
    const list = await this.#pods.list(prefix, options);
    this.#compare(list, await this.#context.others.list(prefix, options));
  }

  #compare(mine: StoredList, theirs: StoredList): void {
    assert.deepEqual(shown(mine), shown(theirs));
    assert.equal(bodyOf(mine), bodyOf(theirs));
    assert.equal(mine.count, theirs.count);
    assert.equal(mine.revision, theirs.revision);
    assert.deepEqual(mine.next, theirs.next);
    if (theirs.remaining !== undefined) assert.equal(mine.remaining, theirs.remaining);
  }

  async #openPages(): Promise<void> {
    const prefix = this.#random.pick(prefixes);
    const predicate = this.#predicate();
    const page = await this.#pods.list(prefix, { at: latest, predicate, limit: 1 + this.#random.below(6) });
    const whole = await this.#context.others.list(prefix, { at: exactly(page.revision), predicate });
    this.#chunked.push({ parts: shown(page), page, whole: shown(whole).join('\n'), predicate, prefix });
  }

  async #nextPages(): Promise<void> {
    const at = this.#random.below(this.#chunked.length);
    const reading = this.#chunked[at];
    if (reading === undefined) return;
    const { next } = reading.page;
    if (next === undefined) {
      assert.equal(reading.parts.join('\n'), reading.whole);
      this.#chunked.splice(at, 1);
      return;
    }
    const limit = 1 + this.#random.below(6);
    reading.page = await this.#pods.list(reading.prefix, {
      at: latest,
      predicate: reading.predicate,
      limit,
      resume: next,
    });
    reading.parts.push(...shown(reading.page));
  }

  async #openWatch(): Promise<void> {
    const now = await this.#pods.currentRevision();
    const from = this.#random.chance(0.5) ? now : this.#first + this.#random.below(now - this.#first + 1);
    const prefix = this.#random.pick(prefixes);
    const predicate = this.#predicate();
    const watch = await this.#pods.watch(prefix, { predicate, from: { start: 'changesAfter', revision: from } });
    this.#watches.push({ watch, prefix, predicate, from, events: [] });
  }

  /** Holds open streams back for some time, so that a new watch is ahead of the cache. */
  async #lag(): Promise<void> {
    const { store } = this.#context;
    store.holdStreams('open');
    const before = this.#watches.length;
    for (let i = this.#random.below(8); i >= 0; i--) {
      await this.#write(`lag${i}`);
      if (this.#random.chance(0.4)) await this.#openWatch();
    }
    for (let reads = 0; reads < 3; reads++) {
      await turn();
      for (const { watch, events } of this.#watches.slice(before)) events.push(...watch.read(30));
    }
    store.releaseStreams();
  }

  #readSome(): void {
    if (this.#watches.length === 0) return;
    const observed = this.#random.pick(this.#watches);
    observed.events.push(...observed.watch.read(1 + this.#random.below(20)));
  }

  async #compareWatches(): Promise<void> {
    const end = await this.#pods.currentRevision();
    for (const { watch, prefix, predicate, from, events } of this.#watches) {
      events.push(...(await eventsUntil(watch, end, 1 + this.#random.below(30))));
      watch.close();
      const direct = await this.#context.others.watch(prefix, {
        predicate,
        from: { start: 'changesAfter', revision: from },
      });
      assert.deepEqual(describe(events), describe(await eventsUntil(direct, end)));
      direct.close();
    }
  }
}

export const modelCases: readonly ResourceStorageCase[] = [
  {
    id: 'model.compare',
    title: 'random lists, pages, exact states and watches agree with the store',
    async run(context) {
      await new Comparison(context, context.pods, await context.pods.currentRevision()).run(400);
    },
  },
  {
    id: 'model.compare-narrow',
    requires: ['cache'],
    title: 'random operations agree with the store also with a very small window',
    async run(context) {
      const pods = (await context.narrow(6)).forKind(podKind);
      await new Comparison(context, pods, await pods.currentRevision()).run(500);
    },
  },
  {
    id: 'model.informer',
    title:
      'a state and the changes after it, applied in order, equal the current state, for any selection and reading speed',
    async run(context) {
      const { pods, others, seed } = context;
      const random = new Random(seed);
      const predicates = [everything, labelled('app', 'web'), labelled('app', 'db')];
      const informers = [];
      for (let i = 0; i < 120; i++) {
        const name = `x${random.below(20)}`;
        const labels = { app: random.pick(apps) };
        const storage = random.chance(0.5) ? pods : others;
        const remove = random.chance(0.2);
        await storage.update(podKey('a', name), (current) =>
          remove && current !== undefined
            ? { do: 'delete' }
            : { do: 'write', json: podJson('a', name, { labels, text: String(i) }) },
        );
        if (i % 20 === 0) {
          const predicate = random.pick(predicates);
          const watch = await pods.watch(podPrefix, { predicate, from: { start: 'state', fresh: random.chance(0.5) } });
          informers.push({ watch, predicate, known: new Map<string, string>() });
        }
        for (const { watch, known } of informers) if (random.chance(0.1)) apply(known, watch.read(3));
      }
      const list = async (predicate: ObjectPredicate) => pods.list(podPrefix, { at: latest, predicate });
      for (const { watch, predicate, known } of informers) {
        apply(known, await eventsUntil(watch, await pods.currentRevision(), 4));
        const expected = [...(await list(predicate)).objects()].map((object) => `${object.key} ${textOf(object)}`);
        assert.deepEqual([...known].map(([key, text]) => `${key} ${text}`).sort(), expected);
      }
    },
  },
  {
    id: 'model.linear',
    title: 'with many concurrent readers and writers every read is at least as new as what was acknowledged before it',
    async run({ pods, others, seed }) {
      const random = new Random(seed);
      const acknowledged = new Map<string, number>();
      const write = async (worker: number) => {
        for (let i = 0; i < 40; i++) {
          const name = `x${random.below(6)}`;
          const storage = worker % 2 === 0 ? pods : others;
          const { object } = await storage.update(podKey('a', name), () => ({
            do: 'write',
            json: podJson('a', name, { text: `${worker}.${i}` }),
          }));
          acknowledged.set(object.key, Math.max(acknowledged.get(object.key) ?? 0, object.revision));
        }
      };
      const read = async () => {
        for (let i = 0; i < 60; i++) {
          const key = podKey('a', `x${random.below(6)}`);
          const before = acknowledged.get(key) ?? 0;
          const newest = Math.max(0, ...acknowledged.values());
          const object = await pods.get(key, latest);
          assert.ok((object?.revision ?? 0) >= before, `${key} was read at ${object?.revision} after ${before}`);
          const list = await pods.list(podPrefix, { at: latest, predicate: everything });
          assert.ok(list.revision >= newest);
          for (const listed of list.objects()) assert.ok(listed.revision <= list.revision);
        }
      };
      const results = await Promise.allSettled([0, 1, 2, 3].map(write).concat([0, 1, 2].map(read)));
      for (const result of results) {
        if (result.status === 'rejected' && !isStorageError(result.reason, 'OutcomeUnknown')) throw result.reason;
      }
    },
  },
];

function apply(known: Map<string, string>, events: readonly WatchEvent[]): void {
  for (const { type, object } of events) {
    if (type === 'ADDED') assert.ok(!known.has(object.key), `${object.key} was added twice`);
    if (type === 'MODIFIED') assert.ok(known.has(object.key), `${object.key} changed before it was added`);
    if (type === 'DELETED') assert.ok(known.delete(object.key), `${object.key} was deleted before it was added`);
    else if (type !== 'BOOKMARK') known.set(object.key, textOf(object) ?? '');
  }
}
