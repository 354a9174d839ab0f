import test from 'ava';
import { APIService } from '../src/index.ts';
import { create, row } from './helpers/writes.ts';

const service = (spec: Record<string, unknown>, name = 'v1.example.com') => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name },
  spec: { group: 'example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 15, ...spec },
});
const remote = { service: { namespace: 'default', name: 'api' } };

for (const [title, object, messages] of [
  [
    'another name',
    service(remote, 'example'),
    ['metadata.name: Invalid value: "example": must be `spec.version+"."+spec.group`: "v1.example.com"'],
  ],
  [
    'a version of the core group',
    service({ group: '', version: 'v2' }, 'v2.'),
    ['spec.group: Required value: only v1 may have an empty group and it better be legacy kube'],
  ],
  [
    'priorities out of range',
    service({ ...remote, groupPriorityMinimum: 0, versionPriority: 1001 }),
    [
      'spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000',
      'spec.versionPriority: Invalid value: 1001: must be positive and less than 1000',
    ],
  ],
  [
    'authorities of a local group',
    service({ caBundle: 'YQ==', insecureSkipTLSVerify: true }),
    [
      'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
      'spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify',
    ],
  ],
  [
    'a service without names',
    service({ service: { port: 0 } }),
    [
      'spec.service.namespace: Required value',
      'spec.service.name: Required value',
      'spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive',
    ],
  ],
  [
    'contradicting TLS settings',
    service({ ...remote, caBundle: 'YQ==', insecureSkipTLSVerify: true }),
    ['spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present'],
  ],
] as readonly [string, unknown, readonly string[]][]) {
  test(`an APIService with ${title} is invalid`, (t) => {
    t.deepEqual(create(APIService, object).messages, messages);
  });
}

test('an APIService without a service is available at once', (t) => {
  const { object } = create(APIService, service({}));
  t.deepEqual(
    object.status?.conditions?.map(({ type, status, reason }) => ({ type, status, reason })),
    [{ type: 'Available', status: 'True', reason: 'Local' }],
  );
  t.like(row(APIService, object), { Service: 'Local', Available: 'True' });
});

test('an APIService with a service is unknown until it is examined', (t) => {
  const { object, messages } = create(APIService, service(remote));
  t.deepEqual(messages, []);
  t.is(object.spec.service?.port, 443);
  t.like(row(APIService, object), { Service: 'default/api', Available: 'Unknown' });
});
