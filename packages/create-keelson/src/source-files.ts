import type { KindChoice, ProjectChoices } from './choices.ts';

/** The modules of one kind: declaration, controller, test and an object. */
export function sourceFiles(choices: ProjectChoices, kind: KindChoice): ReadonlyMap<string, string> {
  return new Map([
    [`src/${kind.file}.ts`, declaration(choices, kind)],
    ...(choices.controller ? [[`src/${kind.file}-controller.ts`, controller(kind)] as const] : []),
    [`test/${kind.file}.test.ts`, test(choices, kind)],
    [`manifests/${kind.file}.yaml`, manifest(choices, kind)],
  ]);
}

const declaration = (
  { group }: ProjectChoices,
  { kind }: KindChoice,
) => `import { ageColumn, conditionSchema, defineKind, nameColumn, type ObjectOf, optional, s } from 'keelson';

/** One declaration: the type, validation, defaults, the table of kubectl and the documentation follow from it. */
export const ${kind} = defineKind({
  group: '${group}',
  version: 'v1',
  kind: '${kind}',
  schema: s.object({
    spec: s.object({
      message: s.string({ minLength: 1, maxLength: 200 }),
      copies: optional(s.int32({ minimum: 0, maximum: 100 }), 'How often the message is repeated.', { default: 1 }),
    }),
    status: optional(
      s.object({
        observedGeneration: optional(s.int32()),
        conditions: optional(s.list(conditionSchema)),
      }),
    ),
  }),
  subresources: [{ type: 'status', name: 'status' }],
  columns: [
    nameColumn(),
    { name: 'Copies', type: 'integer', value: ({ spec }) => spec.copies ?? 0 },
    {
      name: 'Ready',
      type: 'string',
      value: ({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'Unknown',
    },
    ageColumn,
  ],
});
export type ${kind} = ObjectOf<typeof ${kind}>;
`;

const controller = ({ kind, file, variable }: KindChoice) => `import {
  type ControllerDefinition,
  ownerReference,
  patchStatus,
  withCondition,
} from '@keelson/controller-kit';
import { ConfigMap } from '@keelson/kinds';
import { ${kind} } from './${file}.ts';

/** Keeps a config map with the text of each object, and the status. It is called after every change of both. */
export const ${variable}Controller: ControllerDefinition<${kind}> = {
  name: '${file}-controller',
  kind: ${kind},
  owns: [ConfigMap],
  reconcile: async (object, run) => {
    const { name, namespace = '', generation } = object.metadata;
    if (object.metadata.deletionTimestamp !== undefined) return;
    const maps = run.client.resource(ConfigMap).namespace(namespace);
    const data = { text: Array(object.spec.copies ?? 1).fill(object.spec.message).join('\\n') };
    const existing = run.read(ConfigMap).get(\`\${namespace}/\${name}\`);
    if (existing === undefined)
      await maps.create({ metadata: { name, ownerReferences: [ownerReference(${kind}, object)] }, data });
    else if (existing.data?.text !== data.text) await maps.patch(name, 'merge', { data });
    const ready = { type: 'Ready', status: 'True', reason: 'Written', message: '' };
    await patchStatus(run, ${kind}, object, {
      observedGeneration: generation,
      conditions: [...withCondition(object.status?.conditions, ready, run.clock)],
    });
  },
};
`;

const test = (choices: ProjectChoices, { kind, plural, file, variable }: KindChoice) => {
  const imports = [
    "import assert from 'node:assert/strict';",
    "import { test } from 'node:test';",
    ...(choices.controller ? ["import { ConfigMap } from '@keelson/kinds';"] : []),
    `import { ${choices.controller ? 'eventually, ' : ''}startTestPlane } from '@keelson/testing';`,
    `import { ${kind} } from '../src/${file}.ts';`,
    ...(choices.controller ? [`import { ${variable}Controller } from '../src/${file}-controller.ts';`] : []),
  ];
  const validation = `
test('${kind}: defaults are filled in, and invalid objects are rejected', async () => {
  const plane = await startTestPlane({ kinds: [${kind}], controllers: false });
  const ${plural} = plane.client(${kind}).namespace('default');
  const made = await ${plural}.create({ metadata: { name: 'hello' }, spec: { message: 'Hello' } });
  assert.equal(made.spec.copies, 1);
  const invalid = { metadata: { name: 'bad' }, spec: { message: '', copies: 101 } };
  await assert.rejects(${plural}.create(invalid), /spec\\.message: .*spec\\.copies: /);
  await plane.close();
});
`;
  const reconciliation = `
test('${kind}: the controller keeps a config map and the status', async () => {
  const plane = await startTestPlane({ kinds: [${kind}], controllers: ['api', ${variable}Controller] });
  const ${plural} = plane.client(${kind}).namespace('default');
  const maps = plane.client(ConfigMap).namespace('default');
  await ${plural}.create({ metadata: { name: 'hello' }, spec: { message: 'Hello', copies: 2 } });
  const ready = await eventually(async () => {
    const { status } = await ${plural}.get('hello');
    return status?.observedGeneration === 1 && status;
  });
  assert.equal(ready.conditions?.[0]?.status, 'True');
  assert.equal((await maps.get('hello')).data?.text, 'Hello\\nHello');

  await maps.delete('hello');
  await eventually(async () => (await maps.get('hello')).data?.text === 'Hello\\nHello');
  await plane.close();
});
`;
  return `${imports.join('\n')}\n${validation}${choices.controller ? reconciliation : ''}`;
};

const manifest = ({ group }: ProjectChoices, { kind }: KindChoice) => `apiVersion: ${group}/v1
kind: ${kind}
metadata:
  name: hello
spec:
  message: Hello
  copies: 3
`;
