import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { StatusReason } from '@keelson/core';
import { namesOf, refused, versionOf } from '../expectations.ts';
import type { ClientCase, ClientCaseContext } from '../harness.ts';

async function threeParts({ parts, allParts, part, namespaces: [, second] }: ClientCaseContext): Promise<void> {
  await parts.create(part('c', { colour: 'red' }, { labels: { app: 'web', tier: 'front' } }));
  await parts.create(part('a', { colour: 'blue' }, { labels: { app: 'db' } }));
  await allParts.namespace(second).create(part('b', { colour: 'red' }));
}

export const listCases: readonly ClientCase[] = [
  {
    id: 'list.one-or-all-namespaces',
    title: 'a list is in byte order and contains one namespace, or all',
    async run(context) {
      await threeParts(context);
      const [first, second] = context.namespaces;
      deepEqual(namesOf((await context.parts.list()).items), [`${first}/a`, `${first}/c`]);
      deepEqual(namesOf((await context.allParts.list()).items), [`${first}/a`, `${first}/c`, `${second}/b`]);
    },
  },
  {
    id: 'list.envelope',
    title: 'a list has a kind and a resourceVersion, and its items have their own kind',
    async run(context) {
      await threeParts(context);
      const list = await context.parts.list();
      deepEqual([list.kind, list.apiVersion], ['PartList', 'suite.keelson.dev/v1']);
      match(list.metadata.resourceVersion ?? '', /^[1-9]\d*$/);
      equal(list.metadata.continue, undefined);
      for (const item of list.items) deepEqual([item.kind, item.apiVersion], ['Part', 'suite.keelson.dev/v1']);
      deepEqual(list.items[0], await context.parts.get('a'));
    },
  },
  {
    id: 'list.empty',
    title: 'an empty list has an empty array of items and a resourceVersion',
    async run({ parts }) {
      const list = await parts.list();
      deepEqual(list.items, []);
      match(list.metadata.resourceVersion ?? '', /^[1-9]\d*$/);
    },
  },
  {
    id: 'list.label-selectors',
    title: 'label selectors of every form select objects',
    async run(context) {
      await threeParts(context);
      const select = async (labelSelector: string) =>
        (await context.parts.list({ labelSelector })).items.map(({ metadata }) => metadata?.name);
      deepEqual(await select('app=web'), ['c']);
      deepEqual(await select('app in (web, db),tier'), ['c']);
      deepEqual(await select('!tier'), ['a']);
      deepEqual(await select('app!=web'), ['a']);
      deepEqual(await select('app notin (web,db)'), []);
      deepEqual(await select('app=nobody'), []);
      await refused(() => select('app in web'), 400, StatusReason.BadRequest);
    },
  },
  {
    id: 'list.field-selectors',
    title: 'field selectors select by name and by selectable fields of the kind',
    async run(context) {
      await threeParts(context);
      const select = async (fieldSelector: string) =>
        (await context.allParts.list({ fieldSelector })).items.map(({ metadata }) => metadata?.name);
      deepEqual(await select('metadata.name=c'), ['c']);
      deepEqual(await select('spec.colour=red'), ['c', 'b']);
      deepEqual(await select(`spec.colour=red,metadata.namespace!=${context.namespaces[0]}`), ['b']);
      await refused(() => select('spec.weight=3'), 400, StatusReason.BadRequest);
    },
  },
  {
    id: 'list.exact-version',
    title: 'a list with Exact has the state of that version, one with NotOlderThan that state or a newer one',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const { metadata } = await parts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      const now = { resourceVersion: String(versionOf(await parts.create(part('b')))) };
      const exact = await parts.list({ resourceVersion, resourceVersionMatch: 'Exact' });
      deepEqual([exact.items.length, exact.metadata.resourceVersion], [1, resourceVersion]);
      equal((await parts.list({ ...now, resourceVersionMatch: 'NotOlderThan' })).items.length, 2);
      equal((await parts.list(now)).items.length, 2);
      const then = await parts.list({ resourceVersion });
      ok(Number(then.metadata.resourceVersion) >= Number(resourceVersion));
      equal(then.items[0]?.metadata?.name, 'a');
      await refused(() => parts.list({ resourceVersionMatch: 'Exact' }), 422, StatusReason.Invalid);
    },
  },
  {
    id: 'list.exact-version-gone',
    title: 'an exact version outside the history is a 410 Expired',
    requires: ['forgetHistory'],
    async run({ parts, part, forgetHistory }) {
      const made = await parts.create(part('a'));
      await parts.create(part('b'));
      await forgetHistory();
      const options = { resourceVersion: String(versionOf(made)), resourceVersionMatch: 'Exact' } as const;
      await refused(() => parts.list(options), 410, StatusReason.Expired);
    },
  },
];
