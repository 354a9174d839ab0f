import { defineKind, type KindDefinition, type Schema } from '@keelson/core';
import {
  type Decoded,
  decoderOf,
  type OpenApiDocument,
  OpenApiDocuments,
  openApiV3Document,
} from '@keelson/core/internal';
import test from 'ava';
import { DeploymentSchema } from '../../src/apps/v1/schema/index.ts';
import { type Pod, PodSchema, ServiceSchema } from '../../src/core/v1/schema/index.ts';

const kinds = [
  defineKind({ group: '', version: 'v1', kind: 'Pod', schema: PodSchema }),
  defineKind({ group: '', version: 'v1', kind: 'Service', schema: ServiceSchema }),
  defineKind({ group: 'apps', version: 'v1', kind: 'Deployment', schema: DeploymentSchema }),
] as const;
type JsonSchema = OpenApiDocument['components']['schemas'][string];

/**
 * Follows a path of JSON keys through a document as kubectl does: `allOf` and `$ref` are seen through, `[]` enters a
 * list.
 */
function propertyAt(kind: KindDefinition, path: string): JsonSchema | undefined {
  const { schemas } = openApiV3Document(kind, kinds).components;
  const resolved = (schema: JsonSchema | undefined): JsonSchema | undefined => {
    const inner = schema?.allOf?.[0] ?? schema;
    return inner?.$ref === undefined ? inner : resolved(schemas[inner.$ref.replace('#/components/schemas/', '')]);
  };
  const start = Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some((gvk) => gvk.kind === kind.kind && gvk.group === kind.group),
  );
  let current = start;
  for (const step of path.split('.')) {
    const [key = '', list] = step.split('[');
    current = resolved(current)?.properties?.[key];
    if (list !== undefined) current = resolved(current)?.items;
  }
  return current;
}

const [pod, service, deployment] = kinds;
/** Where strategic merge patches merge lists, and by what; the paths every tool relies on. */
const mergeKeys: readonly (readonly [kind: KindDefinition, path: string, strategy: string, key: string])[] = [
  [pod, 'metadata.ownerReferences', 'merge', 'uid'],
  [pod, 'spec.volumes', 'merge,retainKeys', 'name'],
  [pod, 'spec.containers', 'merge', 'name'],
  [pod, 'spec.containers[].env', 'merge', 'name'],
  [pod, 'spec.containers[].ports', 'merge', 'containerPort'],
  [pod, 'spec.containers[].volumeMounts', 'merge', 'mountPath'],
  [pod, 'spec.ephemeralContainers[].env', 'merge', 'name'],
  [pod, 'spec.topologySpreadConstraints', 'merge', 'topologyKey'],
  [pod, 'status.conditions', 'merge', 'type'],
  [pod, 'status.podIPs', 'merge', 'ip'],
  [service, 'spec.ports', 'merge', 'port'],
  [deployment, 'spec.template.spec.containers', 'merge', 'name'],
  [deployment, 'spec.template.spec.containers[].ports', 'merge', 'containerPort'],
];
for (const [kind, path, strategy, key] of mergeKeys) {
  test(`${kind.kind} ${path} is merged by ${key}`, (t) => {
    const property = propertyAt(kind, path);
    t.is(property?.['x-kubernetes-patch-strategy'], strategy);
    t.is(property?.['x-kubernetes-patch-merge-key'], key);
  });
}

test('fields of inlined messages are properties of the enclosing object', (t) => {
  t.truthy(propertyAt(pod, 'spec.volumes[].hostPath'));
  t.truthy(propertyAt(pod, 'spec.volumes[].configMap')?.description);
  t.is(propertyAt(pod, 'spec.volumes[].volumeSource'), undefined);
  t.truthy(propertyAt(pod, 'spec.containers[].livenessProbe.httpGet'));
  t.truthy(propertyAt(pod, 'spec.ephemeralContainers[].targetContainerName'));
  t.truthy(propertyAt(pod, 'spec.ephemeralContainers[].image'));
  t.is(propertyAt(deployment, 'spec.strategy')?.['x-kubernetes-patch-strategy'], 'retainKeys');
});

test('required properties are those of the reference implementation, without those that the server sets', (t) => {
  const required = (kind: KindDefinition, path: string) => {
    const { schemas } = openApiV3Document(kind, kinds).components;
    return Object.entries(schemas).find(([name]) => name.endsWith(path))?.[1].required;
  };
  t.is(required(pod, 'core.v1.Pod'), undefined);
  t.deepEqual(required(pod, 'core.v1.PodSpec'), ['containers']);
  t.deepEqual(required(pod, 'core.v1.Container'), ['name']);
  t.deepEqual(required(deployment, 'apps.v1.DeploymentSpec'), ['selector', 'template']);
});

test('documents of the large groups are small and built quickly enough for building on demand', (t) => {
  const documents = new OpenApiDocuments({ generation: 1, kinds: () => kinds });
  const began = process.hrtime.bigint();
  const { bytes } = documents.document('api/v1')!;
  const elapsedMs = Number(process.hrtime.bigint() - began) / 1e6;
  t.log(`${bytes.length} bytes in ${elapsedMs.toFixed(1)} ms`);
  t.true(bytes.length < 400_000);
  t.is(JSON.parse(bytes.toString()).openapi, '3.0.0');
});

function decode<T>(schema: Schema<T>, input: unknown): Decoded<T> {
  return decoderOf(schema)(input);
}

test('the minimal pod that the reference implementation accepts decodes to the form in which it writes it', (t) => {
  // Also a check of types: writers need neither status nor resources.
  const manifest: Pod = { spec: { containers: [{ name: 'web', image: 'nginx', ports: [{ containerPort: 80 }] }] } };
  const decoded = decode(PodSchema, manifest);
  t.deepEqual(decoded.errors, []);
  t.deepEqual(decoded.value, {
    spec: {
      containers: [
        {
          name: 'web',
          image: 'nginx',
          ports: [{ containerPort: 80, protocol: 'TCP' }],
          resources: {},
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      securityContext: {},
      schedulerName: 'default-scheduler',
    },
    status: {},
  });
});

test('container statuses contain the empty fields that old clients require', (t) => {
  const { value } = decode<Pod>(PodSchema, { status: { containerStatuses: [{ name: 'web' }] } });
  t.deepEqual(value.status?.containerStatuses, [
    { name: 'web', state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' },
  ]);
});

test('defaults and zero values are not shared between objects', (t) => {
  const first = decode<Pod>(PodSchema, { spec: {} }).value;
  first.spec.securityContext = { ...first.spec.securityContext, runAsUser: 0 };
  first.spec.containers.push({ name: 'intruder' });
  const second = decode<Pod>(PodSchema, { spec: {} }).value;
  t.deepEqual(second.spec.containers, []);
  t.deepEqual(second.spec.securityContext, {});
});
