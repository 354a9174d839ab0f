import { deepEqual, equal } from 'node:assert/strict';
import { StatusReason } from '@keelson/core';
import { refused, versionOf } from '../expectations.ts';
import type { ClientCase } from '../harness.ts';

const ports = [
  { name: 'http', number: 80 },
  { name: 'admin', number: 8080 },
];

export const patchCases: readonly ClientCase[] = [
  {
    id: 'patch.merge',
    title: 'a merge patch sets, removes with null, and replaces lists',
    async run({ parts, part }) {
      await parts.create(part('a', { colour: 'red', ports, settings: { k: 'v', l: 'w' } }));
      const patched = await parts.patch('a', 'merge', {
        metadata: { labels: { x: 'y' } },
        spec: { colour: null, ports: [{ name: 'http', number: 81 }], settings: { l: null, m: 'n' } },
      });
      deepEqual(patched.spec, { replicas: 1, ports: [{ name: 'http', number: 81 }], settings: { k: 'v', m: 'n' } });
      deepEqual(patched.metadata?.labels, { x: 'y' });
      deepEqual(await parts.get('a'), patched);
    },
  },
  {
    id: 'patch.json',
    title: 'a JSON patch applies its operations in order',
    async run({ parts, part }) {
      await parts.create(part('a', { ports }));
      const patched = await parts.patch('a', 'json', [
        { op: 'test', path: '/spec/replicas', value: 1 },
        { op: 'replace', path: '/spec/replicas', value: 4 },
        { op: 'remove', path: '/spec/ports/0' },
        { op: 'add', path: '/metadata/annotations', value: { 'a/b': '~' } },
        { op: 'copy', from: '/metadata/annotations/a~1b', path: '/metadata/annotations/c' },
      ]);
      deepEqual([patched.spec?.replicas, patched.spec?.ports?.length], [4, 1]);
      deepEqual(patched.metadata?.annotations, { 'a/b': '~', c: '~' });
    },
  },
  {
    id: 'patch.json-that-does-not-apply',
    title: 'a JSON patch that does not apply is a 422 and changes nothing, an invalid one is a 400',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      const failing = [
        { op: 'replace', path: '/spec/replicas', value: 4 },
        { op: 'test', path: '/spec/replicas', value: 1 },
      ];
      await refused(() => parts.patch('a', 'json', failing), 422, StatusReason.Invalid);
      await refused(() => parts.patch('a', 'json', { spec: {} }), 400, StatusReason.BadRequest);
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'patch.strategic',
    title: 'a strategic merge patch merges lists by key and follows directives',
    async run({ parts, part }) {
      await parts.create(part('a', { ports, settings: { k: 'v' } }));
      const patched = await parts.patch('a', 'strategic', {
        spec: {
          ports: [
            { name: 'http', number: 81 },
            { name: 'admin', $patch: 'delete' },
            { name: 'new', number: 9 },
          ],
          settings: { $patch: 'replace', only: 'this' },
        },
      });
      deepEqual(
        patched.spec?.ports?.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
        [
          { name: 'http', number: 81 },
          { name: 'new', number: 9 },
        ],
      );
      deepEqual(patched.spec?.settings, { only: 'this' });
    },
  },
  {
    id: 'patch.precondition',
    title: 'a patch with an outdated resourceVersion is a 409',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      await parts.patch('a', 'merge', { spec: { replicas: 2 } });
      const old = { metadata: { resourceVersion: String(versionOf(made)) }, spec: { replicas: 3 } };
      await refused(() => parts.patch('a', 'merge', old), 409, StatusReason.Conflict);
    },
  },
  {
    id: 'patch.missing-object',
    title: 'a patch of a missing object is a 404',
    async run({ parts }) {
      await refused(() => parts.patch('a', 'merge', {}), 404, StatusReason.NotFound);
    },
  },
  {
    id: 'patch.dry-run',
    title: 'a dry run of a patch stores nothing',
    async run({ parts, part }) {
      const made = await parts.create(part('a'));
      equal((await parts.patch('a', 'merge', { spec: { replicas: 7 } }, { dryRun: true })).spec?.replicas, 7);
      deepEqual(await parts.get('a'), made);
    },
  },
  {
    id: 'patch.strict-field-validation',
    title: 'fieldValidation Strict on a patch is a 422',
    async run({ parts, part }) {
      await parts.create(part('a'));
      const patch = { spec: { weight: 3 } };
      await refused(() => parts.patch('a', 'merge', patch, { fieldValidation: 'Strict' }), 422, StatusReason.Invalid);
    },
  },
  {
    id: 'patch.apply',
    title:
      'an apply creates, merges with fields of other owners, and removes fields that its manager no longer applies',
    async run({ parts, part }) {
      const { metadata } = part('a');
      const apply = (fieldManager: string, spec: object) => parts.apply({ metadata, spec } as never, { fieldManager });
      const made = await apply('one', { colour: 'red', settings: { k: 'v' } });
      deepEqual(made.spec, { replicas: 1, colour: 'red', settings: { k: 'v' } });
      const merged = await apply('two', { settings: { l: 'w' } });
      deepEqual(merged.spec, { replicas: 1, colour: 'red', settings: { k: 'v', l: 'w' } });
      equal(merged.metadata.managedFields?.length, 2);
      deepEqual((await apply('one', { colour: 'red' })).spec, { replicas: 1, colour: 'red', settings: { l: 'w' } });
    },
  },
  {
    id: 'patch.apply-conflict',
    title: 'an apply of fields of other owners is a 409 that names them, and takes ownership with force',
    async run({ parts, part }) {
      const { metadata } = part('a');
      const apply = (fieldManager: string, colour: string, force: boolean) =>
        parts.apply({ metadata, spec: { colour } } as never, { fieldManager, force });
      const made = await apply('one', 'red', false);
      const { details } = await refused(() => apply('two', 'blue', false), 409, StatusReason.Conflict);
      deepEqual(details?.causes, [
        { reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.colour' },
      ]);
      deepEqual(await parts.get('a'), made);
      equal((await apply('two', 'blue', true)).spec?.colour, 'blue');
    },
  },
];
