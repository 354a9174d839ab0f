import { createAuthority } from '@keelson/certificates';
import { type KindDefinition, type KubeObject, systemUser } from '@keelson/core';
import test from 'ava';
import {
  CSIStorageCapacity,
  EndpointSlice,
  Endpoints,
  NetworkingV1Ingress,
  NetworkPolicy,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  RuntimeClass,
  Secret,
  Service,
  ServiceAccount,
  StorageClass,
} from '../src/index.ts';
import { serviceManifest } from './helpers/manifests.ts';
import { contextOf, create, defaulted } from './helpers/writes.ts';

const metadata = { name: 'x', namespace: 'default' };

/** The warnings about a valid new object. */
function warningsOf<T extends KubeObject>(kind: KindDefinition<T>, fields: Record<string, unknown>): string[] {
  const texts: string[] = [];
  const object = defaulted(kind, { metadata, ...fields });
  kind.strategy.prepareForCreate?.(object, { ...contextOf(systemUser), warn: (text) => void texts.push(text) });
  return [...texts, ...(kind.strategy.warnings?.(object) ?? [])];
}

const future = 'will be considered invalid in a future Kubernetes release: use';
const invalidIp = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';

test('addresses with leading zeros are valid, with a warning that shows the standard form', (t) => {
  const externalIPs = ['01.2.3.4', '::ffff:1.2.3.4', 'FD00::1', '1.2.3.4', 'fd00::1'];
  t.deepEqual(create(Service, serviceManifest({ externalIPs })).messages, []);
  t.deepEqual(warningsOf(Service, serviceManifest({ externalIPs })), [
    `spec.externalIPs[0]: non-standard IP address "01.2.3.4" ${future} "1.2.3.4"`,
    `spec.externalIPs[1]: non-standard IP address "::ffff:1.2.3.4" ${future} "1.2.3.4"`,
    'spec.externalIPs[2]: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")',
  ]);
  for (const ip of ['01.2.3', '1.2.3.256', '1.2.3.x', '00001::1', 'fe80::1%eth0', `${'0'.repeat(100)}1.2.3.4`]) {
    const { messages } = create(Service, serviceManifest({ externalIPs: [ip] }));
    t.deepEqual(messages, [`spec.externalIPs[0]: Invalid value: ${JSON.stringify(ip)}: ${invalidIp}`]);
  }
  t.deepEqual(create(Service, serviceManifest({ externalIPs: ['0127.0.0.1'] })).causes, [
    'spec.externalIPs[0] Invalid',
  ]);
});

test('ranges with leading zeros or host bits are valid, with a warning that shows the standard form', (t) => {
  const loadBalancerSourceRanges = [
    ...['10.0.0.1/8', '10.01.0.0/016', 'FD00::/8', '::ffff:1.2.3.0/120', 'fd00::1:0:0/64', '10.0.0.0/8'],
  ];
  const manifest = serviceManifest({ type: 'LoadBalancer', loadBalancerSourceRanges });
  t.deepEqual(create(Service, manifest).messages, []);
  const path = 'spec.loadBalancerSourceRanges';
  t.deepEqual(warningsOf(Service, manifest), [
    `${path}[0]: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)`,
    `${path}[1]: non-standard CIDR value "10.01.0.0/016" ${future} "10.1.0.0/16"`,
    `${path}[2]: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")`,
    `${path}[3]: non-standard CIDR value "::ffff:1.2.3.0/120" ${future} "1.2.3.0/24"`,
    `${path}[4]: CIDR value "fd00::1:0:0/64" is ambiguous in this context ` +
      '(should be "fd00::/64" or "fd00::1:0:0/128"?)',
  ]);
  for (const range of ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/-1', '10.0.0.0/8/8']) {
    const { causes } = create(Service, serviceManifest({ type: 'LoadBalancer', loadBalancerSourceRanges: [range] }));
    t.deepEqual(causes, ['spec.LoadBalancerSourceRanges[0] Invalid']);
  }
});

test('IPv6 addresses of EndpointSlices are in canonical form, IPv4 addresses may have leading zeros', (t) => {
  const slice = (addressType: string, address: string) => ({
    metadata,
    addressType,
    endpoints: [{ addresses: [address] }],
  });
  t.deepEqual(create(EndpointSlice, slice('IPv4', '010.1.2.3')).messages, []);
  t.deepEqual(warningsOf(EndpointSlice, slice('IPv4', '010.1.2.3')), [
    `endpoints[0].addresses[0]: non-standard IP address "010.1.2.3" ${future} "10.1.2.3"`,
  ]);
  t.deepEqual(create(EndpointSlice, slice('IPv6', '64:ff9b::01.2.3.4')).messages, [
    'endpoints[0].addresses[0]: Invalid value: "64:ff9b::01.2.3.4": must not have leading 0s',
  ]);
});

test('the excepted ranges of a NetworkPolicy may have leading zeros, and are compared as numbers', (t) => {
  const policy = (cidr: string, except: string[]) => ({
    metadata,
    spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr, except } }] }] },
  });
  t.deepEqual(create(NetworkPolicy, policy('010.0.0.0/8', ['10.01.0.0/16'])).messages, []);
  t.deepEqual(create(NetworkPolicy, policy('10.0.0.0/8', ['10.0.0.0/8', '11.0.0.0/16', 'fd00::/16'])).causes, [
    'spec.ingress[0].from[0].ipBlock.except[0] Invalid',
    'spec.ingress[0].from[0].ipBlock.except[1] Invalid',
    'spec.ingress[0].from[0].ipBlock.except[2] Invalid',
  ]);
  t.deepEqual(create(NetworkPolicy, policy('fd00::/8', ['fd00:1::/32'])).messages, []);
  t.deepEqual(warningsOf(NetworkPolicy, policy('10.1.0.0/8', [])), [
    'spec.ingress[0].from[0].ipBlock.cidr: CIDR value "10.1.0.0/8" is ambiguous in this context ' +
      '(should be "10.0.0.0/8" or "10.1.0.0/32"?)',
  ]);
});

test('Endpoints are deprecated, and their addresses have warnings', (t) => {
  t.is(Endpoints.deprecationWarning, 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice');
  t.deepEqual(warningsOf(Endpoints, { subsets: [{ notReadyAddresses: [{ ip: '010.0.0.1' }] }] }), [
    `subsets[0].notReadyAddresses[0].ip: non-standard IP address "010.0.0.1" ${future} "10.0.0.1"`,
  ]);
});

test('a service has warnings about fields that its type ignores', (t) => {
  const ignored = { externalIPs: ['1.2.3.4'], loadBalancerIP: '1.2.3.4', sessionAffinity: 'ClientIP' };
  t.deepEqual(warningsOf(Service, serviceManifest({ clusterIP: 'None', ...ignored })), [
    'spec.loadBalancerIP is ignored for headless services',
    'spec.externalIPs is ignored for headless services',
    'spec.SessionAffinity is ignored for headless services',
  ]);
  t.deepEqual(warningsOf(Service, serviceManifest({ externalName: 'a.b' })), [
    'spec.externalName is ignored when spec.type is not "ExternalName"',
  ]);
  const alias = { type: 'ExternalName', externalName: 'a.b', externalIPs: ['1.2.3.4'] };
  t.deepEqual(warningsOf(Service, serviceManifest(alias)), [
    'spec.externalIPs is ignored when spec.type is "ExternalName"',
  ]);
  const annotations = { 'service.kubernetes.io/topology-aware-hints': 'Auto' };
  t.deepEqual(warningsOf(Service, { ...serviceManifest(), metadata: { ...metadata, annotations } }), [
    'annotation service.kubernetes.io/topology-aware-hints is deprecated, ' +
      'please use service.kubernetes.io/topology-mode instead',
  ]);
});

test('a new ingress with the annotation instead of the field has a warning', (t) => {
  const annotated = { metadata: { ...metadata, annotations: { 'kubernetes.io/ingress.class': 'a' } } };
  const defaultBackend = { service: { name: 'a', port: { number: 80 } } };
  t.deepEqual(warningsOf(NetworkingV1Ingress, { ...annotated, spec: { defaultBackend } }), [
    `annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`,
  ]);
  t.deepEqual(warningsOf(NetworkingV1Ingress, { spec: { defaultBackend } }), []);
});

test('volumes and claims have warnings about deprecated annotations, plugins and labels', (t) => {
  const classKey = 'volume.beta.kubernetes.io/storage-class';
  const annotations = { [classKey]: 'a', 'volume.beta.kubernetes.io/mount-options': 'ro' };
  const matchExpressions = [{ key: 'beta.kubernetes.io/os', operator: 'Exists' }];
  const spec = {
    persistentVolumeReclaimPolicy: 'Recycle',
    rbd: { monitors: ['a'], image: 'b' },
    storageos: { volumeName: 'a' },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
  t.deepEqual(warningsOf(PersistentVolume, { metadata: { ...metadata, annotations }, spec }), [
    `metadata.annotations[${classKey}]: deprecated since v1.8; use "storageClassName" attribute instead`,
    'metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; use "mountOptions" attribute instead',
    'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
    'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
    'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
    'spec.rbd: deprecated in v1.28, non-functional in v1.31+',
  ]);
  const resources = { requests: { storage: '1500m' }, limits: { storage: '1Gi' } };
  t.deepEqual(warningsOf(PersistentVolumeClaim, { metadata: { ...metadata, annotations }, spec: { resources } }), [
    `metadata.annotations[${classKey}]: deprecated since v1.8; use "storageClassName" attribute instead`,
    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
  ]);
});

test('deprecated labels of nodes have warnings wherever nodes are selected', (t) => {
  const zone = 'failure-domain.beta.kubernetes.io/zone';
  const advice = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead';
  const allowedTopologies = [{ matchLabelExpressions: [{ key: zone, values: ['a'] }] }];
  t.deepEqual(warningsOf(StorageClass, { provisioner: 'a', allowedTopologies }), [
    `allowedTopologies[0].matchLabelExpressions[0].key: ${advice}`,
  ]);
  t.deepEqual(warningsOf(RuntimeClass, { handler: 'a', scheduling: { nodeSelector: { [zone]: 'a' } } }), [
    `scheduling.nodeSelector: ${advice}`,
  ]);
  const nodeTopology = { matchLabels: { [zone]: 'a' }, matchExpressions: [{ key: zone, operator: 'Exists' }] };
  t.deepEqual(warningsOf(CSIStorageCapacity, { storageClassName: 'a', nodeTopology }), [
    `nodeTopology.matchExpressions[0].key: ${zone} is ${advice}`,
    `nodeTopology.matchLabels.${zone}: ${advice}`,
  ]);
});

test('a node has warnings about its external id and about pod CIDRs with host bits', (t) => {
  t.deepEqual(warningsOf(Node, { spec: { externalID: 'a', podCIDRs: ['10.1.0.0/8'] } }), [
    'spec.externalID: this field is deprecated, and is unused by Kubernetes',
    'spec.podCIDRs[0]: CIDR value "10.1.0.0/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.1.0.0/32"?)',
  ]);
});

test('a service account has a warning when the annotation for mountable secrets is added', (t) => {
  const annotated = { metadata: { ...metadata, annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } } };
  t.deepEqual(warningsOf(ServiceAccount, annotated), [
    'metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; ' +
      'prefer separate namespaces to isolate access to mounted secrets',
  ]);
  const texts: string[] = [];
  const context = { ...contextOf(systemUser), warn: (text: string) => void texts.push(text) };
  const account = create(ServiceAccount, annotated).object;
  ServiceAccount.strategy.prepareForUpdate?.(structuredClone(account), account, context);
  t.deepEqual(texts, []);
});

test('a TLS secret has a warning unless its key belongs to its certificate', async (t) => {
  const start = new Date('2026-01-01T00:00:00Z');
  const validity = { notBefore: start, notAfter: new Date('2027-01-01T00:00:00Z') };
  const [own, other] = [await createAuthority('a', validity), await createAuthority('b', validity)];
  const warnings = (crt: string, key: string) =>
    warningsOf(Secret, { type: 'kubernetes.io/tls', stringData: { 'tls.crt': crt, 'tls.key': key } });
  const { certificate, key } = own;
  t.deepEqual(warnings(certificate, key), []);
  t.deepEqual(warnings(certificate, other.key), ['tls: private key does not match public key']);
  t.deepEqual(warnings('', ''), ['tls: failed to find any PEM data in certificate input']);
  t.deepEqual(warnings(certificate, 'x'), ['tls: failed to find any PEM data in key input']);
  t.deepEqual(warnings(certificate, certificate), [
    'tls: found a certificate rather than a key in the PEM for the private key',
  ]);
  t.deepEqual(warnings(key, certificate), [
    'tls: failed to find certificate PEM data in certificate input, but did find a private key; ' +
      'PEM inputs may have been switched',
  ]);
});
