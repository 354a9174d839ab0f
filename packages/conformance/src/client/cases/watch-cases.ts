import { deepEqual, equal, ok } from 'node:assert/strict';
import { StatusReason } from '@keelson/core';
import { namesOf, refused, shown, started, take, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const watchCases: readonly ClientCase[] = [
  {
    id: 'watch.begins-with-the-state',
    title: 'a watch without a resourceVersion starts with the current state, then continues with changes',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await parts.create(part('b'));
      const events = started(take(parts.watch(), 3));
      const later = await parts.create(part('c'));
      const seen = await events;
      deepEqual(seen.slice(0, 2).map(shown).sort(), ['ADDED a', 'ADDED b']);
      deepEqual(seen[2], { type: 'ADDED', object: later });
    },
  },
  {
    id: 'watch.from-zero',
    title: 'a watch from resourceVersion 0 starts with a state of any age',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await parts.list();
      deepEqual((await take(parts.watch({ resourceVersion: '0' }), 1)).map(shown), ['ADDED a']);
    },
  },
  {
    id: 'watch.from-a-version',
    title: 'a watch from a resourceVersion delivers exactly the changes after it',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const { metadata } = await parts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      const changed = await parts.patch('a', 'merge', { spec: { replicas: 2 } });
      const made = await parts.create(part('b'));
      await parts.delete('a');
      const events = await take(parts.watch({ resourceVersion }), 3);
      deepEqual(events.map(shown), ['MODIFIED a', 'ADDED b', 'DELETED a']);
      deepEqual(events[0]?.object, changed);
      deepEqual(events[1]?.object, made);
    },
  },
  {
    id: 'watch.deletions-have-a-version',
    title: 'a DELETED event contains the last state with the version of the deletion, from which a watch resumes',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { replicas: 4 }));
      await parts.delete('a');
      const [event] = await take(parts.watch({ resourceVersion: String(versionOf(made)) }), 1);
      equal(event?.type, 'DELETED');
      const last = event?.object as typeof made;
      equal(last.spec?.replicas, 4);
      ok(versionOf(last) > versionOf(made));
      await parts.create(part('b'));
      deepEqual((await take(parts.watch({ resourceVersion: String(versionOf(last)) }), 1)).map(shown), ['ADDED b']);
    },
  },
  {
    id: 'watch.resumes-without-gap',
    title: 'consecutive watches, each from the last observed version, neither miss nor repeat a change',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      let resourceVersion = metadata.resourceVersion ?? '';
      const writing = started(
        (async () => {
          for (let at = 0; at < 40; at += 1) await parts.create(part(`p${at}`));
        })(),
      );
      const seen: string[] = [];
      while (seen.length < 40) {
        const events = await take(parts.watch({ resourceVersion }), Math.min(7, 40 - seen.length));
        seen.push(...events.map(shown));
        resourceVersion = String(versionOf(events.at(-1)?.object ?? {}));
      }
      await writing;
      deepEqual(
        seen,
        Array.from({ length: 40 }, (_, at) => `ADDED p${at}`),
      );
    },
  },
  {
    id: 'watch.one-or-all-namespaces',
    title: 'a watch of a namespace excludes other namespaces',
    async run({ parts, allParts, part, namespaces: [first, second] }) {
      const { metadata } = await allParts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      await allParts.namespace(second).create(part('a'));
      await parts.create(part('b'));
      const all = await take(allParts.watch({ resourceVersion }), 2);
      deepEqual(namesOf(all.map(({ object }) => object)), [`${second}/a`, `${first}/b`]);
      const one = await take(parts.watch({ resourceVersion }), 1);
      deepEqual(namesOf(one.map(({ object }) => object)), [`${first}/b`]);
    },
  },
  {
    id: 'watch.label-selector',
    title: 'objects that begin or cease to match a label selector are ADDED and DELETED events',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const watch = parts.watch({ labelSelector: 'on=yes', resourceVersion: String(versionOf(made)) });
      await parts.patch('a', 'merge', { metadata: { labels: { on: 'yes' } } });
      await parts.patch('a', 'merge', { spec: { replicas: 2 } });
      const off = await parts.patch('a', 'merge', { metadata: { labels: { on: 'no' } } });
      await parts.delete('a');
      await parts.create(part('b', {}, { labels: { on: 'yes' } }));
      const events = await take(watch, 4);
      deepEqual(events.map(shown), ['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b']);
      const gone = events[2]?.object;
      deepEqual(
        [gone?.metadata?.labels, gone?.metadata?.resourceVersion],
        [{ on: 'yes' }, off.metadata?.resourceVersion],
      );
    },
  },
  {
    id: 'watch.field-selector',
    title: 'a field selector limits a watch to one object, or by a selectable field of the kind',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      await parts.create(part('a', { colour: 'red' }));
      await parts.create(part('b', { colour: 'blue' }));
      deepEqual((await take(parts.watch({ resourceVersion, fieldSelector: 'metadata.name=b' }), 1)).map(shown), [
        'ADDED b',
      ]);
      deepEqual((await take(parts.watch({ resourceVersion, fieldSelector: 'spec.colour=blue' }), 1)).map(shown), [
        'ADDED b',
      ]);
    },
  },
  {
    id: 'watch.refusals',
    title: 'an invalid watch is rejected like any request',
    async run({ parts }) {
      const begin = (options: Parameters<typeof parts.watch>[0]) => () => take(parts.watch(options), 1);
      await refused(begin({ labelSelector: 'a in b' }), 400, StatusReason.BadRequest);
      await refused(begin({ fieldSelector: 'spec.weight=1' }), 400, StatusReason.BadRequest);
      await refused(begin({ resourceVersion: 'x' }), 400, StatusReason.BadRequest);
      await refused(begin({ resourceVersionMatch: 'NotOlderThan' }), 422, StatusReason.Invalid);
    },
  },
  {
    id: 'watch.history-gone',
    title: 'a watch from a version outside the history throws a 410 Expired',
    requires: ['forgetHistory'],
    async run({ parts, part, forgetHistory }) {
      await parts.create(part('a'));
      await parts.create(part('b'));
      await forgetHistory();
      await refused(() => take(parts.watch({ resourceVersion: '2' }), 1), 410, StatusReason.Expired);
    },
  },
  {
    id: 'watch.initial-events',
    title: 'sendInitialEvents delivers the state, then a bookmark that marks its end, then changes',
    async run({ parts, part }) {
      await parts.create(part('a'));
      await parts.create(part('b'));
      const options = {
        sendInitialEvents: true,
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: true,
      } as const;
      const events = started(take(parts.watch(options), 4));
      // The event of this write must follow the bookmark, even when the bookmark was not sent yet.
      await take(parts.watch(options), 3);
      await parts.create(part('c'));
      const seen = await events;
      deepEqual(seen.slice(0, 2).map(shown).sort(), ['ADDED a', 'ADDED b']);
      deepEqual(seen.slice(2).map(shown), ['BOOKMARK', 'ADDED c']);
      const bookmark = seen[2]?.object;
      equal(bookmark?.metadata?.annotations?.['k8s.io/initial-events-end'], 'true');
      deepEqual([bookmark?.kind, bookmark?.apiVersion], ['Part', 'suite.keelson.dev/v1']);
      deepEqual((await take(parts.watch({ resourceVersion: String(versionOf(bookmark ?? {})) }), 1)).map(shown), [
        'ADDED c',
      ]);
    },
  },
];
