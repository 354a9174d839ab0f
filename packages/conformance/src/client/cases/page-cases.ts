import { deepEqual, equal, ok } from 'node:assert/strict';
import { type KubeList, type ListOptions, type ResourceClient, StatusReason } from '@keelson/core';
import { refused } from '../expectations.ts';
import type { ClientCase, ClientCaseContext } from '../harness.ts';
import type { PartObject } from '../suite-kinds.ts';

async function fill({ parts, part }: ClientCaseContext, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, at) => `p${String(at).padStart(3, '0')}`);
  await Promise.all(names.map((name, at) => parts.create(part(name, {}, { labels: { odd: String(at % 2) } }))));
  return names;
}

async function pages(client: ResourceClient<PartObject>, options: ListOptions): Promise<KubeList<PartObject>[]> {
  const all = [await client.list(options)];
  for (;;) {
    const token = all.at(-1)?.metadata.continue ?? '';
    if (token === '') return all;
    all.push(await client.list({ ...options, continue: token }));
  }
}

const namesIn = (lists: readonly KubeList<PartObject>[]) =>
  lists.flatMap(({ items }) => items.map(({ metadata }) => metadata?.name));

export const pageCases: readonly ClientCase[] = [
  {
    id: 'page.every-object-once',
    title: 'pages contain every object once and in order, none more than the limit',
    async run(context) {
      const names = await fill(context, 25);
      const all = await pages(context.parts, { limit: 10 });
      deepEqual(
        all.map(({ items }) => items.length),
        [10, 10, 5],
      );
      deepEqual(namesIn(all), names);
      deepEqual(
        all.map(({ metadata }) => metadata.remainingItemCount),
        [15, 5, undefined],
      );
    },
  },
  {
    id: 'page.one-state',
    title: 'all pages have the state of the first, whatever is written between them',
    async run(context) {
      const names = await fill(context, 6);
      const { parts, part } = context;
      const first = await parts.list({ limit: 2 });
      await parts.delete('p003');
      await parts.create(part('p002-new'));
      const rest = await parts.list({ continue: first.metadata.continue ?? '' });
      deepEqual(namesIn([first, rest]), names);
      equal(rest.metadata.resourceVersion, first.metadata.resourceVersion);
    },
  },
  {
    id: 'page.with-selector',
    title: 'the limit counts selected objects',
    async run(context) {
      const names = await fill(context, 12);
      const all = await pages(context.parts, { limit: 4, labelSelector: 'odd=1' });
      deepEqual(
        namesIn(all),
        names.filter((_, at) => at % 2 === 1),
      );
      ok(all.length <= 2);
    },
  },
  {
    id: 'page.bad-token',
    title: 'an invalid continue token, or one with a resourceVersion, is rejected',
    async run(context) {
      await fill(context, 3);
      const { parts } = context;
      const { metadata } = await parts.list({ limit: 1 });
      const token = metadata.continue ?? '';
      await refused(() => parts.list({ continue: token, resourceVersion: '5' }), 400, StatusReason.BadRequest);
      const failed = await parts.list({ continue: 'bm8tdG9rZW4' }).then(
        () => undefined,
        (error: { code?: number }) => error.code,
      );
      ok(failed === 400 || failed === 410, `answered ${failed}`);
    },
  },
  {
    id: 'page.limit-larger-than-the-list',
    title: 'a list shorter than its limit has no continue token',
    async run(context) {
      await fill(context, 3);
      const list = await context.parts.list({ limit: 3 });
      deepEqual(
        [list.items.length, list.metadata.continue, list.metadata.remainingItemCount],
        [3, undefined, undefined],
      );
    },
  },
];
