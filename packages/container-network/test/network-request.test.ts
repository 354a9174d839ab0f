import test from 'ava';
import { networkRequest } from '../src/index.ts';

const metadata = { name: 'front-1', namespace: 'web', uid: 'u', attempt: 0 };

test('a network request is derived from the configuration of the sandbox', (t) => {
  const dns = { servers: ['10.0.0.10'], searches: [], options: [] };
  const portMappings = [{ protocol: 'TCP' as const, containerPort: 80, hostPort: 8080 }];
  t.deepEqual(networkRequest('s1', '/run/netns/x', { metadata, dns, portMappings, hostname: 'h' }), {
    sandboxId: 's1',
    netnsPath: '/run/netns/x',
    name: 'front-1',
    namespace: 'web',
    uid: 'u',
    dns,
    portMappings,
  });
});

test('annotations limit the bandwidth, between 1k and 1P', (t) => {
  const of = (annotations: Record<string, string>) => networkRequest('s', '', { metadata, annotations }).bandwidth;
  t.is(of({}), undefined);
  t.deepEqual(of({ 'kubernetes.io/ingress-bandwidth': '10M' }), { ingressRate: 10_000_000 });
  t.deepEqual(of({ 'kubernetes.io/egress-bandwidth': '1k', 'kubernetes.io/ingress-bandwidth': '1P' }), {
    egressRate: 1_000,
    ingressRate: 1e15,
  });
  for (const [text, message] of [
    ['fast', 'annotation kubernetes.io/egress-bandwidth: "fast" is not a quantity'],
    ['999', 'annotation kubernetes.io/egress-bandwidth: 999 is not between 1k and 1P'],
    ['2P', 'annotation kubernetes.io/egress-bandwidth: 2P is not between 1k and 1P'],
  ] as const) {
    t.throws(() => of({ 'kubernetes.io/egress-bandwidth': text }), { code: 'InvalidArgument', message });
  }
});
