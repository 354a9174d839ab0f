import test from 'ava';
import fc from 'fast-check';
import { ManifestError, parseManifests } from '../../src/sources/parse-manifest.ts';
import { staticPod } from '../../src/sources/static-pod.ts';

const origin = { nodeName: 'n1', source: 'file', place: 'file:/a.yaml' } as const;
const base = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { containers: [{ name: 'c', image: 'host' }] },
};
const podOf = (value: unknown, from: Parameters<typeof staticPod>[1] = origin) => staticPod(value, from).pod;

test('a static pod has the name of its node, a UID, annotations, defaults, a toleration, and starts as Pending', (t) => {
  const pod = podOf({
    ...base,
    metadata: { name: 'web', labels: { a: 'b' }, annotations: { x: 'y', 'kubernetes.io/config.mirror': 'forged' } },
  });
  const uid = pod.metadata?.uid ?? '';
  t.regex(uid, /^[0-9a-f]{32}$/);
  t.deepEqual(pod.metadata, {
    name: 'web-n1',
    namespace: 'default',
    uid,
    labels: { a: 'b' },
    annotations: { x: 'y', 'kubernetes.io/config.source': 'file', 'kubernetes.io/config.hash': uid },
  });
  t.like(pod.spec, {
    nodeName: 'n1',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
  });
  t.deepEqual(pod.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
  t.deepEqual(pod.status, { phase: 'Pending' });
});

test('the UID depends on content, path and node, and not on the order of fields or comments', (t) => {
  const text = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: host}\n';
  const shuffled =
    '# a comment\nspec:\n  containers:\n  - image: host\n    name: c\nkind: Pod\nmetadata:\n  name: web\napiVersion: v1\n';
  const uid = (document: string, from: Parameters<typeof staticPod>[1] = origin) =>
    podOf(parseManifests(Buffer.from(document)).items[0], from).metadata?.uid;
  t.is(uid(text), uid(shuffled));
  t.is(uid(text), podOf(base).metadata?.uid, 'JSON and YAML alike');
  t.not(uid(text), uid(text.replace('host', 'other')));
  t.not(uid(text), uid(text, { ...origin, place: 'file:/b.yaml' }));
  t.not(uid(text), uid(text, { ...origin, nodeName: 'n2' }));
  t.is(podOf({ ...base, metadata: { name: 'web', uid: 'own' } }).metadata?.uid, 'own');
});

test('any JSON object either is a pod or is rejected with one line', (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (metadata, spec) => {
      try {
        podOf({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
      } catch (error) {
        t.true(error instanceof ManifestError, String(error));
        t.false((error as Error).message.includes('\n'));
      }
    }),
    { numRuns: 300 },
  );
  t.pass();
});

test('static pods are validated like pods of the API', (t) => {
  for (const [change, message] of [
    [{ spec: { containers: [] } }, /spec.containers/],
    [{ metadata: {} }, /metadata.name: Required value/],
    [{ metadata: { name: 'x', namespace: 'No' } }, /metadata.namespace/],
    [{ spec: { containers: [{ name: 'c', image: 'host' }], restartPolicy: 'Sometimes' } }, /spec.restartPolicy/],
    [
      {
        spec: {
          containers: [
            { name: 'c', image: 'host' },
            { name: 'c', image: 'host' },
          ],
        },
      },
      /Duplicate value/,
    ],
    [{ kind: 'Node' }, /is not a Pod/],
  ] as const) {
    t.throws(() => podOf({ ...base, ...change }), { instanceOf: ManifestError, message });
  }
});

test('unknown fields are reported and dropped', (t) => {
  const { pod, unknownFields } = staticPod(
    { ...base, spec: { ...base.spec, contaners: [], hostNetwork: true } },
    origin,
  );
  t.deepEqual(unknownFields, ['spec.contaners']);
  t.false('contaners' in pod.spec);
  t.true(pod.spec.hostNetwork);
});

test('documents that are not manifests are rejected', (t) => {
  for (const [text, message] of [
    ['[]', /is not an object/],
    ['apiVersion: v2\nkind: Pod', /must be v1/],
    ['apiVersion: v1\nkind: PodList\nitems: {}', /items that are not a list/],
    ['{"apiVersion":"v1","kind":"Pod","kind":"Pod"}', /the field .*kind.* twice/],
    ['---\n'.repeat(1002), /has more than 1000 documents/],
    [`{"a":${'['.repeat(5000)}`, /./],
    [`# ${'x'.repeat(4 * 1024 * 1024)}`, /has more than/],
  ] as const) {
    t.throws(() => parseManifests(Buffer.from(text)), { instanceOf: ManifestError, message });
  }
  t.deepEqual(parseManifests(Buffer.from(' \n')).items, []);
});
