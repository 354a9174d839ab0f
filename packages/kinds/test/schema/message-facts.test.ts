import { readFileSync } from 'node:fs';
import {
  conditionSchema,
  type Field,
  labelSelectorRequirementSchema,
  labelSelectorSchema,
  type Schema,
  type SchemaNode,
} from '@keelson/core';
import { deleteOptionsSchema, type MessageNode, messageNode, preconditionsSchema } from '@keelson/core/internal';
import test from 'ava';
import * as apps from '../../src/apps/v1/schema/index.ts';
import * as appsBeta1 from '../../src/apps/v1beta1/schema.ts';
import * as appsBeta2 from '../../src/apps/v1beta2/schema.ts';
import * as authentication from '../../src/authentication/v1/schema/index.ts';
import * as authenticationBeta from '../../src/authentication/v1beta1/schema.ts';
import * as authorization from '../../src/authorization/v1/schema/index.ts';
import * as authorizationBeta from '../../src/authorization/v1beta1/schema.ts';
import * as autoscaling from '../../src/autoscaling/v1/schema/index.ts';
import * as autoscalingV2 from '../../src/autoscaling/v2/schema/index.ts';
import * as batch from '../../src/batch/v1/schema/index.ts';
import * as certificates from '../../src/certificates/v1/schema/index.ts';
import * as coordination from '../../src/coordination/v1/schema/index.ts';
import * as core from '../../src/core/v1/schema/index.ts';
import * as discovery from '../../src/discovery/v1/schema.ts';
import * as events from '../../src/events/v1/schema/index.ts';
import * as extensions from '../../src/extensions/v1beta1/schema/index.ts';
import * as flowcontrol from '../../src/flowcontrol/v1/schema.ts';
import { builtinKinds } from '../../src/index.ts';
import * as networking from '../../src/networking/v1/schema/index.ts';
import * as nodeApi from '../../src/node/v1/schema.ts';
import * as policy from '../../src/policy/v1/schema/index.ts';
import * as rbac from '../../src/rbac/v1/schema/index.ts';
import * as rbacBeta from '../../src/rbac/v1beta1/schema.ts';
import * as scheduling from '../../src/scheduling/v1/schema.ts';
import * as storage from '../../src/storage/v1/schema.ts';

/** One field as the published definitions have it. */
interface FieldFacts {
  readonly number: number;
  readonly type: string;
  readonly label: 'optional' | 'repeated' | 'map';
  readonly omitEmpty?: true;
  readonly pointer?: true;
  readonly inline?: true;
  readonly required?: true;
  readonly traits?: Readonly<Record<string, unknown>>;
}

interface MessageFacts {
  readonly fields: Readonly<Record<string, FieldFacts>>;
  readonly atomic?: true;
}

/** `@` stands for the apimachinery packages; names without it belong to the API packages. */
function fullName(name: string): string {
  if (name.startsWith('@')) return `k8s.io.apimachinery.pkg.${name.slice(1)}`;
  return name.includes('.') ? `k8s.io.api.${name}` : name;
}

function readFacts(): Readonly<Record<string, MessageFacts>> {
  // Compiled tests run from dist/test/schema; the fixture stays in the source tree.
  const file = new URL('../../../test/schema/fixtures/message-facts.json', import.meta.url);
  type Line = string | [words: string, traits: Record<string, unknown>];
  const text = JSON.parse(readFileSync(file, 'utf8')) as Record<
    string,
    { fields: Record<string, Line>; atomic?: true }
  >;
  const parse = (line: Line): FieldFacts => {
    const [words, traits] = typeof line === 'string' ? [line] : line;
    const [number, type = '', label, ...flags] = words.split(' ');
    return {
      number: Number(number),
      type: fullName(type),
      label: label as FieldFacts['label'],
      ...Object.fromEntries(flags.map((flag) => [flag, true])),
      ...(traits ? { traits } : {}),
    };
  };
  return Object.fromEntries(
    Object.entries(text).map(([name, { fields, atomic }]) => [
      fullName(name),
      {
        fields: Object.fromEntries(Object.entries(fields).map(([key, line]) => [key, parse(line)])),
        ...(atomic ? { atomic } : {}),
      },
    ]),
  );
}

const facts = readFacts();

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';
const scalarTypes: Readonly<Record<string, string>> = {
  raw: 'k8s.io.apimachinery.pkg.runtime.RawExtension',
  time: `${metaV1}.Time`,
  microTime: `${metaV1}.MicroTime`,
  quantity: 'k8s.io.apimachinery.pkg.api.resource.Quantity',
  intOrString: 'k8s.io.apimachinery.pkg.util.intstr.IntOrString',
};

type AnyField = Field<unknown, boolean>;

const exported = new Map<string, MessageNode>();
for (const [name, schema] of Object.entries({ ...core, ...autoscaling, ...certificates, ...coordination, ...policy })) {
  register(name, schema);
}
const groups = [
  apps,
  appsBeta1,
  appsBeta2,
  autoscalingV2,
  batch,
  discovery,
  events,
  extensions,
  flowcontrol,
  authentication,
  authenticationBeta,
  authorization,
  authorizationBeta,
  networking,
  rbac,
  rbacBeta,
  scheduling,
  storage,
  nodeApi,
];
for (const group of groups) for (const [name, schema] of Object.entries(group)) register(name, schema);
// Messages of the meta group live in the core package; their facts are checked along with the kinds that use them.
for (const schema of [
  conditionSchema,
  deleteOptionsSchema,
  labelSelectorRequirementSchema,
  labelSelectorSchema,
  preconditionsSchema,
]) {
  register(undefined, schema);
}
// Both versions have a Scale: the spread above kept one of the two, this adds the other.
for (const schema of Object.values(extensions)) register(undefined, schema);

function register(name: string | undefined, schema: Schema<unknown>): void {
  const node = messageNode(schema);
  if (!node) throw new Error(`${name} is not a message`);
  if (name !== undefined && name !== `${node.name.split('.').at(-1)}Schema`)
    throw new Error(`${name} holds ${node.name}`);
  exported.set(node.name, node);
}

/** Fields with a protobuf number, plus `metadata` of a kind, which `defineKind` adds. */
function declaredFields(message: MessageNode): [string, AnyField][] {
  return Object.entries(message.fields).filter(([, field]) => !field.jsonOnly);
}

function typeName(node: SchemaNode): string {
  if (node.type === 'message') return node.name;
  if (node.type === 'list') return typeName(node.items.node);
  if (node.type === 'map') return typeName(node.values.node);
  return scalarTypes[node.type] ?? node.type;
}

function labelOf(node: SchemaNode): FieldFacts['label'] {
  return node.type === 'list' ? 'repeated' : node.type === 'map' ? 'map' : 'optional';
}

function traitsOf(field: AnyField): Record<string, unknown> | undefined {
  const node: Record<string, unknown> = { ...field.schema.node };
  const traits: Record<string, unknown> = {};
  const names = ['patchStrategy', 'patchMergeKey', 'listType', 'listMapKeys'];
  if (node['type'] === 'map') names.push('mapType');
  for (const name of node['type'] === 'message' ? [] : names) if (node[name] !== undefined) traits[name] = node[name];
  if (field.patchStrategy) traits['patchStrategy'] = field.patchStrategy;
  return Object.keys(traits).length > 0 ? traits : undefined;
}

function isPlainStruct(fact: FieldFacts): boolean {
  return (
    fact.type.includes('.') &&
    fact.label === 'optional' &&
    !fact.pointer &&
    !fact.inline &&
    !Object.values(scalarTypes).includes(fact.type)
  );
}

/** Messages that stand for a whole object: `defineKind` adds their metadata. */
const kinds = builtinKinds.map(({ schema }) => messageNode(schema)?.name ?? '');

test('exactly the messages of the facts are exported', (t) => {
  t.deepEqual([...exported.keys()].sort(), Object.keys(facts).sort());
});

for (const [name, message] of exported) {
  test(`${name.replace(/^k8s\.io\.(api|apimachinery\.pkg\.apis)\./, '')} matches the published definition`, (t) => {
    const expected = { ...facts[name]?.fields };
    if (kinds.includes(name) && !('metadata' in message.fields)) {
      t.is(expected['metadata']?.number, 1);
      delete expected['metadata'];
    }
    const seen = Object.fromEntries(
      declaredFields(message).map(([key, field]) => [
        key,
        {
          number: field.number,
          type: typeName(field.schema.node),
          label: labelOf(field.schema.node),
          inline: field.inline,
          required: field.required || undefined,
          traits: traitsOf(field),
        },
      ]),
    );
    const wanted = Object.fromEntries(
      Object.entries(expected).map(([key, fact]) => [
        key,
        {
          number: fact.number,
          type: fact.type,
          label: fact.label,
          inline: fact.inline,
          required: fact.required,
          traits: fact.traits,
        },
      ]),
    );
    t.deepEqual(Object.keys(seen), Object.keys(wanted), 'names, in canonical order');
    t.deepEqual(seen, wanted);
    t.is(message.mapType, facts[name]?.atomic ? 'atomic' : undefined);
  });
}

test('fields that the reference implementation always writes are set when absent', (t) => {
  const left: string[] = [];
  for (const [name, message] of exported) {
    for (const [key, field] of declaredFields(message)) {
      const fact = facts[name]?.fields[key];
      if (!fact || fact.inline) continue;
      const written = isPlainStruct(fact) || (!fact.omitEmpty && !fact.pointer);
      if (written && field.whenAbsent !== 'zero') left.push(`${name}.${key}`);
    }
  }
  // Body kinds get their metadata from the registry.
  t.deepEqual(left.sort(), [
    'k8s.io.api.apps.v1beta1.Scale.metadata',
    'k8s.io.api.apps.v1beta2.Scale.metadata',
    'k8s.io.api.authentication.v1.TokenRequest.metadata',
    'k8s.io.api.autoscaling.v1.Scale.metadata',
    'k8s.io.api.extensions.v1beta1.Scale.metadata',
    'k8s.io.api.policy.v1.Eviction.metadata',
  ]);
});

test('a missing required field is rejected only where the reference implementation distinguishes absence', (t) => {
  const refused: string[] = [];
  for (const [name, message] of exported) {
    for (const [key, field] of declaredFields(message)) {
      if (field.whenAbsent !== 'error') continue;
      refused.push(`${name.split('.').slice(-2).join('.')}.${key}`);
      const fact = facts[name]?.fields[key];
      t.true(fact?.required && (fact.pointer || fact.omitEmpty || fact.type.endsWith('.Time')), `${name}.${key}`);
      t.is(field.default, undefined);
    }
  }
  t.true(refused.includes('v1.DeploymentSpec.selector'));
  t.false(refused.includes('v1beta1.DeploymentSpec.selector'));
});

/** Types whose zero value a Go pointer distinguishes from absence; messages do so by being present. */
const withZero = ['string', 'bool', 'int32', 'int64', 'double', 'bytes', 'intOrString'];

test('exactly the scalars that are pointers in the published definitions record presence', (t) => {
  const wrong: string[] = [];
  let marked = 0;
  for (const [name, message] of exported) {
    for (const [key, field] of declaredFields(message)) {
      if (field.schema.node.type === 'list') continue;
      const pointer = withZero.includes(field.schema.node.type) && facts[name]?.fields[key]?.pointer === true;
      if (pointer) marked += 1;
      if (pointer !== (field.presence === true)) wrong.push(`${name}.${key}`);
    }
  }
  t.deepEqual(wrong, []);
  t.true(marked > 130);
});

test('optional messages are pointers, so that an empty message differs from an absent one', (t) => {
  const values: string[] = [];
  for (const [name, message] of exported) {
    for (const [key, field] of declaredFields(message)) {
      const fact = facts[name]?.fields[key];
      if (field.schema.node.type !== 'message' || field.inline || field.whenAbsent === 'zero') continue;
      if (!fact?.pointer) values.push(`${name}.${key}`);
    }
  }
  // Bodies of subresources: the registry completes their metadata.
  t.deepEqual(
    values.map((path) => path.split('.').at(-1)),
    values.map(() => 'metadata'),
  );
});

test('every message and field has a description of its own', (t) => {
  for (const [name, message] of exported) {
    t.regex(message.description, /^[A-Z].{8,}\.$/s, name);
    for (const [key, field] of declaredFields(message)) {
      if (!field.inline) t.regex(field.description, /^[A-Z`\d].{4,}\.$/s, `${name}.${key}`);
    }
  }
});

const defaults: readonly (readonly [Schema<unknown>, Readonly<Record<string, unknown>>])[] = [
  [
    core.PodSpecSchema,
    {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
    },
  ],
  [core.ContainerSchema, { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' }],
  [core.ProbeSchema, { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }],
  [core.HTTPGetActionSchema, { path: '/', scheme: 'HTTP' }],
  [core.ContainerPortSchema, { protocol: 'TCP' }],
  [core.ServicePortSchema, { protocol: 'TCP' }],
  [core.EndpointPortSchema, { protocol: 'TCP' }],
  [core.ServiceSpecSchema, { type: 'ClusterIP', sessionAffinity: 'None' }],
  [core.SecretSchema, { type: 'Opaque' }],
  [core.SecretVolumeSourceSchema, { defaultMode: 0o644 }],
  [core.ConfigMapVolumeSourceSchema, { defaultMode: 0o644 }],
  [core.DownwardAPIVolumeSourceSchema, { defaultMode: 0o644 }],
  [core.ProjectedVolumeSourceSchema, { defaultMode: 0o644 }],
  [core.ServiceAccountTokenProjectionSchema, { expirationSeconds: 3600 }],
  [core.HostPathVolumeSourceSchema, { type: '' }],
  [core.ObjectFieldSelectorSchema, { apiVersion: 'v1' }],
  [core.PersistentVolumeClaimSpecSchema, { volumeMode: 'Filesystem' }],
  // Defaults of workloads differ between the versions and live in the strategies.
  [apps.DeploymentSpecSchema, {}],
  [extensions.DeploymentSpecSchema, {}],
];

for (const [schema, expected] of defaults) {
  const message = messageNode(schema)!;
  test(`static defaults of ${message.name}`, (t) => {
    const found = declaredFields(message).flatMap(([key, field]) =>
      field.default === undefined ? [] : [[key, field.default] as const],
    );
    t.deepEqual(Object.fromEntries(found), expected);
  });
}
