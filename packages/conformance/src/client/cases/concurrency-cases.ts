import { deepEqual, equal } from 'node:assert/strict';
import { isStatusError, StatusReason } from '@keelson/core';
import { started, take, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

const range = (count: number) => Array.from({ length: count }, (_, at) => at);

export const concurrencyCases: readonly ClientCase[] = [
  {
    id: 'concurrency.one-create-wins',
    title: 'of many concurrent creates of one name exactly one succeeds',
    async run({ parts, part }) {
      const outcomes = await Promise.all(
        range(20).map((at) =>
          parts.create(part('a', { settings: { by: String(at) } })).then(
            () => 'made',
            (error: unknown) => (isStatusError(error) ? error.reason : 'other'),
          ),
        ),
      );
      deepEqual(outcomes.sort(), [...range(19).map(() => StatusReason.AlreadyExists), 'made'].sort());
    },
  },
  {
    id: 'concurrency.counter',
    title: 'increments by read and conditional update are never lost',
    async run({ parts, part }) {
      await parts.create(part('a', { replicas: 0 }));
      const increment = async (): Promise<void> => {
        for (;;) {
          const now = await parts.get('a');
          try {
            await parts.update({ ...now, spec: { ...now.spec, replicas: (now.spec?.replicas ?? 0) + 1 } });
            return;
          } catch (error) {
            if (!isStatusError(error, StatusReason.Conflict)) throw error;
          }
        }
      };
      await Promise.all(
        range(5).map(async () => {
          for (let at = 0; at < 5; at += 1) await increment();
        }),
      );
      equal((await parts.get('a')).spec?.replicas, 25);
    },
  },
  {
    id: 'concurrency.patches-all-land',
    title: 'concurrent patches of different fields are all applied',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const keys = range(20).map((at) => `k${at}`);
      await Promise.all(keys.map((key) => parts.patch('a', 'merge', { spec: { settings: { [key]: 'v' } } })));
      deepEqual(Object.keys((await parts.get('a')).spec?.settings ?? {}).sort(), [...keys].sort());
    },
  },
  {
    id: 'concurrency.watchers-agree',
    title: 'concurrent watches receive all changes of many writers, in one order',
    async run({ parts, part }) {
      const { metadata } = await parts.list();
      const resourceVersion = metadata.resourceVersion ?? '';
      const watching = started(Promise.all(range(3).map(() => take(parts.watch({ resourceVersion }), 60))));
      await Promise.all(
        range(20).map(async (at) => {
          await parts.create(part(`p${at}`));
          await parts.patch(`p${at}`, 'merge', { spec: { replicas: 2 } });
          await parts.delete(`p${at}`);
        }),
      );
      const [first, ...others] = (await watching).map((events) =>
        events.map(({ type, object }) => `${type} ${object.metadata?.name} ${versionOf(object)}`),
      );
      for (const other of others) deepEqual(other, first);
      const versions = first?.map((line) => Number(line.split(' ')[2])) ?? [];
      deepEqual(
        versions,
        [...new Set(versions)].sort((a, b) => a - b),
      );
    },
  },
];
