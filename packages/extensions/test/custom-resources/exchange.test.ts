import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { defineKind, optional, required, s } from '@keelson/core';
import type { CustomResourceDefinition } from '@keelson/kinds';
import { builtinKinds } from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { checkWords } from '../../src/custom-resources/definition/check-schema.ts';
import { checkStructural } from '../../src/custom-resources/definition/check-structural.ts';
import { exportDefinitions, importDefinitions } from '../../src/index.ts';

const Backup = defineKind({
  group: 'ops.example.com',
  version: 'v1',
  kind: 'Backup',
  names: { shortNames: ['bk'], categories: ['all'] },
  schema: s.object(
    {
      spec: required(
        s.object({
          schedule: s.string({ pattern: '^[^ ]+$', maxLength: 40 }),
          keep: optional(s.int32({ minimum: 1, maximum: 99 }), 'How many are kept.', { default: 3 }),
          mode: optional(s.enum('full', 'partial')),
          targets: optional(
            s.list(s.object({ name: s.string(), port: optional(s.intOrString()) }), {
              listType: 'map',
              listMapKeys: ['name'],
            }),
          ),
          labels: optional(s.map(s.string())),
          'odd-name': optional(s.bool()),
          extra: optional(s.raw()),
          at: optional(s.time()),
        }),
        'What is wanted.',
      ),
      status: optional(s.object({ phase: optional(s.string()) })),
    },
    'A copy of data.',
  ),
  selectableFields: [['spec.mode', (object) => object.spec.mode ?? '']],
  subresources: [{ type: 'status', name: 'status' }],
});

/** The definitions of the kinds that an imported module exports. Its types are no JavaScript. */
async function exportedAgain(t: ExecutionContext, source: string): Promise<CustomResourceDefinition[]> {
  // Inside the package, so that the module finds the packages.
  const folder = await mkdtemp(fileURLToPath(new URL('../imported-', import.meta.url)));
  t.teardown(() => rm(folder, { recursive: true }));
  const module = source
    .replace(/^export type .*$/gm, '')
    .replace('type ObjectOf, ', '')
    .replaceAll(' as never', '');
  const index = new URL('../../src/index.js', import.meta.url).href;
  const names = [...module.matchAll(/^export const (\w+)/gm)].map(([, name]) => name).join(', ');
  const file = join(folder, 'kinds.mjs');
  await writeFile(
    file,
    `${module}\nimport { exportDefinitions } from ${JSON.stringify(index)};\n` +
      `process.stdout.write(JSON.stringify(exportDefinitions([${names}]).definitions));\n`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=keelson-modules', file]);
  return JSON.parse(stdout) as CustomResourceDefinition[];
}

const specOf = ({ definitions: [first] }: { readonly definitions: readonly CustomResourceDefinition[] }) => first?.spec;

test('a kind is unchanged after an export, an import and another export', async (t) => {
  const exported = exportDefinitions([Backup]);
  t.deepEqual(exported.notes, []);
  const imported = importDefinitions(exported.definitions);
  t.deepEqual(imported.notes, []);
  const definitions = await exportedAgain(t, imported.source);
  t.deepEqual(specOf({ definitions }), specOf(JSON.parse(JSON.stringify(exported))));
});

test('an export states the versions and what a module cannot express', async (t) => {
  const spec = (more: object) => ({
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { a: { type: 'string', ...more } } } },
    },
  });
  const definition = {
    metadata: { name: 'parts.example.com' },
    spec: {
      group: 'example.com',
      names: { plural: 'parts', kind: 'Part' },
      scope: 'Cluster',
      versions: [
        { name: 'v1beta1', served: true, storage: false, schema: spec({}) },
        { name: 'v1', served: true, storage: true, schema: spec({ format: 'email', oneOf: [{ minLength: 1 }] }) },
      ],
    },
  } as unknown as CustomResourceDefinition;
  const { source, notes } = importDefinitions([definition]);
  t.deepEqual(notes, ['Part of example.com/v1: oneOf of spec.a', 'Part of example.com/v1: format email of spec.a']);
  const [again] = await exportedAgain(t, source);
  t.deepEqual(
    again?.spec.versions.map(({ name, storage }) => [name, storage]),
    [
      ['v1', true],
      ['v1beta1', false],
    ],
  );
});

test('the definition of every built-in kind has a structural schema', (t) => {
  const { definitions } = exportDefinitions(builtinKinds.filter(({ virtual }) => !virtual));
  t.true(definitions.length > 30);
  for (const { metadata, spec } of definitions) {
    for (const { schema } of spec.versions) {
      const props = schema?.openAPIV3Schema ?? {};
      const errors = [...checkStructural(props, 's'), ...checkWords(props, 's')].map(
        ({ field, message }) => `${field}: ${message}`,
      );
      t.deepEqual(errors.slice(0, 3), [], metadata?.name);
    }
  }
});
