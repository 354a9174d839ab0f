import { decoderOf } from '@keelson/core/internal';
import test from 'ava';
import fc from 'fast-check';
import { NetworkingV1Ingress as Ingress, Ingress as StoredIngress } from '../src/index.ts';
import { create } from './helpers/writes.ts';

const conversion = Ingress.storage!;
const service = { name: 'web', port: { number: 80 } };

function ingress(spec: Record<string, unknown>): Record<string, unknown> {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'front', namespace: 'default' },
    spec,
  };
}

function rule(path: Record<string, unknown>): Record<string, unknown> {
  return { rules: [{ host: 'a.example.com', http: { paths: [path] } }] };
}

const backend = fc.oneof(
  fc.record({
    service: fc.record({
      name: fc.constantFrom('web', 'api'),
      port: fc.oneof(
        fc.record({ number: fc.integer({ min: 1, max: 65535 }) }),
        fc.record({ name: fc.constantFrom('http', 'web-1') }),
        fc.constant({}),
      ),
    }),
  }),
  fc.record({ resource: fc.constant({ apiGroup: 'k8s.example.com', kind: 'Bucket', name: 'static' }) }),
);
const path = fc.record(
  { path: fc.constantFrom('/', '/a'), pathType: fc.constantFrom('Exact', 'Prefix', 'ImplementationSpecific'), backend },
  { requiredKeys: ['pathType', 'backend'] },
);
const spec = fc.record(
  {
    ingressClassName: fc.constantFrom('', 'nginx'),
    defaultBackend: backend,
    tls: fc.array(fc.record({ hosts: fc.constant(['a.example.com']), secretName: fc.constant('cert') }), {
      maxLength: 2,
    }),
    rules: fc.array(
      fc.record(
        {
          host: fc.constantFrom('a.example.com', '*.b.example.com'),
          http: fc.record({ paths: fc.array(path, { maxLength: 3 }) }),
        },
        { requiredKeys: [] },
      ),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);
const status = fc.constantFrom(undefined, { loadBalancer: { ingress: [{ ip: '10.0.0.1' }] } });

test('an Ingress is unchanged after storage, with its fields in the canonical order of both versions', (t) => {
  fc.assert(
    fc.property(spec, status, (wanted, state) => {
      const manifest = { ...ingress(wanted), ...(state ? { status: state } : {}) };
      const object = decoderOf(Ingress.schema)(manifest).value;
      const stored = conversion.toStorage(object);
      t.is(JSON.stringify(conversion.fromStorage(stored)), JSON.stringify(object));
      t.is(JSON.stringify(decoderOf(StoredIngress.schema)(stored).value), JSON.stringify(stored));
      t.is(stored.apiVersion, 'extensions/v1beta1');
    }),
    { numRuns: 500 },
  );
});

test('objects of extensions/v1beta1 are unchanged; networking.k8s.io/v1 sets missing path types', (t) => {
  const old = (pathType: string | undefined) => ({
    apiVersion: 'extensions/v1beta1',
    kind: 'Ingress',
    metadata: { name: 'front' },
    spec: {
      backend: { serviceName: 'web', servicePort: 'http' },
      rules: [
        {
          http: {
            paths: [
              { path: '/', ...(pathType ? { pathType } : {}), backend: { serviceName: 'api', servicePort: 8080 } },
            ],
          },
        },
      ],
    },
  });
  const shown = conversion.fromStorage(old(undefined));
  t.deepEqual(shown.spec, {
    defaultBackend: { service: { name: 'web', port: { name: 'http' } } },
    rules: [
      {
        http: {
          paths: [
            {
              path: '/',
              pathType: 'ImplementationSpecific',
              backend: { service: { name: 'api', port: { number: 8080 } } },
            },
          ],
        },
      },
    ],
  });
  t.deepEqual(conversion.toStorage(shown), old('ImplementationSpecific'));
  t.false(conversion.isRelabel(Buffer.from(JSON.stringify(old('Exact')))));
});

test('neither direction of the conversion changes its argument', (t) => {
  const object = decoderOf(Ingress.schema)(
    ingress({ defaultBackend: { service }, ...rule({ pathType: 'Exact', path: '/', backend: { service } }) }),
  ).value;
  const before = JSON.stringify(object);
  const stored = conversion.toStorage(object);
  const text = JSON.stringify(stored);
  conversion.fromStorage(stored);
  t.is(JSON.stringify(object), before);
  t.is(JSON.stringify(stored), text);
});

const good: readonly (readonly [title: string, spec: Record<string, unknown>])[] = [
  ['a default backend alone', { defaultBackend: { service } }],
  ['a rule without host', { rules: [{ http: { paths: [{ pathType: 'Prefix', path: '/', backend: { service } }] } }] }],
  [
    'a port by name',
    rule({ pathType: 'Exact', path: '/a', backend: { service: { name: 'web', port: { name: 'http' } } } }),
  ],
  [
    'a name and an empty number',
    rule({ pathType: 'Exact', path: '/', backend: { service: { name: 'web', port: { name: 'http', number: 0 } } } }),
  ],
  [
    'another object as backend',
    rule({ pathType: 'Exact', path: '/', backend: { resource: { kind: 'Bucket', name: 'b' } } }),
  ],
];
for (const [title, wanted] of good)
  test(`${title} is valid`, (t) => t.deepEqual(create(Ingress, ingress(wanted)).causes, []));

const at = 'spec.rules[0].http.paths[0]';
const bad: readonly (readonly [title: string, spec: Record<string, unknown>, causes: readonly string[]])[] = [
  ['nothing', {}, ['spec Invalid']],
  ['a path without type', rule({ path: '/', backend: { service } }), [`${at}.pathType Required`]],
  [
    'a path with an unknown type',
    rule({ path: '/', pathType: 'Some', backend: { service } }),
    [`${at}.pathType NotSupported`],
  ],
  ['a relative path', rule({ path: 'a', pathType: 'Prefix', backend: { service } }), [`${at}.path Invalid`]],
  ['a path with dots', rule({ path: '/a/../b', pathType: 'Exact', backend: { service } }), [`${at}.path Invalid`]],
  ['an empty path type', rule({ path: '/', pathType: '', backend: { service } }), [`${at}.pathType NotSupported`]],
  [
    'a resource backend whose names cannot be in a path',
    { defaultBackend: { resource: { apiGroup: 'A', kind: 'a/b', name: '..' } } },
    ['apiGroup', 'kind', 'name'].map((field) => `spec.defaultBackend.resource.${field} Invalid`),
  ],
  ['no backend at all', rule({ path: '/', pathType: 'Exact', backend: {} }), [`${at}.backend Invalid`]],
  [
    'two backends',
    rule({ path: '/', pathType: 'Exact', backend: { service, resource: { kind: 'Bucket', name: 'b' } } }),
    [`${at}.backend Invalid`],
  ],
  ['no port', { defaultBackend: { service: { name: 'web' } } }, ['spec.defaultBackend Required']],
  [
    'no service name',
    { defaultBackend: { service: { port: { number: 80 } } } },
    ['spec.defaultBackend.service.name Required'],
  ],
  [
    'two ports',
    { defaultBackend: { service: { name: 'web', port: { name: 'http', number: 80 } } } },
    ['spec.defaultBackend Invalid'],
  ],
  [
    'a port out of range',
    { defaultBackend: { service: { name: 'web', port: { number: 70000 } } } },
    ['spec.defaultBackend.service.port.number Invalid'],
  ],
  [
    'an address as host',
    { rules: [{ host: '10.0.0.1' }], defaultBackend: { service } },
    ['spec.rules[0].host Invalid'],
  ],
  ['an empty list of paths', { rules: [{ http: { paths: [] } }] }, ['spec.rules[0].http.paths Required']],
];
for (const [title, wanted, causes] of bad)
  test(`${title} is rejected`, (t) => t.deepEqual(create(Ingress, ingress(wanted)).causes, causes));

test('the class annotation of a new ingress equals its class, and a wildcard is the first label of a host', (t) => {
  const made = create(Ingress, {
    metadata: { name: 'x', annotations: { 'kubernetes.io/ingress.class': 'a' } },
    spec: { ingressClassName: 'b', rules: [{ host: 'a.*.b' }, { host: '*.a.example' }] },
  });
  const pattern = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
  t.deepEqual(made.messages, [
    'spec.rules[0].host: Invalid value: "a.*.b": a wildcard DNS-1123 subdomain must start with \'*.\', followed by a ' +
      "valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an " +
      `alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.${pattern}(\\.${pattern})*')`,
    'annotations.kubernetes.io/ingress.class: Invalid value: "a": must match `ingressClassName` when both are specified',
  ]);
});
