import type { CertificateRequest } from '@keelson/certificates';
import { Service } from '@keelson/kinds';
import test from 'ava';
import { nodeServingSigner, signerProblem } from '../src/certificates/signer-rules.ts';
import { usageOfKind } from '../src/quota/usage.ts';

const label = 'a'.repeat(63);

for (const [name, isValid] of [
  ['node', true],
  ['a', true],
  ['n1.eu', true],
  ['x.y.z', true],
  ['*.example.com', true],
  ['Node-1.Example.COM', true],
  [`${label}.${label}`, true],
  [`${label}a`, false],
  [`a.${label}a`, false],
  [[label, label, label, label].join('.'), false],
  ['', false],
  ['-a', false],
  ['a-', false],
  ['a..b', false],
  ['a.', false],
  ['a_b', false],
  ['a.*.b', false],
] as const) {
  test(`a serving certificate ${isValid ? 'may' : 'must not'} have the name ${JSON.stringify(name.slice(0, 70))}`, (t) => {
    const request = {
      subject: { commonName: 'system:node:a', organizations: ['system:nodes'], others: [] },
      names: { dns: [name], ips: [], emails: [], uris: [], others: 0 },
      publicKey: Buffer.alloc(0),
    } satisfies CertificateRequest;
    const problem = signerProblem(nodeServingSigner, request, ['digital signature', 'server auth']);
    t.is(problem, isValid ? undefined : `the alternative name ${JSON.stringify(name)} is not a DNS name`);
  });
}

const port = (nodePort?: number) => ({ port: 80, ...(nodePort === undefined ? {} : { nodePort }) });

for (const [title, spec, nodePorts, loadBalancers] of [
  ['of type ClusterIP', { type: 'ClusterIP', ports: [port(), port()] }, '0', '0'],
  ['without ports', { type: 'NodePort' }, '0', '0'],
  ['of type NodePort', { type: 'NodePort', ports: [port(), port(30001)] }, '2', '0'],
  ['of type LoadBalancer', { type: 'LoadBalancer', ports: [port(), port()] }, '2', '1'],
  [
    'with allocated node ports',
    { type: 'LoadBalancer', ports: [port(), port()], allocateLoadBalancerNodePorts: true },
    '2',
    '1',
  ],
  [
    'with requested node ports only',
    { type: 'LoadBalancer', ports: [port(), port(30001)], allocateLoadBalancerNodePorts: false },
    '1',
    '1',
  ],
] as const) {
  test(`a quota counts ${nodePorts} node ports and ${loadBalancers} load balancers of a service ${title}`, (t) => {
    const usage = usageOfKind(Service);
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec };
    t.deepEqual(usage?.usageOf(service, new Date(0)), {
      'count/services': '1',
      services: '1',
      'services.nodeports': nodePorts,
      'services.loadbalancers': loadBalancers,
    });
    t.true(usage?.counts('services.nodeports'));
    t.false(usage?.counts('pods'));
  });
}
