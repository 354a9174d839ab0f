import { deepEqual, equal, ok } from 'node:assert/strict';
import { isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import { refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const readCases: readonly ClientCase[] = [
  {
    id: 'read.missing-object',
    title: 'a missing object is a 404 that names it',
    async run({ parts }) {
      const status = await refused(() => parts.get('a'), 404, StatusReason.NotFound);
      equal(status.message, 'parts.suite.keelson.dev "a" not found');
      deepEqual(status.details, { name: 'a', group: 'suite.keelson.dev', kind: 'parts' });
    },
  },
  {
    id: 'read.missing-resource',
    title: 'a resource that is not served is a 404 for every operation',
    async run({ client, part }) {
      const nothing = client
        .dynamic({ group: 'nobody.example.com', version: 'v1', resource: 'things' })
        .namespace('default');
      await refused(() => nothing.list(), 404, StatusReason.NotFound);
      await refused(() => nothing.get('a'), 404, StatusReason.NotFound);
      await refused(() => nothing.create(part('a')), 404, StatusReason.NotFound);
      await refused(() => nothing.delete('a'), 404, StatusReason.NotFound);
      await refused(() => nothing.watch()[Symbol.asyncIterator]().next(), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'read.empty-name',
    title: 'an empty name is never treated as the collection',
    async run({ parts, part }) {
      await parts.create(part('a'));
      for (const call of [
        () => parts.get(''),
        () => parts.delete(''),
        () => parts.patch('', 'merge', {}),
        () => parts.update(part('')),
      ]) {
        const failed = await call().then(
          () => undefined,
          (error: unknown) => error,
        );
        ok(isStatusError(failed) && failed.code >= 400 && failed.code < 500, String(failed));
      }
      equal((await parts.list()).items.length, 1);
    },
  },
  {
    id: 'read.names-that-look-like-paths',
    title: 'names with slashes, dots and per cent signs do not reach other paths',
    async run({ parts, part }) {
      await parts.create(part('a'));
      for (const name of ['..', '.', 'a/status', '../parts/a', '%2e%2e', 'a?x=y', 'a#b', '../../../../../version']) {
        const failed = await parts.get(name).then(
          () => undefined,
          (error: unknown) => error,
        );
        ok(isStatusError(failed) && (failed.code === 404 || failed.code === 400), `${name}: ${String(failed)}`);
      }
    },
  },
  {
    id: 'read.at-least-a-version',
    title: 'a get with a resourceVersion returns that version or a newer one',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const read = await parts.get('a', { resourceVersion: String(versionOf(made)) });
      // With resourceVersion "0" any state may be returned that is not older than an observed one, so that the object
      // is found.
      equal((await parts.get('a', { resourceVersion: '0' })).metadata?.uid, made.metadata?.uid);
      ok(versionOf(read) >= versionOf(made));
      await refused(() => parts.get('a', { resourceVersion: 'x' }), 400, StatusReason.BadRequest);
    },
  },
  {
    id: 'read.version-of-the-future',
    title: 'a resourceVersion in the far future is immediately a 504 with the cause ResourceVersionTooLarge',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const resourceVersion = String(versionOf(made) + 1_000_000);
      const began = performance.now();
      const status = await refused(() => parts.get('a', { resourceVersion }), 504, StatusReason.Timeout);
      ok(performance.now() - began < 6_000, 'the answer was not handed on at once');
      deepEqual(
        status.details?.causes?.map(({ reason }) => reason),
        ['ResourceVersionTooLarge'],
      );
    },
  },
  {
    id: 'read.metadata-only',
    title: 'a metadata client receives only metadata, in get, list and watch',
    async run({ client, allParts, parts, part, namespaces }) {
      const made = await parts.create(part('a', { settings: { secret: 'x' } }, { labels: { l: 'v' } }));
      const metadata = client.dynamic(allParts.resourceName, { metadataOnly: true }).namespace(namespaces[0]);
      const expected = (object: KubeObject) => {
        deepEqual(object.metadata, made.metadata);
        deepEqual(
          Object.keys(object).filter((key) => !['kind', 'apiVersion', 'metadata'].includes(key)),
          [],
        );
      };
      expected(await metadata.get('a'));
      const list = await metadata.list();
      equal(list.items.length, 1);
      for (const item of list.items) expected(item);
      for await (const event of metadata.watch()) {
        equal(event.type, 'ADDED');
        expected(event.object);
        break;
      }
    },
  },
  {
    id: 'read.typed-and-by-name',
    title: 'a client by kind and one by resource name read the same objects',
    async run({ client, parts, part, namespaces }) {
      const made = await parts.create(part('a'));
      deepEqual(parts.resourceName, { group: 'suite.keelson.dev', version: 'v1', resource: 'parts' });
      deepEqual(await client.dynamic(parts.resourceName).namespace(namespaces[0]).get('a'), made);
    },
  },
];
