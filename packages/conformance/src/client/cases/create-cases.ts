import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict';
import { StatusReason } from '@keelson/core';
import { refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

export const createCases: readonly ClientCase[] = [
  {
    id: 'create.answers-the-stored-object',
    title: 'create returns the object as stored, with defaults and server-set metadata',
    async run({ parts, part, namespaces }) {
      const made = await parts.create(part('a', { colour: 'red' }, { labels: { x: 'y' } }));
      const { uid = '', resourceVersion, creationTimestamp, ...metadata } = made.metadata ?? {};
      match(uid, /^[0-9a-f]{8}-/);
      ok(resourceVersion);
      match(String(creationTimestamp), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      deepEqual({ ...metadata }, { name: 'a', namespace: namespaces[0], labels: { x: 'y' }, generation: 1 });
      deepEqual([made.kind, made.apiVersion], ['Part', 'suite.keelson.dev/v1']);
      equal(made.spec?.replicas, 1);
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'create.ignores-what-only-the-server-says',
    title: 'uid, resourceVersion, creationTimestamp and status of the body are ignored',
    async run({ parts, part }) {
      const uid = '00000000-0000-4000-8000-000000000000';
      const made = await parts.create({
        ...part('a', {}, { uid, creationTimestamp: '2001-01-01T00:00:00Z', generation: 7 }),
        status: { phase: 'Done' },
      });
      notEqual(made.metadata?.uid, uid);
      notEqual(made.metadata?.creationTimestamp, '2001-01-01T00:00:00Z');
      equal(made.metadata?.generation, 1);
      equal(made.status?.phase, undefined);
    },
  },
  {
    id: 'create.generates-names',
    title: 'generateName gives every object a unique name with that prefix',
    async run({ parts }) {
      const made = await Promise.all(
        [1, 2, 3].map(() => parts.create({ metadata: { generateName: 'web-' }, spec: {} })),
      );
      const names = made.map(({ metadata }) => metadata?.name ?? '');
      equal(new Set(names).size, 3);
      for (const name of names) match(name, /^web-[a-z0-9]{5}$/);
    },
  },
  {
    id: 'create.takes-the-namespace-of-the-object',
    title: 'a client without a namespace creates in the namespace of the object',
    async run({ allParts, part, namespaces: [, second], client }) {
      const made = await allParts.create(part('a', {}, { namespace: second }));
      equal(made.metadata?.namespace, second);
      const { group, version, resource } = allParts.resourceName;
      equal(
        (await client.dynamic({ group, version, resource }).namespace(second).get('a')).metadata?.uid,
        made.metadata?.uid,
      );
    },
  },
  {
    id: 'create.refuses-another-namespace',
    title: 'an object with another namespace than that of the client is a 400',
    async run({ parts, part, namespaces: [, second] }) {
      await refused(() => parts.create(part('a', {}, { namespace: second })), 400, StatusReason.BadRequest);
    },
  },
  {
    id: 'create.cluster-scoped',
    title: 'objects of cluster-scoped kinds have no namespace',
    async run({ zones }) {
      const made = await zones.create({ metadata: { name: 'north' }, spec: { area: 'n' } });
      equal(made.metadata?.namespace, undefined);
      deepEqual(await zones.get('north'), made);
    },
  },
  {
    id: 'create.existing-name',
    title: 'an existing name is a 409 AlreadyExists that names the object',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const status = await refused(() => parts.create(part('a')), 409, StatusReason.AlreadyExists);
      equal(status.message, 'parts.suite.keelson.dev "a" already exists');
      deepEqual(status.details, { name: 'a', group: 'suite.keelson.dev', kind: 'parts' });
    },
  },
  {
    id: 'create.invalid-object',
    title: 'an invalid object is a 422 with one cause per error',
    async run({ parts, part }) {
      const ports = [
        { name: 'http', number: 0 },
        { name: 'admin', number: 70_000 },
      ];
      const status = await refused(() => parts.create(part('a', { ports })), 422, StatusReason.Invalid);
      const fields = status.details?.causes?.map(({ field }) => field).sort();
      deepEqual(fields, ['spec.ports[0].number', 'spec.ports[1].number']);
      equal(status.details?.kind, 'Part');
      await refused(() => parts.get('a'), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'create.wrong-type',
    title: 'a field of the wrong JSON type is a 400',
    async run({ parts, part }) {
      const wrong = part('a', { replicas: 'many' as never });
      await refused(() => parts.create(wrong), 400, StatusReason.BadRequest);
    },
  },
  {
    id: 'create.bad-name',
    title: 'an invalid name is a 422 with the field metadata.name',
    async run({ parts, part }) {
      const status = await refused(() => parts.create(part('Not_A_Name')), 422, StatusReason.Invalid);
      equal(status.details?.causes?.[0]?.field, 'metadata.name');
    },
  },
  {
    id: 'create.missing-namespace',
    title: 'a namespace that does not exist is a 404',
    async run({ allParts, part }) {
      const status = await refused(() => allParts.namespace('nowhere').create(part('a')), 404, StatusReason.NotFound);
      equal(status.details?.name, 'nowhere');
    },
  },
  {
    id: 'create.dry-run',
    title: 'a dry run returns the result of a create and stores nothing',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { colour: 'blue' }), { dryRun: true });
      equal(made.spec?.colour, 'blue');
      ok(made.metadata?.uid);
      await refused(() => parts.get('a'), 404, StatusReason.NotFound);
      await refused(() => parts.create(part('a', { replicas: -1 }), { dryRun: true }), 422, StatusReason.Invalid);
    },
  },
  {
    id: 'create.strict-field-validation',
    title: 'fieldValidation Strict rejects unknown fields, Ignore and Warn drop them',
    requires: ['unknownFields'],
    async run({ parts, part }) {
      const odd = (name: string) => ({ ...part(name), spec: { colour: 'red', weight: 3 } });
      const status = await refused(
        () => parts.create(odd('a'), { fieldValidation: 'Strict' }),
        400,
        StatusReason.BadRequest,
      );
      match(status.message ?? '', /unknown field "spec\.weight"/);
      for (const fieldValidation of ['Ignore', 'Warn'] as const) {
        const made = await parts.create(odd(fieldValidation.toLowerCase()), { fieldValidation });
        equal('weight' in (made.spec ?? {}), false);
      }
    },
  },
  {
    id: 'create.warnings',
    title: 'warnings of the server reach the client unchanged',
    requires: ['warnings'],
    async run({ parts, part, warnings }) {
      await parts.create(part('a', { colour: 'green' }));
      deepEqual([...warnings], ['green fades in the "sun"']);
      await parts.create(part('b', { colour: 'red' }));
      equal(warnings.length, 1);
    },
  },
  {
    id: 'create.warns-of-unknown-fields',
    title: 'fieldValidation Warn returns unknown fields as warnings',
    requires: ['warnings', 'unknownFields'],
    async run({ parts, part, warnings }) {
      await parts.create({ ...part('a'), spec: { colour: 'green', weight: 3 } } as never, { fieldValidation: 'Warn' });
      deepEqual([...warnings].sort(), ['green fades in the "sun"', 'unknown field "spec.weight"']);
    },
  },
  {
    id: 'create.any-text',
    title: 'texts of any script, control characters and names of built-in properties are stored unchanged',
    async run({ parts, part }) {
      const settings = JSON.parse(
        JSON.stringify({
          plain: 'äöü – 漢字 – 😀 – \u0000\u001f"\\',
          constructor: 'c',
          toString: '',
          'a.b/c': '\u2028',
        }).replace('{', '{"__proto__":"p",'),
      ) as Record<string, string>;
      await parts.create(part('a', { settings }));
      const { settings: read = {} } = (await parts.get('a')).spec ?? {};
      deepEqual(Object.entries(read).sort(), Object.entries(settings).sort());
    },
  },
  {
    id: 'create.large-object',
    title: 'an object of a megabyte is stored and returned unchanged',
    async run({ parts, part }) {
      const settings = { big: 'ü'.repeat(512 * 1024) };
      const made = await parts.create(part('a', { settings }));
      equal(made.spec?.settings?.['big'], settings.big);
      equal((await parts.list()).items[0]?.spec?.settings?.['big'], settings.big);
    },
  },
  {
    id: 'create.objects-belong-to-the-caller',
    title: 'changing a returned object does not affect other reads',
    async run({ parts, part }) {
      const made = await parts.create(part('a', { settings: { k: 'v' } }));
      if (made.spec?.settings) made.spec.settings['k'] = 'changed';
      const read = await parts.get('a');
      equal(read.spec?.settings?.['k'], 'v');
      if (read.metadata) read.metadata.labels = { stray: 'x' };
      const [listed] = (await parts.list()).items;
      equal(listed?.metadata?.labels, undefined);
      ok(versionOf(read) > 0);
    },
  },
];
